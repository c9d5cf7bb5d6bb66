build-c/obj/src/files/json.o: src/files/json.c src/files/json.h \
 include/lpgemm.h src/files/files.h src/internal.h src/layouts/packed.h \
 src/layouts/number.h src/layouts/base.h src/layouts/tile.h \
 src/layouts/algebra.h src/plan.h src/status.h
src/files/json.h:
include/lpgemm.h:
src/files/files.h:
src/internal.h:
src/layouts/packed.h:
src/layouts/number.h:
src/layouts/base.h:
src/layouts/tile.h:
src/layouts/algebra.h:
src/plan.h:
src/status.h:
