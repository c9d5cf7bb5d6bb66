/* How dequantised weights are multiplied in work tiles of 256 x 128: plain arithmetic, for C and CUDA. (By gemm's work
 * tiles: gemm_plan.h.)
 *
 * Weights are dequantised to X's type, a chunk of rows at a time, to an image in the workspace: for 256 rows (the rows
 * of a work tile) and every stage of 128 bytes of their columns, rows of 128 bytes of which 16-byte piece i is at
 * i ^ (row % 8), as the tensor cores of sm_90a read them. A work tile is 256 rows of W by 128 rows of X. Multicast: two
 * CTAs of a cluster have the same rows of W, of which each copies a half for both, and different rows of X. Split-K:
 * where work tiles are too few for the GPU, K is cut, and the cluster has such CTAs for each part of K.
 */
#ifndef LPG_KERNELS_DEQUANT_PLAN_H
#define LPG_KERNELS_DEQUANT_PLAN_H

#include "../operand/x_copy.h"
#include "../plan/partition.h"

enum {
  LPG_DEQUANT_TILE_N = 256,
  LPG_DEQUANT_TILE_M = 128,
  LPG_DEQUANT_WARPS = 8,          /* that multiply, each two row tiles */
  LPG_DEQUANT_PRODUCER_WARPS = 4, /* sm_90a: each brings every fourth stage */
  LPG_DEQUANT_BAND = 12,          /* work tiles of a band along N */
  LPG_DEQUANT_STAGE_BYTES = 128,  /* of a row */
  LPG_DEQUANT_W_BYTES = LPG_DEQUANT_TILE_N * LPG_DEQUANT_STAGE_BYTES,
  LPG_DEQUANT_X_BYTES = LPG_DEQUANT_TILE_M * LPG_DEQUANT_STAGE_BYTES,
  LPG_DEQUANT_MOST_STAGES = 4,
  LPG_DEQUANT_SUMS_BYTES =
      LPG_DEQUANT_WARPS * 16 * (2 * LPG_TILE_ROWS + 4) * 4, /* of 16 rows of X, on their way to Y */
  LPG_DEQUANT_BARRIER_BYTES = 512,
  LPG_DEQUANT_MOST_CHUNKS = 6,     /* more than the fewest that the workspace allows */
  LPG_DEQUANT_CHUNK_NS = 9000,     /* that a chunk takes whatever it holds */
  LPG_DEQUANT_WORKSPACE = 64 << 20 /* the most for images */
};

typedef struct lpg_dequant_plan {
  int32_t k_stages;                      /* of a row */
  int32_t scale_data;                    /* of a row, that are found while its weights are expanded */
  int32_t n_tiles, chunk_tiles, m_tiles; /* work tiles along N, of a chunk at most; along M, for a cluster */
  int64_t spare;                         /* bytes for numbers beside the images' workspace: those of X */
  int32_t multicast, split_k;            /* CTAs with the same rows of W; parts of K */
  int32_t persistent;                    /* clusters take work tiles in turn; else every work tile has its own */
  int32_t cluster, clusters;             /* CTAs of a cluster; clusters that run at once */
  int32_t stages;
  int32_t factors, sums, x_ring, w_ring, shared_bytes; /* offsets in shared memory */
} lpg_dequant_plan;

/* Of a work tile's image; of a chunk: of the images, and behind them of numbers. */
static inline int64_t lpg_dequant_tile_bytes(const lpg_dequant_plan *p) {
  return (int64_t)p->k_stages * LPG_DEQUANT_W_BYTES;
}

static inline int64_t lpg_dequant_chunk_bytes(const lpg_dequant_plan *p) {
  return p->chunk_tiles * (lpg_dequant_tile_bytes(p) + (int64_t)p->scale_data * LPG_DEQUANT_TILE_N * 4);
}

/* Work tiles of rows of a chunk, the most that the workspace holds. */
static inline int32_t lpg_dequant_most_tiles(const lpg_dequant_plan *p) {
  lpg_dequant_plan one = *p;
  one.chunk_tiles = 1;
  const int64_t images = LPG_DEQUANT_WORKSPACE / lpg_dequant_tile_bytes(p);
  const int64_t all = (LPG_DEQUANT_WORKSPACE + p->spare) / lpg_dequant_chunk_bytes(&one);
  const int64_t most = images < all ? images : all;
  return most < p->n_tiles ? (int32_t)most : p->n_tiles;
}

/* Of a copy of X in numbers of so many bytes, so that an image may follow it. */
static inline size_t lpg_dequant_copy_bytes(const lpg_problem *problem, int bytes) {
  return (lpg_x_copy_bytes(problem, bytes) + 1023) / 1024 * 1024;
}

#endif
