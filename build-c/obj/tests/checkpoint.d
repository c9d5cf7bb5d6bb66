build-c/obj/tests/checkpoint.o: tests/checkpoint.c tests/checkpoint.h \
 include/lpgemm.h tests/test.h
tests/checkpoint.h:
include/lpgemm.h:
tests/test.h:
