build-c/obj/src/bitserial/gemm1_plan.o: src/bitserial/gemm1_plan.c \
 src/bitserial/gemm1_plan.h src/bitserial/../internal.h \
 src/bitserial/../layouts/packed.h include/lpgemm.h \
 src/bitserial/../layouts/number.h src/bitserial/../layouts/base.h \
 src/bitserial/../layouts/tile.h src/bitserial/../layouts/algebra.h \
 src/bitserial/../plan.h src/bitserial/../status.h \
 src/bitserial/../kernels/operand/limits.h \
 src/bitserial/../kernels/operand/../../internal.h \
 src/bitserial/../kernels/plan/rates.h \
 src/bitserial/../kernels/plan/../../internal.h
src/bitserial/gemm1_plan.h:
src/bitserial/../internal.h:
src/bitserial/../layouts/packed.h:
include/lpgemm.h:
src/bitserial/../layouts/number.h:
src/bitserial/../layouts/base.h:
src/bitserial/../layouts/tile.h:
src/bitserial/../layouts/algebra.h:
src/bitserial/../plan.h:
src/bitserial/../status.h:
src/bitserial/../kernels/operand/limits.h:
src/bitserial/../kernels/operand/../../internal.h:
src/bitserial/../kernels/plan/rates.h:
src/bitserial/../kernels/plan/../../internal.h:
