build-c/obj/tests/test_import.o: tests/test_import.c tests/checkpoint.h \
 include/lpgemm.h tests/compare.h tests/golden_case.h tests/test.h
tests/checkpoint.h:
include/lpgemm.h:
tests/compare.h:
tests/golden_case.h:
tests/test.h:
