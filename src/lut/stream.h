/* Codes that are fetched ahead. Part of lookup.c. */
#ifndef LPG_LUT_STREAM_H
#define LPG_LUT_STREAM_H

#include "lut.h"

/* From the first of a task to the last of the matrix. */
typedef struct code_stream {
  const uint8_t *next;
  int64_t bytes;
} code_stream;

static inline code_stream stream_from(const lpg_packed *packed, const uint8_t *codes, int64_t row_tile) {
  const int64_t first = lpg_tile_offset(packed->bits, packed->k_tiles, row_tile, 0);
  const int64_t end = lpg_tile_offset(packed->bits, packed->k_tiles, packed->row_tiles, 0);
  if (end == 0) return (code_stream){NULL, 0};
  return (code_stream){codes + first, end - first};
}

/* Asks the second cache for the next bytes, in the order in which they lie, whatever the order of their use: asked for
 * by row tiles in turn, weights of 2 bits took up to twice as long (docs/log/2026-11.md). */
static inline void fetch(code_stream *s, int bytes) {
  if (s->bytes < bytes) return;
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(s->next + i, 0, 2);
  s->next += bytes;
  s->bytes -= bytes;
}

#endif
