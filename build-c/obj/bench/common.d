build-c/obj/bench/common.o: bench/common.c bench/common.h \
 include/lpgemm.h
bench/common.h:
include/lpgemm.h:
