build-c/obj/tests/test_pack.o: tests/test_pack.c tests/sample.h \
 include/lpgemm.h tests/ref/exact.h tests/test.h
tests/sample.h:
include/lpgemm.h:
tests/ref/exact.h:
tests/test.h:
