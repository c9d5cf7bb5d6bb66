build-c/obj/tests/ref/lmma.o: tests/ref/lmma.c tests/ref/lmma.h
tests/ref/lmma.h:
