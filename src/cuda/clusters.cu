/* How many clusters of blocks, each block with an SM of its own, a GPU runs at once: its SMs come in groups of uneven
 * sizes, so that it is not the number of SMs over the size. */
#include "cuda.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static __global__ void probe_kernel() {}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_count_clusters(int64_t shared_memory, int32_t clusters[LPG_CLUSTER_MOST + 1]) {
  const void *probe = (const void *)lpg::probe_kernel;
  cudaFuncAttributes attributes;
  LPG_CUDA(cudaFuncGetAttributes(&attributes, probe));
  /* The driver's translation of PTX for an older architecture has no clusters in it: see prim/cluster.cuh. */
  if (attributes.ptxVersion < 90) return LPGEMM_SUCCESS;
  LPG_TRY(lpg::allow_shared(probe, (size_t)shared_memory));
  for (int blocks = 1; blocks <= LPG_CLUSTER_MOST; blocks++) {
    cudaLaunchAttribute size = {};
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim = {(unsigned)blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(512);
    config.dynamicSmemBytes = (size_t)shared_memory;
    config.attrs = &size;
    config.numAttrs = 1;
    int count = 0;
    if (cudaOccupancyMaxActiveClusters(&count, probe, &config) != cudaSuccess) {
      (void)cudaGetLastError(); /* no clusters of this size */
      count = 0;
    }
    clusters[blocks] = count;
  }
  return LPGEMM_SUCCESS;
}
