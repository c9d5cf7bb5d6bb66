build-c/obj/tests/framework.o: tests/framework.c tests/framework.h \
 tests/test.h include/lpgemm.h
tests/framework.h:
tests/test.h:
include/lpgemm.h:
