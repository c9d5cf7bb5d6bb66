/* An emulator of a GPU: threads of CUDA kernels on one thread of the host, so that kernels can be run, checked and put
 * under ASan and UBSan where there is no GPU.
 *
 * Each thread of a CTA is a fiber, which runs until it must wait for others; then the next one goes on. The CTAs of a
 * cluster run at the same time. The next cluster starts when no thread of those before can go on and the GPU has room,
 * so a kernel whose CTAs need not wait for one another has one of them at a time. What instructions do by themselves is
 * done at once, when they are waited for, or (TMA) at any moment between. LPGEMM_SIMT_SEED chooses the moments and the
 * order of the threads.
 *
 * What it does not have: the order of memory accesses (a missing fence is not found), registers, time; static shared
 * variables keep what the CTA before left in them. */
#ifndef SIMT_H
#define SIMT_H

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace simt {

struct place {
  unsigned x, y, z;
};

enum { LANES = 32, SLOT_BYTES = 64 };

struct thread;

/* Threads that wait for one another. */
struct meeting {
  int arrived = 0;
  unsigned number = 0; /* of meetings before */
  std::vector<thread *> waiting;
};

/* Lanes that meet to exchange values. Two sets of slots: the next exchange may begin while lanes still read this one.
 */
struct warp {
  int live = 0, lanes = 0; /* lanes: it began with */
  meeting all;
  const char *what = nullptr;
  alignas(16) uint8_t slot[2][LANES][SLOT_BYTES];
};

struct cluster;

struct shared_variable { /* of LPG_SHARED_VARIABLE() */
  const char *name;
  size_t offset;
};

struct cta {
  cluster *own_cluster;
  int rank, live;
  place index;
  uint8_t *memory; /* shared memory: the dynamic, or variables by name */
  size_t bytes;
  std::vector<shared_variable> variables;
  meeting all, numbered[16];
  std::vector<warp> warps;
};

struct cluster {
  int number, live;
  meeting all;
  std::vector<cta *> ctas;
};

using action = std::function<void()>;

/* Copies of cp.async, which the thread may wait for and an mbarrier as well: who comes first runs them. */
using copy_group = std::shared_ptr<std::vector<action>>;

struct thread {
  cta *own_cta;
  warp *own_warp;
  int lane;
  place index;
  unsigned cluster_phase;
  bool arrived_at_cluster; /* in that phase */
  const char *waits_for;
  bool (*is_over)(void *condition); /* NULL: it waits for others to meet it */
  void *condition;
  std::vector<action> products;                                     /* of the open group */
  std::vector<std::vector<action>> groups;                          /* of wgmma that are under way */
  copy_group copies = std::make_shared<copy_group::element_type>(); /* of the open group */
  std::vector<copy_group> copying;
  std::vector<action> stores; /* by TMA, that are still to read shared memory */
  void *stack, *at;           /* where it goes on */
  bool is_done;
};

extern thread *now; /* the thread that runs */
extern place cta_size, grid_size;

/* ---- waiting ---- */

uint64_t random();
void pause(); /* until others wake the thread, or its condition is met */

template <class Condition>
void wait_until(const char *what, Condition is_over) {
  while (!is_over()) {
    now->waits_for = what;
    now->condition = &is_over;
    now->is_over = [](void *condition) { return (*(Condition *)condition)(); };
    pause();
  }
}

/* Ends the program with a sentence: where the thread is, and what is wrong. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All live lanes of the warp bring a value; slot[lane] has theirs until the next but one exchange. */
const uint8_t (*exchange_bytes(const char *what, const void *value, size_t bytes))[SLOT_BYTES];

template <class T>
struct of_lanes {
  const uint8_t (*slot)[SLOT_BYTES];
  T operator[](int lane) const {
    T value;
    memcpy(&value, slot[lane], sizeof value);
    return value;
  }
};

template <class T>
of_lanes<T> exchange(const char *what, const T &value) {
  static_assert(sizeof(T) <= SLOT_BYTES, "a slot has room for it");
  if (now->own_warp->live < now->own_warp->lanes) fail("%s wants values of lanes that have ended", what);
  return {exchange_bytes(what, &value, sizeof value)};
}

void meet(const char *what, meeting &m, int threads, bool waits);
void meet_warp(const char *what); /* all live lanes */
void arrive_at_cluster();

/* ---- shared memory by its 32-bit address: an offset, above it one more than a rank in the cluster, or 0: the own CTA
 * ---- */

/* A variable of the CTA, by its name. */
void *variable(const char *name, size_t bytes);
uint32_t address_of(const void *pointer);
uint8_t *memory_at(uint32_t address, size_t bytes);
inline uint32_t in_cta(uint32_t address, uint32_t rank) { return (address & 0xffffff) | (rank + 1) << 24; }

/* ---- mbarriers ---- */

void init_mbarrier(uint32_t barrier, int arrivals);
void change_mbarrier(uint32_t barrier, int arrivals, int64_t bytes); /* bytes: that are expected, negative: that came */
bool is_over(uint32_t barrier, uint32_t parity);
void wait_mbarrier(uint32_t barrier, uint32_t parity);

/* ---- what happens by itself ---- */

void later(action); /* at any time from now on */

/* ---- launches ---- */

struct launch {
  place grid;
  int cluster, threads;
  size_t shared_bytes;
  action kernel;
};
void run(const launch &);

}  // namespace simt

#endif
