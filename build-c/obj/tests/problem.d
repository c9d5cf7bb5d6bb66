build-c/obj/tests/problem.o: tests/problem.c tests/problem.h \
 include/lpgemm.h tests/compare.h tests/ref/gemm_ref.h tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/compare.h:
tests/ref/gemm_ref.h:
tests/test.h:
