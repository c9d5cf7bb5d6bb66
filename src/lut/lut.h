/* Table lookup: sums of activations are made once and looked up by weight bits. docs/lut.md tells how and why.
 *
 * Tables of an X of m rows and k columns: row after row, step after step of 16 columns (the last one filled with 0),
 * lane t = 0..3 after lane, 8 doubles. The four activations of lane t are those whose weights one lane of the packed
 * form holds (layouts/tile.h), in the order in which their codes lie in the bytes of a word:
 *
 *     x0, x1, x2, x3 = columns 2t, 2t + 8, 2t + 1, 2t + 9 of the step
 *
 *     entry e = x3 + sum over j = 0..2 of (bit j of e is set ? x_j : -x_j)
 *
 * which is the half of the 16 sums of +-x_j that has +x3; the other half is its negation, and entry 7 is the plain sum.
 * All entries of such a step are exact. A step whose sums a double might round, or which is not finite, has the four
 * activations in place of entries 0..3 and NaN in all the others. Nothing in it depends on the weights. */
#ifndef LPG_LUT_H
#define LPG_LUT_H

#include "../internal.h"

enum {
  LPG_LUT_LANES = 4,
  LPG_LUT_ENTRIES = 8,
  LPG_LUT_STEP = LPG_LUT_LANES * LPG_LUT_ENTRIES, /* doubles a step of 16 columns */
  LPG_LUT_ALIGN = 64                              /* a lane's entries are one cache line */
};

/* Column of a step that is x_j of lane t. */
LPG_FN int lpg_lut_column(int t, int j) { return 2 * t + 8 * (j & 1) + (j >> 1); }

/* Bytes of the tables; SIZE_MAX if size_t cannot hold them. */
size_t lpgemm_i_lut_bytes(int64_t m, int64_t k);

/* Builds the tables of x[m][ldx]. */
void lpgemm_i_lut_build_host(int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type, int64_t ldx, void *tables);

/* Kernel for integer weights of 1 to 4 bits, portable C. Reads the call's tables, or builds them in the workspace. */
lpgemm_status_t lpgemm_i_lut_cpu(const lpg_call *call);
size_t lpgemm_i_lut_cpu_workspace(const lpg_problem *problem, const lpg_device *device);

#endif
