/* What the kernels cost: the rows that lpg_kernel.cost names. A unit is a thread of the CPU or an SM of the GPU.
 *
 *   start      microseconds of a call that does nothing
 *   decode     weights a unit brings into a form that can be multiplied, a microsecond, once a call
 *   multiply   products a unit adds up, a microsecond
 *   prepare    activations a unit turns into tables, a microsecond; 0 = the kernel makes none
 *   planes     1: decode and multiply are for one bit of the weights, so that b bits take b times as long */
#ifndef LPG_DISPATCH_COST_H
#define LPG_DISPATCH_COST_H

typedef struct lpg_cost {
  const char *name;
  double start, decode, multiply, prepare;
  int planes;
} lpg_cost;

static const lpg_cost lpg_costs[] = {
    /* Estimated, not measured. */
    /* name            start  decode  multiply  prepare  planes */
    {"blocked.avx512", 5.0, 1000.0, 20000.0, 0.0, 0}, {"blocked.avx2", 5.0, 800.0, 10000.0, 0.0, 0},
    {"blocked.base", 5.0, 200.0, 2000.0, 0.0, 0},     {"lut", 5.0, 10000.0, 10000.0, 500.0, 1},
    {"reference", 1.0, 50.0, 200.0, 0.0, 0},
};

#endif
