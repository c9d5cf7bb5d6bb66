build-c/obj/examples/block/machine_cpu.o: examples/block/machine_cpu.c \
 examples/block/block.h include/lpgemm.h
examples/block/block.h:
include/lpgemm.h:
