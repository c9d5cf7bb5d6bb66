/* What lets one definition serve C11 on the host and CUDA C++ in kernels, at run time and at compile time. */
#ifndef LPG_LAYOUTS_BASE_H
#define LPG_LAYOUTS_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define LPG_FN static constexpr __host__ __device__ inline
#elif defined(__cplusplus)
#define LPG_FN static constexpr inline
#else
#define LPG_FN static inline
#endif

#ifdef __cplusplus
#define LPG_EXTERN_C extern "C"
#else
#define LPG_EXTERN_C
#endif

/* Zero initialisation of a struct or an array, in both languages. */
#ifdef __cplusplus
#define LPG_ZERO \
  {}
#else
#define LPG_ZERO \
  { 0 }
#endif

LPG_FN int64_t lpg_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
LPG_FN int64_t lpg_round_up(int64_t a, int64_t b) { return lpg_ceil_div(a, b) * b; }

#endif
