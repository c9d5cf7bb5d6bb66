// Sums over ranks on the host, of fp16.
#include <cuda_fp16.h>

#include "engine_cuda.h"

void add_halves(const char *const *parts, int ranks, int64_t count, void *out) {
  __half *sum = static_cast<__half *>(out);
  for (int64_t i = 0; i < count; i++) {
    float all = 0.0f;
    for (int r = 0; r < ranks; r++) all += __half2float(reinterpret_cast<const __half *>(parts[r])[i]);
    sum[i] = __float2half(all);  // once
  }
}
