/* How fast this GPU's memory is, measured in every run. */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include <cuda_runtime_api.h>

#include "common.h"

/* GB/s of a kernel that only reads 2 GiB of random data, and of a device-to-device copy of 1 GiB, which counts the
 * bytes read and the bytes written; both inside graphs. */
bench_error bench_bandwidth(cudaStream_t stream, double *read_gbps, double *copy_gbps);

#endif
