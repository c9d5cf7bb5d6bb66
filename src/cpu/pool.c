/* A pool of threads for one handle: the calling thread and workers that wait for its next job. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cpu.h"

enum {
  MAX_THREADS = 1024,
  STACK_BYTES = 1024 * 1024, /* of a worker; the kernels keep their data in scratch */
  SPINS = 1024               /* looks at an atomic before a thread goes to sleep: some tens of microseconds */
};

typedef struct worker {
  lpg_pool *pool;
  pthread_t thread; /* of all but worker 0, which is the caller */
  void *scratch;
} worker;

struct lpg_pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pid_t process; /* that has the threads: a child of fork() has the caller's only */
  int threads;
  worker *workers;
  void *shared;

  /* the job; written by the caller under the lock while no worker is in a job */
  lpg_task *task;
  void *context;
  int64_t count;
  atomic_int_fast64_t next; /* the first index that nobody has taken */

  /* changed under the lock, watched without it while spinning */
  atomic_uint job;   /* number of the job */
  atomic_int active; /* workers in the job */
  int open;          /* workers may still enter */
  atomic_int stop;
};

static void pause_thread(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static void take_tasks(lpg_pool *pool, void *scratch) {
  for (;;) {
    int64_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (index >= pool->count) return;
    pool->task(pool->context, index, scratch);
  }
}

static void *worker_main(void *argument) {
  worker *self = argument;
  lpg_pool *pool = self->pool;
  unsigned seen = 0;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load(&pool->job) == seen && !atomic_load(&pool->stop); i++) pause_thread();
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->job) == seen && !atomic_load(&pool->stop)) pthread_cond_wait(&pool->wake, &pool->lock);
    seen = atomic_load(&pool->job);
    int stop = atomic_load(&pool->stop), enter = pool->open && !stop;
    if (enter) atomic_fetch_add(&pool->active, 1);
    pthread_mutex_unlock(&pool->lock);
    if (stop) return NULL;
    if (!enter) continue; /* too late: the others have done the job */
    take_tasks(pool, self->scratch);
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_sub(&pool->active, 1) == 1) pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->lock);
  }
}

void lpgemm_i_parallel(lpg_pool *pool, int64_t count, lpg_task *task, void *context) {
  void *scratch = pool->workers[0].scratch;
  if (pool->threads == 1 || count <= 1) {
    for (int64_t i = 0; i < count; i++) task(context, i, scratch);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->task = task;
  pool->context = context;
  pool->count = count;
  atomic_store(&pool->next, 0);
  pool->open = 1;
  atomic_fetch_add(&pool->job, 1);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);

  take_tasks(pool, scratch);

  pthread_mutex_lock(&pool->lock);
  pool->open = 0;
  pthread_mutex_unlock(&pool->lock);
  for (int i = 0; i < SPINS && atomic_load(&pool->active) != 0; i++) pause_thread();
  pthread_mutex_lock(&pool->lock);
  while (atomic_load(&pool->active) != 0) pthread_cond_wait(&pool->done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

int lpgemm_i_pool_threads(const lpg_pool *pool) { return pool->threads; }

void *lpgemm_i_pool_shared(lpg_pool *pool) { return pool->shared; }

/* Cores that this process may run on. */
static int count_cores(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int)cores;
}

/* Starts workers until there are `threads` or the system refuses one. Signals stay with the application's threads. */
static void start_workers(lpg_pool *pool, int threads) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
    while (pool->threads < threads) {
      worker *w = &pool->workers[pool->threads];
      w->pool = pool;
      w->scratch = aligned_alloc(64, LPG_SCRATCH_BYTES);
      if (!w->scratch) break;
      if (pthread_create(&w->thread, &attributes, worker_main, w) != 0) {
        free(w->scratch);
        break;
      }
      pool->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  pthread_attr_destroy(&attributes);
}

lpg_pool *lpgemm_i_pool_create(int threads) {
  if (threads <= 0) threads = count_cores();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  lpg_pool *pool = calloc(1, sizeof *pool);
  worker *workers = calloc((size_t)threads, sizeof *workers);
  void *scratch = aligned_alloc(64, LPG_SCRATCH_BYTES), *shared = aligned_alloc(64, LPG_SHARED_BYTES);
  if (!pool || !workers || !scratch || !shared) {
    free(shared);
    free(scratch);
    free(workers);
    free(pool);
    return NULL;
  }
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  atomic_init(&pool->next, 0);
  atomic_init(&pool->job, 0);
  atomic_init(&pool->active, 0);
  atomic_init(&pool->stop, 0);
  workers[0].pool = pool;
  workers[0].scratch = scratch;
  pool->workers = workers;
  pool->shared = shared;
  pool->process = getpid();
  pool->threads = 1;
  start_workers(pool, threads);
  return pool;
}

static void stop_workers(lpg_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->stop, 1);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
}

void lpgemm_i_pool_destroy(lpg_pool *pool) {
  if (!pool) return;
  if (pool->process == getpid()) stop_workers(pool);
  for (int i = 0; i < pool->threads; i++) free(pool->workers[i].scratch);
  free(pool->shared);
  free(pool->workers);
  free(pool);
}
