build-c/obj/tests/sample.o: tests/sample.c tests/sample.h \
 include/lpgemm.h tests/ref/exact.h tests/test.h
tests/sample.h:
include/lpgemm.h:
tests/ref/exact.h:
tests/test.h:
