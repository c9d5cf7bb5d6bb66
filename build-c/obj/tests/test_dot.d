build-c/obj/tests/test_dot.o: tests/test_dot.c tests/compare.h \
 include/lpgemm.h tests/problem.h tests/ref/gemm_ref.h tests/test.h
tests/compare.h:
include/lpgemm.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/test.h:
