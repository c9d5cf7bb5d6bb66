/* Sums on their way to outputs, in shared memory: those of a row of X after those of the one before. */
#ifndef LPG_KERNELS_TILE_SUMS_H
#define LPG_KERNELS_TILE_SUMS_H

#include "../plan/partition.h"

/* How far apart those of two rows of X lie, in floats: they begin in different banks. */
LPG_FN int lpg_sums_stride(int rows) { return rows + 4; }

LPG_FN int lpg_sums_bytes(int x_rows, int rows) { return x_rows * lpg_sums_stride(rows) * 4; }

#endif
