build-c/obj/tests/ref/gemm_ref.o: tests/ref/gemm_ref.c \
 tests/ref/gemm_ref.h include/lpgemm.h
tests/ref/gemm_ref.h:
include/lpgemm.h:
