/* Kernels for codes in words: GPTQ, AWQ and whole fields. */
#include "device_reader.cuh"
#include "nibbles.cuh"
#include "ordered.cuh"

const void *lpgemm_i_kernel_of_words(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {LPG_ROWS_KERNEL(GPTQ, gptq, 2),   LPG_ROWS_KERNEL(GPTQ, gptq, 3),
                                      LPG_ROWS_KERNEL(GPTQ, gptq, 4),   LPG_ROWS_KERNEL(GPTQ, gptq, 8),
                                      LPG_ROWS_KERNEL(AWQ, awq, 4),     LPG_ROWS_KERNEL(AWQ_FAST, awq_fast, 4),
                                      LPG_ROWS_KERNEL(WORDS, words, 3), LPG_ROWS_KERNEL(WORDS, words, 5),
                                      LPG_ROWS_KERNEL(WORDS, words, 6), LPG_ROWS_KERNEL(WORDS, words, 7)};
  return lpg::find_kernel(kernels, arrangement, bits);
}

const void *lpgemm_i_kernel_of_nibbles(int arrangement) {
  return arrangement == LPG_AT_AWQ ? (const void *)lpg::pack_nibbles_kernel<lpg::awq_nibbles>
                                   : (const void *)lpg::pack_nibbles_kernel<lpg::gptq_nibbles>;
}

const void *lpgemm_i_kernel_of_ordered(int bits, int threads) {
  constexpr int all = LPG_ORDERED_THREADS, fewer = LPG_ORDERED_FEWER;
  switch (bits) {
    case 2: return (const void *)lpg::pack_ordered_kernel<2, all>;
    case 3: return (const void *)lpg::pack_ordered_kernel<3, all>;
    case 4:
      return threads == fewer ? (const void *)lpg::pack_ordered_kernel<4, fewer>
                              : (const void *)lpg::pack_ordered_kernel<4, all>;
    default: return (const void *)lpg::pack_ordered_kernel<8, all>;
  }
}
