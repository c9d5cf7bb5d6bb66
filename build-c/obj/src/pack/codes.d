build-c/obj/src/pack/codes.o: src/pack/codes.c src/pack/../layouts/unit.h \
 src/pack/../layouts/tile.h src/pack/../layouts/algebra.h \
 src/pack/../layouts/base.h src/pack/pack.h src/pack/../internal.h \
 src/pack/../layouts/packed.h include/lpgemm.h \
 src/pack/../layouts/number.h src/pack/../plan.h src/pack/../status.h
src/pack/../layouts/unit.h:
src/pack/../layouts/tile.h:
src/pack/../layouts/algebra.h:
src/pack/../layouts/base.h:
src/pack/pack.h:
src/pack/../internal.h:
src/pack/../layouts/packed.h:
include/lpgemm.h:
src/pack/../layouts/number.h:
src/pack/../plan.h:
src/pack/../status.h:
