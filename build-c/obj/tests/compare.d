build-c/obj/tests/compare.o: tests/compare.c tests/compare.h \
 include/lpgemm.h tests/ref/gemm_ref.h
tests/compare.h:
include/lpgemm.h:
tests/ref/gemm_ref.h:
