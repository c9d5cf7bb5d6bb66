build-c/obj/cli/models.o: cli/models.c cli/models.h cli/common.h \
 include/lpgemm.h
cli/models.h:
cli/common.h:
include/lpgemm.h:
