build-c/obj/tests/test_compare.o: tests/test_compare.c tests/compare.h \
 include/lpgemm.h tests/ref/gemm_ref.h tests/test.h
tests/compare.h:
include/lpgemm.h:
tests/ref/gemm_ref.h:
tests/test.h:
