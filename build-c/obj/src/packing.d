build-c/obj/src/packing.o: src/packing.c src/internal.h \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/plan.h \
 src/status.h src/pack/pack.h src/pack/../internal.h
src/internal.h:
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
src/pack/pack.h:
src/pack/../internal.h:
