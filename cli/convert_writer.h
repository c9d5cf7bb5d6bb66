/* A thread that writes the container while the next matrix is packed: two places, taken in turns. */
#ifndef CLI_CONVERT_WRITER_H
#define CLI_CONVERT_WRITER_H

#include <pthread.h>

#include "convert.h"

enum { CONVERT_PLACES = 2 };

typedef struct convert_place {
  int full;
  lpgemm_tensor_t tensor;   /* to be copied, */
  lpgemm_weights_t weights; /* or packed weights of this name, if they are not NULL */
  const char *name;
  void *memory; /* that weights are packed in */
  size_t room;  /* its bytes */
} convert_place;

typedef struct convert_writer {
  lpgemm_container_t container;
  lpgemm_handle_t handle; /* of the thread: a handle belongs to one */
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  convert_place place[CONVERT_PLACES];
  int next; /* the place that is filled next */
  int ending;
  int failed; /* nothing more is written then */
  char why[1200];
} convert_writer;

/* 1, or 0 with `why`. */
int convert_writer_start(convert_writer *w, const char *path, int overwrite);

/* The next place, empty, with so much memory; NULL, with `why`, without it or after a failure of the thread. */
convert_place *convert_writer_place(convert_writer *w, size_t bytes);
/* It has been filled. */
void convert_writer_put(convert_writer *w, convert_place *place);

/* Waits until all is written, and gives OUT its name if `keep`; without it nothing stays. 1, or 0 with `why`. */
int convert_writer_end(convert_writer *w, int keep);

#endif
