/* The oracle: decode, multiply, add, in fp64. Sums of integers are exact while they are below
 * 2^53; those that end in int32 always are. */
#include "cpu.h"
#include "epilogue.h"
#include "weight.h"

enum { CHUNK_K = 1024, BLOCK_M = 64 };

typedef struct scratch {
  double w[CHUNK_K][LPG_TILE_ROWS];
  double x[CHUNK_K];
  double row[CHUNK_K];
  double sum[BLOCK_M][LPG_TILE_ROWS];
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* Adds the products of columns [first, first + count) for 16 rows of W and rows [m0, m1) of X. */
static void add_columns(const lpg_call *call, int64_t row_tile, int64_t m0, int64_t m1, int64_t first, int64_t count,
                        scratch *s) {
  for (int r = 0; r < LPG_TILE_ROWS; r++) {
    lpg_weight_row(call->problem.weights, call->section, row_tile * LPG_TILE_ROWS + r, first, count, 1.0f, s->row);
    for (int64_t k = 0; k < count; k++) s->w[k][r] = s->row[k];
  }
  for (int64_t m = m0; m < m1; m++) {
    double *sum = s->sum[m - m0];
    for (int64_t k = 0; k < count; k++) {
      s->x[k] = (double)lpg_load(call->problem.x_type, call->x, m * call->ldx + first + k);
    }
    for (int64_t k = 0; k < count; k++) {
      for (int r = 0; r < LPG_TILE_ROWS; r++) sum[r] += s->x[k] * s->w[k][r];
    }
  }
}

/* One tile of 16 rows of W and at most BLOCK_M rows of X. */
static void run_block(void *context, int64_t index, void *memory) {
  const lpg_call *call = context;
  const lpg_packed *packed = call->problem.weights;
  scratch *s = memory;
  int64_t row_tile = index % packed->row_tiles, m0 = index / packed->row_tiles * BLOCK_M;
  int64_t m1 = m0 + BLOCK_M < call->problem.m ? m0 + BLOCK_M : call->problem.m;
  int64_t columns = call->skip_product ? 0 : packed->desc.k;
  memset(s->sum, 0, sizeof s->sum);
  for (int64_t k = 0; k < columns; k += CHUNK_K) {
    add_columns(call, row_tile, m0, m1, k, columns - k < CHUNK_K ? columns - k : CHUNK_K, s);
  }
  for (int64_t m = m0; m < m1; m++) {
    for (int r = 0; r < LPG_PAIR_ROWS && call->problem.paired; r++) {
      const int64_t output = row_tile * LPG_PAIR_ROWS + r;
      const double *sum = s->sum[m - m0];
      if (output < packed->outputs) lpgemm_i_epilogue_pair(call, m, output, sum[r], sum[r + LPG_PAIR_ROWS]);
    }
    for (int r = 0; r < LPG_TILE_ROWS && !call->problem.paired; r++) {
      int64_t n = row_tile * LPG_TILE_ROWS + r;
      if (n < packed->desc.n) lpgemm_i_epilogue(call, m, n, s->sum[m - m0][r]);
    }
  }
}

lpgemm_status_t lpgemm_i_cpu_reference(const lpg_call *call) {
  lpg_call copy = *call;
  int64_t blocks = lpg_ceil_div(call->problem.m, BLOCK_M) * call->problem.weights->row_tiles;
  return lpgemm_i_parallel(call->pool, blocks, run_block, &copy);
}
