/* Lookups in portable C. Part of lookup.c. */
#ifndef LPG_LUT_PANEL_H
#define LPG_LUT_PANEL_H

#include "../cpu/weight.h"
#include "../layouts/unit.h"
#include "lut.h"

/* Sum i is that of row i of a tile; its index for lane t lies in this byte of a plane of the panel. */
static inline int sum_row(int i) { return i; }
static inline int index_byte(int i, int t) { return i * LPG_LUT_LANES + t; }

INLINE void sort_slots(const float *slots, float *sorted) {
  for (int i = 0; i < LPG_TILE_ROWS; i++) sorted[i] = slots[lpg_row_slot(i)];
}

/* The four codes of a lane's row, one a byte. A word holds the odd column's code 16 bits above the even one's. */
static uint32_t read_codes(int bits, int step, const uint8_t *tile, int row, int t) {
  uint32_t codes = 0;
  for (int half = 0; half < 2; half++) {
    lpg_run run[LPG_MAX_RUNS];
    int runs = lpg_code_runs(bits, 2 * step + half, run);
    for (int i = 0; i < runs; i++) {
      uint32_t word;
      memcpy(&word, tile + lpg_word_offset(row % 8 * 4 + t, 2 * run[i].word + row / 8), sizeof word);
      codes |= (word >> run[i].shift & lpg_half_masks(run[i].bits)) << (run[i].code_bit + 8 * half);
    }
  }
  return codes;
}

/* Bit `bit` of the four codes, as four bits: the multiplication moves the lowest bit of byte j to bit 28 + j. */
static uint32_t gather_plane(uint32_t codes, int bit) { return (codes >> bit & 0x01010101u) * 0x10204080u >> 28; }

static void make_panel_of(int bits, int tiles, const uint8_t *tile, panel_step *panel) {
  int steps = lpg_tile_k(bits) / LPG_STEP_K;
  for (int step = 0; step < tiles * steps; step++) {
    const uint8_t *at = tile + step / steps * lpg_tile_bytes(bits);
    for (int i = 0; i < LPG_TILE_ROWS * LPG_LUT_LANES; i++) {
      uint32_t codes = read_codes(bits, step % steps, at, i / LPG_LUT_LANES, i % LPG_LUT_LANES);
      for (int bit = 0; bit < bits; bit++) panel[step].index[bit][i] = (uint8_t)gather_plane(codes, bit);
    }
  }
}

INLINE void add_lookups(int bits, int digits, const panel_step *panel, const lpg_lut_block *b, int first, int end,
                        lut_sums *sums) {
  memset(sums, 0, sizeof *sums);
  for (int step = first; step < end; step++) {
    for (int bit = 0; bit < bits; bit++) {
      for (int i = 0; i < LPG_TILE_ROWS * LPG_LUT_LANES; i++) {
        int entry = panel[step].index[bit][i], row = i / LPG_LUT_LANES, t = i % LPG_LUT_LANES;
        for (int d = LPG_LUT_DIGITS - digits; d < LPG_LUT_DIGITS; d++) {
          (d < 2 ? sums->lower : sums->upper)[row] += b->digit[step][d][t][entry] << (8 * (d % 2) + bit);
        }
      }
    }
  }
}

#endif
