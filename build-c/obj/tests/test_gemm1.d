build-c/obj/tests/test_gemm1.o: tests/test_gemm1.c \
 src/kernels/operand/bit_planes.h \
 src/kernels/operand/../../layouts/number.h \
 src/kernels/operand/../../layouts/base.h include/lpgemm.h \
 src/kernels/operand/../../layouts/unit.h \
 src/kernels/operand/../../layouts/tile.h \
 src/kernels/operand/../../layouts/algebra.h tests/problem.h tests/test.h
src/kernels/operand/bit_planes.h:
src/kernels/operand/../../layouts/number.h:
src/kernels/operand/../../layouts/base.h:
include/lpgemm.h:
src/kernels/operand/../../layouts/unit.h:
src/kernels/operand/../../layouts/tile.h:
src/kernels/operand/../../layouts/algebra.h:
tests/problem.h:
tests/test.h:
