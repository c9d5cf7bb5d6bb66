build-c/obj/cli/layer.o: cli/layer.c cli/layer.h cli/common.h \
 include/lpgemm.h
cli/layer.h:
cli/common.h:
include/lpgemm.h:
