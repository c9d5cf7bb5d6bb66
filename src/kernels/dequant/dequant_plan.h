/* How expanded weights are multiplied: plain arithmetic, for C and CUDA.
 *
 * Weights are loaded to X's type a chunk of rows at a time, into an image in the workspace: for every 256 rows (a row
 * work tile) and every stage of 128 bytes of their columns, rows of 128 bytes of which 16-byte piece i is at i ^ (row %
 * 8), as the tensor cores of sm_90a read them. A work tile is 256 rows by 128 rows of X (rows of X). Of the CTAs of a
 * cluster `share` have the same rows and columns, of which each brings a part for all of them, and other rows of X;
 * where work tiles are too few for the GPU, K is cut into parts of K, and the cluster has such blocks for each of them.
 */
#ifndef LPG_KERNELS_DEQUANT_PLAN_H
#define LPG_KERNELS_DEQUANT_PLAN_H

#include "../plan/partition.h"

enum {
  LPG_DEQUANT_TILE_N = 256,
  LPG_DEQUANT_TILE_M = 128,
  LPG_DEQUANT_WARPS = 8,          /* that multiply, each two row tiles */
  LPG_DEQUANT_PRODUCER_WARPS = 4, /* sm_90a: each brings every fourth stage */
  LPG_DEQUANT_BAND = 12,          /* work tiles of a band, of rows */
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

/* How scales meet weights when these are loaded to the type that they are multiplied in. */
typedef struct lpg_expand_scaling {
  int on_rows; /* one scale a row, or none: it goes on the row's sums, and the weights are as they are */
  /* 8 bits, and fp16 where scaled weights would be too far apart for it: the groups' scales, which go on the sums of
   * their stages, come in a table, 256 rows for every stage. */
  int in_table;
  /* Else every row is multiplied by a power of two that comes off its sums: 2^(top - exponent of its scales), or, if
   * `finds`, one that the largest weight asks for. bf16 needs none. */
  int top, finds;
} lpg_expand_scaling;

typedef struct lpg_dequant_plan {
  int32_t k_stages;                      /* of a row */
  int32_t scale_data;                    /* of a row, that are found while its weights are expanded */
  int32_t n_tiles, chunk_tiles, m_tiles; /* of the matrix and, the most, of a chunk; token_items: of a cluster */
  int64_t spare;                         /* bytes for numbers beside the images' workspace: those of X */
  int32_t multicast, split_k;            /* CTAs with the same weights; parts of K */
  double expand_slower, slower;          /* than what the costs say: to expand, and to multiply a stage */
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

/* How much longer weights take to expand than integers with one level of scales. */
static inline double lpg_expand_slowness(const lpg_packed *weights, lpg_expand_scaling scaling) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int by_table = !lpg_is_integer_kind(d->type) || lpg_integer_step(d->type) != 1;
  return 1.0 + 0.35 * by_table + 0.15 * (d->super_scale_type != 0) + 0.2 * scaling.finds + 0.2 * scaling.in_table;
}

/* Nanoseconds that a chunk of so many row work tiles may take (measured on the H200, docs/performance.md). A stage
 * takes longer the more CTAs work, or as long as it takes to load X and the block's part of the weights. */
static inline double lpg_dequant_chunk_cost(const lpg_dequant_plan *p, int32_t n_tiles, const lpg_device *device) {
  const double units = device->sms > 0 ? device->sms : 1.0, bytes = (double)(n_tiles * lpg_dequant_tile_bytes(p));
  const int64_t tiles = (int64_t)n_tiles * p->m_tiles, rounds = (tiles + p->clusters - 1) / p->clusters;
  const double busy = (double)((tiles < p->clusters ? tiles : p->clusters) * p->cluster) / units;
  const double loaded = busy * (LPG_DEQUANT_X_BYTES + (double)LPG_DEQUANT_W_BYTES / p->multicast) / 66.0;
  const double multiplied = (550.0 + 165.0 * busy) * p->slower;
  const int32_t stages = (p->k_stages + p->split_k - 1) / p->split_k;
  const double sums = p->split_k > 1 ? 3000.0 : 0.0;
  return LPG_DEQUANT_CHUNK_NS + bytes * p->expand_slower / (units * 20.0) +
         (double)rounds * (stages * (loaded > multiplied ? loaded : multiplied) + 2500.0 + sums);
}

static inline double lpg_dequant_cost(const lpg_dequant_plan *p, const lpg_device *device) {
  const int32_t chunks = p->chunk_tiles > 0 ? p->n_tiles / p->chunk_tiles : 0;
  const int32_t left = p->n_tiles - chunks * p->chunk_tiles;
  return chunks * lpg_dequant_chunk_cost(p, p->chunk_tiles, device) +
         (left > 0 ? lpg_dequant_chunk_cost(p, left, device) : 0.0);
}

/* Row work tiles of a chunk, the most that the workspace holds. */
static inline int32_t lpg_dequant_most_tiles(const lpg_dequant_plan *p) {
  lpg_dequant_plan one = *p;
  one.chunk_tiles = 1;
  const int64_t images = LPG_DEQUANT_WORKSPACE / lpg_dequant_tile_bytes(p);
  const int64_t all = (LPG_DEQUANT_WORKSPACE + p->spare) / lpg_dequant_chunk_bytes(&one);
  const int64_t most = images < all ? images : all;
  return most < p->n_tiles ? (int32_t)most : p->n_tiles;
}

/* Clusters of so many blocks that run at once; 0: there are none of this size. */
static inline int32_t lpg_dequant_clusters(int32_t cluster, const lpg_device *device) {
  if (cluster == 1) return device->sms > 0 ? device->sms : 1;
  return cluster <= LPG_CLUSTER_MOST && cluster != 5 && cluster != 7 ? device->clusters[cluster] : 0;
}

/* Takes the plan if it is cheaper than the best so far: with the number of row work tiles a chunk, of at most so many,
 * that is the cheapest. */
static inline void lpg_dequant_take_cheaper(lpg_dequant_plan p, int32_t most, const lpg_device *device,
                                            lpg_dequant_plan *best, double *least) {
  const int32_t fewest = most > 0 ? (p.n_tiles + most - 1) / most : 0;
  for (int32_t chunks = fewest; chunks <= fewest + LPG_DEQUANT_MOST_CHUNKS; chunks++) {
    const int32_t tiles = chunks > 0 ? (p.n_tiles + chunks - 1) / chunks : 0;
    if (tiles == p.chunk_tiles && chunks > fewest) continue;
    if (tiles > 0 && *least >= 0.0 && (double)p.n_tiles / (double)tiles * LPG_DEQUANT_CHUNK_NS >= *least) return;
    p.chunk_tiles = tiles;
    const double cost = lpg_dequant_cost(&p, device);
    if (*least >= 0.0 && cost >= 1.5 * *least) return; /* no number of chunks makes up for that */
    if (*least >= 0.0 && cost >= *least) continue;
    *least = cost;
    *best = p;
  }
}

/* What a plan has whatever shares the weights and cuts K: for m rows of X, whose numbers have x_bytes, and weights that
 * are expanded so, on tensor cores that read shared memory (wgmma) or not; 0 if the workspace or shared memory does not
 * do. */
static inline int lpg_dequant_frame(const lpg_packed *weights, int64_t m, int x_bytes, lpg_expand_scaling scaling,
                                    int wgmma, const lpg_device *device, lpg_dequant_plan *plan) {
  lpg_dequant_plan p = LPG_ZERO;
  const int64_t stage_k = LPG_DEQUANT_STAGE_BYTES / x_bytes;
  p.k_stages = (int32_t)((weights->desc.k + stage_k - 1) / stage_k);
  p.n_tiles = (int32_t)((weights->desc.n + LPG_DEQUANT_TILE_N - 1) / LPG_DEQUANT_TILE_N);
  p.scale_data = scaling.finds ? 1 : scaling.in_table ? p.k_stages : 0;
  p.spare = m * weights->desc.k * x_bytes;
  p.expand_slower = lpg_expand_slowness(weights, scaling);
  p.slower = x_bytes == 1 ? 1.19 : scaling.in_table ? 1.3 : 1.0;
  p.factors = LPG_DEQUANT_BARRIER_BYTES;
  p.sums = p.factors + LPG_DEQUANT_TILE_N * 4;
  p.x_ring = lpg_round_up_to(p.sums + (wgmma ? LPG_DEQUANT_SUMS_BYTES : 0), 1024); /* else sums take the ring's place */
  p.stages = (int32_t)((device->shared_memory - p.x_ring) / (LPG_DEQUANT_X_BYTES + LPG_DEQUANT_W_BYTES));
  if (p.stages > LPG_DEQUANT_MOST_STAGES) p.stages = LPG_DEQUANT_MOST_STAGES;
  p.w_ring = p.x_ring + p.stages * LPG_DEQUANT_X_BYTES;
  p.shared_bytes = p.w_ring + p.stages * LPG_DEQUANT_W_BYTES;
  *plan = p;
  return p.k_stages > 0 && p.stages >= (wgmma ? LPG_DEQUANT_PRODUCER_WARPS : 2) &&
         (p.n_tiles == 0 || lpg_dequant_most_tiles(&p) > 0);
}

/* The cheapest plan of all with this frame. */
static inline int lpg_dequant_make_plan(const lpg_packed *weights, int64_t m, int x_bytes, lpg_expand_scaling scaling,
                                        int wgmma, const lpg_device *device, lpg_dequant_plan *plan) {
  lpg_dequant_plan p;
  const int64_t tile_m = (m + LPG_DEQUANT_TILE_M - 1) / LPG_DEQUANT_TILE_M;
  const int32_t most_slices = wgmma && (x_bytes == 2 || scaling.in_table) ? 8 : 1; /* sums of integers stay integers */
  double least = -1.0;
  if (!lpg_dequant_frame(weights, m, x_bytes, scaling, wgmma, device, plan)) return 0;
  p = *plan;
  const int32_t sums = p.sums, most_tiles = lpg_dequant_most_tiles(&p);
  for (p.multicast = wgmma && tile_m > 1 ? 2 : 1; p.multicast >= 1;
       p.multicast--) { /* of equals the one that reads less */
    for (p.split_k = 1; p.split_k <= most_slices && p.split_k <= p.k_stages; p.split_k++) {
      p.cluster = p.multicast * p.split_k;
      p.clusters = lpg_dequant_clusters(p.cluster, device);
      if (p.clusters < 1) continue;
      p.m_tiles = (int32_t)((tile_m + p.multicast - 1) / p.multicast);
      p.persistent = wgmma && p.split_k == 1;
      p.sums = wgmma && p.split_k == 1 ? sums : p.x_ring;
      lpg_dequant_take_cheaper(p, most_tiles, device, plan, &least);
    }
  }
  return 1;
}

#endif
