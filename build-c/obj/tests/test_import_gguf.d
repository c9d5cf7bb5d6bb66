build-c/obj/tests/test_import_gguf.o: tests/test_import_gguf.c \
 src/import/gguf.h src/import/import.h src/import/../internal.h \
 src/import/../layouts/packed.h include/lpgemm.h \
 src/import/../layouts/number.h src/import/../layouts/base.h \
 src/import/../layouts/tile.h src/import/../layouts/algebra.h \
 src/import/../plan.h src/import/../status.h src/import/iq.h \
 src/layouts/ggml.h tests/sample.h tests/ref/exact.h tests/test.h
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
src/import/iq.h:
src/layouts/ggml.h:
tests/sample.h:
tests/ref/exact.h:
tests/test.h:
