build-c/obj/tests/test_format.o: tests/test_format.c \
 tests/ref/format_reader.h tests/sample.h include/lpgemm.h \
 tests/ref/exact.h tests/test.h
tests/ref/format_reader.h:
tests/sample.h:
include/lpgemm.h:
tests/ref/exact.h:
tests/test.h:
