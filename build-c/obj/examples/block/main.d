build-c/obj/examples/block/main.o: examples/block/main.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
