/* Where the sums of a work tile lie in shared memory on their way to Y: one row of X after the other. */
#ifndef LPG_KERNELS_TILE_SUMS_H
#define LPG_KERNELS_TILE_SUMS_H

#include "../plan/partition.h"

/* Row pitch of the sums in floats; + 4 against bank conflicts. */
LPG_FN int lpg_sums_stride(int rows) { return rows + 4; }

/* Pairs of rows of W: how far behind a row's factor its bias lies, in floats. */
enum { LPG_BIASES_BEHIND = 512 };

LPG_FN int lpg_sums_bytes(int x_rows, int rows) { return x_rows * lpg_sums_stride(rows) * 4; }

/* Split-K's exchange of a work tile of tile_m rows of X: bytes of a CTA's receive buffers, with what its warps store
 * from in front of them. parts: of K, of all CTAs; teams and their warps: of a CTA. */
LPG_FN int lpg_exchange_bytes(int tile_m, int tile_n, int parts, int teams, int warps) {
  const int blocks = (tile_m / 8 + parts - 1) / parts;
  return teams * warps * lpg_sums_bytes(LPG_PASS_ROWS, tile_n / warps) + teams * parts * blocks * tile_n * 8 * 4;
}

#endif
