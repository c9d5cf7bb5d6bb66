build-c/obj/cli/convert_words.o: cli/convert_words.c cli/convert.h \
 cli/common.h include/lpgemm.h
cli/convert.h:
cli/common.h:
include/lpgemm.h:
