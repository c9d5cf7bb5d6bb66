build-c/obj/src/handle.o: src/handle.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h src/dispatch/dispatch.h src/dispatch/../internal.h \
 src/dispatch/../layouts/kinds.h src/internal.h
src/cpu/cpu.h:
src/cpu/../internal.h:
src/cpu/../layouts/packed.h:
include/lpgemm.h:
src/cpu/../layouts/number.h:
src/cpu/../layouts/base.h:
src/cpu/../layouts/tile.h:
src/cpu/../layouts/algebra.h:
src/cpu/../plan.h:
src/cpu/../status.h:
src/dispatch/dispatch.h:
src/dispatch/../internal.h:
src/dispatch/../layouts/kinds.h:
src/internal.h:
