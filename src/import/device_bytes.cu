/* Kernels for codes in bytes, and for those that share them: bitsandbytes, HQQ, BitNet. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_bytes(int arrangement, int bits) {
  LPG_ROWS_KERNEL(BYTES, 5)
  LPG_ROWS_KERNEL(BYTES, 6)
  LPG_ROWS_KERNEL(BYTES, 8)
  LPG_ROWS_KERNEL(NF4, 4)
  LPG_ROWS_KERNEL(HQQ, 1)
  LPG_ROWS_KERNEL(HQQ, 2)
  LPG_ROWS_KERNEL(HQQ, 3)
  LPG_ROWS_KERNEL(HQQ, 4)
  LPG_ROWS_KERNEL(BITNET, 2)
  return NULL;
}
