#ifdef __linux__
#define _GNU_SOURCE /* MAP_ANONYMOUS, prctl */
#endif
#include "board.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "../block/block.h"

enum { QUIET = 3, GRACE = 5 /* seconds until ranks that do not end are killed */ };

struct board {
  int ranks;
  pid_t parent;
  atomic_int failed; /* 1 + the rank; it alone writes the sentence */
  atomic_ullong arrived, arrived_for_sum;
  unsigned char join[JOIN_BYTES];
  char sentence[2048];
};

/* ---- shared memory ---- */

void *share(size_t bytes) {
  void *memory = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no shared memory for %zu bytes: %s", bytes, strerror(errno));
  return memory;
}

void share_end(void *memory, size_t bytes) { munmap(memory, bytes > 0 ? bytes : 1); }

board *board_open(int ranks) {
  board *b = share(sizeof *b);
  b->ranks = ranks;
  b->parent = getpid();
  return b;
}

void board_close(board *b) { share_end(b, sizeof *b); }
unsigned char *board_join(board *b) { return b->join; }

/* ---- in a rank ---- */

static board *mine;
static int own;

/* 1: this failure is the first. */
static int claim(board *b, int rank) {
  int none = 0;
  return atomic_compare_exchange_strong(&b->failed, &none, rank + 1);
}

static void tell(const char *sentence) {
  if (claim(mine, own)) snprintf(mine->sentence, sizeof mine->sentence, "%s", sentence);
  _exit(1); /* no handler of exit() may wait for a GPU that waits for another rank */
}

void end_quietly(void) { _exit(QUIET); }

int another_failed(void) { return atomic_load(&mine->failed) != 0 || getppid() != mine->parent; }

static void pause_a_little(int tries) {
  if (tries < 1000) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
}

/* Counts everybody who ever came, so there is nothing to reset between meetings. */
static int wait_for_all(atomic_ullong *arrived) {
  unsigned long long ranks = (unsigned long long)mine->ranks, ticket = atomic_fetch_add(arrived, 1);
  unsigned long long all = (ticket / ranks + 1) * ranks;
  for (int tries = 0; atomic_load(arrived) < all; tries += tries < 1000) {
    if (another_failed()) return 0;
    pause_a_little(tries);
  }
  return 1;
}

void meet(void) {
  if (!wait_for_all(&mine->arrived)) end_quietly();
}

int meet_for_sum(void) { return wait_for_all(&mine->arrived_for_sum); }

static void be_rank(board *b, int rank, void (*work)(const void *context, int rank), const void *context) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind, whatever ends the parent */
#endif
  mine = b;
  own = rank;
  on_failure = tell;
  if (another_failed()) end_quietly();
  work(context, rank);
  exit(0);
}

/* ---- in the program that starts them ---- */

static void note_end(board *b, int rank, int status) {
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == QUIET)) return;
  if (!claim(b, rank)) return; /* it has told why, or is not the first */
  if (WIFSIGNALED(status)) {
    snprintf(b->sentence, sizeof b->sentence, "it was ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(b->sentence, sizeof b->sentence, "it ended with exit code %d", WEXITSTATUS(status));
  }
}

static void kill_all(const pid_t *child, int count) {
  for (int i = 0; i < count; i++) {
    if (child[i] > 0) kill(child[i], SIGKILL);
  }
}

const char *board_run(board *b, int ranks, void (*work)(const void *context, int rank), const void *context,
                      double limit) {
  static char sentence[sizeof b->sentence + 64];
  pid_t child[MOST_RANKS];
  int started = 0, running = 0, late = 0;
  fflush(NULL); /* what is not written yet would be written by every rank */
  for (; started < ranks; started++, running++) {
    child[started] = fork();
    if (child[started] == 0) be_rank(b, started, work, context);
    if (child[started] < 0) {
      claim(b, started);
      snprintf(b->sentence, sizeof b->sentence, "it could not be started: %s", strerror(errno));
      break;
    }
  }

  double begun = seconds(), failed_at = 0.0;
  while (running > 0) {
    int status;
    for (int i = 0; i < started; i++) {
      if (child[i] <= 0 || waitpid(child[i], &status, WNOHANG) != child[i]) continue;
      child[i] = 0;
      running--;
      note_end(b, i, status);
    }
    double now = seconds();
    if (atomic_load(&b->failed) && failed_at <= 0.0) failed_at = now;
    if (failed_at <= 0.0 && now - begun > limit) late = 1, failed_at = now, atomic_store(&b->failed, ranks + 1);
    if (failed_at > 0.0 && now - failed_at > (late ? 1.0 : GRACE)) kill_all(child, started);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }

  if (!atomic_load(&b->failed)) return NULL;
  if (late) {
    snprintf(sentence, sizeof sentence, "the ranks did not finish within %g s", limit);
  } else {
    snprintf(sentence, sizeof sentence, "rank %d of %d: %s", atomic_load(&b->failed) - 1, ranks, b->sentence);
  }
  return sentence;
}
