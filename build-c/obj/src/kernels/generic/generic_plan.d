build-c/obj/src/kernels/generic/generic_plan.o: \
 src/kernels/generic/generic_plan.c src/kernels/generic/../plan/rates.h \
 src/kernels/generic/../plan/../../internal.h \
 src/kernels/generic/../plan/../../layouts/packed.h include/lpgemm.h \
 src/kernels/generic/../plan/../../layouts/number.h \
 src/kernels/generic/../plan/../../layouts/base.h \
 src/kernels/generic/../plan/../../layouts/tile.h \
 src/kernels/generic/../plan/../../layouts/algebra.h \
 src/kernels/generic/../plan/../../plan.h \
 src/kernels/generic/../plan/../../status.h
src/kernels/generic/../plan/rates.h:
src/kernels/generic/../plan/../../internal.h:
src/kernels/generic/../plan/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/generic/../plan/../../layouts/number.h:
src/kernels/generic/../plan/../../layouts/base.h:
src/kernels/generic/../plan/../../layouts/tile.h:
src/kernels/generic/../plan/../../layouts/algebra.h:
src/kernels/generic/../plan/../../plan.h:
src/kernels/generic/../plan/../../status.h:
