build-c/obj/tests/test_dropin.o: tests/test_dropin.c tests/compare.h \
 include/lpgemm.h tests/problem.h tests/ref/gemm_ref.h tests/test.h
tests/compare.h:
include/lpgemm.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/test.h:
