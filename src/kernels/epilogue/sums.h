/* Sums on their way to outputs, in shared memory: those of a token after those of the one before. */
#ifndef LPG_KERNELS_TILE_SUMS_H
#define LPG_KERNELS_TILE_SUMS_H

#include "../plan/partition.h"

/* How far apart those of two tokens lie, in floats: they begin in different banks. */
LPG_FN int lpg_sums_stride(int rows) { return rows + 4; }

LPG_FN int lpg_sums_bytes(int tokens, int rows) { return tokens * lpg_sums_stride(rows) * 4; }

#endif
