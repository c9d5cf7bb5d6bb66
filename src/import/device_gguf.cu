/* Kernels for GGUF's blocks of 32, 64 and 128 columns, and of trits. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_gguf(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {
      LPG_BLOCKS_KERNEL(2, 4),  /* Q4_0 */
      LPG_BLOCKS_KERNEL(3, 4),  /* Q4_1 */
      LPG_BLOCKS_KERNEL(6, 5),  /* Q5_0 */
      LPG_BLOCKS_KERNEL(7, 5),  /* Q5_1 */
      LPG_BLOCKS_KERNEL(8, 8),  /* Q8_0 */
      LPG_BLOCKS_KERNEL(34, 2), /* TQ1_0 */
      LPG_BLOCKS_KERNEL(35, 2), /* TQ2_0 */
      LPG_BLOCKS_KERNEL(39, 4), /* MXFP4 */
      LPG_BLOCKS_KERNEL(40, 4), /* NVFP4 */
      LPG_BLOCKS_KERNEL(41, 1), /* Q1_0 */
      LPG_BLOCKS_KERNEL(42, 2)  /* Q2_0 */
  };
  if (arrangement == LPG_AT_GGML + 20) arrangement = LPG_AT_GGML + 2; /* IQ4_NL is Q4_0 with other values */
  return lpg::find_kernel(kernels, arrangement, bits);
}
