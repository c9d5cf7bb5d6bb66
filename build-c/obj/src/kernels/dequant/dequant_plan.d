build-c/obj/src/kernels/dequant/dequant_plan.o: \
 src/kernels/dequant/dequant_plan.c src/kernels/dequant/dequant_plan.h \
 src/kernels/dequant/../operand/x_copy.h \
 src/kernels/dequant/../operand/../../internal.h \
 src/kernels/dequant/../operand/../../layouts/packed.h include/lpgemm.h \
 src/kernels/dequant/../operand/../../layouts/number.h \
 src/kernels/dequant/../operand/../../layouts/base.h \
 src/kernels/dequant/../operand/../../layouts/tile.h \
 src/kernels/dequant/../operand/../../layouts/algebra.h \
 src/kernels/dequant/../operand/../../plan.h \
 src/kernels/dequant/../operand/../../status.h \
 src/kernels/dequant/../plan/partition.h \
 src/kernels/dequant/../plan/../../internal.h \
 src/kernels/dequant/../plan/rates.h src/kernels/dequant/dequant_expand.h
src/kernels/dequant/dequant_plan.h:
src/kernels/dequant/../operand/x_copy.h:
src/kernels/dequant/../operand/../../internal.h:
src/kernels/dequant/../operand/../../layouts/packed.h:
include/lpgemm.h:
src/kernels/dequant/../operand/../../layouts/number.h:
src/kernels/dequant/../operand/../../layouts/base.h:
src/kernels/dequant/../operand/../../layouts/tile.h:
src/kernels/dequant/../operand/../../layouts/algebra.h:
src/kernels/dequant/../operand/../../plan.h:
src/kernels/dequant/../operand/../../status.h:
src/kernels/dequant/../plan/partition.h:
src/kernels/dequant/../plan/../../internal.h:
src/kernels/dequant/../plan/rates.h:
src/kernels/dequant/dequant_expand.h:
