build-c/obj/tests/test_layouts.o: tests/test_layouts.c \
 src/layouts/algebra.h src/layouts/base.h src/layouts/tile.h \
 src/layouts/algebra.h tests/test.h include/lpgemm.h
src/layouts/algebra.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
tests/test.h:
include/lpgemm.h:
