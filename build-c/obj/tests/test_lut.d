build-c/obj/tests/test_lut.o: tests/test_lut.c tests/compare.h \
 include/lpgemm.h src/cpu/cpu.h src/cpu/../internal.h \
 src/cpu/../layouts/packed.h src/cpu/../layouts/number.h \
 src/cpu/../layouts/base.h src/cpu/../layouts/tile.h \
 src/cpu/../layouts/algebra.h src/cpu/../plan.h src/cpu/../status.h \
 src/lut/lut.h src/lut/../internal.h tests/problem.h tests/ref/gemm_ref.h \
 tests/ref/lmma.h tests/test.h
tests/compare.h:
include/lpgemm.h:
src/cpu/cpu.h:
src/cpu/../internal.h:
src/cpu/../layouts/packed.h:
src/cpu/../layouts/number.h:
src/cpu/../layouts/base.h:
src/cpu/../layouts/tile.h:
src/cpu/../layouts/algebra.h:
src/cpu/../plan.h:
src/cpu/../status.h:
src/lut/lut.h:
src/lut/../internal.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/ref/lmma.h:
tests/test.h:
