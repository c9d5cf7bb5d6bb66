build-c/obj/src/autotune.o: src/autotune.c src/clock.h \
 src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/packed.h include/lpgemm.h \
 src/dispatch/../layouts/number.h src/dispatch/../layouts/base.h \
 src/dispatch/../layouts/tile.h src/dispatch/../layouts/algebra.h \
 src/dispatch/../plan.h src/dispatch/../status.h \
 src/dispatch/../layouts/kinds.h src/internal.h
src/clock.h:
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
src/internal.h:
