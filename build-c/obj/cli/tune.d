build-c/obj/cli/tune.o: cli/tune.c cli/layer.h cli/common.h \
 include/lpgemm.h cli/measured.h cli/models.h
cli/layer.h:
cli/common.h:
include/lpgemm.h:
cli/measured.h:
cli/models.h:
