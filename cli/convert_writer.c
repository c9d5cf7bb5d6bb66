#include "convert_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a place keeps of its memory from one matrix to the next: fresh pages cost time. A larger one is freed, so that
 * not the two largest matrices stay. */
static const size_t kept_bytes = (size_t)96 << 20;

static int refuse(convert_writer *w) {
  snprintf(w->why, sizeof w->why, "%s", lpgemm_last_error());
  return 0;
}

static void release(convert_place *p) {
  free(p->memory);
  p->memory = NULL;
  p->room = 0;
}

/* ---- the thread ---- */

static lpgemm_status_t write_place(convert_writer *w, convert_place *p) {
  if (!p->weights) return lpgemm_container_add_tensor(w->container, &p->tensor);
  return lpgemm_container_add_weights(w->container, p->name, w->handle, p->weights);
}

static void *run(void *context) {
  convert_writer *w = context;
  pthread_mutex_lock(&w->mutex);
  for (int at = 0;; at = (at + 1) % CONVERT_PLACES) {
    convert_place *p = &w->place[at];
    while (!p->full && !w->ending) pthread_cond_wait(&w->changed, &w->mutex);
    if (!p->full) break;
    if (!w->failed) {
      pthread_mutex_unlock(&w->mutex);
      const int done = write_place(w, p) == LPGEMM_SUCCESS || refuse(w);
      pthread_mutex_lock(&w->mutex);
      w->failed |= !done; /* not every failure is its own */
    }
    if (p->weights) (void)lpgemm_weights_destroy(p->weights);
    p->weights = NULL;
    if (p->room > kept_bytes) release(p);
    p->full = 0;
    pthread_cond_signal(&w->changed);
  }
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

/* ---- the other side ---- */

int convert_writer_start(convert_writer *w, const char *path, int overwrite) {
  memset(w, 0, sizeof *w);
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  if (lpgemm_create(&w->handle, &config) != LPGEMM_SUCCESS) return refuse(w);
  if (lpgemm_container_create(path, overwrite, &w->container) != LPGEMM_SUCCESS) return refuse(w);
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
  if (pthread_create(&w->thread, NULL, run, w) != 0) {
    snprintf(w->why, sizeof w->why, "no thread can be started for writing");
    (void)lpgemm_container_destroy(w->container);
    return 0;
  }
  return 1;
}

convert_place *convert_writer_place(convert_writer *w, size_t bytes) {
  enum { PAGE = 4096 };
  convert_place *p = &w->place[w->next];
  pthread_mutex_lock(&w->mutex);
  while (p->full && !w->failed) pthread_cond_wait(&w->changed, &w->mutex);
  const int failed = w->failed;
  pthread_mutex_unlock(&w->mutex);
  if (failed) return NULL;
  if (bytes > p->room) {
    release(p);
    p->memory = bytes <= SIZE_MAX - PAGE ? aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE) : NULL;
    if (!p->memory) {
      snprintf(w->why, sizeof w->why, "no memory for a matrix of %zu bytes", bytes);
      return NULL;
    }
    p->room = bytes;
  }
  return p;
}

void convert_writer_put(convert_writer *w, convert_place *place) {
  pthread_mutex_lock(&w->mutex);
  place->full = 1;
  w->next = (w->next + 1) % CONVERT_PLACES;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->mutex);
}

int convert_writer_end(convert_writer *w, int keep) {
  pthread_mutex_lock(&w->mutex);
  w->ending = 1;
  w->failed |= !keep;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  pthread_join(w->thread, NULL);
  int done = !w->failed;
  if (done && lpgemm_container_finish(w->container) != LPGEMM_SUCCESS) done = refuse(w);
  (void)lpgemm_container_destroy(w->container);
  (void)lpgemm_destroy(w->handle);
  for (int i = 0; i < CONVERT_PLACES; i++) release(&w->place[i]);
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->changed);
  return done;
}
