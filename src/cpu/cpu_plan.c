#include <math.h>

#include "cost.h"
#include "cpu.h"
#include "dot_bytes.h"

int lpgemm_i_cpu_cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
                     double *ns) {
  (void)problem, (void)device, (void)least, (void)state, (void)plan;
  *ns = 0.0;
  return i > 0 ? LPG_NO_MORE : LPG_CANDIDATE;
}

/* What a thread does in a microsecond with such weights. */
typedef struct rates {
  double dequantise, multiply;
} rates;

static rates rates_of(const lpg_cpu_cost *cost, const lpg_problem *problem) {
  const lpg_axis *group = &problem->weights->group;
  const int is_byte = lpg_is_bytes(problem->x_type), is_fast = problem->level == LPGEMM_LEVEL_FAST;
  rates r = {cost->dequantise, !is_byte && !is_fast && cost->exact > 0 ? cost->exact : cost->multiply};
  lpg_dot_bytes values;
  if (cost->row > 0 && lpg_find_bytes(&problem->weights->desc, is_fast, &values)) {
    if (problem->m == 1 && (is_byte || is_fast) && !problem->batch_invariant) {
      return (rates){cost->row, HUGE_VAL};
    }
    if (values.digits > 1) { /* a digit is a panel of its own */
      r.dequantise /= (cost->digit > 0 ? cost->digit : 2.0) * values.digits;
      r.multiply /= values.digits;
    }
    if (cost->bytes > 0 && values.bits == 8) r.multiply *= is_byte || !is_fast ? cost->bytes : cost->rounded;
  }
  if (group->count > 1 && (double)group->k < cost->narrow_k) r.multiply = cost->narrow;
  return r;
}

void lpgemm_i_cpu_finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device,
                         const void *plan, double ns, lpg_launch *launch) {
  const lpg_cpu_cost *cost = self->cost;
  const double n = (double)problem->weights->desc.n, k = (double)problem->weights->desc.k;
  double m = (double)problem->m, threads = device->threads > 0 ? (double)device->threads : 1.0;
  (void)plan, (void)ns;
  if (cost->tile_n > 0) { /* whole tiles */
    threads = fmin(threads, fmax(1.0, ceil(n / cost->tile_n) * ceil(m / cost->tile_m)));
    m = ceil(m / cost->tile_m) * cost->tile_m;
  }
  launch->threads = (int32_t)threads;
  const lpg_axis *group = &problem->weights->group;
  const double more = group->count > 1 ? fmax(0.0, (double)group->count - k / 128.0) : 0.0;
  const rates r = rates_of(cost, problem);
  const double of_weights = n * (k * (1.0 / r.dequantise + m / r.multiply) + 1e-3 * cost->group * more);
  launch->us = cost->start + (of_weights + 1e-3 * cost->column * k * (double)problem->m) / threads;
}

/* Measured 2026-11-23 on one thread of an AMD EPYC (family 26), a shared virtual machine, gcc 12; fp16 by u4 (lut: by
 * the width of the row) with groups of 128, 512 x 4096, m = 1 to 32; start at 16 x 16, m = 1. The best of many runs:
 * right to a third, no better. What multiplies of blocked.avx512 and of lut's vbmi: 4096 x 4096, m = 1 to 256, one run,
 * right to a tenth. Groups: see below, on the third machine. */
LPG_CPU_PLANNER(blocked_avx512, LPG_CPU_COST(0.5, 6300.0, 107000.0, .group = 1.5), .refuses = NULL)
LPG_CPU_PLANNER(blocked_avx2, LPG_CPU_COST(0.5, 3100.0, 69000.0, .group = 1.5), .refuses = NULL)
LPG_CPU_PLANNER(blocked_base, LPG_CPU_COST(0.5, 1900.0, 23000.0), .refuses = NULL)
/* The same on one thread of the Xeon beside an H200, 4096 x 4096, m = 1 to 1024; there blocked.avx512 has 3900 and
 * 70000. Not in proportion to its row above, which would be half as much again: beside dot.vbmi, FAST, a whole model
 * with prompts of 64 to 256 tokens took as long by Q4_0 and 1.4 times as long by Q4_K with one thread, and 1.8 and
 * 2.2 to 2.8 times as long with 16 (llama-bench there, 2026-11-27). */
LPG_CPU_PLANNER(tiles_amx, LPG_CPU_COST(2.0, 8000.0, 200000.0, 32, 32), .refuses = lpgemm_i_cpu_tiles_refuses)
LPG_CPU_PLANNER(tiles_base, LPG_CPU_COST(20.0, 1000.0, 500.0), .refuses = lpgemm_i_cpu_tiles_refuses)
/* In proportion to the rows of blocked, on one thread of a Xeon that has all three (2026-11-27, Q4_0, Q8_0, u4 in
 * groups of 32 with minima and of 128, 2048 x 4096, m = 1 to 256): VBMI 34500 and 127700, where blocked.avx512 has
 * 60000 products; AVX-VNNI 32000 and 84700, AVX2 30000 and 56500, where blocked.avx2 has 35700. With these numbers the
 * chosen kernel took 1.002 to 1.004 times the best in the mean, 1.5 at worst, in 240 random products for each of VBMI,
 * AVX-VNNI and AVX2 as the highest set there.
 *
 * EXACT, digits, groups of blocked and narrow groups of lut: 2026-11-25, one thread of a shared Xeon (Ice Lake), 4096 x
 * 4096, m = 1 to 64, Q4_0, Q8_0, Q4_K and Q2_K at EXACT. dot takes as long as blocked at about 10 rows with AVX-512 and
 * groups of 32, and with AVX2 at 9 rows of 4 bits and at 3 of 8. One row, and several digits of codebooks: the same
 * Xeon and day, beside lut of 1 to 4 bits in groups of 128 (equal or slower from 2 bits on, with AVX-512 as with AVX2)
 * and blocked of NF4 (slower up to 5 rows by FAST, with one by EXACT). AVX2 in codebooks by digits and at EXACT beside
 * lut (lut_plan.c): 2026-11-26 on the Xeon beside an H100. */
LPG_CPU_PLANNER(dot_vbmi, LPG_CPU_COST(1.0, 60000.0, 220000.0, .group = 1.0, .exact = 45000.0, .row = 66000.0),
                .refuses = lpgemm_i_cpu_dot_refuses)
LPG_CPU_PLANNER(dot_avx2,
                LPG_CPU_COST(1.0, 45000.0, 110000.0, .group = 2.0, .exact = 23000.0, .bytes = 0.45, .rounded = 0.58,
                             .digit = 0.85, .row = 30000.0),
                .refuses = lpgemm_i_cpu_dot_refuses)
LPG_CPU_PLANNER(dot_avxvnni, LPG_CPU_COST(1.0, 50000.0, 150000.0, .group = 2.0, .exact = 45000.0, .row = 35000.0),
                .refuses = lpgemm_i_cpu_dot_refuses)
/* A guess, half of AVX2 for half of the vector: SDOT was never timed, only run under qemu. */
LPG_CPU_PLANNER(dot_dotprod, LPG_CPU_COST(1.0, 10000.0, 55000.0, .group = 2.0, .exact = 12000.0),
                .refuses = lpgemm_i_cpu_dot_refuses)
LPG_CPU_PLANNER(dot_base, LPG_CPU_COST(20.0, 1000.0, 1000.0), .refuses = lpgemm_i_cpu_dot_refuses)
LPG_CPU_PLANNER(reference, LPG_CPU_COST(20.0, 67.0, 2300.0), .refuses = NULL)
