build-c/obj/cli/convert_writer.o: cli/convert_writer.c \
 cli/convert_writer.h cli/convert.h cli/common.h include/lpgemm.h
cli/convert_writer.h:
cli/convert.h:
cli/common.h:
include/lpgemm.h:
