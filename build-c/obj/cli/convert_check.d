build-c/obj/cli/convert_check.o: cli/convert_check.c \
 cli/convert_formula.h cli/convert.h cli/common.h include/lpgemm.h \
 cli/convert_pack.h
cli/convert_formula.h:
cli/convert.h:
cli/common.h:
include/lpgemm.h:
cli/convert_pack.h:
