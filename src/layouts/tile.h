/* Layout 1: where each bit of a packed weight lies. FORMAT.md is the specification, this is the definition that the
 * packer and the kernels compile.
 *
 * A tile is 16 rows by lpg_tile_k(bits) columns: what one warp feeds to mma.m16n8k16 (or to wgmma) as the A operand
 * over several steps of 16 columns. Thread (g, t) = lane 4g + t owns rows g and g + 8 and of every 16 columns the four
 * 2t, 2t+1, 2t+8, 2t+9. Its codes fill whole 16-byte vectors.
 *
 *   bits            1    2    3    4    5    6    7    8
 *   columns       256  128  256   64  256  128  256   32
 *   words a lane    4    4   12    4   20   12   28    4
 *
 * A unit is the run of 32-bit words, all of one row, that a dequantiser takes at once: one word for 1, 2, 4 and 8 bits,
 * `bits` words (32 codes) for the others. Word w of a lane belongs to row g + 8 * (w & 1); word w / 2 of that row. */
#ifndef LPG_LAYOUTS_TILE_H
#define LPG_LAYOUTS_TILE_H

#include "algebra.h"

enum { LPG_TILE_ROWS = 16, LPG_LANES = 32, LPG_STEP_K = 16 };

LPG_FN int lpg_is_pow2_width(int bits) { return (bits & (bits - 1)) == 0; }

/* Columns of a tile. */
LPG_FN int lpg_tile_k(int bits) { return bits == 6 ? 128 : lpg_is_pow2_width(bits) ? 256 / bits : 256; }

/* 32-bit words that a lane holds of a tile; half of them for row g, half for row g + 8. */
LPG_FN int lpg_lane_words(int bits) { return lpg_tile_k(bits) * bits / 64; }

LPG_FN int lpg_tile_bytes(int bits) { return LPG_TILE_ROWS * lpg_tile_k(bits) * bits / 8; }

/* Words and codes of a unit. */
LPG_FN int lpg_unit_words(int bits) { return lpg_is_pow2_width(bits) ? 1 : bits; }
LPG_FN int lpg_unit_codes(int bits) { return lpg_unit_words(bits) * 32 / bits; }

/* The tile as a layout: local index i = 8 * step + 4 * (k half) + 2 * (row half) + (k parity). */
LPG_FN lpg_layout lpg_tile_layout(int bits) {
  lpg_layout operand = lpg_product3(lpg_column_local(2, 2), lpg_spatial(8, 4), lpg_local(1, 2));
  return lpg_product(lpg_local(1, lpg_tile_k(bits) / LPG_STEP_K), operand);
}

/* Byte offset of word w of a lane within its tile: vectors of 4 words, lane after lane, so that a warp's 16-byte loads
 * are contiguous. */
LPG_FN int lpg_word_offset(int lane, int w) { return (w / 4 * LPG_LANES + lane) * 16 + w % 4 * 4; }

/* The place of a pair of codes (the columns 2t, 2t+1 or 2t+8, 2t+9 of a step) in a unit. The even column's code lies in
 * the low 16 bits of a word and the odd column's in the high 16 bits, at the same place; only that of the low half is
 * given: bits from `shift` on of word `word` of the unit, or, for the pairs that the odd widths splice from spare bits,
 * one run of bits a row of the table lpg_splice(). */
typedef struct lpg_field {
  int word, shift; /* word = -1: spliced */
} lpg_field;

/* One run of a spliced code: code bits [code_bit, code_bit + bits) lie at `shift` of word `word`. */
typedef struct lpg_run {
  int code_bit, bits, word, shift;
} lpg_run;

/* pair = 2 * step + (k half), step and pair counted within the unit. */
LPG_FN lpg_field lpg_field_of(int bits, int pair) {
  lpg_field f = LPG_ZERO;
  switch (bits) {
    case 3: /* per half word 5 fields and a spare bit 15 */
      f.word = pair < 15 ? pair / 5 : -1;
      f.shift = pair % 5 * 3;
      break;
    case 5: /* 3 fields and a spare bit 15 */
      f.word = pair < 15 ? pair / 3 : -1;
      f.shift = pair % 3 * 5;
      break;
    case 6: /* 4 spare bits 0..3 and 2 fields */
      f.word = pair < 12 ? pair / 2 : -1;
      f.shift = 4 + pair % 2 * 6;
      break;
    case 7: /* 2 spare bits 0..1 and 2 fields */
      f.word = pair < 14 ? pair / 2 : -1;
      f.shift = 2 + pair % 2 * 7;
      break;
    default: /* one word; the four codes of a step are the four bytes' fields at bits * step */
      f.word = 0;
      f.shift = bits * (pair / 2) + 8 * (pair % 2);
      break;
  }
  return f;
}

/* Number of runs that a spliced pair is made of. */
LPG_FN int lpg_splice_runs(int bits) { return bits == 3 ? 3 : bits == 5 ? 5 : bits == 6 ? 2 : 4; }

/* Run i of the spliced pair `pair`.
 *   3, 5 bits: the spare bit 15 of word i is code bit i.
 *   6 bits: pairs 12, 13 take words 0, 1 whole and a half of word 2; pairs 14, 15 likewise words 3, 4 and 5.
 *   7 bits: pair 14 takes words 0, 1, 2 whole and bit 0 of word 6; pair 15 words 3, 4, 5 and bit 1 of word 6. */
LPG_FN lpg_run lpg_splice(int bits, int pair, int i) {
  lpg_run r = LPG_ZERO;
  if (bits == 3 || bits == 5) {
    r.code_bit = i;
    r.bits = 1;
    r.word = i;
    r.shift = 15;
  } else if (bits == 6) {
    int first = (pair - 12) / 2 * 3, second = (pair - 12) % 2;
    r.code_bit = i == 0 ? 0 : 4;
    r.bits = i == 0 ? 4 : 2;
    r.word = i == 0 ? first + second : first + 2;
    r.shift = i == 0 ? 0 : 2 * second;
  } else {
    int second = pair - 14;
    r.code_bit = 2 * i;
    r.bits = i < 3 ? 2 : 1;
    r.word = i < 3 ? 3 * second + i : 6;
    r.shift = i < 3 ? 0 : second;
  }
  return r;
}

/* Bit `bit` of the code at (row, column) of a tile, as a bit offset into the tile. */
LPG_FN int lpg_tile_bit(int bits, int row, int column, int bit) {
  lpg_place p = lpg_holder(lpg_tile_layout(bits), row, column);
  int odd = p.local & 1, row_half = p.local >> 1 & 1, pair = p.local >> 2; /* pair of the lane's row */
  int pairs = lpg_unit_codes(bits) / 2, unit = pair / pairs;
  pair %= pairs;
  lpg_field f = lpg_field_of(bits, pair);
  int word = f.word, shift = f.shift + bit;
  for (int i = 0; word < 0; i++) {
    lpg_run r = lpg_splice(bits, pair, i);
    if (bit >= r.code_bit && bit < r.code_bit + r.bits) {
      word = r.word;
      shift = r.shift + bit - r.code_bit;
    }
  }
  int lane_word = (unit * lpg_unit_words(bits) + word) * 2 + row_half;
  return lpg_word_offset(p.thread, lane_word) * 8 + odd * 16 + shift;
}

/* Scales, zeros and the like: the 16 values of a tile's rows for one group stand together, row g before row g + 8, so
 * that a thread loads its two as one: slot 2g is row g, slot 2g + 1 is row g + 8. */
LPG_FN int lpg_row_slot(int row) { return row % 8 * 2 + row / 8; }
LPG_FN int lpg_slot_row(int slot) { return slot % 2 * 8 + slot / 2; }

#endif
