/* Which matrices nibbles.cuh packs, and in what blocks. */
#ifndef LPG_IMPORT_NIBBLES_H
#define LPG_IMPORT_NIBBLES_H

#include "../pack/pack_device.h"
#include "at.h"

/* Chunks of a block, and the row tiles that a block, and each of its warps, reads. */
enum { LPG_NIBBLES_CHUNKS = 2, LPG_NIBBLES_AWQ_TILES = 8, LPG_NIBBLES_GPTQ_TILES = 4 };
static inline int lpg_nibbles_tiles(int arrangement) {
  return arrangement == LPG_AT_AWQ ? LPG_NIBBLES_AWQ_TILES : LPG_NIBBLES_GPTQ_TILES;
}

/* 1 if it has whole tiles only, and words that are aligned. */
static inline int lpg_are_nibbles(const lpg_rows_args *a) {
  const lpg_at *at = &a->at;
  if (at->bits != 4 || a->each || a->rows % LPG_TILE_ROWS || a->k % lpg_tile_k(4)) return 0;
  if (at->arrangement == LPG_AT_GPTQ) return 1;
  return at->arrangement == LPG_AT_AWQ && a->first_source_row % 16 == 0 && at->line % 2 == 0 &&
         (uintptr_t)at->codes % 8 == 0;
}

#endif
