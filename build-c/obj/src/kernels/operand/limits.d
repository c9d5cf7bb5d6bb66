build-c/obj/src/kernels/operand/limits.o: src/kernels/operand/limits.c \
 src/kernels/operand/limits.h src/kernels/operand/../../internal.h \
 src/kernels/operand/../../layouts/packed.h include/lpgemm.h \
 src/kernels/operand/../../layouts/number.h \
 src/kernels/operand/../../layouts/base.h \
 src/kernels/operand/../../layouts/tile.h \
 src/kernels/operand/../../layouts/algebra.h \
 src/kernels/operand/../../plan.h src/kernels/operand/../../status.h \
 src/kernels/operand/../plan/partition.h \
 src/kernels/operand/../plan/../../internal.h
src/kernels/operand/limits.h:
src/kernels/operand/../../internal.h:
src/kernels/operand/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/operand/../../layouts/number.h:
src/kernels/operand/../../layouts/base.h:
src/kernels/operand/../../layouts/tile.h:
src/kernels/operand/../../layouts/algebra.h:
src/kernels/operand/../../plan.h:
src/kernels/operand/../../status.h:
src/kernels/operand/../plan/partition.h:
src/kernels/operand/../plan/../../internal.h:
