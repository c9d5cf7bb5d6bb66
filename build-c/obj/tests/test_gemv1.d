build-c/obj/tests/test_gemv1.o: tests/test_gemv1.c \
 src/bitserial/gemv1_fixed.h src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h \
 src/bitserial/../kernels/operand/../../layouts/packed.h include/lpgemm.h \
 src/bitserial/../kernels/operand/../../layouts/number.h \
 src/bitserial/../kernels/operand/../../layouts/base.h \
 src/bitserial/../kernels/operand/../../layouts/tile.h \
 src/bitserial/../kernels/operand/../../layouts/algebra.h \
 src/bitserial/../kernels/operand/../../plan.h \
 src/bitserial/../kernels/operand/../../status.h \
 src/bitserial/gemv1_plan.h src/bitserial/../kernels/plan/partition.h \
 src/bitserial/../kernels/plan/../../internal.h \
 src/bitserial/gemv1_fixed.h tests/devices.h src/dispatch/dispatch.h \
 src/dispatch/../internal.h src/dispatch/../layouts/kinds.h tests/plans.h \
 src/internal.h tests/problem.h tests/ref/gemm_ref.h tests/test.h
src/bitserial/gemv1_fixed.h:
src/bitserial/../kernels/operand/x_fixed.h:
src/bitserial/../kernels/operand/../../internal.h:
src/bitserial/../kernels/operand/../../layouts/packed.h:
include/lpgemm.h:
src/bitserial/../kernels/operand/../../layouts/number.h:
src/bitserial/../kernels/operand/../../layouts/base.h:
src/bitserial/../kernels/operand/../../layouts/tile.h:
src/bitserial/../kernels/operand/../../layouts/algebra.h:
src/bitserial/../kernels/operand/../../plan.h:
src/bitserial/../kernels/operand/../../status.h:
src/bitserial/gemv1_plan.h:
src/bitserial/../kernels/plan/partition.h:
src/bitserial/../kernels/plan/../../internal.h:
src/bitserial/gemv1_fixed.h:
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/kinds.h:
tests/plans.h:
src/internal.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/test.h:
