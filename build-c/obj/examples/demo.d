build-c/obj/examples/demo.o: examples/demo.c include/lpgemm.h
include/lpgemm.h:
