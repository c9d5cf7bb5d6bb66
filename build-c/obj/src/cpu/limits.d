build-c/obj/src/cpu/limits.o: src/cpu/limits.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h src/cpu/dot_bytes.h src/cpu/../layouts/packed.h
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
src/cpu/dot_bytes.h:
src/cpu/../layouts/packed.h:
