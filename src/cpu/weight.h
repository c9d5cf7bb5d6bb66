/* Exact weights out of the packed form, one at a time. */
#ifndef LPG_CPU_WEIGHT_H
#define LPG_CPU_WEIGHT_H

#include "../pack/sections.h"

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

/* The blob's header, from where offsets count. */
static inline const uint8_t *lpg_blob_of(const lpg_packed *packed, const uint8_t *const *section) {
  return section[LPG_SECTION_CODES] - packed->section[LPG_SECTION_CODES].offset;
}

/* Weights of one row, stored columns [first, first + count), as lpg_weight_value() has them with that factor of the
 * row: 1 where it goes on the sums. first is a multiple of 16. */
static inline void lpg_weight_row(const lpg_packed *packed, const uint8_t *const *section, int64_t row, int64_t first,
                                  int64_t count, float row_scale, double *out) {
  lpgemm_dtype_t type = packed->desc.type;
  int bits = packed->bits, tile_k = lpg_tile_k(bits);
  uint32_t flip = lpg_stored_flip(type);
  lpg_layout layout = lpg_tile_layout(bits);
  lpg_place place[LPG_STEP_K]; /* of the first step: that of step s has local indices 8 * s further */
  for (int i = 0; i < LPG_STEP_K; i++) place[i] = lpg_holder(layout, (int)(row % LPG_TILE_ROWS), i);
  for (int64_t step = 0; step < count; step += LPG_STEP_K) { /* groups are multiples of 16 columns */
    int64_t k = first + step, columns = count - step < LPG_STEP_K ? count - step : LPG_STEP_K;
    lpg_group_terms terms = lpg_terms_at(packed, lpg_blob_of(packed, section), row, k);
    terms.row_scale = row_scale;
    const uint8_t *tile =
        section[LPG_SECTION_CODES] + lpg_tile_offset(bits, packed->k_tiles, row / LPG_TILE_ROWS, k / tile_k);
    for (int i = 0; i < columns; i++) {
      lpg_place at = {place[i].thread, place[i].local + 8 * (int)(k % tile_k / LPG_STEP_K)};
      out[step + i] = lpg_weight_value(&terms, lpg_code_at(bits, tile, at) ^ flip);
    }
  }
}

#endif
