build-c/obj/bench/drawn.o: bench/drawn.c bench/drawn.h \
 bench/random_cases.h bench/common.h include/lpgemm.h bench/shapes.h \
 bench/random.h
bench/drawn.h:
bench/random_cases.h:
bench/common.h:
include/lpgemm.h:
bench/shapes.h:
bench/random.h:
