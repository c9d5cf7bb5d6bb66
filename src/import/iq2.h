/* Which matrices iq2.cuh packs, and in what blocks. */
#ifndef LPG_IMPORT_IQ2_H
#define LPG_IMPORT_IQ2_H

#include "../pack/pack_device.h"
#include "at.h"

enum { LPG_IQ2_COLUMNS = 256, LPG_IQ2_BLOCKS = 16 /* of a row, that a block takes */, LPG_IQ2_CHUNKS = 4 };

static inline int lpg_is_iq2(int arrangement) {
  return arrangement == LPG_AT_GGML + 16 || arrangement == LPG_AT_GGML + 17;
}

/* 1 if it has whole blocks and row tiles only, of so many rows and of columns [k0, k1). */
static inline int lpg_is_whole_iq2(const lpg_at *at, int64_t rows, int64_t k0, int64_t k1) {
  return lpg_is_iq2(at->arrangement) && rows % LPG_TILE_ROWS == 0 && k0 % LPG_IQ2_COLUMNS == 0 &&
         k1 % LPG_IQ2_COLUMNS == 0;
}

#endif
