build-c/obj/cli/convert_write.o: cli/convert_write.c cli/convert_pack.h \
 cli/convert.h cli/common.h include/lpgemm.h cli/convert_writer.h
cli/convert_pack.h:
cli/convert.h:
cli/common.h:
include/lpgemm.h:
cli/convert_writer.h:
