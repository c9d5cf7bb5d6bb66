build-c/obj/src/build_info.o: src/build_info.c build-c/build_info.h \
 include/lpgemm.h
build-c/build_info.h:
include/lpgemm.h:
