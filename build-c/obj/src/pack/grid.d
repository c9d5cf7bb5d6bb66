build-c/obj/src/pack/grid.o: src/pack/grid.c src/pack/grid.h \
 src/pack/../layouts/number.h src/pack/../layouts/base.h include/lpgemm.h
src/pack/grid.h:
src/pack/../layouts/number.h:
src/pack/../layouts/base.h:
include/lpgemm.h:
