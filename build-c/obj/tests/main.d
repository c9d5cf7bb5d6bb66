build-c/obj/tests/main.o: tests/main.c tests/framework.h
tests/framework.h:
