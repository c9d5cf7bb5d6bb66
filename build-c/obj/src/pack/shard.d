build-c/obj/src/pack/shard.o: src/pack/shard.c src/pack/pack.h \
 src/pack/../internal.h src/pack/../layouts/packed.h include/lpgemm.h \
 src/pack/../layouts/number.h src/pack/../layouts/base.h \
 src/pack/../layouts/tile.h src/pack/../layouts/algebra.h \
 src/pack/../plan.h src/pack/../status.h src/pack/sections.h \
 src/pack/../layouts/packed.h
src/pack/pack.h:
src/pack/../internal.h:
src/pack/../layouts/packed.h:
include/lpgemm.h:
src/pack/../layouts/number.h:
src/pack/../layouts/base.h:
src/pack/../layouts/tile.h:
src/pack/../layouts/algebra.h:
src/pack/../plan.h:
src/pack/../status.h:
src/pack/sections.h:
src/pack/../layouts/packed.h:
