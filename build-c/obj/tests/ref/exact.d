build-c/obj/tests/ref/exact.o: tests/ref/exact.c tests/ref/exact.h
tests/ref/exact.h:
