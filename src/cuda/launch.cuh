/* Launches of kernels. Included by cuda.h. */
#ifndef LPG_CUDA_LAUNCH_CUH
#define LPG_CUDA_LAUNCH_CUH

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Launches kernel(args) without touching nvcc's host stub, in clusters of so many blocks. `follows`: it waits for the
 * kernel before by itself (prim/pdl.cuh), so that its blocks may start while that one ends; for 9.0 and later. */
static inline lpgemm_status_t launch_with(const void *kernel, dim3 grid, int cluster, int threads, size_t shared_bytes,
                                          void *stream, void **pointers, bool follows) {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {(unsigned)cluster, 1, 1};
  config.attrs = attributes + !follows;
  config.numAttrs = follows + (cluster > 1);
  config.gridDim = grid;
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = (cudaStream_t)stream;
  LPG_CUDA(cudaLaunchKernelExC(&config, kernel, pointers));
  return LPGEMM_SUCCESS;
}

template <class Args>
static inline lpgemm_status_t launch_cluster(const void *kernel, dim3 grid, int cluster, int threads,
                                             size_t shared_bytes, void *stream, const Args &args,
                                             bool follows = false) {
  void *pointers[] = {const_cast<Args *>(&args)};
  return launch_with(kernel, grid, cluster, threads, shared_bytes, stream, pointers, follows);
}

template <class Args>
static inline lpgemm_status_t launch(const void *kernel, dim3 grid, int threads, size_t shared_bytes, void *stream,
                                     const Args &args) {
  return launch_cluster(kernel, grid, 1, threads, shared_bytes, stream, args);
}

template <class Args, class More>
static inline lpgemm_status_t launch(const void *kernel, dim3 grid, int threads, size_t shared_bytes, void *stream,
                                     const Args &args, const More &more) {
  void *pointers[] = {const_cast<Args *>(&args), const_cast<More *>(&more)};
  return launch_with(kernel, grid, 1, threads, shared_bytes, stream, pointers, false);
}

}  // namespace
}  // namespace lpg

#endif
