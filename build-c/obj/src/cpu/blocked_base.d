build-c/obj/src/cpu/blocked_base.o: src/cpu/blocked.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h src/cpu/epilogue_rows.h src/cpu/epilogue.h \
 src/cpu/unpack.h src/cpu/range.h src/cpu/../layouts/packed.h \
 src/cpu/vectors.h src/cpu/weight.h src/cpu/../pack/sections.h \
 src/cpu/../pack/../layouts/packed.h
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
src/cpu/epilogue_rows.h:
src/cpu/epilogue.h:
src/cpu/unpack.h:
src/cpu/range.h:
src/cpu/../layouts/packed.h:
src/cpu/vectors.h:
src/cpu/weight.h:
src/cpu/../pack/sections.h:
src/cpu/../pack/../layouts/packed.h:
