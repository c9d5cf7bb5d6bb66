/* The log: its level, and who gets its lines. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "status.h"

static atomic_int log_level = LPGEMM_LOG_OFF;

/* Held for reading while a line is written: threads that log do not wait for one another, so a sink may wait for a lock
 * whose owner logs. Held for writing while the sink is changed, which thus has no thread in it afterwards. */
static pthread_rwlock_t sink_lock = PTHREAD_RWLOCK_INITIALIZER;
static lpgemm_log_t sink; /* NULL: stderr */
static void *sink_context;
static _Thread_local int in_sink;

void lpgemm_i_set_log_level(lpgemm_log_level_t level) {
  atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

lpgemm_log_level_t lpgemm_i_log_level(void) {
  return (lpgemm_log_level_t)atomic_load_explicit(&log_level, memory_order_relaxed);
}

void lpgemm_i_log(lpgemm_log_level_t level, const char *format, ...) {
  if (lpgemm_i_log_level() < level || in_sink) return;
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  in_sink = 1;
  pthread_rwlock_rdlock(&sink_lock);
  if (sink) {
    sink(sink_context, level, line);
  } else {
    fprintf(stderr, "lpgemm: %s\n", line);
  }
  pthread_rwlock_unlock(&sink_lock);
  in_sink = 0;
}

lpgemm_status_t lpgemm_set_log(lpgemm_log_level_t level, lpgemm_log_t callback, void *context) {
  LPG_CHECK((int)level >= LPGEMM_LOG_OFF && level <= LPGEMM_LOG_PROFILE, LPGEMM_INVALID_ARGUMENT,
            "level is %d; it must be an LPGEMM_LOG_ value", (int)level);
  LPG_CHECK(callback || !context, LPGEMM_NULL_POINTER, "context is given, but callback is NULL");
  LPG_CHECK(!in_sink, LPGEMM_INVALID_ARGUMENT,
            "lpgemm_set_log() is called by the callback of the log, which waits for it");
  pthread_rwlock_wrlock(&sink_lock);
  sink = callback;
  sink_context = context;
  lpgemm_i_set_log_level(level);
  pthread_rwlock_unlock(&sink_lock);
  return LPGEMM_SUCCESS;
}
