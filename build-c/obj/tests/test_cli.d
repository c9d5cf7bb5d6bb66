build-c/obj/tests/test_cli.o: tests/test_cli.c tests/program.h \
 tests/test.h include/lpgemm.h
tests/program.h:
tests/test.h:
include/lpgemm.h:
