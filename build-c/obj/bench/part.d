build-c/obj/bench/part.o: bench/part.c bench/part.h bench/case.h \
 bench/common.h include/lpgemm.h
bench/part.h:
bench/case.h:
bench/common.h:
include/lpgemm.h:
