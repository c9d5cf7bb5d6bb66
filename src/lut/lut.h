/* Table lookup: sums of activations are made once and looked up by weight bits. docs/lut.md tells how and why.
 *
 * Tables of an X of m rows and k columns: row after row, a block for every 256 columns (the last one filled with 0). In
 * a block an activation is an integer q times a unit, and four of them make a table of 16 sums. The four of lane t and
 * of a step of 16 columns are those whose weights one lane of the packed form holds (layouts/tile.h), in the order in
 * which their codes lie in the bytes of a word:
 *
 *     q0, q1, q2, q3 = columns 2t, 2t + 8, 2t + 1, 2t + 9 of the step
 *
 *     entry e = sum over j = 0..3 of (bit j of e is set ? q_j : -q_j)
 *
 * Entry 15 - e is the negation of entry e, so 8 sums make a table. Byte shuffles want bytes: an entry plus
 * lpg_lut_bias() is cut into four digits of 8 bits. Nothing in a block depends on the weights. */
#ifndef LPG_LUT_H
#define LPG_LUT_H

#include "../internal.h"

enum {
  LPG_LUT_K = 256, /* columns of a block */
  LPG_LUT_STEPS = LPG_LUT_K / LPG_STEP_K,
  LPG_LUT_LANES = 4,
  LPG_LUT_ENTRIES = 16,
  LPG_LUT_DIGITS = 4,
  LPG_LUT_BITS = 28, /* |q| <= 2^28, so that four of them and the bias stay within 32 bits */
  LPG_LUT_ALIGN = 64
};

/* Bias of the entries of lane t. 2^31 makes them positive; 2^15 rounds those of which only the upper two digits are
 * used. A half rounds up in one lane and down in the next: with short mantissas halves are frequent. */
LPG_FN uint32_t lpg_lut_bias(int t) { return 0x80008000u - (uint32_t)(t & 1); }

/* What the biases of a step's four lanes add to the upper digits. */
LPG_FN double lpg_lut_step_bias(int digits) {
  int below = 8 * (4 - digits);
  return 2.0 * ((double)(lpg_lut_bias(0) >> below << below) + (double)(lpg_lut_bias(1) >> below << below));
}

typedef struct lpg_lut_block {
  _Alignas(LPG_LUT_ALIGN) uint8_t digit[LPG_LUT_STEPS][LPG_LUT_DIGITS][LPG_LUT_LANES][LPG_LUT_ENTRIES];
  float x[LPG_LUT_K];
  double before[LPG_LUT_STEPS + 1]; /* sum of the q of all steps before this one */
  uint32_t kept[LPG_LUT_K / 32];    /* bit c % 32 of kept[c / 32]: q is 0, x of column c is to be multiplied */
  double unit;
  int32_t first;    /* the digits below this one are those of the bias in every entry */
  int32_t any_kept; /* 1 if `kept` has a bit */
} lpg_lut_block;
_Static_assert(sizeof(lpg_lut_block) % LPG_LUT_ALIGN == 0, "blocks are whole cache lines");

/* Column of a step that is q_j of lane t, and the inverse. */
LPG_FN int lpg_lut_column(int t, int j) { return 2 * t + 8 * (j & 1) + (j >> 1); }
LPG_FN int lpg_lut_lane(int column) { return column % 8 / 2; }
LPG_FN int lpg_lut_bit(int column) { return column / 8 % 2 + 2 * (column % 2); }

LPG_FN int64_t lpg_lut_blocks(int64_t k) { return lpg_ceil_div(k, LPG_LUT_K); }

/* The kernels for integer weights of 1 to 4 bits, lookup.c compiled for several instruction sets, and what they make of
 * X. */
lpgemm_status_t lpgemm_i_lut_base(const lpg_call *call);
lpgemm_status_t lpgemm_i_lut_avx2(const lpg_call *call);
lpgemm_status_t lpgemm_i_lut_vbmi(const lpg_call *call);
lpgemm_status_t lpgemm_i_lut_neon(const lpg_call *call);
extern const lpg_x_form lpgemm_i_lut_base_form, lpgemm_i_lut_avx2_form, lpgemm_i_lut_vbmi_form, lpgemm_i_lut_neon_form;

#endif
