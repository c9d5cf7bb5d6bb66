/* Which matrices iq2.cuh packs, and in what blocks. */
#ifndef LPG_IMPORT_IQ2_H
#define LPG_IMPORT_IQ2_H

#include "../pack/pack_device.h"
#include "at.h"

enum { LPG_IQ2_COLUMNS = 256, LPG_IQ2_BLOCKS = 16 /* of a row, that a block takes */, LPG_IQ2_CHUNKS = 4 };

static inline int lpg_is_iq2(int arrangement) {
  return arrangement == LPG_AT_GGML + 16 || arrangement == LPG_AT_GGML + 17;
}

/* 1 if it has whole blocks and row tiles only. */
static inline int lpg_are_whole_iq2(const lpg_rows_args *a) {
  return lpg_is_iq2(a->at.arrangement) && !a->each && !a->flip && a->rows % LPG_TILE_ROWS == 0 &&
         a->k % LPG_IQ2_COLUMNS == 0 && a->first_column % LPG_IQ2_COLUMNS == 0;
}

#endif
