/* How expanded weights are multiplied: plain arithmetic, for C and CUDA.
 *
 * Weights are brought to X's type a chunk of rows at a time, into an image in the workspace: for every 256 rows (a row
 * item) and every stage of 128 bytes of their columns, rows of 128 bytes of which 16-byte piece i is at i ^ (row % 8),
 * as the tensor cores of sm_90a read them. An item is 256 rows by 128 rows of X (tokens); the blocks of threads of a
 * cluster have the same rows and bring each a part of them, for all. */
#ifndef LPG_KERNELS_DENSE_PLAN_H
#define LPG_KERNELS_DENSE_PLAN_H

#include "../blocks.h"

enum {
  LPG_DENSE_ROWS = 256,
  LPG_DENSE_TOKENS = 128,
  LPG_DENSE_WARPS = 8,         /* that multiply, each two row tiles */
  LPG_DENSE_COPY_WARPS = 4,    /* sm_90a: each brings every fourth stage */
  LPG_DENSE_BAND = 12,         /* items of a band, of rows */
  LPG_DENSE_STAGE_BYTES = 128, /* of a row */
  LPG_DENSE_W_BYTES = LPG_DENSE_ROWS * LPG_DENSE_STAGE_BYTES,
  LPG_DENSE_X_BYTES = LPG_DENSE_TOKENS * LPG_DENSE_STAGE_BYTES,
  LPG_DENSE_MOST_STAGES = 4,
  LPG_DENSE_SUMS_BYTES = LPG_DENSE_WARPS * 16 * (2 * LPG_TILE_ROWS + 4) * 4, /* of 16 tokens, on their way to Y */
  LPG_DENSE_BARRIER_BYTES = 512,
  LPG_DENSE_WORKSPACE = 64 << 20 /* the most */
};

/* How scales meet weights when these are brought to the type that they are multiplied in. */
typedef struct lpg_expand_scaling {
  int on_rows; /* one scale a row, or none: it goes on the row's sums, and the weights are as they are */
  /* 8 bits: the groups' scales, which go on their sums, come in a table, 256 rows for every stage of 128 columns. */
  int in_table;
  /* Else every row is multiplied by a power of two that comes off its sums: 2^(top - exponent of its scales), or, if
   * `finds`, one that the largest weight asks for. bf16 needs none. */
  int top, finds;
} lpg_expand_scaling;

typedef struct lpg_dense_plan {
  int32_t k_stages;                            /* of a row */
  int32_t numbers;                             /* of a row, that are found while its weights are expanded */
  int32_t row_items, chunk_items, token_items; /* of the matrix and, the most, of a chunk; token_items: of a cluster */
  int32_t slices;                              /* 1: nobody else adds to an item's sums */
  int32_t persistent;                          /* clusters take items in turn; else every item has its own */
  int32_t cluster, groups;                     /* blocks of threads of a cluster; clusters that run at once */
  int32_t stages;
  int32_t factors, sums, x_ring, w_ring, shared_bytes; /* offsets in shared memory */
} lpg_dense_plan;

/* Of an item's image; of a chunk: of the images, and behind them of numbers. */
static inline int64_t lpg_dense_item_bytes(const lpg_dense_plan *p) { return (int64_t)p->k_stages * LPG_DENSE_W_BYTES; }

static inline int64_t lpg_dense_chunk_bytes(const lpg_dense_plan *p) {
  return p->chunk_items * (lpg_dense_item_bytes(p) + (int64_t)p->numbers * LPG_DENSE_ROWS * 4);
}

/* Nanoseconds that a chunk of so many row items may take (measured on the H200, docs/performance.md). */
static inline double lpg_dense_chunk_cost(const lpg_dense_plan *p, int32_t row_items, const lpg_device *device) {
  const double units = device->units > 0 ? device->units : 1.0, bytes = (double)(row_items * lpg_dense_item_bytes(p));
  const int64_t rounds = ((int64_t)row_items * p->token_items + p->groups - 1) / p->groups;
  return 7000.0 + bytes / (units * 34.0) + (double)rounds * (p->k_stages * 850.0 + 2500.0);
}

static inline double lpg_dense_cost(const lpg_dense_plan *p, const lpg_device *device) {
  const int32_t chunks = p->chunk_items > 0 ? p->row_items / p->chunk_items : 0;
  const int32_t left = p->row_items - chunks * p->chunk_items;
  return chunks * lpg_dense_chunk_cost(p, p->chunk_items, device) +
         (left > 0 ? lpg_dense_chunk_cost(p, left, device) : 0.0);
}

/* Row items of a chunk, the most that the workspace holds; it does not depend on M. */
static inline int32_t lpg_dense_most_items(const lpg_dense_plan *p) {
  lpg_dense_plan one = *p;
  one.chunk_items = 1;
  const int64_t most = LPG_DENSE_WORKSPACE / lpg_dense_chunk_bytes(&one);
  return most < p->row_items ? (int32_t)most : p->row_items;
}

/* The plan for m rows of X, whose numbers have x_bytes, and weights that are expanded so, on tensor cores that read
 * shared memory (wgmma) or not; 0 if the workspace or shared memory does not do. */
static inline int lpg_dense_make_plan(const lpg_plan *weights, int64_t m, int x_bytes, lpg_expand_scaling scaling,
                                      int wgmma, const lpg_device *device, lpg_dense_plan *plan) {
  lpg_dense_plan p = LPG_ZERO;
  const int64_t stage_k = LPG_DENSE_STAGE_BYTES / x_bytes, tokens = (m + LPG_DENSE_TOKENS - 1) / LPG_DENSE_TOKENS;
  p.k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p.row_items = (int32_t)((weights->desc.n + LPG_DENSE_ROWS - 1) / LPG_DENSE_ROWS);
  p.cluster = wgmma && tokens > 1 && device->clusters[1] > 0 ? 2 : 1;
  p.token_items = (int32_t)((tokens + p.cluster - 1) / p.cluster);
  p.groups = p.cluster == 2 ? device->clusters[1] : device->units > 0 ? device->units : 1;
  p.numbers = scaling.finds ? 1 : scaling.in_table ? p.k_stages : 0;
  p.slices = 1;
  p.persistent = wgmma;
  p.factors = LPG_DENSE_BARRIER_BYTES;
  p.sums = p.factors + LPG_DENSE_ROWS * 4;
  p.x_ring =
      lpg_round_up_to(p.sums + (wgmma ? LPG_DENSE_SUMS_BYTES : 0), 1024); /* else the sums take the ring's place */
  if (!wgmma) p.sums = p.x_ring;
  p.stages = (int32_t)((device->shared_memory - p.x_ring) / (LPG_DENSE_X_BYTES + LPG_DENSE_W_BYTES));
  if (p.stages > LPG_DENSE_MOST_STAGES) p.stages = LPG_DENSE_MOST_STAGES;
  p.w_ring = p.x_ring + p.stages * LPG_DENSE_X_BYTES;
  p.shared_bytes = p.w_ring + p.stages * LPG_DENSE_W_BYTES;
  p.chunk_items = lpg_dense_most_items(&p);
  if (p.stages < (wgmma ? LPG_DENSE_COPY_WARPS : 2) || (p.row_items > 0 && p.chunk_items < 1)) return 0;
  *plan = p;
  double least = lpg_dense_cost(&p, device);
  for (int32_t items = p.chunk_items - 1; items > 0 && items >= p.chunk_items / 2; items--) {
    lpg_dense_plan smaller = p;
    smaller.chunk_items = items;
    const double cost = lpg_dense_cost(&smaller, device);
    if (cost >= least) continue;
    least = cost;
    *plan = smaller;
  }
  return 1;
}

#endif
