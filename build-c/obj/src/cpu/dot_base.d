build-c/obj/src/cpu/dot_base.o: src/cpu/dot.c src/cpu/cpu.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h include/lpgemm.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h src/cpu/dot_groups.h src/cpu/dot_bytes.h \
 src/cpu/../layouts/packed.h src/cpu/dot_x.h src/cpu/dot_panel.h \
 src/cpu/../layouts/unit.h src/cpu/dot_ops.h src/cpu/unpack.h \
 src/cpu/range.h src/cpu/vectors.h src/cpu/weight.h \
 src/cpu/../pack/sections.h src/cpu/../pack/../layouts/packed.h \
 src/cpu/epilogue_rows.h src/cpu/epilogue.h
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
src/cpu/dot_groups.h:
src/cpu/dot_bytes.h:
src/cpu/../layouts/packed.h:
src/cpu/dot_x.h:
src/cpu/dot_panel.h:
src/cpu/../layouts/unit.h:
src/cpu/dot_ops.h:
src/cpu/unpack.h:
src/cpu/range.h:
src/cpu/vectors.h:
src/cpu/weight.h:
src/cpu/../pack/sections.h:
src/cpu/../pack/../layouts/packed.h:
src/cpu/epilogue_rows.h:
src/cpu/epilogue.h:
