build-c/obj/tests/test_gemm8.o: tests/test_gemm8.c tests/devices.h \
 src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/packed.h include/lpgemm.h \
 src/dispatch/../layouts/number.h src/dispatch/../layouts/base.h \
 src/dispatch/../layouts/tile.h src/dispatch/../layouts/algebra.h \
 src/dispatch/../plan.h src/dispatch/../status.h \
 src/dispatch/../layouts/kinds.h src/kernels/gemm8/gemm8_plan.h \
 src/kernels/gemm8/../epilogue/sums.h \
 src/kernels/gemm8/../epilogue/../plan/partition.h \
 src/kernels/gemm8/../epilogue/../plan/../../internal.h tests/plans.h \
 src/bitserial/gemv1_plan.h src/bitserial/../kernels/plan/partition.h \
 src/bitserial/gemv1_fixed.h src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h src/internal.h \
 tests/problem.h tests/test.h
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/packed.h:
include/lpgemm.h:
src/dispatch/../layouts/number.h:
src/dispatch/../layouts/base.h:
src/dispatch/../layouts/tile.h:
src/dispatch/../layouts/algebra.h:
src/dispatch/../plan.h:
src/dispatch/../status.h:
src/dispatch/../layouts/kinds.h:
src/kernels/gemm8/gemm8_plan.h:
src/kernels/gemm8/../epilogue/sums.h:
src/kernels/gemm8/../epilogue/../plan/partition.h:
src/kernels/gemm8/../epilogue/../plan/../../internal.h:
tests/plans.h:
src/bitserial/gemv1_plan.h:
src/bitserial/../kernels/plan/partition.h:
src/bitserial/gemv1_fixed.h:
src/bitserial/../kernels/operand/x_fixed.h:
src/bitserial/../kernels/operand/../../internal.h:
src/internal.h:
tests/problem.h:
tests/test.h:
