build-c/obj/examples/replace_cublas.o: examples/replace_cublas.c \
 include/lpgemm.h
include/lpgemm.h:
