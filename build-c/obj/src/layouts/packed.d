build-c/obj/src/layouts/packed.o: src/layouts/packed.c \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/status.h
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/status.h:
