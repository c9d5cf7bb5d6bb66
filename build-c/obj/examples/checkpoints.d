build-c/obj/examples/checkpoints.o: examples/checkpoints.c \
 include/lpgemm.h
include/lpgemm.h:
