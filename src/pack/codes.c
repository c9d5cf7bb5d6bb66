/* The codes of one row of a tile, into its words and back. Where each bit lies comes from unit.h; everything that
 * depends on the width is a constant once these functions are inlined.
 *
 * Between bytes and words stand quads: the four codes of a lane in a step of 16 columns, one a byte,
 *
 *     byte     0     1     2     3
 *     column   2t  2t+8  2t+1  2t+9
 *
 * so that the even columns of the step's two pairs lie in the low half of the quad and the odd ones in the high half,
 * as they do in a word. */
#include "../layouts/unit.h"
#include "pack.h"

enum { STEP_LANES = 4, MAX_STEPS = 16, MAX_ROW_WORDS = 14 };

/* A word, or a quad, of each of the four lanes of a row. */
typedef uint32_t lanes __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));
typedef uint8_t octets __attribute__((vector_size(16)));

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE __builtin_shufflevector
#endif
#endif

/* 16 codes to the quads of 4 lanes: the first eight take turns with the others. */
LPG_INLINE lanes interleave(octets v) {
#ifdef SHUFFLE
  return (lanes)SHUFFLE(v, v, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  octets out;
  for (int i = 0; i < 8; i++) {
    out[2 * i] = v[i];
    out[2 * i + 1] = v[8 + i];
  }
  return (lanes)out;
#endif
}

/* The words of four lanes, each [word of row g][of row g + 8][next of row g][next of row g + 8], are 64 bytes. */
LPG_INLINE void store_lanes(const lanes *g, const lanes *other, uint8_t *to) {
  lanes lane[STEP_LANES];
#ifdef SHUFFLE
  const lanes a = SHUFFLE(g[0], other[0], 0, 4, 1, 5), b = SHUFFLE(g[1], other[1], 0, 4, 1, 5);
  const lanes c = SHUFFLE(g[0], other[0], 2, 6, 3, 7), d = SHUFFLE(g[1], other[1], 2, 6, 3, 7);
  lane[0] = SHUFFLE(a, b, 0, 1, 4, 5);
  lane[1] = SHUFFLE(a, b, 2, 3, 6, 7);
  lane[2] = SHUFFLE(c, d, 0, 1, 4, 5);
  lane[3] = SHUFFLE(c, d, 2, 3, 6, 7);
#else
  for (int t = 0; t < STEP_LANES; t++) lane[t] = (lanes){g[0][t], other[0][t], g[1][t], other[1][t]};
#endif
  memcpy(to, lane, sizeof lane);
}

LPG_INLINE void quads_to_codes(const uint32_t *quad, uint32_t flip, uint8_t *codes) {
  for (int t = 0; t < STEP_LANES; t++) {
    uint32_t q = quad[t] ^ flip * 0x01010101u;
    codes[2 * t] = (uint8_t)q;
    codes[2 * t + 8] = (uint8_t)(q >> 8);
    codes[2 * t + 1] = (uint8_t)(q >> 16);
    codes[2 * t + 9] = (uint8_t)(q >> 24);
  }
}

/* 1 if the two pairs of a step lie as they do in a quad, so that the quad moves as a whole. */
LPG_INLINE int moves_whole(int bits, int step) {
  lpg_field first = lpg_field_of(bits, 2 * step), second = lpg_field_of(bits, 2 * step + 1);
  return first.word >= 0 && first.word == second.word && first.shift + 8 == second.shift;
}

/* As lpg_unit_put_pair() for four lanes: both codes of a pair, in the low byte of each half of its words. */
LPG_INLINE void put_pair(int bits, int pair, lanes quad, lanes *word) {
  const lanes codes = quad >> (uint32_t)(8 * (pair % 2)) & 0x00ff00ffu;
  const lpg_field f = lpg_field_of(bits, pair);
  if (f.word >= 0) {
    word[f.word] |= codes << (uint32_t)f.shift;
    return;
  }
  for (int i = 0; i < lpg_splice_runs(bits); i++) {
    const lpg_run r = lpg_splice(bits, pair, i);
    word[r.word] |= (codes >> (uint32_t)r.code_bit & lpg_half_masks(r.bits)) << (uint32_t)r.shift;
  }
}

LPG_INLINE void get_pair(int bits, int pair, uint32_t word[][STEP_LANES], uint32_t *quad) {
  for (int t = 0; t < STEP_LANES; t++) {
    quad[t] |= lpg_unit_pair(bits, &word[0][t], STEP_LANES, pair) << 8 * (pair % 2);
  }
}

LPG_INLINE int unit_steps(int bits) { return lpg_unit_codes(bits) / STEP_LANES; }

/* The words of a row's unit, from its codes, each XOR flip. Steps of one word are put together before their codes take
 * the places of the lanes. */
LPG_INLINE void put_unit(int bits, uint32_t flip, const uint8_t *codes, lanes *word) {
  octets v;
  for (int w = 0; w < lpg_unit_words(bits); w++) word[w] = (lanes){0};
  if (lpg_is_pow2_width(bits)) {
    halves together = {0};
    for (int step = 0; step < unit_steps(bits); step++) {
      memcpy(&v, codes + LPG_STEP_K * step, sizeof v);
      together |= (halves)(v ^ (uint8_t)flip) << (uint64_t)(bits * step);
    }
    word[0] = interleave((octets)together);
    return;
  }
  for (int step = 0; step < unit_steps(bits); step++) {
    memcpy(&v, codes + LPG_STEP_K * step, sizeof v);
    const lanes quad = interleave(v ^ (uint8_t)flip);
    if (moves_whole(bits, step)) {
      const lpg_field f = lpg_field_of(bits, 2 * step);
      word[f.word] |= quad << (uint32_t)f.shift;
    } else {
      put_pair(bits, 2 * step, quad, word);
      put_pair(bits, 2 * step + 1, quad, word);
    }
  }
}

LPG_INLINE void get_unit(int bits, uint32_t word[][STEP_LANES], uint32_t quad[][STEP_LANES]) {
  for (int pair = 0; pair < 2 * unit_steps(bits); pair++) get_pair(bits, pair, word, quad[pair / 2]);
}

/* Offset in a tile of word `word` of a unit, for the first of the four lanes that hold `row`. */
LPG_INLINE int word_offset(int bits, int row, int unit, int word) {
  return lpg_word_offset(row % 8 * STEP_LANES, 2 * (unit * lpg_unit_words(bits) + word) + row / 8);
}

LPG_INLINE int units_of_row(int bits) { return lpg_lane_words(bits) / 2 / lpg_unit_words(bits); }

LPG_INLINE void put_units(int bits, uint32_t flip, const uint8_t *codes, lanes *word) {
  for (int unit = 0; unit < units_of_row(bits); unit++) {
    put_unit(bits, flip, codes + LPG_STEP_K * unit * unit_steps(bits), word + unit * lpg_unit_words(bits));
  }
}

/* One row, whose words do not stand together. */
LPG_INLINE void put_row(int bits, uint32_t flip, const uint8_t *codes, int row, uint8_t *tile) {
  lanes word[MAX_ROW_WORDS];
  const int lane_bytes = lpg_word_offset(1, 0);
  put_units(bits, flip, codes, word);
  for (int w = 0; w < lpg_lane_words(bits) / 2; w++) {
    uint8_t *to = tile + lpg_word_offset(row % 8 * STEP_LANES, 2 * w + row / 8);
    for (int t = 0; t < STEP_LANES; t++) {
      const uint32_t one = word[w][t];
      memcpy(to + lane_bytes * t, &one, sizeof one);
    }
  }
}

LPG_INLINE void put_rows(int bits, uint32_t flip, const uint8_t *const codes[LPG_TILE_ROWS], uint8_t *tile) {
  for (int g = 0; g < LPG_TILE_ROWS / 2; g++) {
    lanes word[MAX_ROW_WORDS], other[MAX_ROW_WORDS];
    put_units(bits, flip, codes[g], word);
    put_units(bits, flip, codes[g + 8], other);
    for (int w = 0; w < lpg_lane_words(bits) / 2; w += 2) {
      store_lanes(word + w, other + w, tile + lpg_word_offset(g * STEP_LANES, 2 * w));
    }
  }
}

LPG_INLINE void get_row(int bits, uint32_t flip, const uint8_t *tile, int row, uint8_t *codes) {
  int lane_bytes = lpg_word_offset(1, 0);
  for (int unit = 0; unit < lpg_lane_words(bits) / 2 / lpg_unit_words(bits); unit++) {
    uint32_t quad[MAX_STEPS][STEP_LANES] = {{0}}, word[LPG_MAX_UNIT_WORDS][STEP_LANES];
    for (int w = 0; w < lpg_unit_words(bits); w++) {
      const uint8_t *from = tile + word_offset(bits, row, unit, w);
      for (int t = 0; t < STEP_LANES; t++) memcpy(&word[w][t], from + lane_bytes * t, 4);
    }
    get_unit(bits, word, quad);
    for (int step = 0; step < unit_steps(bits); step++) {
      quads_to_codes(quad[step], flip, codes + LPG_STEP_K * (unit * unit_steps(bits) + step));
    }
  }
}

void lpgemm_i_put_codes(lpgemm_dtype_t type, const uint8_t *codes, int row, uint8_t *tile) {
  uint32_t flip = lpg_stored_flip(type);
  switch (lpg_bits(type)) {
    case 1: put_row(1, flip, codes, row, tile); break;
    case 2: put_row(2, flip, codes, row, tile); break;
    case 3: put_row(3, flip, codes, row, tile); break;
    case 4: put_row(4, flip, codes, row, tile); break;
    case 5: put_row(5, flip, codes, row, tile); break;
    case 6: put_row(6, flip, codes, row, tile); break;
    case 7: put_row(7, flip, codes, row, tile); break;
    default: put_row(8, flip, codes, row, tile); break;
  }
}

void lpgemm_i_put_tile(lpgemm_dtype_t type, const uint8_t *const codes[LPG_TILE_ROWS], uint8_t *tile) {
  uint32_t flip = lpg_stored_flip(type);
  switch (lpg_bits(type)) {
    case 1: put_rows(1, flip, codes, tile); break;
    case 2: put_rows(2, flip, codes, tile); break;
    case 3: put_rows(3, flip, codes, tile); break;
    case 4: put_rows(4, flip, codes, tile); break;
    case 5: put_rows(5, flip, codes, tile); break;
    case 6: put_rows(6, flip, codes, tile); break;
    case 7: put_rows(7, flip, codes, tile); break;
    default: put_rows(8, flip, codes, tile); break;
  }
}

void lpgemm_i_get_codes(lpgemm_dtype_t type, const uint8_t *tile, int row, uint8_t *codes) {
  uint32_t flip = lpg_stored_flip(type);
  switch (lpg_bits(type)) {
    case 1: get_row(1, flip, tile, row, codes); break;
    case 2: get_row(2, flip, tile, row, codes); break;
    case 3: get_row(3, flip, tile, row, codes); break;
    case 4: get_row(4, flip, tile, row, codes); break;
    case 5: get_row(5, flip, tile, row, codes); break;
    case 6: get_row(6, flip, tile, row, codes); break;
    case 7: get_row(7, flip, tile, row, codes); break;
    default: get_row(8, flip, tile, row, codes); break;
  }
}
