build-c/obj/src/import/iq_grids.o: src/import/iq_grids.c src/import/iq.h
src/import/iq.h:
