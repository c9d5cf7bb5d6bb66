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

enum { STEP_LANES = 4, MAX_STEPS = 16 };

/* Four bytes to four 16-bit numbers. */
LPG_INLINE uint64_t spread(uint64_t x) {
  x = (x | x << 16) & 0x0000ffff0000ffffULL;
  return (x | x << 8) & 0x00ff00ff00ff00ffULL;
}

/* 16 codes, each XOR flip, to the quads of 4 lanes. */
LPG_INLINE void codes_to_quads(const uint8_t *codes, uint32_t flip, uint32_t *quad) {
  uint64_t low, high, flips = flip * 0x0101010101010101ULL;
  memcpy(&low, codes, 8);
  memcpy(&high, codes + 8, 8);
  low ^= flips;
  high ^= flips;
  uint64_t first = spread(low & 0xffffffffu) | spread(high & 0xffffffffu) << 8;
  uint64_t second = spread(low >> 32) | spread(high >> 32) << 8;
  quad[0] = (uint32_t)first;
  quad[1] = (uint32_t)(first >> 32);
  quad[2] = (uint32_t)second;
  quad[3] = (uint32_t)(second >> 32);
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

/* Both codes of a pair, in the low byte of each half. */
LPG_INLINE uint32_t pair_of(uint32_t quad, int second) { return quad >> 8 * second & 0x00ff00ffu; }

/* 1 if the two pairs of a step lie as they do in a quad, so that the quad moves as a whole. */
LPG_INLINE int moves_whole(int bits, int step) {
  lpg_field first = lpg_field_of(bits, 2 * step), second = lpg_field_of(bits, 2 * step + 1);
  return first.word >= 0 && first.word == second.word && first.shift + 8 == second.shift;
}

LPG_INLINE void put_pair(int bits, int pair, const uint32_t *quad, uint32_t word[][STEP_LANES]) {
  for (int t = 0; t < STEP_LANES; t++) {
    lpg_unit_put_pair(bits, &word[0][t], STEP_LANES, pair, pair_of(quad[t], pair % 2));
  }
}

LPG_INLINE void get_pair(int bits, int pair, uint32_t word[][STEP_LANES], uint32_t *quad) {
  for (int t = 0; t < STEP_LANES; t++) {
    quad[t] |= lpg_unit_pair(bits, &word[0][t], STEP_LANES, pair) << 8 * (pair % 2);
  }
}

LPG_INLINE int unit_steps(int bits) { return lpg_unit_codes(bits) / STEP_LANES; }

LPG_INLINE void put_unit(int bits, uint32_t quad[][STEP_LANES], uint32_t word[][STEP_LANES]) {
  for (int step = 0; step < unit_steps(bits); step++) {
    if (moves_whole(bits, step)) {
      lpg_field f = lpg_field_of(bits, 2 * step);
      for (int t = 0; t < STEP_LANES; t++) word[f.word][t] |= quad[step][t] << f.shift;
    } else {
      put_pair(bits, 2 * step, quad[step], word);
      put_pair(bits, 2 * step + 1, quad[step], word);
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

LPG_INLINE void put_row(int bits, uint32_t flip, const uint8_t *codes, int row, uint8_t *tile) {
  int lane_bytes = lpg_word_offset(1, 0);
  for (int unit = 0; unit < lpg_lane_words(bits) / 2 / lpg_unit_words(bits); unit++) {
    uint32_t quad[MAX_STEPS][STEP_LANES], word[LPG_MAX_UNIT_WORDS][STEP_LANES] = {{0}};
    for (int step = 0; step < unit_steps(bits); step++) {
      codes_to_quads(codes + LPG_STEP_K * (unit * unit_steps(bits) + step), flip, quad[step]);
    }
    put_unit(bits, quad, word);
    for (int w = 0; w < lpg_unit_words(bits); w++) {
      uint8_t *to = tile + word_offset(bits, row, unit, w);
      for (int t = 0; t < STEP_LANES; t++) memcpy(to + lane_bytes * t, &word[w][t], 4);
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
  for (int row = 0; row < LPG_TILE_ROWS; row++) lpgemm_i_put_codes(type, codes[row], row, tile);
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
