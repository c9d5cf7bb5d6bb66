build-c/obj/tests/test_threads_slices.o: tests/test_threads_slices.c \
 tests/problem.h include/lpgemm.h tests/ref/gemm_ref.h tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/ref/gemm_ref.h:
tests/test.h:
