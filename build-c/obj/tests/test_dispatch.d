build-c/obj/tests/test_dispatch.o: tests/test_dispatch.c tests/made_up.h \
 tests/devices.h src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/packed.h include/lpgemm.h \
 src/dispatch/../layouts/number.h src/dispatch/../layouts/base.h \
 src/dispatch/../layouts/tile.h src/dispatch/../layouts/algebra.h \
 src/dispatch/../plan.h src/dispatch/../status.h \
 src/dispatch/../layouts/kinds.h tests/test.h
tests/made_up.h:
tests/devices.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/packed.h:
include/lpgemm.h:
src/dispatch/../layouts/number.h:
src/dispatch/../layouts/base.h:
src/dispatch/../layouts/tile.h:
src/dispatch/../layouts/algebra.h:
src/dispatch/../plan.h:
src/dispatch/../status.h:
src/dispatch/../layouts/kinds.h:
tests/test.h:
