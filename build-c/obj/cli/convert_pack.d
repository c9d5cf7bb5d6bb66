build-c/obj/cli/convert_pack.o: cli/convert_pack.c cli/convert_pack.h \
 cli/convert.h cli/common.h include/lpgemm.h
cli/convert_pack.h:
cli/convert.h:
cli/common.h:
include/lpgemm.h:
