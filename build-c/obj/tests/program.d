build-c/obj/tests/program.o: tests/program.c tests/program.h tests/test.h \
 include/lpgemm.h
tests/program.h:
tests/test.h:
include/lpgemm.h:
