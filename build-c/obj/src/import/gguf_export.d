build-c/obj/src/import/gguf_export.o: src/import/gguf_export.c \
 src/import/gguf.h src/import/import.h src/import/../internal.h \
 src/import/../layouts/packed.h include/lpgemm.h \
 src/import/../layouts/number.h src/import/../layouts/base.h \
 src/import/../layouts/tile.h src/import/../layouts/algebra.h \
 src/import/../plan.h src/import/../status.h src/import/gguf_bits.h \
 src/import/bits.h
src/import/gguf.h:
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
src/import/gguf_bits.h:
src/import/bits.h:
