build-c/obj/tests/test_threads_lent.o: tests/test_threads_lent.c \
 tests/problem.h include/lpgemm.h tests/test.h
tests/problem.h:
include/lpgemm.h:
tests/test.h:
