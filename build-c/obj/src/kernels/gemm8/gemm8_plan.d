build-c/obj/src/kernels/gemm8/gemm8_plan.o: \
 src/kernels/gemm8/gemm8_plan.c src/kernels/gemm8/gemm8_plan.h \
 src/kernels/gemm8/../epilogue/sums.h \
 src/kernels/gemm8/../epilogue/../plan/partition.h \
 src/kernels/gemm8/../epilogue/../plan/../../internal.h \
 src/kernels/gemm8/../epilogue/../plan/../../layouts/packed.h \
 include/lpgemm.h \
 src/kernels/gemm8/../epilogue/../plan/../../layouts/number.h \
 src/kernels/gemm8/../epilogue/../plan/../../layouts/base.h \
 src/kernels/gemm8/../epilogue/../plan/../../layouts/tile.h \
 src/kernels/gemm8/../epilogue/../plan/../../layouts/algebra.h \
 src/kernels/gemm8/../epilogue/../plan/../../plan.h \
 src/kernels/gemm8/../epilogue/../plan/../../status.h \
 src/kernels/gemm8/../operand/x_copy.h \
 src/kernels/gemm8/../operand/../../internal.h \
 src/kernels/gemm8/../plan/rates.h \
 src/kernels/gemm8/../plan/../../internal.h
src/kernels/gemm8/gemm8_plan.h:
src/kernels/gemm8/../epilogue/sums.h:
src/kernels/gemm8/../epilogue/../plan/partition.h:
src/kernels/gemm8/../epilogue/../plan/../../internal.h:
src/kernels/gemm8/../epilogue/../plan/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/gemm8/../epilogue/../plan/../../layouts/number.h:
src/kernels/gemm8/../epilogue/../plan/../../layouts/base.h:
src/kernels/gemm8/../epilogue/../plan/../../layouts/tile.h:
src/kernels/gemm8/../epilogue/../plan/../../layouts/algebra.h:
src/kernels/gemm8/../epilogue/../plan/../../plan.h:
src/kernels/gemm8/../epilogue/../plan/../../status.h:
src/kernels/gemm8/../operand/x_copy.h:
src/kernels/gemm8/../operand/../../internal.h:
src/kernels/gemm8/../plan/rates.h:
src/kernels/gemm8/../plan/../../internal.h:
