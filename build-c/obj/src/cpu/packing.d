build-c/obj/src/cpu/packing.o: src/cpu/packing.c src/cpu/../pack/pack.h \
 src/cpu/../pack/../internal.h src/cpu/../pack/../layouts/packed.h \
 include/lpgemm.h src/cpu/../pack/../layouts/number.h \
 src/cpu/../pack/../layouts/base.h src/cpu/../pack/../layouts/tile.h \
 src/cpu/../pack/../layouts/algebra.h src/cpu/../pack/../plan.h \
 src/cpu/../pack/../status.h src/cpu/cpu.h src/cpu/../internal.h
src/cpu/../pack/pack.h:
src/cpu/../pack/../internal.h:
src/cpu/../pack/../layouts/packed.h:
include/lpgemm.h:
src/cpu/../pack/../layouts/number.h:
src/cpu/../pack/../layouts/base.h:
src/cpu/../pack/../layouts/tile.h:
src/cpu/../pack/../layouts/algebra.h:
src/cpu/../pack/../plan.h:
src/cpu/../pack/../status.h:
src/cpu/cpu.h:
src/cpu/../internal.h:
