/* Asks the driver for tensor maps (TMA descriptors). */
#include "tensor_map.h"

#include <cuda.h>

#include "../../cuda/cuda.h"

/* The driver's function, looked up once: the library is not linked with the driver. Every driver that runs CUDA 12,
 * which compiles this, has it. */
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

enum { MOST_DIMENSIONS = 4 };

/* Sizes and boxes, innermost dimension first; pitches in bytes, of all dimensions but the innermost. */
struct description {
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  int dimensions;
  cuuint64_t size[MOST_DIMENSIONS], pitch[MOST_DIMENSIONS - 1];
  cuuint32_t box[MOST_DIMENSIONS];
};

static lpgemm_status_t encode(const char *what, const void *base, const description *d, lpg_tensor_map *map) {
  static_assert(sizeof(CUtensorMap) == sizeof *map && alignof(CUtensorMap) <= alignof(lpg_tensor_map),
                "a map is the driver's own");
  void *function = NULL;
  LPG_TRY(find_encode_tiled(&function));
  const cuuint32_t step[MOST_DIMENSIONS] = {1, 1, 1, 1};
  const CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
      (CUtensorMap *)map, d->type, (cuuint32_t)d->dimensions, const_cast<void *>(base), d->size, d->pitch, d->box, step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, d->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  LPG_CHECK(result == CUDA_SUCCESS, LPGEMM_INTERNAL_ERROR, "the driver takes no map of %s (error %d)", what,
            (int)result);
  return LPGEMM_SUCCESS;
}

/* A matrix of 16-bit numbers, with boxes that are swizzled. */
static lpgemm_status_t map_halves(const char *what, const void *base, int64_t width, int64_t height, int64_t pitch,
                                  int columns, int rows, lpg_tensor_map *map) {
  const description d = {
      CU_TENSOR_MAP_DATA_TYPE_UINT16,          CU_TENSOR_MAP_SWIZZLE_128B, 2,
      {(cuuint64_t)width, (cuuint64_t)height}, {(cuuint64_t)pitch * 2},    {(cuuint32_t)columns, (cuuint32_t)rows}};
  return encode(what, base, &d, map);
}

lpgemm_status_t lpgemm_i_cuda_map_x(const lpg_call *call, int columns, int rows, lpg_tensor_map *map) {
  return map_halves("X", call->x, call->problem.weights->desc.k, call->problem.m, call->ldx, columns, rows, map);
}

lpgemm_status_t lpgemm_i_cuda_map_y(void *y, int64_t n, int64_t m, int64_t ldy, int columns, int rows,
                                    lpg_tensor_map *map) {
  return map_halves("Y", y, n, m, ldy, columns, rows, map);
}

lpgemm_status_t lpgemm_i_cuda_map_codes(const lpg_call *call, int vectors, int row_tiles, int with_experts,
                                        lpg_tensor_map *map) {
  const lpg_packed *packed = call->problem.weights;
  const cuuint64_t row_bytes = (cuuint64_t)(packed->k_tiles * lpg_tile_bytes(packed->bits));
  const cuuint32_t words = LPG_VECTOR_BYTES / 4;
  const int is_stack = call->problem.experts > 0;
  const description d = {
      CU_TENSOR_MAP_DATA_TYPE_UINT32,
      CU_TENSOR_MAP_SWIZZLE_NONE,
      with_experts ? 4 : 3,
      {words, row_bytes / LPG_VECTOR_BYTES, (cuuint64_t)packed->row_tiles,
       (cuuint64_t)(is_stack ? call->problem.experts : 1)},
      {LPG_VECTOR_BYTES, row_bytes, is_stack ? (cuuint64_t)call->stride : row_bytes * (cuuint64_t)packed->row_tiles},
      {words, (cuuint32_t)vectors, (cuuint32_t)row_tiles, 1}};
  return encode("the weights", call->section[LPG_SECTION_CODES], &d, map);
}
