/* Kernels for codes in words: GPTQ, AWQ and whole fields. */
#include "device_reader.cuh"
#include "ordered.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* AWQ's words have one column of eight rows, so a thread takes the four columns of a lane, of all eight. */
struct awq_tiles_codes : awq_codes {
  static constexpr bool has_stage = true;
  static __device__ bool can_stage(int64_t n, int64_t) { return n % 8 == 0; }
  static __device__ void stage(const lpg_at &at, int64_t n, int64_t k, uint8_t *staged) {
    constexpr int rows_of_byte[4] = {0, 4, 1, 5}; /* of its low nibble; the high one's is two further */
#pragma unroll
    for (int turn = 0; turn < chunk_k / LPG_STEP_K * 4 * 2 / 256; turn++) {
      const int i = turn * 256 + threadIdx.x, eight = i % 2, t = i / 2 % 4, step = i / 8;
      const uint8_t *from = at.codes + ((k + step * LPG_STEP_K + 2 * t) * at.line + n / 8 + eight) * 4;
      uint8_t *to = staged + 8 * eight * row_bytes + step * LPG_STEP_K + 4 * t;
      uint32_t word[4];
#pragma unroll
      for (int c = 0; c < 4; c++) word[c] = lpg_load32(from + (c / 2 + c % 2 * 8) * at.line * 4);
      transpose(word);
#pragma unroll
      for (int b = 0; b < 4; b++) {
        *(uint32_t *)(to + rows_of_byte[b] * row_bytes) = word[b] & 0x0f0f0f0fu;
        *(uint32_t *)(to + (rows_of_byte[b] + 2) * row_bytes) = word[b] >> 4 & 0x0f0f0f0fu;
      }
    }
  }
};

}  // namespace
}  // namespace lpg

const void *lpgemm_i_kernel_of_words(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {LPG_ROWS_KERNEL(GPTQ, gptq, 2),     LPG_ROWS_KERNEL(GPTQ, gptq, 3),
                                      LPG_ROWS_KERNEL(GPTQ, gptq, 4),     LPG_ROWS_KERNEL(GPTQ, gptq, 8),
                                      LPG_ROWS_KERNEL(AWQ, awq_tiles, 4), LPG_ROWS_KERNEL(AWQ_FAST, awq_fast, 4),
                                      LPG_ROWS_KERNEL(WORDS, words, 3),   LPG_ROWS_KERNEL(WORDS, words, 5),
                                      LPG_ROWS_KERNEL(WORDS, words, 6),   LPG_ROWS_KERNEL(WORDS, words, 7)};
  return lpg::find_kernel(kernels, arrangement, bits);
}

const void *lpgemm_i_kernel_of_ordered(int bits) {
  switch (bits) {
    case 2: return (const void *)lpg::pack_ordered_kernel<lpg::gptq_codes, 2>;
    case 3: return (const void *)lpg::pack_ordered_kernel<lpg::gptq_codes, 3>;
    case 4: return (const void *)lpg::pack_ordered_kernel<lpg::gptq_codes, 4>;
    default: return (const void *)lpg::pack_ordered_kernel<lpg::gptq_codes, 8>;
  }
}
