build-c/obj/cli/convert_parts.o: cli/convert_parts.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
