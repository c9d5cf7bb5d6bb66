/* What the kernels cost: the rows that lpg_kernel.cost names. A unit is a thread of the CPU or an SM of the GPU.
 *
 *   start      microseconds of a call that does next to nothing
 *   decode     weights that a unit brings into a form that can be multiplied, a microsecond
 *   multiply   products that a unit adds up, a microsecond */
#ifndef LPG_DISPATCH_COST_H
#define LPG_DISPATCH_COST_H

typedef struct lpg_cost {
  const char *name;
  double start, decode, multiply;
} lpg_cost;

static const lpg_cost lpg_costs[] = {
    /* Measured 2026-11-20 on one thread of an Intel Xeon with AVX-512 at 2.6 GHz, a shared virtual machine, gcc 12;
     * fp16 by u4 (lut: by u2) of 128 x 4096, m = 1 and 64 (lut and reference: 1 and 16); start at 16 x 16, m = 1. The
     * best of many runs: right to a third, no better. */
    /* clang-format off */
    /* name            start   decode  multiply */
    {"blocked.avx512",   0.5,   3500.0,    58000.0},
    {"blocked.avx2",     0.5,   2100.0,    44000.0},
    {"blocked.base",     0.5,   1300.0,    16000.0},
    {"lut",              1.5,    120.0,     1900.0},
    {"reference",        20.0,     65.0,     1100.0},
    /* H200, 2026-11-20, u4 with groups of 128, m = 1 and 4096; the other families estimate for themselves. */
    {"generic.16x8",     4.0,   4000.0,     9000.0},
    {"generic.64x64",    4.0,    800.0,    77000.0},
    /* clang-format on */
};

#endif
