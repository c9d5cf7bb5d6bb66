/* Rows of X by a panel of bytes. Part of dot.c. */
#ifndef LPG_CPU_DOT_ROWS_H
#define LPG_CPU_DOT_ROWS_H

#include "dot_groups.h"
#include "dot_row.h"

typedef struct job {
  unpacker from;
  lpg_call call; /* without row scales: they are in the sums */
  const float *row_scales;
  dot_groups groups;
  dot_x x;
  dot_pattern pattern; /* of whole chunks; without has_pattern each has its own */
  int has_pattern;
  int unit;         /* columns */
  dot_lanes *lanes; /* of whole chunks: X is a row that meets codes as they lie; or NULL */
  dot_strips strips;
  int are_plain; /* its scales */
  int threads;
  int64_t first, rows; /* of X, that are in bytes */
} job;

/* What is multiplied: some rows of X by units of a chunk. */
typedef struct operands {
  const uint8_t *panel;
  const dot_group *const *group; /* of each unit */
  const int8_t *x;
  const float *step;
  const int32_t *sum;
  const float *all;
  int units, has_rest;
} operands;

/* What sums of products with bytes begin with: the negative of the zero, times the sum of the bytes of X. */
INLINE vint less_zero(const job *j, const dot_group *g, int32_t sum, int part) {
  const vint sums = (vint){0} + sum;
  return j->x.sums == SUMS_TIMES_ZERO ? sums
         : j->x.sums == PAIRS_OF_SUMS ? (vint){0}
                                      : multiply_16(sums, load_bytes((const uint8_t *)(g->less + part * V)));
}

/* The sum of a row out of those of its lines. Those of digits are below 2^21, so the lower two together are exact. */
INLINE vfloat sum_of_lines(int lines, vint found[][LPG_DOT_PARTS], int part) {
  if (lines == 1) return __builtin_convertvector(found[0][part], vfloat);
  const vint lower = found[1][part] * 256 + found[2][part];
  return __builtin_convertvector(found[0][part], vfloat) * 65536.0f + __builtin_convertvector(lower, vfloat);
}

/* total += what the zeros of unit u leave, by the sums of a row of X. */
INLINE void add_rest(const job *j, const operands *o, int row, int u, float step, vfloat total[LPG_DOT_PARTS]) {
  const dot_group *g = o->group[u];
  if (j->x.sums == PAIRS_OF_SUMS) {
    const vint sums = (vint){0} + o->sum[row * j->x.units + u];
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) {
      const vint minima = multiply_16(sums, load_bytes((const uint8_t *)(g->less + p * V)));
      total[p] += __builtin_convertvector(minima, vfloat) * (load(g->rest + p * V) * step);
    }
    return;
  }
  const float all = o->all[row * j->x.units + u];
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) total[p] += load(g->rest + p * V) * all;
}

/* sums[row] += X[row] . w, over the units of a chunk. */
INLINE void multiply_rows(int bits, int lines, int quads, int rows, const job *j, const operands *o,
                          float (*sums)[LPG_TILE_ROWS]) {
  const int8_t *x = o->x;
  const uint8_t *panel = o->panel;
  vfloat total[LPG_DOT_ROWS][LPG_DOT_PARTS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) total[r][p] = load(sums[r] + p * V);
  }
  for (int u = 0; u < o->units; u++, x += 4 * quads, panel += quads * LPG_DOT_QUAD) {
    const dot_group *g = o->group[u];
    vint found[LPG_DOT_LINES][LPG_DOT_PARTS];
#pragma GCC unroll 12
    for (int line = 0; line < rows * lines; line++) {
#pragma GCC unroll 4
      for (int p = 0; p < LPG_DOT_PARTS; p++) found[line][p] = less_zero(j, g, o->sum[line * j->x.units + u], p);
    }
    add_quads(bits, quads, rows * lines, panel, x, j->x.stride, found);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const float step = o->step[r * j->x.blocks + u * quads / 8];
#pragma GCC unroll 4
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        total[r][p] += sum_of_lines(lines, found + r * lines, p) * (load(g->scale + p * V) * step);
      }
      if (o->has_rest) add_rest(j, o, r, u, step, total[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) store(sums[r] + p * V, total[r][p]);
  }
}

/* The most rows at once that there are so many of, with a loop of its own. Returns how many. */
INLINE int multiply_some(int bits, int lines, int quads, int rows, const job *j, const operands *o,
                         float (*sums)[LPG_TILE_ROWS]) {
  const int limit = lines == 1 ? LPG_DOT_ROWS : LPG_DOT_LINES / 3;
  int most = limit;
  while (most > rows) most /= 2;
#define CASE(n) multiply_rows(bits, lines, quads, (n) < limit ? (n) : limit, j, o, sums)
  switch (most) {
    case 8: CASE(8); break;
    case 4: CASE(4); break;
    case 2: CASE(2); break;
    default: CASE(1); break;
  }
#undef CASE
  return most;
}

INLINE int multiply_units(int bits, int quads, int rows, const job *j, const operands *o,
                          float (*sums)[LPG_TILE_ROWS]) {
  switch (j->x.lines + quads) {
    case 1 + 8: return multiply_some(bits, 1, 8, rows, j, o, sums);
    case 1 + 4: return multiply_some(bits, 1, 4, rows, j, o, sums);
    case 3 + 8: return multiply_some(bits, 3, 8, rows, j, o, sums);
    default: return multiply_some(bits, 3, 4, rows, j, o, sums);
  }
}

static int multiply(int bits, int quads, int rows, const job *j, const operands *o, float (*sums)[LPG_TILE_ROWS]) {
#if !defined(LPG_DOT_NO_CLASSES)
  switch (bits) {
    case 5: return multiply_units(5, quads, rows, j, o, sums);
    case 6: return multiply_units(6, quads, rows, j, o, sums);
    case 7: return multiply_units(7, quads, rows, j, o, sums);
    case 8: return multiply_units(8, quads, rows, j, o, sums);
    case LPG_DOT_CENTERED: return multiply_units(LPG_DOT_CENTERED, quads, rows, j, o, sums);
    default: break;
  }
#else
  (void)bits;
#endif
  return multiply_units(4, quads, rows, j, o, sums);
}

#endif
