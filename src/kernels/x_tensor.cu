/* Asks the driver for descriptions of X. */
#include "x_tensor.h"

#include <cuda.h>

#include "../cuda/cuda.h"

/* Found once; the library does not link the driver's. */
static void *encode_tiled;

static lpgemm_status_t find_encode_tiled(void **function) {
  *function = __atomic_load_n(&encode_tiled, __ATOMIC_ACQUIRE);
  if (*function) return LPGEMM_SUCCESS;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  LPG_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", function, 12000, cudaEnableDefault, &found));
#else
  LPG_CUDA(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", function, cudaEnableDefault, &found));
#endif
  LPG_CHECK(*function, LPGEMM_INTERNAL_ERROR, "the driver has no tensor maps");
  __atomic_store_n(&encode_tiled, *function, __ATOMIC_RELEASE);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_cuda_map_x(const lpg_call *call, int columns, int rows, lpg_tensor_map *map) {
  static_assert(sizeof(CUtensorMap) == sizeof *map && alignof(CUtensorMap) <= alignof(lpg_tensor_map),
                "a map is the driver's own");
  void *function = NULL;
  LPG_TRY(find_encode_tiled(&function));
  const cuuint64_t size[] = {(cuuint64_t)call->problem.plan->desc.k, (cuuint64_t)call->problem.m};
  const cuuint64_t pitch[] = {(cuuint64_t)call->ldx * 2};
  const cuuint32_t box[] = {(cuuint32_t)columns, (cuuint32_t)rows}, step[] = {1, 1};
  const CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
      (CUtensorMap *)map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, const_cast<void *>(call->x), size, pitch, box, step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  LPG_CHECK(result == CUDA_SUCCESS, LPGEMM_INTERNAL_ERROR, "the driver takes no map of X (error %d)", (int)result);
  return LPGEMM_SUCCESS;
}
