build-c/obj/cli/common.o: cli/common.c cli/common.h include/lpgemm.h
cli/common.h:
include/lpgemm.h:
