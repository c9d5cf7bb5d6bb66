/* The codes of one lane's unit: a pair of codes out of its words, and into them. With constant arguments everything but
 * shifts and masks folds away, so kernels call the same functions that the tests run on the host. */
#ifndef LPG_LAYOUTS_UNIT_H
#define LPG_LAYOUTS_UNIT_H

#include "tile.h"

enum { LPG_MAX_UNIT_WORDS = 7 };

/* `bits` ones at the bottom of each half of a word. */
LPG_FN uint32_t lpg_half_masks(int bits) { return ((1u << bits) - 1u) * 0x00010001u; }

/* Pair `pair` of a unit: the even column's code in the low half, the odd one's in the high half. Word i of the unit is
 * word[i * stride]. */
LPG_FN uint32_t lpg_unit_pair(int bits, const uint32_t *word, int stride, int pair) {
  lpg_field f = lpg_field_of(bits, pair);
  if (f.word >= 0) return word[f.word * stride] >> f.shift & lpg_half_masks(bits);
  uint32_t codes = 0;
  for (int i = 0; i < lpg_splice_runs(bits); i++) {
    lpg_run r = lpg_splice(bits, pair, i);
    codes |= (word[r.word * stride] >> r.shift & lpg_half_masks(r.bits)) << r.code_bit;
  }
  return codes;
}

/* The inverse; the words start as zero. Sums, since a GPU shifts and adds at once. */
LPG_FN void lpg_unit_put_pair(int bits, uint32_t *word, int stride, int pair, uint32_t codes) {
  lpg_field f = lpg_field_of(bits, pair);
  if (f.word >= 0) {
    word[f.word * stride] += codes << f.shift;
    return;
  }
  for (int i = 0; i < lpg_splice_runs(bits); i++) {
    lpg_run r = lpg_splice(bits, pair, i);
    word[r.word * stride] += (codes >> r.code_bit & lpg_half_masks(r.bits)) << r.shift;
  }
}

#endif
