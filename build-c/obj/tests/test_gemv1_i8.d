build-c/obj/tests/test_gemv1_i8.o: tests/test_gemv1_i8.c \
 src/bitserial/gemv1_i8_plan.h src/bitserial/gemv1_plan.h \
 src/bitserial/../kernels/plan/partition.h \
 src/bitserial/../kernels/plan/../../internal.h \
 src/bitserial/../kernels/plan/../../layouts/packed.h include/lpgemm.h \
 src/bitserial/../kernels/plan/../../layouts/number.h \
 src/bitserial/../kernels/plan/../../layouts/base.h \
 src/bitserial/../kernels/plan/../../layouts/tile.h \
 src/bitserial/../kernels/plan/../../layouts/algebra.h \
 src/bitserial/../kernels/plan/../../plan.h \
 src/bitserial/../kernels/plan/../../status.h src/bitserial/gemv1_fixed.h \
 src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h tests/plans.h \
 src/bitserial/gemv1_plan.h src/internal.h tests/problem.h tests/test.h
src/bitserial/gemv1_i8_plan.h:
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
tests/plans.h:
src/bitserial/gemv1_plan.h:
src/internal.h:
tests/problem.h:
tests/test.h:
