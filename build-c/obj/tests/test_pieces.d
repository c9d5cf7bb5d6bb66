build-c/obj/tests/test_pieces.o: tests/test_pieces.c tests/problem.h \
 include/lpgemm.h tests/ref/gemm_ref.h tests/sample.h tests/ref/exact.h \
 tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/ref/gemm_ref.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
