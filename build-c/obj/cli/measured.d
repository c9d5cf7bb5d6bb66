build-c/obj/cli/measured.o: cli/measured.c cli/measured.h cli/common.h \
 include/lpgemm.h
cli/measured.h:
cli/common.h:
include/lpgemm.h:
