/* Kernels for codes in dense streams along K. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_streams(int arrangement, int bits) {
  LPG_ROWS_KERNEL(STREAM, 1)
  LPG_ROWS_KERNEL(STREAM, 2)
  LPG_ROWS_KERNEL(STREAM, 3)
  LPG_ROWS_KERNEL(STREAM, 4)
  LPG_ROWS_KERNEL(STREAM, 5)
  LPG_ROWS_KERNEL(STREAM, 6)
  LPG_ROWS_KERNEL(STREAM, 7)
  LPG_ROWS_KERNEL(STREAM, 8)
  return NULL;
}
