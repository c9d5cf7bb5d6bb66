build-c/obj/examples/block/block.o: examples/block/block.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
