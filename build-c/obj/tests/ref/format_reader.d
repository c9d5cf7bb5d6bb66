build-c/obj/tests/ref/format_reader.o: tests/ref/format_reader.c \
 tests/ref/format_reader.h
tests/ref/format_reader.h:
