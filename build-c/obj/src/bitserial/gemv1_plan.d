build-c/obj/src/bitserial/gemv1_plan.o: src/bitserial/gemv1_plan.c \
 src/bitserial/gemv1_plan.h src/bitserial/../kernels/plan/partition.h \
 src/bitserial/../kernels/plan/../../internal.h \
 src/bitserial/../kernels/plan/../../layouts/packed.h include/lpgemm.h \
 src/bitserial/../kernels/plan/../../layouts/number.h \
 src/bitserial/../kernels/plan/../../layouts/base.h \
 src/bitserial/../kernels/plan/../../layouts/tile.h \
 src/bitserial/../kernels/plan/../../layouts/algebra.h \
 src/bitserial/../kernels/plan/../../plan.h \
 src/bitserial/../kernels/plan/../../status.h src/bitserial/gemv1_fixed.h \
 src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h \
 src/bitserial/../kernels/plan/rates.h
src/bitserial/gemv1_plan.h:
src/bitserial/../kernels/plan/partition.h:
src/bitserial/../kernels/plan/../../internal.h:
src/bitserial/../kernels/plan/../../layouts/packed.h:
include/lpgemm.h:
src/bitserial/../kernels/plan/../../layouts/number.h:
src/bitserial/../kernels/plan/../../layouts/base.h:
src/bitserial/../kernels/plan/../../layouts/tile.h:
src/bitserial/../kernels/plan/../../layouts/algebra.h:
src/bitserial/../kernels/plan/../../plan.h:
src/bitserial/../kernels/plan/../../status.h:
src/bitserial/gemv1_fixed.h:
src/bitserial/../kernels/operand/x_fixed.h:
src/bitserial/../kernels/operand/../../internal.h:
src/bitserial/../kernels/plan/rates.h:
