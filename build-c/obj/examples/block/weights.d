build-c/obj/examples/block/weights.o: examples/block/weights.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
