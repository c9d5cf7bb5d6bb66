build-c/obj/src/activations.o: src/activations.c src/internal.h \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/plan.h \
 src/status.h src/lut/lut.h src/lut/../internal.h
src/internal.h:
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
src/lut/lut.h:
src/lut/../internal.h:
