/* Kernels for GGUF's blocks of indices into grids. */
#include "device_reader.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Eight codes of 3 bits, four bits each: code 2t at 4t, code 2t + 1 at 16 + 4t. From an entry of the grid and the seven
 * signs that are stored. */
__device__ inline uint32_t eight_codes(uint32_t entry, uint32_t seven) {
  const uint32_t signs = lpg_eighth_sign(seven), halves = (signs & 0x55u) + (signs & 0xaau) * 0x8000u;
  const uint32_t spread = (halves * 0x11u & 0x05050505u) * 0x14u & 0x44444444u;
  return (entry & 0x3333u) + (entry & 0xccccu) * 0x4000u + spread;
}

/* Sixteen of them by lanes. */
__device__ inline uint4 lanes_of(uint32_t first, uint32_t second) {
  constexpr uint32_t low = 0x0f0f0f0fu;
  const uint32_t a = first & low, b = second & low, c = first >> 4 & low, d = second >> 4 & low;
  return make_uint4(__byte_perm(a, b, 0x6240), __byte_perm(c, d, 0x6240), __byte_perm(a, b, 0x7351),
                    __byte_perm(c, d, 0x7351));
}

/* IQ2_XXS and IQ2_XS: a thread takes 32 columns, which are eight bytes, or four numbers of 16 bits. */
template <int Type>
struct iq2_codes : block_codes<Type> {
  static constexpr bool has_stage = true;
  static __device__ bool can_stage(int64_t, int64_t k) { return k % 32 == 0; }
  static __device__ void stage(const lpg_at &at, int64_t n, int64_t k, uint8_t *staged) {
    constexpr int turns = LPG_TILE_ROWS * chunk_k / 32 / 256;
    const uint32_t column = (uint32_t)k + threadIdx.x % 32 * 32;
    const uint8_t *from =
        at.codes + (n + threadIdx.x / 32) * at.line + column / 256 * lpg_ggml_bytes(Type) + 2 + column % 256 / 32 * 8;
    uint8_t *to = staged + threadIdx.x / 32 * row_bytes + threadIdx.x % 32 * 32;
    uint32_t number[turns][4];
#pragma unroll
    for (int turn = 0; turn < turns; turn++) {
#pragma unroll
      for (int i = 0; i < 4; i++) number[turn][i] = lpg_load16(from + turn * 8 * at.line + 2 * i);
    }
#pragma unroll
    for (int turn = 0; turn < turns; turn++) {
      uint32_t eight[4];
#pragma unroll
      for (int v = 0; v < 4; v++) {
        if (Type == 16) {
          const uint32_t index = number[turn][v / 2] >> v % 2 * 8 & 255u;
          eight[v] = eight_codes(lpg_grid_entry(&at, index), (number[turn][2] | number[turn][3] << 16) >> 7 * v);
        } else {
          eight[v] = eight_codes(lpg_grid_entry(&at, number[turn][v] & 511u), number[turn][v] >> 9);
        }
      }
      *(uint4 *)(to + turn * 8 * row_bytes) = lanes_of(eight[0], eight[1]);
      *(uint4 *)(to + turn * 8 * row_bytes + 16) = lanes_of(eight[2], eight[3]);
    }
  }
};

}  // namespace
}  // namespace lpg

#define LPG_IQ2_KERNEL(type) \
  { LPG_AT_GGML + type, 3, (const void *)lpg::pack_rows_kernel<lpg::iq2_codes<type>, 3> }

const void *lpgemm_i_kernel_of_iq(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {
      LPG_IQ2_KERNEL(16),       /* IQ2_XXS */
      LPG_IQ2_KERNEL(17),       /* IQ2_XS */
      LPG_BLOCKS_KERNEL(18, 4), /* IQ3_XXS */
      LPG_BLOCKS_KERNEL(19, 3), /* IQ1_S */
      LPG_BLOCKS_KERNEL(21, 4), /* IQ3_S */
      LPG_BLOCKS_KERNEL(22, 3), /* IQ2_S */
      LPG_BLOCKS_KERNEL(29, 3)  /* IQ1_M */
  };
  return lpg::find_kernel(kernels, arrangement, bits);
}
