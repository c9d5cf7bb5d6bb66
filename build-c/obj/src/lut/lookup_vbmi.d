build-c/obj/src/lut/lookup_vbmi.o: src/lut/lookup.c src/lut/../cpu/cpu.h \
 src/lut/../cpu/../internal.h src/lut/../cpu/../layouts/packed.h \
 include/lpgemm.h src/lut/../cpu/../layouts/number.h \
 src/lut/../cpu/../layouts/base.h src/lut/../cpu/../layouts/tile.h \
 src/lut/../cpu/../layouts/algebra.h src/lut/../cpu/../plan.h \
 src/lut/../cpu/../status.h src/lut/../cpu/epilogue_rows.h \
 src/lut/../cpu/epilogue.h src/lut/build.h src/lut/lut.h \
 src/lut/../internal.h src/lut/bytes.h src/lut/stream.h \
 src/lut/panel_vbmi.h src/lut/split3.h src/lut/../layouts/unit.h \
 src/lut/../layouts/tile.h src/lut/products_vbmi.h src/lut/group.h
src/lut/../cpu/cpu.h:
src/lut/../cpu/../internal.h:
src/lut/../cpu/../layouts/packed.h:
include/lpgemm.h:
src/lut/../cpu/../layouts/number.h:
src/lut/../cpu/../layouts/base.h:
src/lut/../cpu/../layouts/tile.h:
src/lut/../cpu/../layouts/algebra.h:
src/lut/../cpu/../plan.h:
src/lut/../cpu/../status.h:
src/lut/../cpu/epilogue_rows.h:
src/lut/../cpu/epilogue.h:
src/lut/build.h:
src/lut/lut.h:
src/lut/../internal.h:
src/lut/bytes.h:
src/lut/stream.h:
src/lut/panel_vbmi.h:
src/lut/split3.h:
src/lut/../layouts/unit.h:
src/lut/../layouts/tile.h:
src/lut/products_vbmi.h:
src/lut/group.h:
