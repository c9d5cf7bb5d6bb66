build-c/obj/tests/test_files_hostile.o: tests/test_files_hostile.c \
 tests/checkpoints.h src/files/files.h src/internal.h \
 src/layouts/packed.h include/lpgemm.h src/layouts/number.h \
 src/layouts/base.h src/layouts/tile.h src/layouts/algebra.h src/plan.h \
 src/status.h src/files/json.h tests/test.h
tests/checkpoints.h:
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
tests/test.h:
