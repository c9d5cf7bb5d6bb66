build-c/obj/src/files/config.o: src/files/config.c src/files/config.h \
 src/files/files.h src/internal.h src/layouts/packed.h include/lpgemm.h \
 src/layouts/number.h src/layouts/base.h src/layouts/tile.h \
 src/layouts/algebra.h src/plan.h src/status.h src/files/json.h \
 src/files/pattern.h
src/files/config.h:
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
src/files/json.h:
src/files/pattern.h:
