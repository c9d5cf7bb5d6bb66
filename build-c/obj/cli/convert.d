build-c/obj/cli/convert.o: cli/convert.c cli/convert.h cli/common.h \
 include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
