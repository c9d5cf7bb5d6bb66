/* Kernels for codes in words: GPTQ, AWQ and whole fields. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_words(int arrangement, int bits) {
  LPG_ROWS_KERNEL(GPTQ, 2)
  LPG_ROWS_KERNEL(GPTQ, 3)
  LPG_ROWS_KERNEL(GPTQ, 4)
  LPG_ROWS_KERNEL(GPTQ, 8)
  LPG_ROWS_KERNEL(AWQ, 4)
  LPG_ROWS_KERNEL(AWQ_FAST, 4)
  LPG_ROWS_KERNEL(WORDS, 3)
  LPG_ROWS_KERNEL(WORDS, 5)
  LPG_ROWS_KERNEL(WORDS, 6)
  LPG_ROWS_KERNEL(WORDS, 7)
  return NULL;
}
