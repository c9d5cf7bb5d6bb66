/* Kernels for codes in dense streams along K. */
#include "device_reader.cuh"

const void *lpgemm_i_kernel_of_streams(int arrangement, int bits) {
  const lpg::rows_kernel kernels[] = {LPG_ROWS_KERNEL(STREAM, stream, 1), LPG_ROWS_KERNEL(STREAM, stream, 2),
                                      LPG_ROWS_KERNEL(STREAM, stream, 3), LPG_ROWS_KERNEL(STREAM, stream, 4),
                                      LPG_ROWS_KERNEL(STREAM, stream, 5), LPG_ROWS_KERNEL(STREAM, stream, 6),
                                      LPG_ROWS_KERNEL(STREAM, stream, 7), LPG_ROWS_KERNEL(STREAM, stream, 8)};
  return lpg::find_kernel(kernels, arrangement, bits);
}
