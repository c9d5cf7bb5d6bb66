/* Kernels for GGUF's blocks of 256 columns with scales on two levels. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_k(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {
      LPG_BLOCKS_KERNEL(10, 2), /* Q2_K */
      LPG_BLOCKS_KERNEL(11, 3), /* Q3_K */
      LPG_BLOCKS_KERNEL(12, 4), /* Q4_K */
      LPG_BLOCKS_KERNEL(13, 5), /* Q5_K */
      LPG_BLOCKS_KERNEL(14, 6), /* Q6_K */
      LPG_BLOCKS_KERNEL(23, 4)  /* IQ4_XS */
  };
  return lpg::find_kernel(kernels, arrangement, bits);
}
