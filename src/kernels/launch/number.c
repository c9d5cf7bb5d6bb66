#include "number.h"

#include <stdatomic.h>
#include <time.h>

/* A permutation of all numbers of 64 bits whose results look as if at random. */
static uint64_t scatter(uint64_t x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
  x = (x ^ x >> 29) * 0xca5a826395121157u;
  return x ^ x >> 32;
}

uint64_t lpgemm_i_launch_number(void) {
  static _Atomic uint64_t count;
  static _Atomic uint64_t seed; /* of the process; whoever comes first sets it */
  uint64_t none = 0;
  struct timespec now;
  if (atomic_load(&seed) == 0) {
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t own = scatter((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) | 1;
    atomic_compare_exchange_strong(&seed, &none, own);
  }
  uint64_t number;
  do {
    number = scatter(atomic_load(&seed) + atomic_fetch_add(&count, 1));
  } while (number == 0);
  return number;
}
