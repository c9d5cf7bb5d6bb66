/* Rows of X by a panel of bytes in tiles: AMX where the file is compiled for it; plain C in the kernel for tests, so
 * that any machine runs the loops. Part of dot.c.
 *
 *     quads of a unit                        16 rows of W, as a panel has them
 *     +-------------+
 *     |  A: lines   |  up to 16 lines      +-------------------+
 *     |  of X       |  of X                | B: a quad a line  |     sums of a unit = A x B, 32 bits
 *     +-------------+                      +-------------------+
 *
 * A unit is half a tile deep, or a quarter, since X has a scale for 32 columns. Sums go through memory to where they
 * meet scales, in the order of operations of multiply_rows(). */
#ifndef LPG_CPU_DOT_TILES_H
#define LPG_CPU_DOT_TILES_H

#include <stdatomic.h>

#include "dot_rows.h"

#if defined(__AMX_INT8__)
#define LPG_DOT_HAS_TILES 1
#define LPG_DOT_TILE_ZERO(t) _tile_zero(t)
#define LPG_DOT_TILE_LOAD(t, from, stride) _tile_loadd(t, from, stride)
#define LPG_DOT_TILE_STORE(t, to) _tile_stored(t, to, LPG_DOT_QUAD)
#define LPG_DOT_TILE_MULTIPLY(sum, x, w) _tile_dpbsud(sum, x, w)
#elif !defined(__AVX2__) && !defined(__ARM_FEATURE_DOTPROD)
#define LPG_DOT_HAS_TILES 1
#define LPG_DOT_TILE_ZERO(t) memset(file.tile[t], 0, sizeof file.tile[t])
#define LPG_DOT_TILE_LOAD(t, from, stride) load_tile(&shapes, file.tile[t], t, from, stride)
#define LPG_DOT_TILE_STORE(t, to) memcpy(to, file.tile[t], (size_t)shapes.lines[t] * LPG_DOT_QUAD)
#define LPG_DOT_TILE_MULTIPLY(sum, x, w) multiply_tile(&shapes, &file, sum, x, w)
#else
#define LPG_DOT_HAS_TILES 0
#endif

#if LPG_DOT_HAS_TILES

enum { LPG_DOT_TILE_LINES = 16, LPG_DOT_LEAST_LINES = 8 /* of X; fewer are multiplied without tiles */ };

/* Tiles 0 to 3 are sums, 4 and 5 of X, 6 and 7 of W. In the form that the instruction reads. */
typedef struct dot_shapes {
  uint8_t palette, start, none[14];
  uint16_t line_bytes[16];
  uint8_t lines[16];
} dot_shapes;

/* Sums of some units, in turn: [unit][line][row of W]. */
typedef int32_t dot_products[4][LPG_DOT_TILE_LINES][LPG_TILE_ROWS];

static dot_shapes shapes_of(int lines, int quads) {
  dot_shapes shapes = {.palette = 1};
  for (int t = 0; t < 8; t++) {
    shapes.line_bytes[t] = (uint16_t)(t == 4 || t == 5 ? 4 * quads : LPG_DOT_QUAD);
    shapes.lines[t] = (uint8_t)(t < 6 ? lines : quads);
  }
  return shapes;
}

/* Rows of X that tiles take together, of so many; 0: tiles are not worth it. Blocks are even, so that few rows are
 * left. */
static int64_t rows_of_tiles(int64_t rows, int lines) {
  const int64_t most = LPG_DOT_TILE_LINES / lines, blocks = lpg_ceil_div(rows, most);
  return rows * lines < LPG_DOT_LEAST_LINES ? 0 : rows / blocks;
}

#if !defined(__AMX_INT8__)
typedef struct dot_file {
  uint8_t tile[8][LPG_DOT_TILE_LINES][LPG_DOT_QUAD];
} dot_file;

static void load_tile(const dot_shapes *shapes, uint8_t (*tile)[LPG_DOT_QUAD], int t, const void *from,
                      int64_t stride) {
  for (int i = 0; i < shapes->lines[t]; i++) memcpy(tile[i], (const char *)from + i * stride, shapes->line_bytes[t]);
}

static void multiply_tile(const dot_shapes *shapes, dot_file *file, int sum, int x, int w) {
  for (int line = 0; line < shapes->lines[x]; line++) {
    for (int i = 0; i < LPG_TILE_ROWS; i++) {
      int32_t total;
      memcpy(&total, file->tile[sum][line] + 4 * i, sizeof total);
      for (int k = 0; k < shapes->line_bytes[x]; k++) {
        total += (int8_t)file->tile[x][line][k] * file->tile[w][k / 4][4 * i + k % 4];
      }
      memcpy(file->tile[sum][line] + 4 * i, &total, sizeof total);
    }
  }
}
#endif

static void open_tiles(const dot_shapes *shapes) {
  (void)shapes;
#if defined(__AMX_INT8__)
  _tile_loadconfig(shapes);
#endif
}

static void close_tiles(void) {
#if defined(__AMX_INT8__)
  _tile_release();
#endif
}

/* sums[row] += X[row] . w of a unit as multiply_rows() has it, by such products. */
INLINE void add_unit(int lines, dot_sums mode, int has_rest, int u, int quads, int rows, const job *j,
                     const operands *o, int32_t (*products)[LPG_TILE_ROWS], float (*sums)[LPG_TILE_ROWS]) {
  const dot_group *g = o->group[u];
  const int64_t units = j->x.units, blocks = j->x.blocks;
  const int32_t *sum = o->sum + u;
  const float *step = o->step + u * quads / 8, *all = o->all + u;
  vfloat scale[LPG_DOT_PARTS], rest[LPG_DOT_PARTS] = {{0}};
  vint less[LPG_DOT_PARTS];
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    scale[p] = load(g->scale + p * V);
    less[p] = load_bytes((const uint8_t *)(g->less + p * V));
    if (has_rest) rest[p] = load(g->rest + p * V);
  }
  for (int r = 0; r < rows; r++, step += blocks, all += units) {
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) {
      vint found[3][LPG_DOT_PARTS];
#pragma GCC unroll 3
      for (int line = 0; line < lines; line++) {
        found[line][p] = load_bytes((const uint8_t *)(products[r * lines + line] + p * V));
        if (mode == SUMS) found[line][p] += multiply_16((vint){0} + sum[line * units], less[p]);
        if (mode == SUMS_TIMES_ZERO) found[line][p] += sum[line * units];
      }
      vfloat total = load(sums[r] + p * V);
      total += sum_of_lines(lines, found, p) * (scale[p] * *step);
      if (has_rest && mode == PAIRS_OF_SUMS) {
        const vint minima = multiply_16((vint){0} + *sum, less[p]);
        total += __builtin_convertvector(minima, vfloat) * (rest[p] * *step);
      } else if (has_rest) {
        total += rest[p] * *all;
      }
      store(sums[r] + p * V, total);
    }
    sum += lines * units;
  }
}

/* The same by one of the loops. */
static void add_products_of(int u, int quads, int rows, const job *j, const operands *o,
                            int32_t (*products)[LPG_TILE_ROWS], float (*sums)[LPG_TILE_ROWS]) {
  enum { ONE = 0, THREE = 6, REST = 3 };
#define CASE(n, lines, mode, rest) \
  case n: add_unit(lines, mode, rest, u, quads, rows, j, o, products, sums); break
  switch ((j->x.lines == 1 ? ONE : THREE) + (o->has_rest ? REST : 0) + (int)j->x.sums) {
    CASE(ONE + SUMS, 1, SUMS, 0);
    CASE(ONE + SUMS_TIMES_ZERO, 1, SUMS_TIMES_ZERO, 0);
    CASE(ONE + PAIRS_OF_SUMS, 1, PAIRS_OF_SUMS, 0);
    CASE(ONE + REST + SUMS, 1, SUMS, 1);
    CASE(ONE + REST + SUMS_TIMES_ZERO, 1, SUMS_TIMES_ZERO, 1);
    CASE(ONE + REST + PAIRS_OF_SUMS, 1, PAIRS_OF_SUMS, 1);
    CASE(THREE + SUMS, 3, SUMS, 0);
    CASE(THREE + SUMS_TIMES_ZERO, 3, SUMS_TIMES_ZERO, 0);
    CASE(THREE + PAIRS_OF_SUMS, 3, PAIRS_OF_SUMS, 0);
    CASE(THREE + REST + SUMS, 3, SUMS, 1);
    CASE(THREE + REST + SUMS_TIMES_ZERO, 3, SUMS_TIMES_ZERO, 1);
    CASE(THREE + REST + PAIRS_OF_SUMS, 3, PAIRS_OF_SUMS, 1);
  }
#undef CASE
}

/* sums[row] += X[row] . w, over the units of a chunk. Products are two units ahead of where they are scaled, so that
 * tiles and vectors work at the same time. */
static void multiply_in_tiles(int rows, const job *j, const operands *o, dot_products products,
                              float (*sums)[LPG_TILE_ROWS]) {
  const int quads = j->unit / 4, units = o->units;
  const int64_t stride = j->x.stride;
#if !defined(__AMX_INT8__)
  const dot_shapes shapes = shapes_of(rows * j->x.lines, quads);
  dot_file file;
#endif
  /* Tiles are loaded and stored behind the compiler's back. */
#define MULTIPLY(i, of_x, of_w, unit)                                              \
  if ((unit) < units) {                                                            \
    LPG_DOT_TILE_ZERO(i);                                                          \
    LPG_DOT_TILE_LOAD(of_x, o->x + (unit)*quads * 4, stride);                      \
    LPG_DOT_TILE_LOAD(of_w, o->panel + (unit)*quads * LPG_DOT_QUAD, LPG_DOT_QUAD); \
    LPG_DOT_TILE_MULTIPLY(i, of_x, of_w);                                          \
    LPG_DOT_TILE_STORE(i, products[i]);                                            \
    atomic_signal_fence(memory_order_seq_cst);                                     \
  }
#define ADD(i, unit) \
  if ((unit) < units) add_products_of(unit, quads, rows, j, o, products[i], sums)
  atomic_signal_fence(memory_order_seq_cst);
  MULTIPLY(0, 4, 6, 0)
  MULTIPLY(1, 5, 7, 1)
  for (int u = 0; u < units; u += 4) {
    MULTIPLY(2, 4, 6, u + 2)
    ADD(0, u);
    MULTIPLY(3, 5, 7, u + 3)
    ADD(1, u + 1);
    MULTIPLY(0, 4, 6, u + 4)
    ADD(2, u + 2);
    MULTIPLY(1, 5, 7, u + 5)
    ADD(3, u + 3);
  }
#undef ADD
#undef MULTIPLY
}

#endif

#endif
