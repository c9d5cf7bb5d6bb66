build-c/obj/cli/convert_formula.o: cli/convert_formula.c \
 cli/convert_formula.h cli/convert.h cli/common.h include/lpgemm.h
cli/convert_formula.h:
cli/convert.h:
cli/common.h:
include/lpgemm.h:
