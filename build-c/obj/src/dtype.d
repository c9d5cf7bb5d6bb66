build-c/obj/src/dtype.o: src/dtype.c src/internal.h src/layouts/packed.h \
 include/lpgemm.h src/layouts/number.h src/layouts/base.h \
 src/layouts/tile.h src/layouts/algebra.h src/plan.h src/status.h \
 src/layouts/ggml.h
src/internal.h:
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
src/layouts/ggml.h:
