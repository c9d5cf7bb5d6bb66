build-c/obj/src/remember.o: src/remember.c src/dispatch/dispatch.h \
 src/dispatch/../internal.h src/dispatch/../layouts/packed.h \
 include/lpgemm.h src/dispatch/../layouts/number.h \
 src/dispatch/../layouts/base.h src/dispatch/../layouts/tile.h \
 src/dispatch/../layouts/algebra.h src/dispatch/../plan.h \
 src/dispatch/../status.h src/dispatch/../layouts/kinds.h
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
