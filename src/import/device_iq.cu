/* Kernels for GGUF's blocks of indices into grids. */
#include "device_reader.cuh"
#include "iq2.cuh"

const void *lpgemm_i_kernel_of_iq(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {
      LPG_BLOCKS_KERNEL(16, 3), /* IQ2_XXS */
      LPG_BLOCKS_KERNEL(17, 3), /* IQ2_XS */
      LPG_BLOCKS_KERNEL(18, 4), /* IQ3_XXS */
      LPG_BLOCKS_KERNEL(19, 3), /* IQ1_S */
      LPG_BLOCKS_KERNEL(21, 4), /* IQ3_S */
      LPG_BLOCKS_KERNEL(22, 3), /* IQ2_S */
      LPG_BLOCKS_KERNEL(29, 3)  /* IQ1_M */
  };
  return lpg::find_kernel(kernels, arrangement, bits);
}

const void *lpgemm_i_kernel_of_iq2(int arrangement) {
  return arrangement == LPG_AT_GGML + 16 ? (const void *)lpg::pack_iq2_kernel<16>
                                         : (const void *)lpg::pack_iq2_kernel<17>;
}
