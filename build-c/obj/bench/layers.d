build-c/obj/bench/layers.o: bench/layers.c bench/layers.h bench/shapes.h \
 bench/common.h include/lpgemm.h
bench/layers.h:
bench/shapes.h:
bench/common.h:
include/lpgemm.h:
