build-c/obj/src/files/container_write.o: src/files/container_write.c \
 src/files/container.h src/files/files.h src/internal.h \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/plan.h \
 src/status.h
src/files/container.h:
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
