/* The planners of table lookup on the CPU: src/cpu/cpu_plan.c says how they were measured. */
#include "../cpu/cost.h"
#include "../cpu/cpu.h"
#include "lut.h"

/* For the tables of a row where the pool has no room for them. */
static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  size_t row = lpg_lut_bytes(1, problem->weights->desc.k);
  (void)self, (void)device;
  return problem->tables || problem->m == 0 || row <= LPG_SHARED_BYTES ? 0 : row;
}

/* Groups: as cpu_plan.c has it of 2026-11-25, AVX2, u4 and u2 in groups of 32 and 16, of one level and of two. */
#define LUT(name, dequantise, multiply, start) \
  LPG_CPU_PLANNER(lut_##name, LPG_CPU_COST(start, dequantise, multiply, .group = 4.0), .workspace = workspace)
LUT(u1_vbmi, 450000.0, 95000.0, 1.0)
LUT(u2_vbmi, 600000.0, 72000.0, 1.0)
LUT(u3_vbmi, 125000.0, 68000.0, 1.0)
LUT(u4_vbmi, 300000.0, 68000.0, 1.0)
LUT(u1_avx2, 156000.0, 38500.0, 2.0)
LUT(u2_avx2, 78000.0, 29000.0, 2.0)
LUT(u3_avx2, 27500.0, 22700.0, 2.0)
LUT(u4_avx2, 39000.0, 19200.0, 2.0)
/* A guess, half of AVX2 for half of the vector: NEON was never timed, only run under qemu. */
LUT(u1_neon, 78000.0, 19200.0, 2.0)
LUT(u2_neon, 39000.0, 14500.0, 2.0)
LUT(u3_neon, 13700.0, 11300.0, 2.0)
LUT(u4_neon, 19500.0, 9600.0, 2.0)
LUT(u1_base, 3200.0, 3500.0, 3.0)
LUT(u2_base, 2400.0, 1700.0, 3.0)
LUT(u3_base, 1100.0, 1200.0, 3.0)
LUT(u4_base, 1900.0, 850.0, 3.0)
