build-c/obj/src/kernels/plan/describe.o: src/kernels/plan/describe.c \
 src/kernels/plan/../../internal.h \
 src/kernels/plan/../../layouts/packed.h include/lpgemm.h \
 src/kernels/plan/../../layouts/number.h \
 src/kernels/plan/../../layouts/base.h \
 src/kernels/plan/../../layouts/tile.h \
 src/kernels/plan/../../layouts/algebra.h src/kernels/plan/../../plan.h \
 src/kernels/plan/../../status.h
src/kernels/plan/../../internal.h:
src/kernels/plan/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/plan/../../layouts/number.h:
src/kernels/plan/../../layouts/base.h:
src/kernels/plan/../../layouts/tile.h:
src/kernels/plan/../../layouts/algebra.h:
src/kernels/plan/../../plan.h:
src/kernels/plan/../../status.h:
