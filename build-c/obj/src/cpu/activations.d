build-c/obj/src/cpu/activations.o: src/cpu/activations.c \
 src/cpu/../pack/activation.h src/cpu/../pack/../layouts/number.h \
 src/cpu/../pack/../layouts/base.h include/lpgemm.h src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/tile.h \
 src/cpu/../layouts/algebra.h src/cpu/../layouts/base.h src/cpu/../plan.h \
 src/cpu/../status.h
src/cpu/../pack/activation.h:
src/cpu/../pack/../layouts/number.h:
src/cpu/../pack/../layouts/base.h:
include/lpgemm.h:
src/cpu/cpu.h:
src/cpu/../internal.h:
src/cpu/../layouts/packed.h:
src/cpu/../layouts/number.h:
src/cpu/../layouts/tile.h:
src/cpu/../layouts/algebra.h:
src/cpu/../layouts/base.h:
src/cpu/../plan.h:
src/cpu/../status.h:
