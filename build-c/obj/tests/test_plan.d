build-c/obj/tests/test_plan.o: tests/test_plan.c \
 src/kernels/dequant/dequant_expand.h src/kernels/dequant/dequant_plan.h \
 src/kernels/dequant/../operand/x_copy.h \
 src/kernels/dequant/../operand/../../internal.h \
 src/kernels/dequant/../operand/../../layouts/packed.h include/lpgemm.h \
 src/kernels/dequant/../operand/../../layouts/number.h \
 src/kernels/dequant/../operand/../../layouts/base.h \
 src/kernels/dequant/../operand/../../layouts/tile.h \
 src/kernels/dequant/../operand/../../layouts/algebra.h \
 src/kernels/dequant/../operand/../../plan.h \
 src/kernels/dequant/../operand/../../status.h \
 src/kernels/dequant/../plan/partition.h \
 src/kernels/dequant/../plan/../../internal.h \
 src/kernels/gemm/gemm_mode.h src/kernels/gemm/gemm_plan.h \
 src/kernels/gemm/../epilogue/sums.h \
 src/kernels/gemm/../epilogue/../plan/partition.h \
 src/kernels/gemm8/gemm8_plan.h src/kernels/gemm8/../epilogue/sums.h \
 src/kernels/gemv/gemv_plan.h src/kernels/gemv/../plan/partition.h \
 src/kernels/operand/center.h src/kernels/operand/../../internal.h \
 tests/made_up.h tests/devices.h src/dispatch/dispatch.h \
 src/dispatch/../internal.h src/dispatch/../layouts/kinds.h tests/test.h \
 tests/plans.h src/bitserial/gemv1_plan.h \
 src/bitserial/../kernels/plan/partition.h src/bitserial/gemv1_fixed.h \
 src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h src/internal.h
src/kernels/dequant/dequant_expand.h:
src/kernels/dequant/dequant_plan.h:
src/kernels/dequant/../operand/x_copy.h:
src/kernels/dequant/../operand/../../internal.h:
src/kernels/dequant/../operand/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/dequant/../operand/../../layouts/number.h:
src/kernels/dequant/../operand/../../layouts/base.h:
src/kernels/dequant/../operand/../../layouts/tile.h:
src/kernels/dequant/../operand/../../layouts/algebra.h:
src/kernels/dequant/../operand/../../plan.h:
src/kernels/dequant/../operand/../../status.h:
src/kernels/dequant/../plan/partition.h:
src/kernels/dequant/../plan/../../internal.h:
src/kernels/gemm/gemm_mode.h:
src/kernels/gemm/gemm_plan.h:
src/kernels/gemm/../epilogue/sums.h:
src/kernels/gemm/../epilogue/../plan/partition.h:
src/kernels/gemm8/gemm8_plan.h:
src/kernels/gemm8/../epilogue/sums.h:
src/kernels/gemv/gemv_plan.h:
src/kernels/gemv/../plan/partition.h:
src/kernels/operand/center.h:
src/kernels/operand/../../internal.h:
tests/made_up.h:
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/kinds.h:
tests/test.h:
tests/plans.h:
src/bitserial/gemv1_plan.h:
src/bitserial/../kernels/plan/partition.h:
src/bitserial/gemv1_fixed.h:
src/bitserial/../kernels/operand/x_fixed.h:
src/bitserial/../kernels/operand/../../internal.h:
src/internal.h:
