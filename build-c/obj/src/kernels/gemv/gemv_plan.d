build-c/obj/src/kernels/gemv/gemv_plan.o: src/kernels/gemv/gemv_plan.c \
 src/kernels/gemv/gemv_plan.h src/kernels/gemv/../plan/partition.h \
 src/kernels/gemv/../plan/../../internal.h \
 src/kernels/gemv/../plan/../../layouts/packed.h include/lpgemm.h \
 src/kernels/gemv/../plan/../../layouts/number.h \
 src/kernels/gemv/../plan/../../layouts/base.h \
 src/kernels/gemv/../plan/../../layouts/tile.h \
 src/kernels/gemv/../plan/../../layouts/algebra.h \
 src/kernels/gemv/../plan/../../plan.h \
 src/kernels/gemv/../plan/../../status.h \
 src/kernels/gemv/../operand/center.h \
 src/kernels/gemv/../operand/../../internal.h \
 src/kernels/gemv/../operand/limits.h src/kernels/gemv/../plan/rates.h
src/kernels/gemv/gemv_plan.h:
src/kernels/gemv/../plan/partition.h:
src/kernels/gemv/../plan/../../internal.h:
src/kernels/gemv/../plan/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/gemv/../plan/../../layouts/number.h:
src/kernels/gemv/../plan/../../layouts/base.h:
src/kernels/gemv/../plan/../../layouts/tile.h:
src/kernels/gemv/../plan/../../layouts/algebra.h:
src/kernels/gemv/../plan/../../plan.h:
src/kernels/gemv/../plan/../../status.h:
src/kernels/gemv/../operand/center.h:
src/kernels/gemv/../operand/../../internal.h:
src/kernels/gemv/../operand/limits.h:
src/kernels/gemv/../plan/rates.h:
