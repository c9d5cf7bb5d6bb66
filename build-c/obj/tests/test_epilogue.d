build-c/obj/tests/test_epilogue.o: tests/test_epilogue.c tests/compare.h \
 include/lpgemm.h src/cpu/epilogue_rows.h src/cpu/epilogue.h \
 src/cpu/../internal.h src/cpu/../layouts/packed.h \
 src/cpu/../layouts/number.h src/cpu/../layouts/base.h \
 src/cpu/../layouts/tile.h src/cpu/../layouts/algebra.h src/cpu/../plan.h \
 src/cpu/../status.h tests/problem.h tests/ref/gemm_ref.h tests/test.h
tests/compare.h:
include/lpgemm.h:
src/cpu/epilogue_rows.h:
src/cpu/epilogue.h:
src/cpu/../internal.h:
src/cpu/../layouts/packed.h:
src/cpu/../layouts/number.h:
src/cpu/../layouts/base.h:
src/cpu/../layouts/tile.h:
src/cpu/../layouts/algebra.h:
src/cpu/../plan.h:
src/cpu/../status.h:
tests/problem.h:
tests/ref/gemm_ref.h:
tests/test.h:
