/* The CPU backend: plain memory, a steady clock, OpenBLAS where it is installed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tests/ref/gemm_ref.h"
#include "host_timer.h"
#include "machine.h"
#include "openblas.h"
#include "random.h"

enum { ALIGN = 256 };

static bench_error no_bandwidth(bench_machine *machine) {
  machine->read_gbps = machine->copy_gbps = (double)NAN;
  return NULL;
}

static bench_error use_threads(bench_machine *machine, int threads) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = threads};
  lpgemm_handle_t handle;
  BENCH_LPGEMM(lpgemm_create(&handle, &config));
  lpgemm_destroy(machine->handle);
  machine->handle = handle;
  bench_openblas_threads(threads ? threads : (int)sysconf(_SC_NPROCESSORS_ONLN));
  return NULL;
}

static bench_error allocate(size_t bytes, void **memory) {
  *memory = aligned_alloc(ALIGN, bytes / ALIGN * ALIGN + ALIGN);
  BENCH_CHECK(*memory, "out of memory for %zu bytes", bytes);
  return NULL;
}

static size_t available(void) { return (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }

static bench_error copy(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return NULL;
}

static bench_error poison(void *memory, size_t bytes) {
  memset(memory, 0xff, bytes);
  return NULL;
}

static bench_error fill(lpgemm_dtype_t type, void *memory, int64_t count, uint64_t seed) {
  int bits = lpgemm_dtype_bits(type);
  for (int64_t i = 0; i < count; i++) {
    uint32_t number = bench_random_number(type, bench_random(seed, (uint64_t)i));
    if (bits == 32) {
      ((uint32_t *)memory)[i] = number;
    } else if (bits == 16) {
      ((uint16_t *)memory)[i] = (uint16_t)number;
    } else {
      ((uint8_t *)memory)[i] = (uint8_t)number;
    }
  }
  return NULL;
}

static bench_error synchronize(void) { return NULL; }

static bench_error time_launches(bench_launch launch, void *context, int64_t rotation, bench_time *time) {
  return bench_host_time(launch, context, rotation, NULL, time);
}

static bench_error time_quickly(bench_launch launch, void *context, int64_t rotation, double enough_us,
                                bench_time *time) {
  return bench_host_time_quickly(launch, context, rotation, NULL, enough_us, time);
}

static bench_error time_host(bench_launch launch, void *context, bench_time *time) {
  return bench_host_cost(launch, context, NULL, time);
}

static bench_error row_norms(lpgemm_dtype_t type, const void *matrix, int64_t rows, int64_t columns, int64_t ld,
                             float *out) {
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0;
    for (int64_t j = i * ld; j < i * ld + columns; j++) {
      double value = type == LPGEMM_F32 ? (double)((const float *)matrix)[j] : ref_load(type, matrix, j);
      sum += value * value;
    }
    out[i] = (float)sqrt(sum);
  }
  return NULL;
}

static bench_error compare(const bench_comparison *c, int64_t *bad) {
  *bad = 0;
  for (int64_t i = 0; i < c->m; i++) {
    for (int64_t j = 0; j < c->n; j++) {
      double a = ref_load(c->type, c->a, i * c->n + j), b = ref_load(c->type, c->b, i * c->n + j);
      double error = (double)c->factor * (double)c->x_norm[i] * (double)c->w_norm[j];
      double bound = 2 * ((double)c->step * fmax(fabs(a), fabs(b)) + error + (double)c->least);
      if (!(fabs(a - b) <= (c->type == LPGEMM_I32 ? 0 : bound))) ++*bad;
    }
  }
  return NULL;
}

bench_error bench_open_cpu(bench_machine *machine) {
  *machine = (bench_machine){.backend = LPGEMM_BACKEND_CPU,
                             .reference = "reference",
                             .blas = "OpenBLAS",
                             .rotate_bytes = (size_t)512 << 20,
                             .bandwidth = no_bandwidth,
                             .use_threads = use_threads,
                             .allocate = allocate,
                             .release = free,
                             .available = available,
                             .copy = copy,
                             .copy_in_order = copy,
                             .poison = poison,
                             .fill = fill,
                             .synchronize = synchronize,
                             .time = time_launches,
                             .time_call = time_launches,
                             .time_quickly = time_quickly,
                             .time_host = time_host,
                             .row_norms = row_norms,
                             .compare = compare,
                             .multiply = bench_openblas_multiply};
  snprintf(machine->device, sizeof machine->device, "CPU");
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "model name", 10) != 0) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(machine->device, sizeof machine->device, "%.90s", line + strcspn(line, ":") + 2);
    break;
  }
  if (file) fclose(file);
  return use_threads(machine, 0);
}
