build-c/obj/tests/checkpoints.o: tests/checkpoints.c tests/checkpoints.h \
 tests/test.h include/lpgemm.h
tests/checkpoints.h:
tests/test.h:
include/lpgemm.h:
