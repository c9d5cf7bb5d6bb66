build-c/obj/cli/convert_plan.o: cli/convert_plan.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
