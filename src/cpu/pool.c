/* A pool of threads for one handle: the calling thread and workers that wait for its next job, or threads that the
 * caller lends. */
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

/* Lent threads. OPEN: this worker's part of the job is to be begun, by any thread. */
enum { PART_NONE, PART_OPEN, PART_BEGUN };

typedef struct worker {
  lpg_pool *pool;
  pthread_t thread; /* own threads: of all but worker 0, which is the caller */
  void *scratch;
  atomic_int part; /* lent threads */
} worker;

struct lpg_pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pid_t process; /* that has the threads: a child of fork() has the caller's only */
  int threads;
  worker *workers;
  void *shared;
  lpgemm_parallel_for_t lent; /* NULL: threads of its own */
  void *lender;
  atomic_flag in_call; /* lent threads: a job is being done */
  atomic_int strays;   /* tasks that lent threads began twice, or that there are not */

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

/* ---- lent threads ---- */

/* What they get is one part a worker, and each takes tasks until there are none. So a worker's scratch has one user at
 * a time however many threads there are, and the tasks are done in whatever order the parts run: if one after the
 * other, the first does all. All that a thread touches before it has begun a part lies in the pool: one that comes too
 * late, after a function that did not wait, finds the part closed and turns round. */
static void run_part(void *context, int64_t index) {
  lpg_pool *pool = context;
  int open = PART_OPEN;
  if (index < 0 || index >= pool->threads ||
      !atomic_compare_exchange_strong(&pool->workers[index].part, &open, PART_BEGUN)) {
    atomic_fetch_add(&pool->strays, 1);
    return;
  }
  take_tasks(pool, pool->workers[index].scratch);
  atomic_store(&pool->workers[index].part, PART_NONE);
}

static lpgemm_status_t run_lent(lpg_pool *pool, int64_t count) {
  const int parts = count < pool->threads ? (int)count : pool->threads;
  int skipped = 0, early = 0;
  atomic_store(&pool->strays, 0);
  for (int i = 0; i < parts; i++) atomic_store(&pool->workers[i].part, PART_OPEN);
  pool->lent(pool->lender, run_part, pool, parts);
  for (int i = 0; i < parts; i++) {
    int open = PART_OPEN;
    skipped += atomic_compare_exchange_strong(&pool->workers[i].part, &open, PART_NONE);
    for (; atomic_load(&pool->workers[i].part) == PART_BEGUN; sched_yield()) early = 1;
  }
  LPG_CHECK(skipped == 0 && !early, LPGEMM_INVALID_ARGUMENT,
            "config.parallel_for returned when %d of %d tasks had not been begun%s; it must run each and wait for all",
            skipped, parts, early ? ", and others were not done" : "");
  const int strays = atomic_load(&pool->strays);
  LPG_CHECK(strays == 0, LPGEMM_INVALID_ARGUMENT,
            "config.parallel_for ran %d tasks more than the %d that it was given; it must run each once", strays,
            parts);
  return LPGEMM_SUCCESS;
}

/* ---- a job ---- */

static void set_job(lpg_pool *pool, int64_t count, lpg_task *task, void *context) {
  pool->task = task;
  pool->context = context;
  pool->count = count;
  atomic_store(&pool->next, 0);
}

static void run_own(lpg_pool *pool, int64_t count, lpg_task *task, void *context) {
  void *scratch = pool->workers[0].scratch;
  pthread_mutex_lock(&pool->lock);
  set_job(pool, count, task, context);
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

lpgemm_status_t lpgemm_i_parallel(lpg_pool *pool, int64_t count, lpg_task *task, void *context) {
  lpgemm_status_t status = LPGEMM_SUCCESS;
  LPG_CHECK(!pool->lent || !atomic_flag_test_and_set(&pool->in_call), LPGEMM_INVALID_HANDLE,
            "the handle is in another call; while config.parallel_for waits, its thread may work with other handles");
  if (pool->threads == 1 || count <= 1) {
    for (int64_t i = 0; i < count; i++) task(context, i, pool->workers[0].scratch);
  } else if (pool->lent) {
    set_job(pool, count, task, context);
    status = run_lent(pool, count);
  } else {
    run_own(pool, count, task, context);
  }
  if (pool->lent) atomic_flag_clear(&pool->in_call);
  return status;
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

/* The lent threads need scratch alone. */
static void add_scratch(lpg_pool *pool, int threads) {
  for (; pool->threads < threads; pool->threads++) {
    pool->workers[pool->threads].scratch = aligned_alloc(64, LPG_SCRATCH_BYTES);
    if (!pool->workers[pool->threads].scratch) return;
  }
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

lpg_pool *lpgemm_i_pool_create(int threads, lpgemm_parallel_for_t lent, void *lender) {
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
  pool->lent = lent;
  pool->lender = lender;
  atomic_flag_clear(&pool->in_call);
  atomic_init(&pool->strays, 0);
  if (lent) {
    add_scratch(pool, threads);
  } else {
    start_workers(pool, threads);
  }
  return pool;
}

lpg_pool *lpgemm_i_pool_resized(const lpg_pool *pool, int threads) {
  return lpgemm_i_pool_create(threads, pool->lent, pool->lender);
}

static void stop_workers(lpg_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->stop, 1);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 1; i < pool->threads && !pool->lent; i++) pthread_join(pool->workers[i].thread, NULL);
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
