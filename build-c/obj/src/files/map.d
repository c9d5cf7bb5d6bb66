build-c/obj/src/files/map.o: src/files/map.c src/files/files.h \
 src/internal.h src/layouts/packed.h include/lpgemm.h \
 src/layouts/number.h src/layouts/base.h src/layouts/tile.h \
 src/layouts/algebra.h src/plan.h src/status.h
src/files/files.h:
src/internal.h:
src/layouts/packed.h:
include/lpgemm.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
