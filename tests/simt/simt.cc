/* Fibers, their scheduler, and what they meet at. */
#include "simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "fibers are switched by instructions of x86-64"
#endif

namespace simt {

thread *now;
place cta_size, grid_size;

namespace {

enum { STACK_BYTES = 256 << 10, SHARED_ALIGNMENT = 1024 };
enum { SMS = 132, MOST_SHARED_BYTES = 227 << 10 };
enum { VARIABLE_BYTES = 24 << 10, VARIABLE_ALIGNMENT = 128 }; /* of all LPG_SHARED_VARIABLE() of a kernel */

uint64_t state = [] {
  const char *seed = getenv("LPGEMM_SIMT_SEED");
  return (seed ? strtoull(seed, nullptr, 0) : 1) * 0x9e3779b97f4a7c15u + 1;
}();

const launch *running;
std::deque<thread *> runnable;
std::vector<thread *> watching; /* those that wait for a condition */
std::unordered_map<const void *, std::vector<thread *>> at_mbarriers;
size_t live;      /* threads that have not ended */
int64_t resident; /* clusters that have such */
struct late {
  cta *own_cta;
  action what;
};
std::vector<late> later_actions;
std::vector<void *> stacks;
void *scheduler_at;

}  // namespace

uint64_t random() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

void fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "simt: ");
  vfprintf(stderr, format, list);
  va_end(list);
  if (now) {
    fprintf(stderr, " (CTA %u, rank %d, thread %u)", now->own_cta->index.x, now->own_cta->rank, now->index.x);
  }
  fprintf(stderr, "\n");
  abort();
}

/* ---- fibers ---- */

/* Saves the registers that a function must keep, and where the stack is; goes on at `to`. */
extern "C" void simt_switch(void **from, void *to);
asm(R"(
.text
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch, .-simt_switch
)");

namespace {

#ifdef __SANITIZE_ADDRESS__
const void *scheduler_stack;
size_t scheduler_bytes;
void *scheduler_fake;
#endif

void to_scheduler(bool ends) {
#ifdef __SANITIZE_ADDRESS__
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(ends ? nullptr : &fake, scheduler_stack, scheduler_bytes);
#endif
  (void)ends;
  simt_switch(&now->at, scheduler_at);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_bytes);
#endif
}

void enter() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_bytes);
#endif
  running->kernel();
  if (!now->groups.empty() || !now->products.empty()) fail("the thread ends while its wgmma are under way");
  if (!now->stores.empty()) fail("the thread ends while its stores by TMA still read shared memory");
  now->is_done = true;
  to_scheduler(true);
  __builtin_trap();
}

void go_on(thread *t) {
  now = t;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&scheduler_fake, t->stack, STACK_BYTES);
#endif
  simt_switch(&scheduler_at, t->at);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
  now = nullptr;
}

void *take_stack() {
  if (stacks.empty()) {
    void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) fail("no memory for stacks");
    return stack;
  }
  void *stack = stacks.back();
  stacks.pop_back();
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
  return stack;
}

void make_ready(thread *t) {
  t->stack = take_stack();
  void **top = (void **)((uint8_t *)t->stack + STACK_BYTES) - 2; /* behind it: 8 past a multiple of 16, as of a call */
  *top = (void *)enter;
  top -= 6;
  memset(top, 0, 6 * sizeof *top);
  t->at = top;
}

void wake(std::vector<thread *> &waiting) {
  runnable.insert(runnable.end(), waiting.begin(), waiting.end());
  waiting.clear();
}

void end_meeting(meeting &m) {
  m.arrived = 0;
  m.number++;
  wake(m.waiting);
}

void end_if_all_are_there(meeting &m, int threads_left) {
  if (m.arrived > 0 && m.arrived == threads_left) end_meeting(m);
}

/* Threads that have ended are not waited for. */
void leave(thread *t) {
  cluster &c = *t->own_cta->own_cluster;
  if (t->arrived_at_cluster && t->cluster_phase == c.all.number) c.all.arrived--; /* is not counted twice */
  end_if_all_are_there(t->own_warp->all, --t->own_warp->live);
  end_if_all_are_there(t->own_cta->all, --t->own_cta->live);
  end_if_all_are_there(c.all, --c.live);
  if (c.live == 0) resident--;
}

/* ---- clusters ---- */

std::vector<cluster *> clusters;

void start_cluster(int number) {
  cluster *c = new cluster();
  c->number = number;
  c->live = running->cluster * running->threads;
  for (int rank = 0; rank < running->cluster; rank++) {
    cta *own = new cta();
    const unsigned index = (unsigned)(number * running->cluster + rank), row = index / running->grid.x;
    own->own_cluster = c;
    own->rank = rank;
    own->live = running->threads;
    own->index = {index % running->grid.x, row % running->grid.y, row / running->grid.y};
    own->bytes = running->shared_bytes > 0 ? running->shared_bytes : (size_t)VARIABLE_BYTES;
    void *memory = nullptr;
    if (posix_memalign(&memory, SHARED_ALIGNMENT, own->bytes) != 0) fail("no shared memory");
    own->memory = (uint8_t *)memory;
    memset(own->memory, 0xCD, own->bytes); /* nobody may rely on what is there */
    own->warps.resize((size_t)(running->threads + LANES - 1) / LANES);
    c->ctas.push_back(own);
    for (int i = 0; i < running->threads; i++) {
      thread *t = new thread();
      t->own_cta = own;
      t->own_warp = &own->warps[(size_t)i / LANES];
      t->own_warp->live++;
      t->own_warp->lanes++;
      t->lane = i % LANES;
      t->index = {(unsigned)i, 0, 0};
      make_ready(t);
      runnable.push_back(t);
      live++;
    }
  }
  clusters.push_back(c);
  resident++;
  for (size_t i = runnable.size(); i > 1; i--) std::swap(runnable[i - 1], runnable[random() % i]);
}

void free_cluster(cluster *c) {
  for (cta *own : c->ctas) {
    free(own->memory);
    delete own;
  }
  delete c;
}

bool do_something_later() {
  if (later_actions.empty()) return false;
  const size_t i = random() % later_actions.size();
  const late next = std::move(later_actions[i]);
  later_actions.erase(later_actions.begin() + (long)i);
  thread nobody = {};
  nobody.own_cta = next.own_cta;
  now = &nobody;
  next.what();
  now = nullptr;
  return true;
}

/* Whether there are threads whose condition is met: they are runnable. */
bool wake_watching() {
  const size_t before = runnable.size();
  for (size_t i = 0; i < watching.size();) {
    thread *const t = watching[i];
    now = t;
    const bool is_over = t->is_over(t->condition);
    now = nullptr;
    if (!is_over) {
      i++;
      continue;
    }
    runnable.push_back(t);
    watching[i] = watching.back();
    watching.pop_back();
  }
  return runnable.size() > before;
}

/* A line for the lanes of a warp that wait for the same. */
void report(const thread *t) {
  static std::set<std::string> lines;
  const std::string line = "  CTA " + std::to_string(t->own_cta->index.x) + ", rank " +
                           std::to_string(t->own_cta->rank) + ", warp " + std::to_string(t->index.x / LANES) + ": " +
                           t->waits_for + "\n";
  if (lines.insert(line).second) fputs(line.c_str(), stderr);
}

[[noreturn]] void report_deadlock() {
  fprintf(stderr, "simt: no thread can go on:\n");
  for (const thread *t : watching) report(t);
  for (const auto &at : at_mbarriers) {
    for (const thread *t : at.second) report(t);
  }
  for (const cluster *c : clusters) {
    for (const thread *t : c->all.waiting) report(t);
    for (const cta *own : c->ctas) {
      for (const thread *t : own->all.waiting) report(t);
      for (const meeting &m : own->numbered) {
        for (const thread *t : m.waiting) report(t);
      }
      for (const warp &w : own->warps) {
        for (const thread *t : w.all.waiting) report(t);
      }
    }
  }
  abort();
}

/* Clusters that run at the same time, by what an SM of 9.0 has. */
int64_t room_for(const launch &l) {
  const int64_t by_threads = 2048 / l.threads, by_memory = (228 << 10) / ((int64_t)l.shared_bytes + 1024);
  return SMS * std::min<int64_t>({by_threads, by_memory, 32}) / l.cluster;
}

void end_thread(thread *t) {
  leave(t);
  stacks.push_back(t->stack);
  delete t;
  live--;
}

}  // namespace

void pause() { to_scheduler(false); }

/* Launches of several host threads are run one after the other. */
void run(const launch &l) {
  static std::recursive_mutex device;
  const std::lock_guard<std::recursive_mutex> alone(device);
  if (running) fail("a launch within a launch");
  running = &l;
  cta_size = {(unsigned)l.threads, 1, 1};
  grid_size = l.grid;
  const int64_t ctas = (int64_t)l.grid.x * l.grid.y * l.grid.z;
  if (ctas == 0 || l.grid.y > 65535 || l.grid.z > 65535) fail("a grid of %u x %u x %u", l.grid.x, l.grid.y, l.grid.z);
  if (l.grid.x % (unsigned)l.cluster != 0) fail("%u CTAs are no whole clusters of %d", l.grid.x, l.cluster);
  if (l.threads < 1 || l.threads > 1024) fail("a CTA of %d threads", l.threads);
  if (l.shared_bytes > MOST_SHARED_BYTES) fail("a CTA with %zu bytes of shared memory", l.shared_bytes);
  const int64_t count = ctas / l.cluster, most = room_for(l);
  for (int64_t started = 0; started < count || live > 0;) {
    if (runnable.empty() && !wake_watching() && !do_something_later()) {
      if (started == count || resident == most) report_deadlock();
      start_cluster((int)started++);
    }
    const uint64_t chance = random() % 256;
    if (chance == 0) wake_watching();
    if (chance % 64 == 1) do_something_later();
    if (runnable.empty()) continue;
    if (chance % 16 == 2) std::swap(runnable.front(), runnable[random() % runnable.size()]);
    thread *const t = runnable.front();
    runnable.pop_front();
    go_on(t);
    if (t->is_done) {
      end_thread(t);
    } else if (t->is_over) {
      watching.push_back(t);
    }
    if (live > 0) continue;
    while (do_something_later()) continue;
    for (cluster *c : clusters) free_cluster(c);
    clusters.clear();
    at_mbarriers.clear();
  }
  running = nullptr;
}

void later(action a) {
  if (random() % 4 == 0) {
    a();
  } else {
    later_actions.push_back({now->own_cta, std::move(a)});
  }
}

/* ---- meeting ---- */

namespace {

void wait_in(std::vector<thread *> &waiting, const char *what) {
  now->waits_for = what;
  now->is_over = nullptr;
  waiting.push_back(now);
  pause();
}

}  // namespace

const uint8_t (*exchange_bytes(const char *what, const void *value, size_t bytes))[SLOT_BYTES] {
  auto *const slot = now->own_warp->slot[now->own_warp->all.number % 2];
  memcpy(slot[now->lane], value, bytes);
  meet_warp(what);
  return slot;
}

void meet_warp(const char *what) {
  warp &w = *now->own_warp;
  if (w.all.arrived == 0) w.what = what;
  if (w.what != what && strcmp(w.what, what) != 0) fail("a lane is at %s, others are at %s", what, w.what);
  meet(what, w.all, w.live, true);
}

void arrive_at_cluster() {
  meeting &m = now->own_cta->own_cluster->all;
  now->cluster_phase = m.number;
  now->arrived_at_cluster = true;
  meet("barrier.cluster.arrive", m, now->own_cta->own_cluster->live, false);
}

void meet(const char *what, meeting &m, int count, bool waits) {
  if (++m.arrived > count) fail("%d threads are at %s, which is for %d", m.arrived, what, count);
  if (m.arrived == count) {
    end_meeting(m);
  } else if (waits) {
    wait_in(m.waiting, what);
  }
}

/* ---- shared memory ---- */

void *variable(const char *name, size_t bytes) {
  cta &own = *now->own_cta;
  if (running->shared_bytes > 0) fail("%s beside dynamic shared memory", name);
  for (const auto &v : own.variables) {
    if (strcmp(v.name, name) == 0) return own.memory + v.offset;
  }
  const size_t end = own.variables.empty() ? own.bytes : own.variables.back().offset;
  if (bytes > end) fail("no room for %s", name);
  own.variables.push_back({name, (end - bytes) / VARIABLE_ALIGNMENT * VARIABLE_ALIGNMENT});
  return own.memory + own.variables.back().offset;
}

uint32_t address_of(const void *pointer) {
  const uint8_t *const at = (const uint8_t *)pointer;
  const cta &own = *now->own_cta;
  if (at < own.memory || at > own.memory + own.bytes) fail("an address that is not in dynamic shared memory");
  return (uint32_t)(at - own.memory);
}

uint8_t *memory_at(uint32_t address, size_t bytes) {
  const uint32_t rank = address >> 24, offset = address & 0xffffff;
  const cta *own = now->own_cta;
  if (rank > 0) {
    if (rank > own->own_cluster->ctas.size()) fail("there is no CTA of rank %u", rank - 1);
    own = own->own_cluster->ctas[rank - 1];
    if (own->live == 0) fail("the CTA of rank %u has ended", rank - 1);
  }
  if (offset + bytes > own->bytes) fail("%zu bytes at %u of %zu bytes of shared memory", bytes, offset, own->bytes);
  return own->memory + offset;
}

/* ---- mbarriers ---- */

namespace {

struct mbarrier {
  uint16_t arrivals, left;
  int8_t phase, is_set;
  int16_t sixteens; /* of bytes that are to come; negative: that came too soon */
};
static_assert(sizeof(mbarrier) == 8, "as on the GPU");

mbarrier &mbarrier_at(uint32_t at) {
  if (at % 8 != 0) fail("an mbarrier at %u", at);
  return *(mbarrier *)memory_at(at, sizeof(mbarrier));
}

}  // namespace

void init_mbarrier(uint32_t at, int arrivals) { mbarrier_at(at) = {(uint16_t)arrivals, (uint16_t)arrivals, 0, 1, 0}; }

void change_mbarrier(uint32_t at, int arrivals, int64_t bytes) {
  mbarrier &b = mbarrier_at(at);
  if (b.arrivals == 0xCDCD || !b.is_set) fail("an mbarrier at %u that nobody has initialised", at);
  if (arrivals > b.left) fail("one arrival too many at the mbarrier at %u, which takes %d", at, b.arrivals);
  if (bytes % 16 != 0) fail("%lld bytes at an mbarrier", (long long)bytes);
  b.sixteens = (int16_t)(b.sixteens + bytes / 16);
  b.left = (uint16_t)(b.left - arrivals);
  if (b.left > 0 || b.sixteens != 0) return;
  b.left = b.arrivals;
  b.phase = !b.phase;
  const auto waiting = at_mbarriers.find(&b);
  if (waiting == at_mbarriers.end()) return;
  wake(waiting->second);
}

bool is_over(uint32_t at, uint32_t parity) {
  const mbarrier &b = mbarrier_at(at);
  if (parity > 1) fail("a parity of %u", parity);
  if (b.arrivals == 0xCDCD || !b.is_set) fail("a wait at an mbarrier at %u that nobody has initialised", at);
  return b.phase != (int)parity;
}

void wait_mbarrier(uint32_t at, uint32_t parity) {
  while (!is_over(at, parity)) wait_in(at_mbarriers[&mbarrier_at(at)], "an mbarrier");
}

}  // namespace simt
