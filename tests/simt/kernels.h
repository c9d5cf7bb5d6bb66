/* CUDA C++ for a host compiler: read before every .cu file (-include). What kernels use of the language and of its
 * intrinsics, and their launches, done by simt.h. */
#ifndef SIMT_KERNELS_H
#define SIMT_KERNELS_H

#include <cuda_runtime.h>
/* The types and conversions of small floats serve the host too. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>

#include <type_traits>

#include "simt.h"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __noinline__
#define __shared__ static /* CTAs of kernels that have such run one after the other */
#define __launch_bounds__(...)
#define __grid_constant__
#define __noinline__ __attribute__((noinline))

#define threadIdx (simt::now->index)
#define blockIdx (simt::now->own_cta->index)
static const simt::place &blockDim = simt::cta_size, &gridDim = simt::grid_size;

/* ---- meeting ---- */

inline void __syncthreads() {
  simt::cta &own = *simt::now->own_cta;
  simt::meet("__syncthreads()", own.all, own.live, true);
}
inline void __syncwarp(unsigned mask = ~0u) {
  if (mask != ~0u) simt::fail("__syncwarp() of a part of a warp");
  simt::meet_warp("__syncwarp()");
}

template <class T>
inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const int own = simt::now->lane;
  return simt::exchange("__shfl_sync()", value)[own / width * width + lane % width];
}
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int mask) {
  return simt::exchange("__shfl_xor_sync()", value)[simt::now->lane ^ mask];
}
template <class T>
inline T __shfl_down_sync(unsigned, T value, int by) {
  const int from = simt::now->lane + by;
  return simt::exchange("__shfl_down_sync()", value)[from < 32 ? from : simt::now->lane];
}
template <class T>
inline T __shfl_up_sync(unsigned, T value, int by) {
  const int from = simt::now->lane - by;
  return simt::exchange("__shfl_up_sync()", value)[from >= 0 ? from : simt::now->lane];
}

template <class T, class Join>
inline T simt_reduce(const char *what, T value, Join join) {
  const auto values = simt::exchange(what, value);
  T result = values[0];
  for (int i = 1; i < 32; i++) result = join(result, values[i]);
  return result;
}
template <class T>
inline T __reduce_add_sync(unsigned, T value) {
  return simt_reduce("__reduce_add_sync()", value, [](T a, T b) { return (T)((unsigned)a + (unsigned)b); });
}
template <class T>
inline T __reduce_max_sync(unsigned, T value) {
  return simt_reduce("__reduce_max_sync()", value, [](T a, T b) { return a > b ? a : b; });
}
template <class T>
inline T __reduce_min_sync(unsigned, T value) {
  return simt_reduce("__reduce_min_sync()", value, [](T a, T b) { return a < b ? a : b; });
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  return simt_reduce("__reduce_or_sync()", value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __ballot_sync(unsigned, int is_set) {
  const auto values = simt::exchange("__ballot_sync()", is_set);
  unsigned bits = 0;
  for (int i = 0; i < 32; i++) bits |= (unsigned)(values[i] != 0) << i;
  return bits;
}
template <class T>
inline unsigned __match_any_sync(unsigned, T value) {
  const auto values = simt::exchange("__match_any_sync()", value);
  unsigned bits = 0;
  for (int i = 0; i < 32; i++) bits |= (unsigned)(values[i] == value) << i;
  return bits;
}

/* ---- memory ---- */

template <class T>
inline T simt_load(const T *from) {
  if ((uintptr_t)from % sizeof(T) != 0) simt::fail("a load of %zu bytes at %p", sizeof(T), (const void *)from);
  return *from;
}
template <class T>
inline T __ldg(const T *from) {
  return simt_load(from);
}
template <class T>
inline T __ldcg(const T *from) {
  return simt_load(from);
}
template <class T>
inline T __ldcs(const T *from) {
  return simt_load(from);
}
template <class T>
inline void __stcs(T *to, T value) {
  *to = value;
}
template <class T>
inline void __stcg(T *to, T value) {
  *to = value;
}

template <class T, class Change>
inline T simt_atomic(T *at, Change change) {
  const T before = *at;
  *at = change(before);
  return before;
}
template <class T>
inline T atomicAdd(T *at, std::common_type_t<T> value) {
  return simt_atomic(at, [=](T old) { return (T)(old + value); });
}
template <class T>
inline T atomicMax(T *at, std::common_type_t<T> value) {
  return simt_atomic(at, [=](T old) { return old > value ? old : value; });
}
template <class T>
inline T atomicMin(T *at, std::common_type_t<T> value) {
  return simt_atomic(at, [=](T old) { return old < value ? old : value; });
}
template <class T>
inline T atomicOr(T *at, std::common_type_t<T> value) {
  return simt_atomic(at, [=](T old) { return (T)(old | value); });
}

/* ---- numbers ---- */

template <class To, class From>
inline To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float x) { return simt_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
inline float __int_as_float(int x) { return simt_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
inline int __double2hiint(double x) { return (int)(simt_bits<uint64_t>(x) >> 32); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline int __float2int_rn(float x) {
  return isnan(x) ? 0 : x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (int)rintf(x);
}
inline unsigned __float2uint_ru(float x) { return !(x > 0.0f) ? 0 : x >= 0x1p32f ? UINT32_MAX : (unsigned)ceilf(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = (uint64_t)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned which = selector >> 4 * i & 0xf, byte = (unsigned)(bytes >> 8 * (which & 7)) & 0xff;
    result |= (which & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; i++) sum += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
  return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int i = 0; i < 4; i++) sum += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
  return sum;
}
inline unsigned __vmaxu2(unsigned a, unsigned b) {
  const unsigned low = a & 0xffff, other = b & 0xffff;
  return (low > other ? low : other) | (a >> 16 > b >> 16 ? a & 0xffff0000u : b & 0xffff0000u);
}
inline unsigned __vabsdiffu4(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int i = 0; i < 32; i += 8) {
    const int difference = (int)(a >> i & 0xff) - (int)(b >> i & 0xff);
    result |= (unsigned)(difference < 0 ? -difference : difference) << i;
  }
  return result;
}
inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) {
  unsigned result = 0;
  for (int i = 0; i < 32; i += 16) {
    const int16_t sum = (int16_t)((int16_t)(a >> i) + (int16_t)(b >> i)), other = (int16_t)(c >> i);
    result |= (unsigned)(uint16_t)(sum > other ? sum : other) << i;
  }
  return result;
}
template <class T>
inline T min(T a, std::common_type_t<T> b) {
  return a < b ? a : b;
}
template <class T>
inline T max(T a, std::common_type_t<T> b) {
  return a > b ? a : b;
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__double2bfloat16((double)__bfloat162float(a.x) * __bfloat162float(b.x) + __bfloat162float(c.x)),
          __double2bfloat16((double)__bfloat162float(a.y) * __bfloat162float(b.y) + __bfloat162float(c.y))};
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__double2half((double)__half2float(a.x) * __half2float(b.x) + __half2float(c.x)),
          __double2half((double)__half2float(a.y) * __half2float(b.y) + __half2float(c.y))};
}

/* ---- launches: in place of src/cuda/launch.cuh ---- */

#define LPG_CUDA_LAUNCH_CUH
#include "../../src/status.h"

namespace lpg {
namespace {

template <class... Args>
inline lpgemm_status_t simt_launch(const void *kernel, dim3 grid, int cluster, int threads, size_t shared_bytes,
                                   const Args &...args) {
  simt::run({{grid.x, grid.y, grid.z}, cluster, threads, shared_bytes, [&] { ((void (*)(Args...))kernel)(args...); }});
  return LPGEMM_SUCCESS;
}

template <class Args>
inline lpgemm_status_t launch_cluster(const void *kernel, dim3 grid, int cluster, int threads, size_t shared_bytes,
                                      void *, const Args &args, bool = false) {
  return simt_launch(kernel, grid, cluster, threads, shared_bytes, args);
}

template <class... Args>
inline lpgemm_status_t launch(const void *kernel, dim3 grid, int threads, size_t shared_bytes, void *,
                              const Args &...args) {
  return simt_launch(kernel, grid, 1, threads, shared_bytes, args...);
}

}  // namespace
}  // namespace lpg

#include "prim.h"

#endif
