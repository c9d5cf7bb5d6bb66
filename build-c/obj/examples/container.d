build-c/obj/examples/container.o: examples/container.c include/lpgemm.h
include/lpgemm.h:
