/* Where the sums of a work tile lie in shared memory on their way to Y: one row of X after the other. */
#ifndef LPG_KERNELS_TILE_SUMS_H
#define LPG_KERNELS_TILE_SUMS_H

#include "../plan/partition.h"

/* Row pitch of the sums in floats; + 4 against bank conflicts. */
LPG_FN int lpg_sums_stride(int rows) { return rows + 4; }

/* Pairs of rows of W: how far behind a row's factor its bias lies, in floats. */
enum { LPG_BIASES_BEHIND = 512 };

LPG_FN int lpg_sums_bytes(int x_rows, int rows) { return x_rows * lpg_sums_stride(rows) * 4; }

#endif
