build-c/obj/src/files/pattern.o: src/files/pattern.c src/files/pattern.h
src/files/pattern.h:
