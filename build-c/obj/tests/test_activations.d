build-c/obj/tests/test_activations.o: tests/test_activations.c \
 src/cpu/cpu.h src/cpu/../internal.h src/cpu/../layouts/packed.h \
 include/lpgemm.h src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h tests/problem.h tests/ref/gemm_ref.h tests/test.h
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
tests/problem.h:
tests/ref/gemm_ref.h:
tests/test.h:
