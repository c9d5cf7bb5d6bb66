/* The sum over ranks on the host, in NCCL's place: on the CPU, and where ranks share a GPU. */
#include <string.h>

#include "parallel.h"

static const job *shared;
static int own;
static size_t done; /* sums */

void host_sum_open(const rank *r) {
  shared = r->job;
  own = r->index;
}

/* A sum writes to one half of the slots while slow ranks may still read the other: who meets here for the next sum has
 * read all of the one before. */
int host_sum(const void *part, size_t bytes, int64_t count, adder *add, void *out) {
  const char *parts[MOST_RANKS];
  char *half = shared->slots + (done++ % 2) * (size_t)shared->ranks * shared->slot_bytes;
  if (bytes > shared->slot_bytes) fail("a sum of %zu bytes, slots have %zu", bytes, shared->slot_bytes);
  memcpy(half + (size_t)own * shared->slot_bytes, part, bytes);
  if (!meet_for_sum()) return 0;
  for (int i = 0; i < shared->ranks; i++) parts[i] = half + (size_t)i * shared->slot_bytes;
  add(parts, shared->ranks, count, out);
  return 1;
}

void add_floats(const char *const *parts, int ranks, int64_t count, void *out) {
  float *sum = out;
  memcpy(sum, parts[0], (size_t)count * sizeof *sum);
  for (int r = 1; r < ranks; r++) {
    const float *part = (const float *)(const void *)parts[r];
    for (int64_t i = 0; i < count; i++) sum[i] += part[i];
  }
}
