build-c/obj/src/lut/lut_plan.o: src/lut/lut_plan.c src/lut/../cpu/cost.h \
 src/lut/../cpu/../internal.h src/lut/../cpu/../layouts/packed.h \
 include/lpgemm.h src/lut/../cpu/../layouts/number.h \
 src/lut/../cpu/../layouts/base.h src/lut/../cpu/../layouts/tile.h \
 src/lut/../cpu/../layouts/algebra.h src/lut/../cpu/../plan.h \
 src/lut/../cpu/../status.h src/lut/../cpu/cpu.h src/lut/lut.h \
 src/lut/../internal.h
src/lut/../cpu/cost.h:
src/lut/../cpu/../internal.h:
src/lut/../cpu/../layouts/packed.h:
include/lpgemm.h:
src/lut/../cpu/../layouts/number.h:
src/lut/../cpu/../layouts/base.h:
src/lut/../cpu/../layouts/tile.h:
src/lut/../cpu/../layouts/algebra.h:
src/lut/../cpu/../plan.h:
src/lut/../cpu/../status.h:
src/lut/../cpu/cpu.h:
src/lut/lut.h:
src/lut/../internal.h:
