/* Made-up kernels and problems on the devices of devices.h, so that dispatch is tested for every architecture without
 * one. */
#ifndef MADE_UP_H
#define MADE_UP_H

#include "devices.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Every record there is, of every architecture, without the functions that launch: tools/gen_kernels.py. */
extern const lpg_kernel test_every_kernel[];
extern const int test_every_kernel_count;

enum { DECODE, PREFILL, MMA, FP8, LUT, PROBE, GENERIC, AVX512, AVX2, BASE, REFERENCE, MADE_UP };
extern const lpg_kernel made_up[MADE_UP];

/* p.weights points to the weights beside it: a problem stays where it was made. */
typedef struct problem {
  lpg_packed weights;
  lpg_problem p;
} problem;

/* n x k weights in groups of 128 with fp16 scales. */
lpgemm_weight_desc_t desc_of(lpgemm_dtype_t type, int64_t n, int64_t k);
void make(problem *q, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type, int64_t m);
/* 4096 x 4096 such weights. */
void make_simple(problem *q, lpgemm_dtype_t type, lpgemm_dtype_t x_type, int64_t m);

/* A small problem of level FAST that most kernels can do, with one thing changed. */
typedef enum change {
  NOTHING,
  WEIGHTS,
  WIDTH,
  SCALE,
  TWO_LEVELS,
  ZERO,
  MINIMUM,
  GROUP,
  X,
  Y,
  I32_SCALES,
  I32_X,
  I32_ZERO,
  LEVEL,
  INVARIANT,
  ROWS
} change;

void make_changed(problem *q, change what);

/* The name that is chosen among the made-up kernels, "none" if there is none. */
const char *choose(const problem *q, const lpg_device *device, const lpg_tuning *tuning, const char *forced);

void check_text(const char *file, int line, const char *got, const char *want);
#define CHECK_TEXT(got, want) check_text(__FILE__, __LINE__, got, want)
void check_has(const char *file, int line, const char *text, const char *part);
#define CHECK_HAS(text, part) check_has(__FILE__, __LINE__, text, part)

/* The parts of suite_dispatch() in other files. */
void dispatch_registry(void);
void dispatch_tuning(void);
void dispatch_mapping(void);
void dispatch_measured(void);
void dispatch_refusals(void);

#endif
