build-c/obj/tests/golden_case.o: tests/golden_case.c tests/golden_case.h \
 include/lpgemm.h tests/test.h
tests/golden_case.h:
include/lpgemm.h:
tests/test.h:
