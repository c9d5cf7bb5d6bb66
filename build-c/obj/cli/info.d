build-c/obj/cli/info.o: cli/info.c cli/layer.h cli/common.h \
 include/lpgemm.h cli/measured.h
cli/layer.h:
cli/common.h:
include/lpgemm.h:
cli/measured.h:
