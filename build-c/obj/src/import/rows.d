build-c/obj/src/import/rows.o: src/import/rows.c src/import/rows.h \
 src/import/import.h src/import/../internal.h \
 src/import/../layouts/packed.h include/lpgemm.h \
 src/import/../layouts/number.h src/import/../layouts/base.h \
 src/import/../layouts/tile.h src/import/../layouts/algebra.h \
 src/import/../plan.h src/import/../status.h src/import/../cpu/cpu.h \
 src/import/../cpu/../internal.h src/import/../pack/pack.h \
 src/import/../pack/../internal.h
src/import/rows.h:
src/import/import.h:
src/import/../internal.h:
src/import/../layouts/packed.h:
include/lpgemm.h:
src/import/../layouts/number.h:
src/import/../layouts/base.h:
src/import/../layouts/tile.h:
src/import/../layouts/algebra.h:
src/import/../plan.h:
src/import/../status.h:
src/import/../cpu/cpu.h:
src/import/../cpu/../internal.h:
src/import/../pack/pack.h:
src/import/../pack/../internal.h:
