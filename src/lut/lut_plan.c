/* The planners of table lookup on the CPU: src/cpu/cpu_plan.c says how they were measured. */
#include "../cpu/cost.h"
#include "../cpu/cpu.h"
#include "lut.h"

/* For the tables of a row where the pool has no room for them. */
static size_t workspace(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  const size_t row = (size_t)lpg_lut_blocks(problem->weights->desc.k) * sizeof(lpg_lut_block);
  (void)self, (void)device;
  return problem->m == 0 || row <= LPG_SHARED_BYTES ? 0 : row;
}

/* Groups: as cpu_plan.c has it of 2026-11-25, AVX2, u4 and u2 in groups of 32 and 16, of one level and of two. */
#define LUT(name, ...) LPG_CPU_PLANNER(lut_##name, LPG_CPU_COST(__VA_ARGS__, .group = 4.0), .workspace = workspace)
/* Narrow groups, and the products of EXACT: measured as cpu_plan.c says; the latter on 1024 and 2048 x 4096 in groups
 * of 128, by VBMI on the Xeon (Ice Lake) of 2026-11-25 and the one beside an H100 of 2026-11-26, where from 2 bits on
 * dot is faster from 3 rows on and blocked from 16 (u1: 32); by AVX2 on the latter, where dot is with any number. On
 * the first machine lut was taken up to 30 rows; dot was never timed there. Columns: 256 to 1024 rows of W with few of
 * X, and EXACT of u3 (2026-11-27, as cpu_plan.c has it of that day). */
LUT(u1_vbmi, 1.0, 450000.0, 95000.0, .exact = 69000.0, .narrow = 24000.0, .narrow_k = 64, .column = 7.0)
LUT(u2_vbmi, 1.0, 600000.0, 72000.0, .exact = 30000.0, .narrow = 24000.0, .narrow_k = 128)
LUT(u3_vbmi, 1.0, 70000.0, 68000.0, .exact = 75000.0, .narrow = 24000.0, .narrow_k = 64, .column = 4.7)
LUT(u4_vbmi, 1.0, 300000.0, 68000.0, .exact = 30000.0, .narrow = 24000.0, .narrow_k = 64)
LUT(u1_avx2, 2.0, 156000.0, 38500.0, .narrow = 12000.0, .narrow_k = 64, .column = 7.0)
LUT(u2_avx2, 2.0, 78000.0, 29000.0, .exact = 12000.0)
LUT(u3_avx2, 2.0, 27500.0, 22700.0, .exact = 14500.0)
LUT(u4_avx2, 2.0, 39000.0, 19200.0, .exact = 9000.0)
/* A guess, half of AVX2 for half of the vector: NEON was never timed, only run under qemu. */
LUT(u1_neon, 2.0, 78000.0, 19200.0)
LUT(u2_neon, 2.0, 39000.0, 14500.0)
LUT(u3_neon, 2.0, 13700.0, 11300.0)
LUT(u4_neon, 2.0, 19500.0, 9600.0)
LUT(u1_base, 3.0, 3200.0, 3500.0)
LUT(u2_base, 3.0, 2400.0, 1700.0)
LUT(u3_base, 3.0, 1100.0, 1200.0)
LUT(u4_base, 3.0, 1900.0, 850.0)
