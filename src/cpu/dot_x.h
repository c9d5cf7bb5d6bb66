/* Rows of X as signed bytes. Part of dot.c.
 *
 * X of 8 bits is taken as it lies. Other X is rounded, for every 32 columns, to multiples of a 127th of their largest
 * magnitude: an element moves by at most half of that. */
#ifndef LPG_CPU_DOT_X_H
#define LPG_CPU_DOT_X_H

#include "dot_bytes.h"
#include "dot_panel.h"

enum { LPG_DOT_BLOCK = 32 };

/* What sums of the bytes of a unit are: as 16 bits, for zeros of groups; times the negative of the one zero; or of
 * 16 columns each, as two of 16 bits, for minima of groups. */
typedef enum dot_sums { SUMS, SUMS_TIMES_ZERO, PAIRS_OF_SUMS } dot_sums;

/* Where the bytes of some rows of X are, and what belongs to them. */
typedef struct dot_x {
  int64_t columns, blocks, units, chunks; /* of a row, filled up to whole ones */
  int64_t stride; /* bytes from row to row, so that rows do not fall into the same sets of a cache */
  int8_t *bytes;  /* [rows][stride], in the order of a panel */
  float *step;    /* [rows][blocks]: what a byte counts */
  int32_t *sum;   /* [rows][units] of bytes: as 16 bits, or times the negative of the one zero */
  float *all;     /* [rows][units] of bytes times steps */
  uint8_t *kept;  /* [rows][chunks]: not finite, or beyond what fp32 scales well */
  dot_sums sums;
  int32_t less; /* the negative of the one zero */
} dot_x;

/* Bytes of memory for a row of X; every part of it is a multiple of 64 for any number of rows that is one of 16. */
static int64_t dot_row_bytes(const dot_x *x) { return x->stride + 4 * x->blocks + 8 * x->units + x->chunks; }

static dot_x shape_of_x(int64_t k, int unit) {
  const int64_t columns = lpg_round_up(k, LPG_DOT_BLOCK);
  return (dot_x){.columns = columns,
                 .stride = lpg_round_up(columns, 128) + 64,
                 .blocks = columns / LPG_DOT_BLOCK,
                 .units = columns / unit,
                 .chunks = lpg_ceil_div(columns, LPG_DOT_K)};
}

static void place_x(dot_x *x, int64_t rows, void *memory) {
  x->bytes = memory;
  x->step = (float *)(void *)(x->bytes + rows * x->stride);
  x->sum = (int32_t *)(void *)(x->step + rows * x->blocks);
  x->all = (float *)(void *)(x->sum + rows * x->units);
  x->kept = (uint8_t *)(x->all + rows * x->units);
}

/* The 32 values of a block, and whether all are 0 or within what a product with a scale leaves in fp32. */
static int round_bytes(const float *x, int is_byte, int8_t *bytes, float *step) {
  static const float rounder = 0x1.8p23f; /* adding it leaves an integer */
  float inverse = 1.0f, largest = 0.0f;
  *step = 1.0f;
  if (!is_byte) {
    uint32_t most = 0;
    for (int i = 0; i < LPG_DOT_BLOCK; i++) {
      const uint32_t magnitude = lpg_f32_bits(x[i]) & 0x7fffffffu;
      most = magnitude > most ? magnitude : most;
    }
    largest = lpg_bits_f32(most);
    if (most != 0 && !(largest >= 0x1p-40f && largest <= 0x1p40f)) { /* NaN as well */
      memset(bytes, 0, LPG_DOT_BLOCK);
      *step = 0.0f;
      return 0;
    }
    *step = largest * (1.0f / 127.0f);
    inverse = most == 0 ? 0.0f : 127.0f / largest;
  }
  int8_t rounded[LPG_DOT_BLOCK];
  for (int i = 0; i < LPG_DOT_BLOCK; i++) rounded[i] = (int8_t)(int32_t)((x[i] * inverse + rounder) - rounder);
  for (int i = 0; i < LPG_DOT_BLOCK; i++) bytes[i] = rounded[i / 16 * 16 + dot_column(i % 16)];
  return 1;
}

/* Row `from` of X, which is row `to` of those in memory. */
static void make_bytes(const unpacker *u, int64_t from, const dot_x *x, int64_t to) {
  const lpg_call *call = u->call;
  const int64_t k = u->packed->desc.k, unit = x->columns / x->units;
  const int is_byte = lpg_is_bytes(call->problem.x_type);
  int8_t *bytes = x->bytes + to * x->stride;
  memset(x->kept + to * x->chunks, 0, (size_t)x->chunks);
  for (int64_t b = 0; b < x->blocks; b++) {
    float values[LPG_DOT_BLOCK] = {0};
    const int64_t first = b * LPG_DOT_BLOCK, left = k - first;
    to_floats(call->problem.x_type, call->x, from * call->ldx + first, left < LPG_DOT_BLOCK ? left : LPG_DOT_BLOCK,
              u->x_value, values);
    if (!round_bytes(values, is_byte, bytes + first, x->step + to * x->blocks + b))
      x->kept[to * x->chunks + first / LPG_DOT_K] = 1;
  }
  for (int64_t i = 0; i < x->units; i++) {
    const int8_t *of_unit = bytes + i * unit;
    int32_t half[2] = {0, 0};
    for (int c = 0; c < LPG_STEP_K; c++) half[0] += of_unit[c];
    for (int c = LPG_STEP_K; c < unit; c++) half[1] += of_unit[c];
    const int32_t sum = half[0] + half[1];
    x->sum[to * x->units + i] = x->sums == SUMS            ? sum & 0xffff
                                : x->sums == PAIRS_OF_SUMS ? (half[0] & 0xffff) | (int32_t)((uint32_t)half[1] << 16)
                                                           : sum * x->less;
    x->all[to * x->units + i] = (float)sum * x->step[to * x->blocks + i * unit / LPG_DOT_BLOCK];
  }
}

#endif
