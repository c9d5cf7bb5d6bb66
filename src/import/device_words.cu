/* Kernels for codes in words: GPTQ, AWQ and whole fields. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_words(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {LPG_ROWS_KERNEL(GPTQ, gptq, 2),   LPG_ROWS_KERNEL(GPTQ, gptq, 3),
                                      LPG_ROWS_KERNEL(GPTQ, gptq, 4),   LPG_ROWS_KERNEL(GPTQ, gptq, 8),
                                      LPG_ROWS_KERNEL(AWQ, awq, 4),     LPG_ROWS_KERNEL(AWQ_FAST, awq_fast, 4),
                                      LPG_ROWS_KERNEL(WORDS, words, 3), LPG_ROWS_KERNEL(WORDS, words, 5),
                                      LPG_ROWS_KERNEL(WORDS, words, 6), LPG_ROWS_KERNEL(WORDS, words, 7)};
  return lpg::find_kernel(kernels, arrangement, bits);
}
