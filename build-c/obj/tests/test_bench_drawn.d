build-c/obj/tests/test_bench_drawn.o: tests/test_bench_drawn.c \
 tests/../bench/part.h tests/../bench/case.h tests/../bench/common.h \
 include/lpgemm.h tests/../bench/suite.h tests/../bench/drawn.h \
 tests/../bench/random_cases.h tests/../bench/shapes.h \
 src/kernels/plan/rates.h src/kernels/plan/../../internal.h \
 src/kernels/plan/../../layouts/packed.h \
 src/kernels/plan/../../layouts/number.h \
 src/kernels/plan/../../layouts/base.h \
 src/kernels/plan/../../layouts/tile.h \
 src/kernels/plan/../../layouts/algebra.h src/kernels/plan/../../plan.h \
 src/kernels/plan/../../status.h tests/made_up.h tests/devices.h \
 src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/kinds.h tests/test.h
tests/../bench/part.h:
tests/../bench/case.h:
tests/../bench/common.h:
include/lpgemm.h:
tests/../bench/suite.h:
tests/../bench/drawn.h:
tests/../bench/random_cases.h:
tests/../bench/shapes.h:
src/kernels/plan/rates.h:
src/kernels/plan/../../internal.h:
src/kernels/plan/../../layouts/packed.h:
src/kernels/plan/../../layouts/number.h:
src/kernels/plan/../../layouts/base.h:
src/kernels/plan/../../layouts/tile.h:
src/kernels/plan/../../layouts/algebra.h:
src/kernels/plan/../../plan.h:
src/kernels/plan/../../status.h:
tests/made_up.h:
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/kinds.h:
tests/test.h:
