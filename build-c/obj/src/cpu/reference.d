build-c/obj/src/cpu/reference.o: src/cpu/reference.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h src/cpu/epilogue.h src/cpu/weight.h \
 src/cpu/../pack/sections.h src/cpu/../pack/../layouts/packed.h
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
src/cpu/epilogue.h:
src/cpu/weight.h:
src/cpu/../pack/sections.h:
src/cpu/../pack/../layouts/packed.h:
