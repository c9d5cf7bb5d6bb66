build-c/obj/tests/plans.o: tests/plans.c tests/plans.h \
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
 src/bitserial/../kernels/operand/../../internal.h src/internal.h \
 tests/devices.h src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/kinds.h tests/test.h
tests/plans.h:
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
src/internal.h:
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/kinds.h:
tests/test.h:
