build-c/obj/cli/convert_progress.o: cli/convert_progress.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
