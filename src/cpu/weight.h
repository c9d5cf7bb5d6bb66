/* Exact weights out of the packed form, one at a time. */
#ifndef LPG_CPU_WEIGHT_H
#define LPG_CPU_WEIGHT_H

#include "../layouts/packed.h"

enum { LPG_MAX_TILE_K = 256, LPG_MAX_RUNS = 5 };

/* The runs of bits that make up the codes of a pair of columns of a tile: pair = 2 * step + (k half), words counted
 * among those of a lane's row. Returns their number. The first run starts at code bit 0. */
static inline int lpg_code_runs(int bits, int pair, lpg_run run[LPG_MAX_RUNS]) {
  int pairs = lpg_unit_codes(bits) / 2, first_word = pair / pairs * lpg_unit_words(bits);
  lpg_field f = lpg_field_of(bits, pair % pairs);
  int runs = f.word < 0 ? lpg_splice_runs(bits) : 1;
  for (int i = 0; i < runs; i++) {
    lpg_run whole = {0, bits, f.word, f.shift};
    run[i] = f.word < 0 ? lpg_splice(bits, pair % pairs, i) : whole;
    run[i].word += first_word;
  }
  return runs;
}

/* The stored code at a place of a tile. */
static inline uint32_t lpg_code_at(int bits, const uint8_t *tile, lpg_place place) {
  int odd = place.local & 1, row_half = place.local >> 1 & 1, pair = place.local >> 2;
  lpg_run run[LPG_MAX_RUNS];
  int runs = lpg_code_runs(bits, pair, run);
  uint32_t code = 0;
  for (int i = 0; i < runs; i++) {
    uint32_t word;
    memcpy(&word, tile + lpg_word_offset(place.thread, 2 * run[i].word + row_half), sizeof word);
    code |= (word >> (16 * odd + run[i].shift) & ((1u << run[i].bits) - 1u)) << run[i].code_bit;
  }
  return code;
}

/* The value of a section for (row, column k), `absent` if the matrix has no such section. */
static inline double lpg_section_value(const lpg_plan *plan, const uint8_t *const *section, lpg_section_id id,
                                       int64_t row, int64_t k, double absent) {
  lpgemm_dtype_t type = lpg_section_type(&plan->desc, id);
  if (type == 0) return absent;
  const lpg_axis *axis = lpg_section_axis(plan, id);
  const uint8_t *at = section[id] + lpg_value_offset(type, axis->padded, row, k / axis->k);
  if (type == LPGEMM_UINT(4)) return (double)(*at >> (row % LPG_TILE_ROWS < 8 ? 0 : 4) & 15);
  return (double)lpg_load(type, at, 0);
}

/* Weights of one row, columns [first, first + count), without the global scale. first is a multiple of 16. */
static inline void lpg_weight_row(const lpg_plan *plan, const uint8_t *const *section, int64_t row, int64_t first,
                                  int64_t count, double *out) {
  const lpgemm_weight_desc_t *d = &plan->desc;
  int bits = plan->bits, tile_k = lpg_tile_k(bits);
  lpg_layout layout = lpg_tile_layout(bits);
  lpg_place place[LPG_MAX_TILE_K];
  for (int i = 0; i < tile_k; i++) place[i] = lpg_holder(layout, (int)(row % LPG_TILE_ROWS), i);
  double scale = 1.0, zero = 0.0;
  for (int64_t i = 0; i < count; i++) {
    int64_t k = first + i;
    if (i % LPG_STEP_K == 0) { /* groups are multiples of 16 columns */
      scale = lpg_section_value(plan, section, LPG_SECTION_SCALES, row, k, 1.0) *
              lpg_section_value(plan, section, LPG_SECTION_SUPER_SCALES, row, k, 1.0);
      zero = lpg_section_value(plan, section, LPG_SECTION_ZEROS, row, k, (double)d->zero_constant) *
             lpg_section_value(plan, section, LPG_SECTION_SUPER_ZEROS, row, k, 1.0);
    }
    int64_t tile = lpg_tile_offset(bits, plan->k_tiles, row / LPG_TILE_ROWS, k / tile_k);
    uint32_t stored = lpg_code_at(bits, section[LPG_SECTION_CODES] + tile, place[k % tile_k]);
    double value = (double)lpg_code_value(d->type, stored ^ lpg_stored_flip(d->type), d->codebook);
    out[i] = d->zero == LPGEMM_ZERO_MINIMUM ? value * scale + zero : (value - zero) * scale;
  }
}

#endif
