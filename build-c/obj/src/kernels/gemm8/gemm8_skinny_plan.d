build-c/obj/src/kernels/gemm8/gemm8_skinny_plan.o: \
 src/kernels/gemm8/gemm8_skinny_plan.c \
 src/kernels/gemm8/gemm8_skinny_plan.h src/kernels/gemm8/../../internal.h \
 src/kernels/gemm8/../../layouts/packed.h include/lpgemm.h \
 src/kernels/gemm8/../../layouts/number.h \
 src/kernels/gemm8/../../layouts/base.h \
 src/kernels/gemm8/../../layouts/tile.h \
 src/kernels/gemm8/../../layouts/algebra.h src/kernels/gemm8/../../plan.h \
 src/kernels/gemm8/../../status.h src/kernels/gemm8/../operand/limits.h \
 src/kernels/gemm8/../operand/../../internal.h \
 src/kernels/gemm8/../plan/rates.h \
 src/kernels/gemm8/../plan/../../internal.h
src/kernels/gemm8/gemm8_skinny_plan.h:
src/kernels/gemm8/../../internal.h:
src/kernels/gemm8/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/gemm8/../../layouts/number.h:
src/kernels/gemm8/../../layouts/base.h:
src/kernels/gemm8/../../layouts/tile.h:
src/kernels/gemm8/../../layouts/algebra.h:
src/kernels/gemm8/../../plan.h:
src/kernels/gemm8/../../status.h:
src/kernels/gemm8/../operand/limits.h:
src/kernels/gemm8/../operand/../../internal.h:
src/kernels/gemm8/../plan/rates.h:
src/kernels/gemm8/../plan/../../internal.h:
