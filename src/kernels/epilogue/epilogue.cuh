/* The epilogue of all CUDA kernels: Y = activation(alpha * x_scale * row_scale * global_scale * sum + beta * C + bias),
 * computed in fp32 and rounded once. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../../internal.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct epilogue_args {
  void *y;
  const void *c; /* NULL: beta is 0 */
  const void *bias;
  const float *x_scale;
  const float *row_scales; /* of rows of W; NULL: none */
  int64_t ldy, ldc;
  lpgemm_dtype_t y_type, bias_type, scalar_type;
  lpgemm_activation_t activation;
  int x_scale_per_row;
  int skip_product;
  int only_scales; /* Y = alpha * global_scale * x_scale * sum with alpha from the host: the common case */
  int only_sums;   /* the same, perhaps with beta * C and a bias; beta from the host */
  int vector;      /* elements of Y and C that are aligned together at every row: 8 if they have 16 bits, 4 or 1 */
  int paired;      /* rows of W are gates and ups of outputs: store_pairs.cuh */
  lpg_gate gate;
  float alpha, beta, global_scale;
  const void *device_alpha, *device_beta;
};

inline epilogue_args make_epilogue(const lpg_call &call) {
  epilogue_args e = {};
  e.y = call.y;
  e.c = call.c;
  e.bias = call.bias;
  e.x_scale = call.x_scale;
  e.row_scales = call.row_scales;
  e.ldy = call.ldy;
  e.ldc = call.ldc;
  e.y_type = call.problem.y_type;
  e.bias_type = call.bias_type;
  e.scalar_type = call.scalar_type;
  e.activation = call.activation;
  e.x_scale_per_row = call.problem.x_scale_mode == LPGEMM_X_SCALE_ROW;
  e.skip_product = call.skip_product;
  e.alpha = call.alpha;
  e.beta = call.beta;
  e.global_scale = call.problem.weights->desc.global_scale;
  e.device_alpha = call.device_alpha;
  e.device_beta = call.device_beta;
  e.paired = call.problem.paired;
  e.gate = call.gate;
  if (e.alpha == 0.0f && !e.device_alpha) { /* no product, so nothing that it is multiplied by counts, NaN or not */
    e.row_scales = e.x_scale = NULL;
    e.global_scale = 1.0f;
  }
  if (call.problem.experts > 0) { /* each has its own: kernels of stacks put it on the rows' factors */
    e.global_scale = 1.0f;
    e.row_scales = NULL;
  }
  e.only_sums = !e.paired && !e.skip_product && !e.device_alpha && !e.device_beta && e.alpha != 0.0f &&
                e.activation == LPGEMM_ACTIVATION_NONE && !e.row_scales;
  e.only_scales = e.only_sums && !e.c && !e.bias;
  const int bytes = lpg_bytes(e.y_type);
  const uint64_t places = (uintptr_t)e.y | e.ldy * bytes | (e.c ? (uintptr_t)e.c | e.ldc * bytes : 0);
  e.vector = bytes == 2 && places % 16 == 0 ? 8 : places % (4 * bytes) == 0 ? 4 : 1;
  return e;
}

/* Moves the arguments on by `rows` rows of X: for the next pass. */
inline void skip_rows(epilogue_args &e, int64_t rows) {
  const int64_t bytes = lpg_bytes(e.y_type);
  e.y = (uint8_t *)e.y + rows * e.ldy * bytes;
  if (e.c) e.c = (const uint8_t *)e.c + rows * e.ldc * bytes;
  if (e.x_scale && e.x_scale_per_row) e.x_scale += rows;
}

/* An element of C or of a bias: only these three types, so that kernels carry no code for others. */
__device__ inline float load_real(lpgemm_dtype_t type, const void *array, int64_t i) {
  switch (type) {
    case LPGEMM_F32: return ((const float *)array)[i];
    case LPGEMM_F16: return __half2float(((const __half *)array)[i]);
    default: return __bfloat162float(((const __nv_bfloat16 *)array)[i]);
  }
}

__device__ inline float read_scalar(const void *pointer, lpgemm_dtype_t type, float value) {
  if (!pointer) return value;
  return type == LPGEMM_I32 ? (float)*(const int32_t *)pointer : load_real(type, pointer, 0);
}

__device__ inline float alpha_of(const epilogue_args &e) { return read_scalar(e.device_alpha, e.scalar_type, e.alpha); }
__device__ inline float beta_of(const epilogue_args &e) { return read_scalar(e.device_beta, e.scalar_type, e.beta); }

/* False if neither X nor W may be read (alpha is 0, or there is no product). */
__device__ inline bool reads_product(const epilogue_args &e) { return !e.skip_product && alpha_of(e) != 0.0f; }

/* The power of e in gelu_tanh(v) = v / (1 + e^power). */
__device__ inline float tanh_power(float v) { return -1.59576912f * v * (1.0f + 0.044715f * v * v); }

/* v / (1 + e^power): SILU with power -v; GELU_TANH, as v (1 + tanh u) / 2 without cancellation. */
__device__ inline float gated(float v, float power) { return v == -INFINITY ? 0.0f : v / (1.0f + expf(power)); }

__device__ inline float activate(float v, lpgemm_activation_t activation) {
  static_assert(LPG_ACTIVATION_COUNT == 5, "an activation without a line here would be none");
  switch (activation) {
    case LPGEMM_ACTIVATION_RELU: return v < 0.0f ? 0.0f : v; /* keeps NaN */
    case LPGEMM_ACTIVATION_GELU_ERF: return v == -INFINITY ? 0.0f : 0.5f * v * erfcf(-0.70710678f * v);
    case LPGEMM_ACTIVATION_GELU_TANH: return gated(v, tanh_power(v));
    case LPGEMM_ACTIVATION_SILU: return gated(v, -v);
    default: return v; /* NONE: see the assertion */
  }
}

__device__ inline void store_rounded(lpgemm_dtype_t type, void *array, int64_t i, float v) {
  switch (type) {
    case LPGEMM_F32: ((float *)array)[i] = v; break;
    case LPGEMM_F16: ((__half *)array)[i] = __float2half_rn(v); break;
    default: ((__nv_bfloat16 *)array)[i] = __float2bfloat16_rn(v); break;
  }
}

/* The scale of row m of X. */
__device__ inline float x_scale_of(const epilogue_args &e, int64_t m) {
  return e.x_scale ? e.x_scale[e.x_scale_per_row ? m : 0] : 1.0f;
}

/* The epilogue for one column of Y (one row of W), an output at a time: what the column needs is read once. */
struct column_epilogue {
  const epilogue_args &e;
  int64_t n;
  float alpha, beta, bias, scale; /* scale: of the whole matrix and of the row of W */
  bool product, adds_c;

  __device__ column_epilogue(const epilogue_args &e, int64_t n) : column_epilogue(e, n, n) {}

  /* bias_row: where the column's bias lies. */
  __device__ column_epilogue(const epilogue_args &e, int64_t n, int64_t bias_row)
      : e(e), n(n), alpha(e.alpha), beta(0.0f), bias(0.0f), scale(e.global_scale) {
    product = true;
    adds_c = false;
    if (e.only_scales) return;
    alpha = alpha_of(e);
    beta = beta_of(e);
    product = !e.skip_product && alpha != 0.0f;
    adds_c = e.c && beta != 0.0f;
    if (e.bias) bias = load_real(e.bias_type, e.bias, bias_row);
    if (e.row_scales) scale *= e.row_scales[n];
  }

  /* No multiplication is fused with an addition except beta * C, so all kernels give the same bits. */
  __device__ void store(int64_t m, float sum) const {
    float v = product ? __fmul_rn(__fmul_rn(alpha, sum * scale), x_scale_of(e, m)) : 0.0f;
    if (adds_c) v = fmaf(beta, load_real(e.y_type, e.c, m * e.ldc + n), v);
    if (e.bias) v += bias;
    store_rounded(e.y_type, e.y, m * e.ldy + n, activate(v, e.activation));
  }
};

__device__ inline void store_real(const epilogue_args &e, int64_t m, int64_t n, float sum) {
  if (e.only_scales) {
    store_rounded(e.y_type, e.y, m * e.ldy + n, e.alpha * (sum * e.global_scale) * x_scale_of(e, m));
    return;
  }
  column_epilogue(e, n).store(m, sum);
}

/* Integer output: alpha and beta are 0 or 1. */
__device__ inline void store_integer(const epilogue_args &e, int64_t m, int64_t n, int32_t sum) {
  uint32_t v = reads_product(e) ? (uint32_t)sum : 0u;
  if (e.c && beta_of(e) != 0.0f) v += (uint32_t)((const int32_t *)e.c)[m * e.ldc + n];
  ((int32_t *)e.y)[m * e.ldy + n] = (int32_t)v;
}

}  // namespace
}  // namespace lpg
