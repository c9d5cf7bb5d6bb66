build-c/obj/tests/test_convert.o: tests/test_convert.c tests/checkpoint.h \
 include/lpgemm.h tests/checkpoints.h src/layouts/number.h \
 src/layouts/base.h tests/program.h tests/test.h
tests/checkpoint.h:
include/lpgemm.h:
tests/checkpoints.h:
src/layouts/number.h:
src/layouts/base.h:
tests/program.h:
tests/test.h:
