#include "parallel.h"

#include <pthread.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef struct job {
  bench_range body;
  void *context;
  int64_t first, end;
  pthread_t thread;
  int started;
} job;

static void *work(void *context) {
  job *j = context;
  j->body(j->context, j->first, j->end);
  return NULL;
}

void bench_parallel(int64_t count, bench_range body, void *context) {
  job jobs[MAX_THREADS];
  int64_t threads = (int64_t)sysconf(_SC_NPROCESSORS_ONLN);
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads > count) threads = count;
  for (int64_t i = 1; i < threads; i++) {
    jobs[i] = (job){.body = body, .context = context, .first = count * i / threads, .end = count * (i + 1) / threads};
    jobs[i].started = pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) == 0;
  }
  body(context, 0, threads > 1 ? count / threads : count);
  for (int64_t i = 1; i < threads; i++) {
    if (jobs[i].started) {
      pthread_join(jobs[i].thread, NULL);
    } else {
      work(&jobs[i]);
    }
  }
}
