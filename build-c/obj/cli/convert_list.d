build-c/obj/cli/convert_list.o: cli/convert_list.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
