// Causal attention with grouped queries: one block of threads for a head and one token, or for a head and 16 tokens on
// the tensor cores. All scores of a query stand in shared memory, which bounds the context: to some 900 tokens
// on the GPUs that have least of it.
#include <cuda_fp16.h>
#include <mma.h>

#include "block_cuda.h"

namespace {

struct tensors {
  const __half *heads_in, *keys, *values;
  __half *heads_out;
  const int32_t *position;
  int heads, kv_heads, context;
};

__device__ const __half *query(const tensors &t, int row, int head) {
  return t.heads_in + ((int64_t)row * (t.heads + 2 * t.kv_heads) + head) * HEAD;
}

__device__ float warp_sum(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
  return v;
}

__device__ float warp_max(float v) {
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
  return v;
}

// ---- one token: 16 threads have the 128 numbers of a key or value, 8 each ----

const int THREADS = 1024, TEAM = 16, TEAMS = THREADS / TEAM, EACH = HEAD / TEAM, BATCH = 4;

__device__ void unpack(uint4 bits, float *to) {
  const __half2 *pair = reinterpret_cast<const __half2 *>(&bits);
  for (int i = 0; i < EACH / 2; i++) {
    float2 v = __half22float2(pair[i]);
    to[2 * i] = v.x;
    to[2 * i + 1] = v.y;
  }
}

// Keys or values number j, j + TEAMS, ...: all are on their way before the first is used. The last one stands for those
// beyond it.
__device__ void load_batch(const __half *from, int j, int last, int step, uint4 *batch) {
#pragma unroll
  for (int i = 0; i < BATCH; i++) {
    batch[i] = *reinterpret_cast<const uint4 *>(from + (int64_t)min(j + i * TEAMS, last) * step);
  }
}

__global__ void __launch_bounds__(THREADS) one_kernel(tensors t) {
  extern __shared__ float weight[];  // of each token that is seen
  __shared__ float partial[THREADS / 32][HEAD], sums[THREADS / 32];
  int head = blockIdx.x, team = threadIdx.x / TEAM, at = threadIdx.x % TEAM * EACH, warp = threadIdx.x / 32;
  int seen = *t.position + 1, step = t.kv_heads * HEAD, kv = head / (t.heads / t.kv_heads) * HEAD;
  const __half *keys = t.keys + kv + at, *values = t.values + kv + at;

  uint4 batch[BATCH];
  float q[EACH], v[EACH];
  unpack(*reinterpret_cast<const uint4 *>(query(t, 0, head) + at), q);
  for (int base = 0; base < seen; base += BATCH * TEAMS) {  // the same for all threads: shuffles need whole warps
    load_batch(keys, base + team, seen - 1, step, batch);
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      int j = base + team + i * TEAMS;
      float sum = 0.0f;
      unpack(batch[i], v);
      for (int c = 0; c < EACH; c++) sum += q[c] * v[c];
      for (int lanes = TEAM / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
      if (at == 0 && j < seen) weight[j] = sum * rsqrtf(HEAD);
    }
  }
  __syncthreads();

  float most = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x % 32; j < seen; j += 32) most = fmaxf(most, weight[j]);
  most = warp_max(most);
  __syncthreads();  // every warp has read the scores
  for (int j = threadIdx.x; j < seen; j += THREADS) sum += (weight[j] = __expf(weight[j] - most));
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[warp] = sum;
  __syncthreads();

  float out[EACH] = {};
  for (int base = 0; base < seen; base += BATCH * TEAMS) {
    load_batch(values, base + team, seen - 1, step, batch);
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      int j = base + team + i * TEAMS;
      float w = j < seen ? weight[j] : 0.0f;
      unpack(batch[i], v);
      for (int c = 0; c < EACH; c++) out[c] += w * v[c];
    }
  }
  for (int i = 0; i < EACH; i++) {
    out[i] += __shfl_xor_sync(~0u, out[i], TEAM);  // the two teams of a warp
    if (threadIdx.x % 32 < TEAM) partial[warp][at + i] = out[i];
  }
  __syncthreads();
  if (threadIdx.x < HEAD) {
    float total = 0.0f, all = 0.0f;
    for (int w = 0; w < THREADS / 32; w++) {
      total += partial[w][threadIdx.x];
      all += sums[w];
    }
    t.heads_out[head * HEAD + threadIdx.x] = __float2half(total / all);
  }
}

// ---- 16 tokens: tiles of 16 x 16 ----

const int TILE = 16, WARPS = 4;
using namespace nvcuda;
using left_tile = wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major>;
using sum_tile = wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float>;

// score = Q K^T: a warp takes every fourth tile of keys.
__device__ void multiply_keys(const __half *q, int q_step, const __half *keys, int step, int tiles, float *score,
                              int ld) {
  left_tile left[HEAD / TILE];
  for (int i = 0; i < HEAD / TILE; i++) wmma::load_matrix_sync(left[i], q + i * TILE, q_step);
  for (int tile = threadIdx.x / 32; tile < tiles; tile += WARPS) {
    wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::col_major> right;
    sum_tile sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < HEAD / TILE; i++) {
      wmma::load_matrix_sync(right, keys + (int64_t)tile * TILE * step + i * TILE, step);
      wmma::mma_sync(sum, left[i], right, sum);
    }
    wmma::store_matrix_sync(score + tile * TILE, sum, ld, wmma::mem_row_major);
  }
}

// Row r sees first + r + 1 tokens; the others get weight 0. Weights are not divided by their sum yet.
__device__ void soften(const float *score, __half *weight, float *sums, int ld, int columns, int first) {
  for (int row = threadIdx.x / 32; row < TILE; row += WARPS) {
    int seen = min(first + row + 1, columns);
    float most = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x % 32; j < seen; j += 32) most = fmaxf(most, score[row * ld + j]);
    most = warp_max(most);
    for (int j = threadIdx.x % 32; j < columns; j += 32) {
      float w = j < seen ? __expf((score[row * ld + j] - most) * rsqrtf(HEAD)) : 0.0f;
      weight[row * ld + j] = __float2half(w);
      sum += w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[row] = sum;
  }
}

// out = weights by values: a warp has two tiles of the head.
__device__ void multiply_values(const __half *weight, int ld, const __half *values, int step, int tiles, float *out) {
  const int MINE = HEAD / TILE / WARPS;
  int first = threadIdx.x / 32 * MINE * TILE;
  left_tile left;
  wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::row_major> right;
  sum_tile sum[MINE];
  for (int i = 0; i < MINE; i++) wmma::fill_fragment(sum[i], 0.0f);
#pragma unroll 4
  for (int tile = 0; tile < tiles; tile++) {
    wmma::load_matrix_sync(left, weight + tile * TILE, ld);
    for (int i = 0; i < MINE; i++) {
      wmma::load_matrix_sync(right, values + (int64_t)tile * TILE * step + first + i * TILE, step);
      wmma::mma_sync(sum[i], left, right, sum[i]);
    }
  }
  for (int i = 0; i < MINE; i++) {
    wmma::store_matrix_sync(out + first + i * TILE, sum[i], HEAD, wmma::mem_row_major);
  }
}

// The last tile may reach beyond the tokens there are: rows and cache are whole tiles of finite numbers.
__global__ void __launch_bounds__(WARPS * 32) many_kernel(tensors t, int m) {
  extern __shared__ __align__(32) char shared[];
  __shared__ float sums[TILE];
  __shared__ __align__(32) float out[TILE * HEAD];
  int ld = t.context + 8;  // rows in different banks
  float *score = reinterpret_cast<float *>(shared);
  __half *weight = reinterpret_cast<__half *>(score + TILE * ld);
  int row = blockIdx.x * TILE, head = blockIdx.y, first = *t.position + row;
  int step = t.kv_heads * HEAD, kv = head / (t.heads / t.kv_heads) * HEAD;
  int tiles = min((first + TILE + TILE - 1) / TILE, t.context / TILE);

  multiply_keys(query(t, row, head), (t.heads + 2 * t.kv_heads) * HEAD, t.keys + kv, step, tiles, score, ld);
  __syncthreads();
  soften(score, weight, sums, ld, tiles * TILE, first);
  __syncthreads();
  multiply_values(weight, ld, t.values + kv, step, tiles, out);
  __syncthreads();
  for (int r = 0; r < min(TILE, m - row); r++) {
    float number = out[r * HEAD + threadIdx.x] / sums[r];
    t.heads_out[((int64_t)(row + r) * t.heads + head) * HEAD + threadIdx.x] = __float2half(number);
  }
}

static_assert(WARPS * 32 == HEAD, "a thread writes one number of a head");

tensors tensors_of(const block *b) {
  return tensors{(const __half *)b->heads_in,
                 (const __half *)b->keys,
                 (const __half *)b->values,
                 (__half *)b->heads_out,
                 b->position,
                 (int)b->shape.heads,
                 (int)b->shape.kv_heads,
                 (int)b->context};
}

}  // namespace

void attend_one(const block *b) {
  unsigned bytes = (unsigned)(b->context * sizeof(float));
  one_kernel<<<(unsigned)b->shape.heads, THREADS, bytes, cuda_stream>>>(tensors_of(b));
  CUDA(cudaGetLastError());
}

void attend_many(const block *b, int64_t m) {
  int bytes = TILE * (int)(b->context + 8) * (int)(sizeof(float) + sizeof(__half));
  CUDA(cudaFuncSetAttribute(many_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  dim3 grid((unsigned)((m + TILE - 1) / TILE), (unsigned)b->shape.heads);
  many_kernel<<<grid, WARPS * 32, bytes, cuda_stream>>>(tensors_of(b), (int)m);
  CUDA(cudaGetLastError());
}
