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

INLINE void put_quads(uint8_t *panel, int quad, int part, const uint8_t *table, vuint codes) {
  if (table) codes = look_up(table, codes);
  memcpy(panel + quad * LPG_DOT_QUAD + part * 4 * V, &codes, sizeof codes);
}

/* A pair of codes of the unit whose words begin at `words`, in the halves of the words of V rows. */
INLINE vuint pair_of(int bits, const uint32_t *words, int pair) {
  const lpg_field f = lpg_field_of(bits, pair);
  vuint codes = {0};
  for (int i = 0; i < (f.word < 0 ? lpg_splice_runs(bits) : 1); i++) {
    const lpg_run whole = {0, bits, f.word, f.shift}, run = f.word < 0 ? lpg_splice(bits, pair, i) : whole;
    const vuint word = load_words(words + run.word * 4 * LPG_TILE_ROWS);
    codes |= (word >> (uint32_t)run.shift & lpg_half_masks(run.bits)) << (uint32_t)run.code_bit;
  }
  return codes;
}

/* The codes of a tile, whose words were untangled. */
INLINE void expand_tile(int bits, const uint32_t *words, const uint8_t *table, uint8_t *panel) {
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
          put_quads(panel, 4 * (word / 4 * fields + f) + word % 4, part, table, all >> (uint32_t)(f * bits) & mask);
        }
      }
    }
    return;
  }
  for (int unit = 0; unit < units; unit++) {
    for (int at = 0; at < 4 * LPG_TILE_ROWS; at += V) { /* lane and slot */
      const uint32_t *from = words + unit * bits * 4 * LPG_TILE_ROWS + at;
#pragma GCC unroll 8
      for (int step = 0; step < 8; step++) {
        const vuint codes = pair_of(bits, from, 2 * step) | pair_of(bits, from, 2 * step + 1) << 8u;
        put_quads(panel, 4 * (8 * unit + step) + at / LPG_TILE_ROWS, at % LPG_TILE_ROWS / V, table, codes);
      }
    }
  }
}

/* The same without and with a table of bytes for codes of up to 4 bits. */
static void make_panel(int bits, const uint8_t *tile, const uint8_t *table, uint32_t *words, uint8_t *panel) {
  if (bits == 8) { /* words are quads */
    _Static_assert(LPG_DOT_QUAD == LPG_TILE_ROWS * sizeof(uint32_t), "a word a row");
    untangle(8, tile, (uint32_t *)(void *)panel);
    return;
  }
  untangle(bits, tile, words);
#define CASE(n) \
  case n: expand_tile(n, words, NULL, panel); break
  if (table) {
    switch (bits) {
      case 1: expand_tile(1, words, table, panel); return;
      case 2: expand_tile(2, words, table, panel); return;
      case 3: expand_tile(3, words, table, panel); return;
      default: expand_tile(4, words, table, panel); return;
    }
  }
  switch (bits) {
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
    CASE(7);
  }
#undef CASE
}

#endif
