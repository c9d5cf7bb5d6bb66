/* 8-bit X as fp16: integers of 1 to 8 bits, e4m3 and e5m2 are all exact in fp16. */
#pragma once

#include "x_type.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* These functions take two bytes, at bits 0 and 16 of a word, to a pair. */
__device__ inline uint32_t widen_i8(uint32_t two) {
  return f16_x::subtract((two ^ both(0x80)) | both(0x6400), both(0x6480)); /* 1024 + (x + 128) - 1152 */
}

/* The exponent's bias is 8 less than fp16's. 0x7f is NaN: its exponent becomes all ones. */
__device__ inline uint32_t widen_e4m3(uint32_t two) {
  const uint32_t magnitude = two & both(0x7f), nan = (magnitude + both(1)) >> 7 & both(1);
  const uint32_t value = f16_x::multiply((two & both(0x80)) << 8 | magnitude << 7, both(0x5c00)); /* 2^8 */
  return value | nan * 0x7e00u;
}

__device__ inline uint32_t widen_e5m2(uint32_t two) { return two << 8; }

/* Unsigned and bipolar codes: step * code + offset. */
__device__ inline uint32_t widen_code(uint32_t two, uint32_t step, uint32_t offset) {
  return f16_x::fma(f16_x::subtract(two | both(0x6400), both(0x6400)), step, offset);
}

/* Eight bytes to eight values, of which the first `there` belong to the row. The others become zero; as bipolar codes
 * they would not be. */
__device__ inline uint4 widen_eight(lpgemm_dtype_t type, uint2 bytes, int64_t there) {
  const auto all = [&](auto widen) {
    const auto two = [&](uint32_t word, uint32_t selector) { return widen(__byte_perm(word, 0, selector)); };
    return make_uint4(two(bytes.x, 0x4140), two(bytes.x, 0x4342), two(bytes.y, 0x4140), two(bytes.y, 0x4342));
  };
  if (lpg_kind(type) == LPGEMM_KIND_INT) return all(widen_i8);
  if (lpg_is_integer_kind(type)) {
    const uint32_t step = f16_x::round((float)lpg_integer_step(type));
    const uint32_t offset = f16_x::round((float)lpg_integer_offset(type));
    const uint4 eight = all([=](uint32_t two) { return widen_code(two, step, offset); });
    const auto first = [&](uint32_t two, int i) { return there >= i + 2 ? two : there == i + 1 ? two & 0xffffu : 0u; };
    return make_uint4(first(eight.x, 0), first(eight.y, 2), first(eight.z, 4), first(eight.w, 6));
  }
  return type == LPGEMM_E4M3 ? all(widen_e4m3) : all(widen_e5m2);
}

}  // namespace
}  // namespace lpg
