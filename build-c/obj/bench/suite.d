build-c/obj/bench/suite.o: bench/suite.c bench/suite.h bench/case.h \
 bench/common.h include/lpgemm.h bench/drawn.h bench/random_cases.h \
 bench/shapes.h bench/layers.h
bench/suite.h:
bench/case.h:
bench/common.h:
include/lpgemm.h:
bench/drawn.h:
bench/random_cases.h:
bench/shapes.h:
bench/layers.h:
