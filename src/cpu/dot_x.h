/* Rows of X as signed bytes. Part of dot.c.
 *
 * X of 8 bits is taken as it lies. Other X is rounded, for every 32 columns, to multiples of a 127th of their largest
 * magnitude: an element moves by at most half of that. */
#ifndef LPG_CPU_DOT_X_H
#define LPG_CPU_DOT_X_H

#include "dot_bytes.h"
#include "dot_panel.h"

enum { LPG_DOT_BLOCK = 32 };

/* Where the bytes of some rows of X are, and what belongs to them. */
typedef struct dot_x {
  int64_t columns, blocks, units, chunks; /* of a row, filled up to whole ones */
  int8_t *bytes;                          /* [rows][columns], in the order of a panel */
  float *step;                            /* [rows][blocks]: what a byte counts */
  int32_t *sum;                           /* [rows][units] of bytes, as 16 bits */
  uint8_t *kept;                          /* [rows][chunks]: not finite, or beyond what fp32 scales well */
} dot_x;

/* Bytes of memory for a row of X; every part of it is a multiple of 64 for any number of rows that is one of 16. */
static int64_t dot_row_bytes(const dot_x *x) { return x->columns + 4 * x->blocks + 4 * x->units + x->chunks; }

static dot_x shape_of_x(int64_t k, int unit) {
  const int64_t columns = lpg_round_up(k, LPG_DOT_BLOCK);
  return (dot_x){.columns = columns,
                 .blocks = columns / LPG_DOT_BLOCK,
                 .units = columns / unit,
                 .chunks = lpg_ceil_div(columns, LPG_DOT_K)};
}

static void place_x(dot_x *x, int64_t rows, void *memory) {
  x->bytes = memory;
  x->step = (float *)(void *)(x->bytes + rows * x->columns);
  x->sum = (int32_t *)(void *)(x->step + rows * x->blocks);
  x->kept = (uint8_t *)(x->sum + rows * x->units);
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
  int8_t *bytes = x->bytes + to * x->columns;
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
    int32_t sum = 0;
    for (int64_t c = 0; c < unit; c++) sum += bytes[i * unit + c];
    x->sum[to * x->units + i] = sum & 0xffff;
  }
}

#endif
