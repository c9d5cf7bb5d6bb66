build-c/obj/src/kernels/gemm/gemm_plan.o: src/kernels/gemm/gemm_plan.c \
 src/kernels/gemm/gemm_plan.h src/kernels/gemm/../epilogue/sums.h \
 src/kernels/gemm/../epilogue/../plan/partition.h \
 src/kernels/gemm/../epilogue/../plan/../../internal.h \
 src/kernels/gemm/../epilogue/../plan/../../layouts/packed.h \
 include/lpgemm.h \
 src/kernels/gemm/../epilogue/../plan/../../layouts/number.h \
 src/kernels/gemm/../epilogue/../plan/../../layouts/base.h \
 src/kernels/gemm/../epilogue/../plan/../../layouts/tile.h \
 src/kernels/gemm/../epilogue/../plan/../../layouts/algebra.h \
 src/kernels/gemm/../epilogue/../plan/../../plan.h \
 src/kernels/gemm/../epilogue/../plan/../../status.h \
 src/kernels/gemm/../operand/limits.h \
 src/kernels/gemm/../operand/../../internal.h \
 src/kernels/gemm/../operand/x_copy.h src/kernels/gemm/../plan/rates.h \
 src/kernels/gemm/../plan/../../internal.h src/kernels/gemm/gemm_mode.h
src/kernels/gemm/gemm_plan.h:
src/kernels/gemm/../epilogue/sums.h:
src/kernels/gemm/../epilogue/../plan/partition.h:
src/kernels/gemm/../epilogue/../plan/../../internal.h:
src/kernels/gemm/../epilogue/../plan/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/gemm/../epilogue/../plan/../../layouts/number.h:
src/kernels/gemm/../epilogue/../plan/../../layouts/base.h:
src/kernels/gemm/../epilogue/../plan/../../layouts/tile.h:
src/kernels/gemm/../epilogue/../plan/../../layouts/algebra.h:
src/kernels/gemm/../epilogue/../plan/../../plan.h:
src/kernels/gemm/../epilogue/../plan/../../status.h:
src/kernels/gemm/../operand/limits.h:
src/kernels/gemm/../operand/../../internal.h:
src/kernels/gemm/../operand/x_copy.h:
src/kernels/gemm/../plan/rates.h:
src/kernels/gemm/../plan/../../internal.h:
src/kernels/gemm/gemm_mode.h:
