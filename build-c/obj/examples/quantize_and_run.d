build-c/obj/examples/quantize_and_run.o: examples/quantize_and_run.c \
 include/lpgemm.h
include/lpgemm.h:
