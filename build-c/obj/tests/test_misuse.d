build-c/obj/tests/test_misuse.o: tests/test_misuse.c src/internal.h \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/plan.h \
 src/status.h tests/sample.h tests/ref/exact.h tests/test.h
src/internal.h:
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
