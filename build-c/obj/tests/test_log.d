build-c/obj/tests/test_log.o: tests/test_log.c tests/test.h \
 include/lpgemm.h
tests/test.h:
include/lpgemm.h:
