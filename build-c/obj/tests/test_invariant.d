build-c/obj/tests/test_invariant.o: tests/test_invariant.c \
 tests/problem.h include/lpgemm.h tests/ref/gemm_ref.h tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/ref/gemm_ref.h:
tests/test.h:
