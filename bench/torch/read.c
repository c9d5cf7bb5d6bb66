/* Reads memory as fast as one core does, for compare.py: nothing but loads of vectors and additions. */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t words __attribute__((vector_size(64)));

uint64_t bench_read(const void *memory, size_t bytes);

/* The sum of what is there; bytes: a multiple of 256. */
uint64_t bench_read(const void *memory, size_t bytes) {
  const words *from = memory;
  words sum[4] = {{0}};
  for (size_t i = 0; i < bytes / sizeof *from; i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) sum[j] += from[i + j];
  }
  const words all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  uint64_t total = 0;
  for (size_t j = 0; j < sizeof all / sizeof all[0]; j++) total += all[j];
  return total;
}
