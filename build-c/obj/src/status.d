build-c/obj/src/status.o: src/status.c src/status.h include/lpgemm.h
src/status.h:
include/lpgemm.h:
