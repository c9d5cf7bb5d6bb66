/* How a routing lies in memory, and what the backends do for a mixture of experts besides multiplying: routing, rows by
 * index, and the sum of a token's slots. Plain C that CUDA compiles too.
 *
 * A token has top_k slots; slot (t, j) has number t * top_k + j. Routing sorts the slots by expert, in the order of
 * their numbers within one: a stable counting sort. A slot whose expert is not among the stacks' is left out. */
#ifndef LPG_EXPERTS_ROUTING_H
#define LPG_EXPERTS_ROUTING_H

#include "../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LPG_MOST_TOP_K = 64,
  LPG_ROUTE_PART = 1024,     /* slots that a part of the sort counts, at least */
  LPG_ROUTE_MOST_PARTS = 256 /* so that the counts stay few */
};

/* ---- the memory: bytes from its start, which is a multiple of 256; so is each of these ---- */

typedef struct lpg_routing {
  int64_t slots;
  size_t offsets;  /* int32 [experts + 1] */
  size_t left_out; /* int32 [1]: how many slots were left out */
  size_t token;    /* int32 [slots]: the token of a sorted slot, -1 from offsets[experts] on */
  size_t position; /* int32 [m][top_k]: where a slot was sorted to, -1 if it was left out */
  size_t counts;   /* int32 [parts][experts]: for the sort to work in */
  int64_t parts;   /* 1 to LPG_ROUTE_MOST_PARTS: each counts as many slots that follow one another */
  size_t bytes;
} lpg_routing;

LPG_FN size_t lpg_routing_add(size_t *bytes, int64_t numbers) {
  const size_t at = *bytes;
  *bytes += ((size_t)numbers * sizeof(int32_t) + 255) / 256 * 256;
  return at;
}

/* Of sizes that were checked: bytes grow with m. */
LPG_FN lpg_routing lpg_routing_of(int64_t m, int32_t top_k, int32_t experts) {
  lpg_routing r = LPG_ZERO;
  r.slots = m * top_k;
  r.parts = lpg_ceil_div(r.slots, LPG_ROUTE_PART);
  r.parts = r.parts < 1 ? 1 : r.parts > LPG_ROUTE_MOST_PARTS ? LPG_ROUTE_MOST_PARTS : r.parts;
  r.offsets = lpg_routing_add(&r.bytes, experts + 1);
  r.left_out = lpg_routing_add(&r.bytes, 1);
  r.token = lpg_routing_add(&r.bytes, r.slots);
  r.position = lpg_routing_add(&r.bytes, r.slots);
  r.counts = lpg_routing_add(&r.bytes, r.parts * experts);
  return r;
}

/* ---- what a backend does: one struct each, checked, with all pointers to memory of its kind ---- */

/* Fills offsets, left_out, token and position (above). expert: [m][top_k] of any value; slot numbers with
 * 0 <= expert - first_expert < experts are sorted, without overflow for any two numbers. */
struct lpg_route {
  int64_t m;
  int32_t top_k, experts, first_expert;
  int64_t parts;
  const int32_t *expert;
  int32_t *offsets, *left_out, *token, *position, *counts;
};

/* Where rows of an expert begin: offset `index` of a list that the caller may have made himself, as far as it is
 * believed: at least the one before, and at most the number of rows. */
LPG_FN int64_t lpg_offset(int64_t offset, int64_t before, int64_t rows) {
  return offset < before ? before : offset > rows ? rows : offset;
}

/* out[i][c] = x[row[i]][order[c]] for i < offsets[experts] (as lpg_offset() has it) and c < k; rows of zeros where
 * row[i] is not 0 .. x_rows - 1. Rows from there on may be written or not. out_scale[i] = x_scale[row[i]], or 0, if
 * there are scales. out's rows are whole vectors of 16 bytes; what lies behind k may be written or not. */
struct lpg_gather {
  int64_t rows; /* that out has */
  int32_t experts;
  const int32_t *offsets; /* [experts + 1]; NULL: all rows, of one expert */
  const int32_t *row;     /* [rows]; NULL: row[i] = i */
  int64_t x_rows;
  const uint8_t *order;  /* int32 [k] of expert 0, entries in range; NULL: order[c] = c */
  uint64_t order_stride; /* bytes from one expert's to the next; the expert of row i is the one whose rows it is in */
  int64_t k;
  int32_t bytes; /* of a number: 1, 2 or 4 */
  const void *x;
  int64_t ldx;
  void *out;
  int64_t ldo;
  const float *x_scale; /* [x_rows] or NULL */
  float *out_scale;     /* [rows] */
};

/* y[t][i] = round(sum + beta * c[t][i]) with sum = 0, then for j = 0 .. top_k - 1 in this order, where 0 <= p =
 * position[t][j] < slots:  sum = sum + weight[t][j] * partial[p][i].  All in fp32, each product and each sum rounded
 * (no fused multiply-add), one rounding to y_type at the end; a NaN is the one NaN of the epilogues. Without beta
 * (host: 0; both NULL and 0) C is not read. A slot that is left out is not read, neither its weight. */
struct lpg_combine {
  int64_t m, n, slots;
  int32_t top_k;
  const int32_t *position; /* [m][top_k] */
  const float *weight;     /* [m][top_k]; NULL: 1 */
  const void *partial;     /* [slots][ld] of y_type, F16, BF16 or F32 */
  int64_t ld;
  lpgemm_dtype_t y_type;
  void *y;
  int64_t ldy;
  const void *c; /* may be y; NULL: no beta */
  int64_t ldc;
  float beta;
  const float *device_beta; /* CUDA, pointer mode DEVICE; NULL: beta */
};

#ifdef __cplusplus
}
#endif

#endif
