build-c/obj/tests/test_gemm.o: tests/test_gemm.c tests/compare.h \
 include/lpgemm.h tests/problem.h tests/ref/gemm_ref.h tests/sample.h \
 tests/ref/exact.h tests/test.h
tests/compare.h:
include/lpgemm.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
