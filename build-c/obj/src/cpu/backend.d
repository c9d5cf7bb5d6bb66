build-c/obj/src/cpu/backend.o: src/cpu/backend.c src/cpu/../lut/lut.h \
 src/cpu/../lut/../internal.h src/cpu/../lut/../layouts/packed.h \
 include/lpgemm.h src/cpu/../lut/../layouts/number.h \
 src/cpu/../lut/../layouts/base.h src/cpu/../lut/../layouts/tile.h \
 src/cpu/../lut/../layouts/algebra.h src/cpu/../lut/../plan.h \
 src/cpu/../lut/../status.h src/cpu/../pack/pack.h \
 src/cpu/../pack/../internal.h src/cpu/cpu.h src/cpu/../internal.h
src/cpu/../lut/lut.h:
src/cpu/../lut/../internal.h:
src/cpu/../lut/../layouts/packed.h:
include/lpgemm.h:
src/cpu/../lut/../layouts/number.h:
src/cpu/../lut/../layouts/base.h:
src/cpu/../lut/../layouts/tile.h:
src/cpu/../lut/../layouts/algebra.h:
src/cpu/../lut/../plan.h:
src/cpu/../lut/../status.h:
src/cpu/../pack/pack.h:
src/cpu/../pack/../internal.h:
src/cpu/cpu.h:
src/cpu/../internal.h:
