/* Codes of a row tile as bytes, in the order in which dot.c multiplies them. Part of dot.c.
 *
 *     panel[quad][slot][4]     quad 4 s + t of a chunk: the columns 2t, 2t + 8, 2t + 1, 2t + 9 of its step s of 16,
 *                              which one lane of the packed form holds, in the order of its bytes */
#ifndef LPG_CPU_DOT_PANEL_H
#define LPG_CPU_DOT_PANEL_H

#include "../layouts/unit.h"
#include "dot_ops.h"

enum { LPG_DOT_K = 256, LPG_DOT_QUAD = 4 * LPG_TILE_ROWS, LPG_DOT_PANEL = LPG_DOT_K / 4 * LPG_DOT_QUAD };

/* Column of a step that is byte `place` of it in a panel and in a row of X. */
INLINE int dot_column(int place) { return place / 4 * 2 + place % 4 % 2 * 8 + place % 4 / 2; }

INLINE vuint load_words(const uint32_t *p) {
  vuint v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* What becomes of the codes of a tile: bytes by a table, or bytes that are multiplied by words of two equal halves, for
 * every step of 16 columns the 16 of the rows. */
typedef struct dot_change {
  const uint8_t *table;
  const uint32_t (*folds)[LPG_TILE_ROWS];
} dot_change;

INLINE void put_quads(uint8_t *panel, int quad, int part, dot_change change, vuint codes) {
  typedef uint16_t vshort __attribute__((vector_size(4 * V)));
  if (change.table) codes = look_up(change.table, codes);
  if (change.folds) codes = (vuint)((vshort)codes * (vshort)load_words(change.folds[quad / 4] + part * V));
  memcpy(panel + quad * LPG_DOT_QUAD + part * 4 * V, &codes, sizeof codes);
}

/* A pair of codes of the unit that has such words, of V rows, in the halves of words. */
INLINE vuint pair_of(int bits, const vuint *words, int pair) {
  const lpg_field f = lpg_field_of(bits, pair);
  vuint codes = {0};
  for (int i = 0; i < (f.word < 0 ? lpg_splice_runs(bits) : 1); i++) {
    const lpg_run whole = {0, bits, f.word, f.shift}, run = f.word < 0 ? lpg_splice(bits, pair, i) : whole;
    codes |= (words[run.word] >> (uint32_t)run.shift & lpg_half_masks(run.bits)) << (uint32_t)run.code_bit;
  }
  return codes;
}

/* The quad of a step. */
INLINE vuint quad_of(int bits, const vuint *words, int step) {
  return pair_of(bits, words, 2 * step) | pair_of(bits, words, 2 * step + 1) << 8u;
}

/* The codes of a tile, whose words were untangled. */
INLINE void expand_tile(int bits, const uint32_t *words, dot_change change, uint8_t *panel) {
  const int fields = 8 / bits, units = lpg_tile_k(bits) / 128;
  const uint32_t mask = ((1u << bits) - 1u) * 0x01010101u;
  if (lpg_is_pow2_width(bits)) {
#pragma GCC unroll 8
    for (int word = 0; word < 8; word++) { /* word / 4 of a row, in lane t = word % 4 */
#pragma GCC unroll 4
      for (int part = 0; part < LPG_DOT_PARTS; part++) {
        const vuint all = load_words(words + word * LPG_TILE_ROWS + part * V);
#pragma GCC unroll 8
        for (int f = 0; f < fields; f++) {
          put_quads(panel, 4 * (word / 4 * fields + f) + word % 4, part, change, all >> (uint32_t)(f * bits) & mask);
        }
      }
    }
    return;
  }
  for (int unit = 0; unit < units; unit++) {
    for (int at = 0; at < 4 * LPG_TILE_ROWS; at += V) { /* lane and slot */
      vuint of_unit[LPG_MAX_UNIT_WORDS];
#pragma GCC unroll 7
      for (int i = 0; i < bits; i++) of_unit[i] = load_words(words + (unit * bits + i) * 4 * LPG_TILE_ROWS + at);
#pragma GCC unroll 8
      for (int step = 0; step < 8; step++) {
        const vuint codes = quad_of(bits, of_unit, step);
        put_quads(panel, 4 * (8 * unit + step) + at / LPG_TILE_ROWS, at % LPG_TILE_ROWS / V, change, codes);
      }
    }
  }
}

/* The same of a packed tile. Only codes of up to 4 bits change, in one of the two ways. */
static void make_panel(int bits, const uint8_t *tile, dot_change change, uint32_t *words, uint8_t *panel) {
  const dot_change none = {NULL, NULL}, look_up = {change.table, NULL}, fold = {NULL, change.folds};
  if (bits == 8) { /* words are quads */
    _Static_assert(LPG_DOT_QUAD == LPG_TILE_ROWS * sizeof(uint32_t), "a word a row");
    untangle(8, tile, (uint32_t *)(void *)panel);
    return;
  }
  untangle(bits, tile, words);
#define CASE(n, what)                   \
  case n:                               \
    expand_tile(n, words, what, panel); \
    return
#define CASES(what) \
  CASE(1, what);    \
  CASE(2, what);    \
  CASE(3, what);    \
  CASE(4, what)
  if (change.table) {
    switch (bits) { CASES(look_up); }
  }
  if (change.folds) {
    switch (bits) { CASES(fold); }
  }
  switch (bits) {
    CASES(none);
    CASE(5, none);
    CASE(6, none);
    CASE(7, none);
  }
#undef CASES
#undef CASE
}

#endif
