build-c/obj/tests/test_mapping.o: tests/test_mapping.c \
 src/kernels/plan/rates.h src/kernels/plan/../../internal.h \
 src/kernels/plan/../../layouts/packed.h include/lpgemm.h \
 src/kernels/plan/../../layouts/number.h \
 src/kernels/plan/../../layouts/base.h \
 src/kernels/plan/../../layouts/tile.h \
 src/kernels/plan/../../layouts/algebra.h src/kernels/plan/../../plan.h \
 src/kernels/plan/../../status.h tests/made_up.h tests/devices.h \
 src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/kinds.h tests/test.h
src/kernels/plan/rates.h:
src/kernels/plan/../../internal.h:
src/kernels/plan/../../layouts/packed.h:
include/lpgemm.h:
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
