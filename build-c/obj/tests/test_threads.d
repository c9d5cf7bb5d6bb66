build-c/obj/tests/test_threads.o: tests/test_threads.c tests/problem.h \
 include/lpgemm.h tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/test.h:
