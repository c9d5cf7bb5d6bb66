/* Reads memory as fast as one core does, for compare.py: nothing but loads of vectors and additions. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t words __attribute__((vector_size(32)));

uint64_t bench_read(const void *memory, size_t bytes);

/* The sum of what is there; bytes: a multiple of 256. */
uint64_t bench_read(const void *memory, size_t bytes) {
  const words *from = memory;
  words sum[8] = {{0}};
  for (size_t i = 0; i < bytes / sizeof *from; i += 8) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) sum[j] += from[i + j];
  }
  uint64_t total = 0;
  for (size_t j = 0; j < 8; j++) total += sum[j][0] + sum[j][1] + sum[j][2] + sum[j][3];
  return total;
}
