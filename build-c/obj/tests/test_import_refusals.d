build-c/obj/tests/test_import_refusals.o: tests/test_import_refusals.c \
 tests/checkpoint.h include/lpgemm.h tests/test.h
tests/checkpoint.h:
include/lpgemm.h:
tests/test.h:
