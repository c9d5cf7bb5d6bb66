build-c/obj/cli/convert_names.o: cli/convert_names.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
