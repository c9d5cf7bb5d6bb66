/* Kernels for GGUF's blocks, but for those with grids. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_gguf(int arrangement, int bits) {
  LPG_BLOCKS_KERNEL(2, 4)                                             /* Q4_0 */
  LPG_BLOCKS_KERNEL(3, 4)                                             /* Q4_1 */
  LPG_BLOCKS_KERNEL(6, 5)                                             /* Q5_0 */
  LPG_BLOCKS_KERNEL(7, 5)                                             /* Q5_1 */
  LPG_BLOCKS_KERNEL(8, 8)                                             /* Q8_0 */
  LPG_BLOCKS_KERNEL(10, 2)                                            /* Q2_K */
  LPG_BLOCKS_KERNEL(11, 3)                                            /* Q3_K */
  LPG_BLOCKS_KERNEL(12, 4)                                            /* Q4_K */
  LPG_BLOCKS_KERNEL(13, 5)                                            /* Q5_K */
  LPG_BLOCKS_KERNEL(14, 6)                                            /* Q6_K */
  LPG_BLOCKS_KERNEL(23, 4)                                            /* IQ4_XS */
  LPG_BLOCKS_KERNEL(34, 2)                                            /* TQ1_0 */
  LPG_BLOCKS_KERNEL(35, 2)                                            /* TQ2_0 */
  LPG_BLOCKS_KERNEL(39, 4)                                            /* MXFP4 */
  LPG_BLOCKS_KERNEL(40, 4)                                            /* NVFP4 */
  LPG_BLOCKS_KERNEL(41, 1)                                            /* Q1_0 */
  LPG_BLOCKS_KERNEL(42, 2)                                            /* Q2_0 */
  if (arrangement == LPG_AT_GGML + 20) arrangement = LPG_AT_GGML + 2; /* IQ4_NL differs from Q4_0 in its values only */
  LPG_BLOCKS_KERNEL(2, 4)
  return NULL;
}
