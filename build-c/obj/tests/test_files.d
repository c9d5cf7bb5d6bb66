build-c/obj/tests/test_files.o: tests/test_files.c tests/checkpoints.h \
 src/files/json.h include/lpgemm.h src/files/pattern.h tests/test.h
tests/checkpoints.h:
src/files/json.h:
include/lpgemm.h:
src/files/pattern.h:
tests/test.h:
