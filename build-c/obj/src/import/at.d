build-c/obj/src/import/at.o: src/import/at.c src/import/at.h \
 src/import/../layouts/ggml.h src/import/at_bytes.h \
 src/import/../pack/at.h src/import/../pack/../layouts/number.h \
 src/import/../pack/../layouts/base.h include/lpgemm.h src/import/at_iq.h \
 src/import/at_gguf.h src/import/../layouts/packed.h \
 src/import/../layouts/number.h src/import/../layouts/tile.h \
 src/import/../layouts/algebra.h src/import/../layouts/base.h \
 src/import/at_words.h src/import/bitsandbytes.h src/import/device.h \
 src/import/import.h src/import/../internal.h \
 src/import/../layouts/packed.h src/import/../plan.h \
 src/import/../status.h src/import/gguf.h src/import/iq.h
src/import/at.h:
src/import/../layouts/ggml.h:
src/import/at_bytes.h:
src/import/../pack/at.h:
src/import/../pack/../layouts/number.h:
src/import/../pack/../layouts/base.h:
include/lpgemm.h:
src/import/at_iq.h:
src/import/at_gguf.h:
src/import/../layouts/packed.h:
src/import/../layouts/number.h:
src/import/../layouts/tile.h:
src/import/../layouts/algebra.h:
src/import/../layouts/base.h:
src/import/at_words.h:
src/import/bitsandbytes.h:
src/import/device.h:
src/import/import.h:
src/import/../internal.h:
src/import/../layouts/packed.h:
src/import/../plan.h:
src/import/../status.h:
src/import/gguf.h:
src/import/iq.h:
