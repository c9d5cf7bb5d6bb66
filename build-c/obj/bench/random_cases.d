build-c/obj/bench/random_cases.o: bench/random_cases.c \
 bench/random_cases.h bench/common.h include/lpgemm.h bench/random.h
bench/random_cases.h:
bench/common.h:
include/lpgemm.h:
bench/random.h:
