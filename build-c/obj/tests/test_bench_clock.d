build-c/obj/tests/test_bench_clock.o: tests/test_bench_clock.c \
 tests/../bench/clock.h tests/../bench/case.h tests/../bench/common.h \
 include/lpgemm.h tests/test.h
tests/../bench/clock.h:
tests/../bench/case.h:
tests/../bench/common.h:
include/lpgemm.h:
tests/test.h:
