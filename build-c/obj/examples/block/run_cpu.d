build-c/obj/examples/block/run_cpu.o: examples/block/run_cpu.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
