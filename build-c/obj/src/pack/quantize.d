build-c/obj/src/pack/quantize.o: src/pack/quantize.c src/pack/fit.h \
 src/pack/grid.h src/pack/../layouts/number.h src/pack/../layouts/base.h \
 include/lpgemm.h src/pack/pack.h src/pack/../internal.h \
 src/pack/../layouts/packed.h src/pack/../layouts/number.h \
 src/pack/../layouts/tile.h src/pack/../layouts/algebra.h \
 src/pack/../plan.h src/pack/../status.h src/pack/sections.h \
 src/pack/../layouts/packed.h
src/pack/fit.h:
src/pack/grid.h:
src/pack/../layouts/number.h:
src/pack/../layouts/base.h:
include/lpgemm.h:
src/pack/pack.h:
src/pack/../internal.h:
src/pack/../layouts/packed.h:
src/pack/../layouts/number.h:
src/pack/../layouts/tile.h:
src/pack/../layouts/algebra.h:
src/pack/../plan.h:
src/pack/../status.h:
src/pack/sections.h:
src/pack/../layouts/packed.h:
