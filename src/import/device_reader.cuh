/* The functions of at.h as the classes that pack_rows_kernel takes. */
#pragma once

#include "../pack/pack_rows.cuh"
#include "at.h"
#include "device.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

#define LPG_FILE_CODES(NAME, name)                                                                     \
  struct name##_codes {                                                                                \
    static constexpr bool copies = LPG_AT_##NAME == LPG_AT_BYTES, has_numbers = true;                  \
    static constexpr bool rows_first = LPG_AT_##NAME == LPG_AT_GPTQ || LPG_AT_##NAME == LPG_AT_AWQ;    \
    static constexpr bool has_wide = LPG_AT_##NAME == LPG_AT_STREAM;                                   \
    static constexpr bool has_supers = false, has_stage = false;                                       \
    static constexpr int grid_entries = 0;                                                             \
    template <int Bits>                                                                                \
    static __device__ bool is_wide(const lpg_at &at) {                                                 \
      return lpg_is_stream_wide(&at, Bits);                                                            \
    }                                                                                                  \
    template <int Bits, bool IsWide>                                                                   \
    static __device__ lpg_codes16 codes(const lpg_at &at, int64_t n, int64_t k) {                      \
      return IsWide ? lpg_wide_stream_codes(&at, Bits, n, k) : lpg_at_##name##_codes(&at, Bits, n, k); \
    }                                                                                                  \
    template <int Bits>                                                                                \
    static __device__ uint32_t code(const lpg_at &at, int64_t n, int64_t k) {                          \
      return lpg_at_##name##_code(&at, Bits, n, k);                                                    \
    }                                                                                                  \
    static __device__ uint32_t number(const lpg_at &at, lpg_section_id id, int64_t n, int64_t group) { \
      return lpg_at_number(&at, id, n, group);                                                         \
    }                                                                                                  \
  };
LPG_ARRANGEMENTS(LPG_FILE_CODES)
#undef LPG_FILE_CODES

template <int Type>
struct block_codes {
  static constexpr bool copies = false, has_numbers = true, has_supers = true, rows_first = false, has_stage = false;
  static constexpr bool has_wide = lpg_ggml_bytes(Type) % 16 == 0;
  static constexpr int grid_entries = lpg_grid_entries(Type);
  template <int Bits>
  static __device__ bool is_wide(const lpg_at &at) {
    return lpg_is_gguf_wide(&at, Type);
  }
  template <int Bits, bool IsWide>
  static __device__ lpg_codes16 codes(const lpg_at &at, int64_t n, int64_t k) {
    return lpg_gguf_codes(&at, Type, IsWide, n, k);
  }
  template <int Bits>
  static __device__ uint32_t code(const lpg_at &at, int64_t n, int64_t k) {
    return lpg_gguf_code(&at, Type, n, k);
  }
  static __device__ uint32_t number(const lpg_at &at, lpg_section_id id, int64_t n, int64_t group) {
    return lpg_gguf_number(&at, Type, id, n, group);
  }
};

struct rows_kernel {
  int arrangement, bits;
  const void *kernel;
};

/* NULL: it is not among them. */
template <int Count>
static const void *find_kernel(const rows_kernel (&kernels)[Count], int arrangement, int bits) {
  for (const rows_kernel &k : kernels) {
    if (k.arrangement == arrangement && k.bits == bits) return k.kernel;
  }
  return NULL;
}

}  // namespace
}  // namespace lpg

/* One of the list that a function of device.h looks through. */
#define LPG_ROWS_KERNEL(NAME, name, bits) \
  { LPG_AT_##NAME, bits, (const void *)lpg::pack_rows_kernel<lpg::name##_codes, bits> }
#define LPG_BLOCKS_KERNEL(type, bits) \
  { LPG_AT_GGML + type, bits, (const void *)lpg::pack_rows_kernel<lpg::block_codes<type>, bits> }
