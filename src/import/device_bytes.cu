/* Kernels for codes in bytes, and for those that share them: bitsandbytes, HQQ, BitNet. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_bytes(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {
      LPG_ROWS_KERNEL(BYTES, bytes, 5), LPG_ROWS_KERNEL(BYTES, bytes, 6), LPG_ROWS_KERNEL(BYTES, bytes, 8),
      LPG_ROWS_KERNEL(NF4, nf4, 4),     LPG_ROWS_KERNEL(HQQ, hqq, 1),     LPG_ROWS_KERNEL(HQQ, hqq, 2),
      LPG_ROWS_KERNEL(HQQ, hqq, 3),     LPG_ROWS_KERNEL(HQQ, hqq, 4),     LPG_ROWS_KERNEL(BITNET, bitnet, 2)};
  return lpg::find_kernel(kernels, arrangement, bits);
}
