build-c/obj/tests/test_numbers.o: tests/test_numbers.c \
 src/layouts/number.h src/layouts/base.h include/lpgemm.h \
 src/layouts/packed.h src/layouts/number.h src/layouts/tile.h \
 src/layouts/algebra.h tests/sample.h tests/ref/exact.h tests/test.h
src/layouts/number.h:
src/layouts/base.h:
include/lpgemm.h:
src/layouts/packed.h:
src/layouts/number.h:
src/layouts/tile.h:
src/layouts/algebra.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
