build-c/obj/bench/shapes.o: bench/shapes.c bench/shapes.h bench/common.h \
 include/lpgemm.h
bench/shapes.h:
bench/common.h:
include/lpgemm.h:
