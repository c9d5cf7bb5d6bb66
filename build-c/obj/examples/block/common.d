build-c/obj/examples/block/common.o: examples/block/common.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
