build-c/obj/tests/test_dequant.o: tests/test_dequant.c tests/devices.h \
 src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/packed.h include/lpgemm.h \
 src/dispatch/../layouts/number.h src/dispatch/../layouts/base.h \
 src/dispatch/../layouts/tile.h src/dispatch/../layouts/algebra.h \
 src/dispatch/../plan.h src/dispatch/../status.h \
 src/dispatch/../layouts/kinds.h src/kernels/dequant/dequant_expand.h \
 src/kernels/dequant/dequant_plan.h \
 src/kernels/dequant/../operand/x_copy.h \
 src/kernels/dequant/../operand/../../internal.h \
 src/kernels/dequant/../plan/partition.h \
 src/kernels/dequant/../plan/../../internal.h src/layouts/number.h \
 tests/plans.h src/bitserial/gemv1_plan.h \
 src/bitserial/../kernels/plan/partition.h src/bitserial/gemv1_fixed.h \
 src/bitserial/../kernels/operand/x_fixed.h \
 src/bitserial/../kernels/operand/../../internal.h src/internal.h \
 tests/problem.h tests/sample.h tests/ref/exact.h tests/test.h
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
src/kernels/dequant/dequant_expand.h:
src/kernels/dequant/dequant_plan.h:
src/kernels/dequant/../operand/x_copy.h:
src/kernels/dequant/../operand/../../internal.h:
src/kernels/dequant/../plan/partition.h:
src/kernels/dequant/../plan/../../internal.h:
src/layouts/number.h:
tests/plans.h:
src/bitserial/gemv1_plan.h:
src/bitserial/../kernels/plan/partition.h:
src/bitserial/gemv1_fixed.h:
src/bitserial/../kernels/operand/x_fixed.h:
src/bitserial/../kernels/operand/../../internal.h:
src/internal.h:
tests/problem.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
