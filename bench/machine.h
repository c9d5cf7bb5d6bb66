/* Where things run: one table of functions for the CPU and one for CUDA, so that the cases are written once. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "case.h"

/* Starts launch number i; on CUDA in the machine's stream, asynchronously, fit for capture. */
typedef bench_error (*bench_launch)(void *context, int64_t i);

/* Launches; `rotation` of them use different memory. */
typedef struct bench_program {
  bench_launch launch;
  void *context;
  int64_t rotation;
} bench_program;

/* Two results of the same product, each within its bound of the exact one:
 * |a - b| <= 2 (step |y| + factor * x_norm[row] * w_norm[column] + least), by Cauchy and Schwarz. */
typedef struct bench_comparison {
  const void *a, *b; /* [m][n] of type; I32 must be equal */
  lpgemm_dtype_t type;
  int64_t m, n;
  const float *x_norm, *w_norm;
  float step, factor, least;
} bench_comparison;

typedef struct bench_machine {
  lpgemm_backend_t backend;
  lpgemm_handle_t handle;
  char device[96], driver[64], runtime[64]; /* "NVIDIA H200", "580.159.04", "CUDA 13.0, cuBLAS 13.1.0" */
  const char *reference;                    /* family of the slow, obviously right kernel */
  const char *blas;                         /* name of the baseline library */
  double read_gbps, copy_gbps;              /* measured by bandwidth(); copy counts bytes read and bytes written */
  double turn_seconds;                      /* the most of one turn at the clock of sustained work */
  size_t rotate_bytes; /* weights rotate over at least as many bytes, so that no cache keeps them */

  bench_error (*bandwidth)(struct bench_machine *machine);
  bench_error (*use_threads)(struct bench_machine *machine, int threads); /* may replace the handle */

  bench_error (*allocate)(size_t bytes, void **memory); /* 256-byte aligned */
  void (*release)(void *memory);
  size_t (*available)(void);                                              /* bytes */
  bench_error (*copy)(void *to, const void *from, size_t bytes);          /* between any two of host and machine */
  bench_error (*copy_in_order)(void *to, const void *from, size_t bytes); /* on the machine, as a launch */
  bench_error (*poison)(void *memory, size_t bytes);                      /* every byte 0xff */
  bench_error (*fill)(lpgemm_dtype_t type, void *memory, int64_t count, uint64_t seed); /* random.h */
  bench_error (*synchronize)(void);

  /* Times launches; `rotation` of them use different memory. time_call is for launches that cannot be captured. */
  bench_error (*time)(bench_launch launch, void *context, int64_t rotation, bench_time *time);
  bench_error (*time_call)(bench_launch launch, void *context, int64_t rotation, bench_time *time);
  /* In a hurry: fewer and shorter replays. What takes more than enough_us when it is tried is not replayed. */
  bench_error (*time_quickly)(bench_launch launch, void *context, int64_t rotation, double enough_us, bench_time *time);
  bench_error (*time_host)(bench_launch launch, void *context, bench_time *time); /* what a launch costs the host */
  /* One or two programs at the clock of sustained work (clock.h), a time for each. NULL: the machine knows bursts only.
   */
  bench_error (*time_sustained)(const bench_program *program, int programs, double turn_seconds, bench_time *time);
  char settled_by[160]; /* in what windows agree: "SM clock", or "time: " and why not */

  /* out[row] = Euclidean norm of a row; ld elements from one row to the next. */
  bench_error (*row_norms)(lpgemm_dtype_t type, const void *matrix, int64_t rows, int64_t columns, int64_t ld,
                           float *out);
  bench_error (*compare)(const bench_comparison *comparison, int64_t *bad);

  /* y[m][n] = x[m][k] w[n][k]^T; Y has bench_blas_y(type). */
  bench_error (*multiply)(lpgemm_dtype_t type, int64_t m, int64_t n, int64_t k, const void *w, const void *x, void *y);
} bench_machine;

static inline lpgemm_dtype_t bench_blas_y(lpgemm_dtype_t type) {
  return type == LPGEMM_I8 ? LPGEMM_I32 : type == LPGEMM_E4M3 ? LPGEMM_F16 : type;
}

bench_error bench_open_cpu(bench_machine *machine);
#ifdef LPG_HAVE_CUDA
bench_error bench_open_cuda(bench_machine *machine);
#else
static inline bench_error bench_open_cuda(bench_machine *machine) {
  (void)machine;
  return bench_fail("this build has no CUDA backend");
}
#endif
static inline void bench_close_machine(bench_machine *machine) { lpgemm_destroy(machine->handle); }

#endif
