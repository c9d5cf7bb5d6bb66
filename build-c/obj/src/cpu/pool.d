build-c/obj/src/cpu/pool.o: src/cpu/pool.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h
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
