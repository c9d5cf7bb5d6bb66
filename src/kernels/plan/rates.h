/* What a GPU can do: the one table of physical rates, a row a GPU, that every planner divides by. What a family adds of
 * its own are named corrections beside its cost, with a date and a record. */
#ifndef LPG_KERNELS_RATES_H
#define LPG_KERNELS_RATES_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lpg_rates {
  const char *name; /* a part of CUDA's name; the first row that fits counts, then the first of the architecture */
  int32_t arch;
  double sms;
  double dram, l2, copy;                  /* GB/s: of memory, of L2 to registers, of L2 to shared memory by copies */
  double mma_f16, wgmma_f16, wgmma_8, b1; /* dense TFLOP/s: mma.sync and wgmma, fp32 sums; binary. 0: it has none */
  double dequant_int, dequant_float, codebook; /* weights of 4 bits that an SM dequantises in a nanosecond */
  double clock;                                /* MHz, the highest */
};

/* The row of a device; for one that is not in the table the row that all costs were fitted to. */
const lpg_rates *lpgemm_i_rates_of(const lpg_device *device);

/* Bytes that an SM reads from memory, from L2, and copies from there to shared memory in a nanosecond, all at once. */
static inline double lpg_dram_rate(const lpg_rates *r) { return r->dram / r->sms; }
static inline double lpg_l2_rate(const lpg_rates *r) { return r->l2 / r->sms; }
static inline double lpg_copy_rate(const lpg_rates *r) { return r->copy / r->sms; }

/* How fast an SM calculates, and multiplies by mma.sync, one of the GPU that costs were fitted to being 1. */
double lpgemm_i_alu_speed(const lpg_device *device);
double lpgemm_i_mma_speed(const lpg_device *device);

/* Microseconds that a launch in front of the product adds, to gather the columns of X (operand/x_gather.cu); 0 for
 * weights without an order of columns, and on the CPU, where all kernels have X gathered alike. */
double lpgemm_i_gather_us(const lpg_problem *problem, const lpg_device *device);

/* Microseconds that outputs take which, as far as the problem says, are no whole vectors of 16 bits, beyond those that
 * are: 0.18 ns each on an SM (4096, 4100 and 4101 x 1024 by 1024 rows of X, fp32 and 16-bit Y, H200, 2026-11-27). Pairs
 * are stored by themselves. */
static inline double lpg_loose_outputs_us(const lpg_problem *problem, const lpg_device *device) {
  const int64_t n = problem->weights->desc.n;
  if (problem->paired || (n % 8 == 0 && lpg_bytes(problem->y_type) == 2)) return 0.0;
  return 0.00018 * (double)n * (double)problem->m / (device->sms > 0 ? device->sms : 1);
}

#ifdef __cplusplus
}
#endif

#endif
