/* What GPUs can do, and what kernels cost. */
#ifndef LPG_DISPATCH_COST_H
#define LPG_DISPATCH_COST_H

#include <stdint.h>

/* ---- GPUs: what estimates of kernels, which were all fitted to the first row, are scaled by ----
 *
 *   units   SMs
 *   read    GB/s of memory
 *   mma     dense TFLOP/s of fp16 with fp32 sums by mma.sync
 *   clock   MHz, the highest */
typedef struct lpg_gpu {
  const char *name; /* a part of CUDA's name; the first row that fits counts, then the first of the architecture */
  int32_t arch;
  double units, read, mma, clock;
} lpg_gpu;

static const lpg_gpu lpg_gpus[] = {
    /* clang-format off */
    /* name            arch  units    read    mma   clock */
    /* Measured, 2026-11-22: what lpgemm-bench reads; mma.sync from the published 989 of wgmma, by the two forms of
     * `dense`. */
    {"NVIDIA H200",      90,   132,   4610,   550,   1980},
    /* Never run, 2026-11-22: the peaks of NVIDIA's data sheets and white papers (a kernel reads about 0.96 of them).
     * mma.sync of 9.0 and 10.0 is not published: an SM's as on the H200. */
    {"H100 PCIe",        90,   114,   2039,   475,   1755},
    {"H100 NVL",         90,   132,   3938,   550,   1785},
    {"H100",             90,   132,   3350,   550,   1980},
    {"B200",            100,   148,   8000,   617,   1965},
    {"L40S",             89,   142,    864,   362,   2520},
    {"RTX 4090",         89,   128,   1008,   165,   2520},
    {"A100-SXM4-40",     80,   108,   1555,   312,   1410},
    {"A100-PCIE-40",     80,   108,   1555,   312,   1410},
    {"A100 80GB PCIe",   80,   108,   1935,   312,   1410},
    {"A100",             80,   108,   2039,   312,   1410},
    {"A10",              86,    72,    600,   125,   1695},
    /* clang-format on */
};

/* ---- kernels: the rows that lpg_kernel.cost names. A unit is a thread of the CPU or an SM of the GPU ----
 *
 *   start      microseconds of a call that does next to nothing
 *   decode     weights that a unit brings into a form that can be multiplied, a microsecond
 *   multiply   products that a unit adds up, a microsecond
 *   rows       of W, and
 *   tokens     of X, that a unit takes together: with fewer such tiles than units the others wait; 0: no matter */
typedef struct lpg_cost {
  const char *name;
  double start, decode, multiply, rows, tokens;
} lpg_cost;

static const lpg_cost lpg_costs[] = {
    /* Measured 2026-11-23 on one thread of an AMD EPYC (family 26), a shared virtual machine, gcc 12; fp16 by u4 (lut:
     * by the width of the row) with groups of 128, 512 x 4096, m = 1 to 32; start at 16 x 16, m = 1. The best of many
     * runs: right to a third, no better. What multiplies of blocked.avx512 and of vbmi: 4096 x 4096, m = 1 to 256, one
     * run, right to a tenth. */
    /* clang-format off */
    /* name             start     decode  multiply  rows  tokens */
    {"blocked.avx512",    0.5,    6300.0,  107000.0},
    {"blocked.avx2",      0.5,    3100.0,   69000.0},
    {"blocked.base",      0.5,    1900.0,   23000.0},
    /* The same on one thread of the Xeon beside an H200, 4096 x 4096, m = 1 to 1024; there blocked.avx512 has 3900 and
     * 70000, and lut.u4.vbmi 42000 products. */
    {"tiles.amx",         2.0,    8000.0,  200000.0,   32,  32},
    {"tiles.base",       20.0,    1000.0,     500.0},
    {"lut.u1.vbmi",       1.0,  450000.0,   95000.0},
    {"lut.u2.vbmi",       1.0,  600000.0,   72000.0},
    {"lut.u3.vbmi",       1.0,  125000.0,   68000.0},
    {"lut.u4.vbmi",       1.0,  300000.0,   68000.0},
    {"lut.u1.avx2",       2.0,  156000.0,   38500.0},
    {"lut.u2.avx2",       2.0,   78000.0,   29000.0},
    {"lut.u3.avx2",       2.0,   27500.0,   22700.0},
    {"lut.u4.avx2",       2.0,   39000.0,   19200.0},
    /* NEON: a guess, half of AVX2 for half of the vector. It was never timed, only run under qemu. */
    {"lut.u1.neon",       2.0,   78000.0,   19200.0},
    {"lut.u2.neon",       2.0,   39000.0,   14500.0},
    {"lut.u3.neon",       2.0,   13700.0,   11300.0},
    {"lut.u4.neon",       2.0,   19500.0,    9600.0},
    {"lut.u1.base",       3.0,    3200.0,    3500.0},
    {"lut.u2.base",       3.0,    2400.0,    1700.0},
    {"lut.u3.base",       3.0,    1100.0,    1200.0},
    {"lut.u4.base",       3.0,    1900.0,     850.0},
    {"reference",        20.0,      67.0,    2300.0},
    /* H200, 2026-11-20, u4 with groups of 128, m = 1 and 4096; the other families estimate for themselves. */
    {"generic.16x8",      4.0,    4000.0,    9000.0,   16,   8},
    {"generic.64x64",     4.0,     800.0,   77000.0,   64,  64},
    /* clang-format on */
};

#endif
