// Norm, rotation and gate on the GPU, fp16 in memory and fp32 in registers. Plain kernels: the example is about the
// matrix products between them.
#include <cuda_fp16.h>
#include <stdlib.h>

#include "block_cuda.h"

namespace {

// ---- memory ----

void *allocate(size_t bytes) {
  void *memory;
  CUDA(cudaMalloc(&memory, bytes));
  CUDA(cudaMemsetAsync(memory, 0, bytes, cuda_stream));
  return memory;
}

void release(void *memory) { CUDA(cudaFree(memory)); }

void upload(void *to, const float *from, int64_t count) {
  __half *half = static_cast<__half *>(get_memory(count * sizeof *half));
  for (int64_t i = 0; i < count; i++) half[i] = __float2half(from[i]);
  CUDA(cudaMemcpyAsync(to, half, count * sizeof *half, cudaMemcpyHostToDevice, cuda_stream));
  cuda_wait();
  free(half);
}

void download(float *to, const void *from, int64_t count) {
  __half *half = static_cast<__half *>(get_memory(count * sizeof *half));
  CUDA(cudaMemcpyAsync(half, from, count * sizeof *half, cudaMemcpyDeviceToHost, cuda_stream));
  cuda_wait();
  for (int64_t i = 0; i < count; i++) to[i] = __half2float(half[i]);
  free(half);
}

void set_position(const block *b, int32_t position) {
  CUDA(cudaMemcpyAsync(b->position, &position, sizeof position, cudaMemcpyHostToDevice, cuda_stream));
}

// ---- kernels: pairs of numbers, n2 of them ----

const int THREADS = 512;

__global__ void norm_kernel(const __half2 *x, const __half2 *gain, __half2 *y, int n2) {
  __shared__ float warp_sum[THREADS / 32];
  x += (int64_t)blockIdx.x * n2;
  y += (int64_t)blockIdx.x * n2;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n2; i += THREADS) {
    float2 v = __half22float2(x[i]);
    sum += v.x * v.x + v.y * v.y;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < THREADS / 32; i++) sum += warp_sum[i];
  float factor = rsqrtf(sum / (2.0f * n2) + 1e-5f);
  for (int i = threadIdx.x; i < n2; i += THREADS) {
    float2 v = __half22float2(x[i]), g = __half22float2(gain[i]);
    y[i] = __floats2half2_rn(v.x * factor * g.x, v.y * factor * g.y);
  }
}

// A block of threads for one head of one token; number i of a head turns with number i + HEAD / 2.
__global__ void rope_kernel(__half *heads_in, __half *keys, __half *values, const int32_t *first, int heads,
                            int kv_heads) {
  int head = blockIdx.x, row = blockIdx.y, i = threadIdx.x, position = *first + row;
  __half *in = heads_in + ((int64_t)row * (heads + 2 * kv_heads) + head) * HEAD, *out = in;
  if (head >= heads + kv_heads) {
    out = values + ((int64_t)position * kv_heads + head - heads - kv_heads) * HEAD;
    out[i] = in[i];
    out[i + HEAD / 2] = in[i + HEAD / 2];
    return;
  }
  if (head >= heads) out = keys + ((int64_t)position * kv_heads + head - heads) * HEAD;
  float s, c, a = __half2float(in[i]), b = __half2float(in[i + HEAD / 2]);
  sincosf(position * powf(500000.0f, -2.0f * i / HEAD), &s, &c);
  out[i] = __float2half(a * c - b * s);
  out[i + HEAD / 2] = __float2half(b * c + a * s);
}

__device__ float silu(float x) { return x / (1.0f + __expf(-x)); }

__global__ void swiglu_kernel(const __half2 *gate_and_up, __half2 *gated, int n2) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  int64_t row = blockIdx.y;
  if (i >= n2) return;
  float2 gate = __half22float2(gate_and_up[row * 2 * n2 + i]), up = __half22float2(gate_and_up[row * 2 * n2 + n2 + i]);
  gated[row * n2 + i] = __floats2half2_rn(silu(gate.x) * up.x, silu(gate.y) * up.y);
}

__global__ void next_token_kernel(__half2 *x, const __half2 *in, __half2 *out, int32_t *position, int first, int steps,
                                  int n2) {
  int step = *position - first;
  for (int i = threadIdx.x; i < n2; i += THREADS) {
    out[(int64_t)step * n2 + i] = x[i];
    if (step + 1 < steps) x[i] = in[(int64_t)(step + 1) * n2 + i];
  }
  __syncthreads();  // everybody has read the position
  if (threadIdx.x == 0) *position += 1;
}

// ---- launches ----

const __half2 *pairs(const void *memory) { return static_cast<const __half2 *>(memory); }
__half2 *pairs(void *memory) { return static_cast<__half2 *>(memory); }

void rms_norm(const block *b, int64_t m, const void *x, const void *gain, void *y) {
  norm_kernel<<<(unsigned)m, THREADS, 0, cuda_stream>>>(pairs(x), pairs(gain), pairs(y), (int)b->shape.hidden / 2);
  CUDA(cudaGetLastError());
}

void rope(const block *b, int64_t m) {
  int heads = (int)b->shape.heads, kv_heads = (int)b->shape.kv_heads;
  dim3 grid((unsigned)(heads + 2 * kv_heads), (unsigned)m);
  rope_kernel<<<grid, HEAD / 2, 0, cuda_stream>>>((__half *)b->heads_in, (__half *)b->keys, (__half *)b->values,
                                                  b->position, heads, kv_heads);
  CUDA(cudaGetLastError());
}

void attention(const block *b, int64_t m) {
  if (m == 1) {
    attend_one(b);
  } else {
    attend_many(b, m);
  }
}

void swiglu(const block *b, int64_t m) {
  int n2 = (int)b->shape.ffn / 2;
  dim3 grid((unsigned)((n2 + THREADS - 1) / THREADS), (unsigned)m);
  swiglu_kernel<<<grid, THREADS, 0, cuda_stream>>>(pairs(b->gate_and_up), pairs(b->gated), n2);
  CUDA(cudaGetLastError());
}

}  // namespace

void next_token(const block *b, const void *in, void *out, int32_t first, int32_t steps) {
  next_token_kernel<<<1, THREADS, 0, cuda_stream>>>(pairs(b->x), pairs(in), pairs(out), b->position, first, steps,
                                                    (int)b->shape.hidden / 2);
  CUDA(cudaGetLastError());
}

const machine machine_cuda = {LPGEMM_F16,   sizeof(__half), allocate, release,   upload, download,
                              set_position, rms_norm,       rope,     attention, swiglu};
