/* CUDA as a backend: devices, memory, and the device functions of pack/ and kernels/. */
#include "cuda.h"

#include <stdlib.h>

#include "../pack/pack.h"

/* ---- the device ---- */

/* The oldest architecture that the library has kernels for. */
enum { LOWEST_ARCH = 80 };

static lpgemm_status_t enter(int32_t device, int32_t *before) {
  LPG_CUDA(cudaGetDevice(before));
  if (*before != device) LPG_CUDA(cudaSetDevice(device));
  return LPGEMM_SUCCESS;
}

static void leave(int32_t device, int32_t before) {
  if (before != device) cudaSetDevice(before);
}

static lpgemm_status_t open_device(int32_t index, int32_t threads, lpg_device *device) {
  (void)threads;
  int count = 0;
  struct cudaDeviceProp p;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) cudaGetLastError(); /* so that no later call of the user's sees it */
  LPG_CHECK(error == cudaSuccess, LPGEMM_NO_BACKEND, "the CUDA backend finds no usable GPU: %s",
            cudaGetErrorString(error));
  LPG_CHECK(index < count, LPGEMM_NO_BACKEND, "config.device is %d, but there are %d GPUs", index, count);
  LPG_CUDA(cudaGetDeviceProperties(&p, index));
  LPG_CHECK(10 * p.major + p.minor >= LOWEST_ARCH, LPGEMM_NO_BACKEND,
            "GPU %d (%s) has compute capability %d.%d; the library needs 8.0 or newer", index, p.name, p.major,
            p.minor);
  memset(device, 0, sizeof *device);
  device->backend = LPGEMM_BACKEND_CUDA;
  device->index = index;
  for (size_t i = 0; i + 1 < sizeof device->name && p.name[i]; i++) {
    device->name[i] = p.name[i] < ' ' ? ' ' : p.name[i];
  }
  device->arch = 10 * p.major + p.minor;
  device->sms = p.multiProcessorCount;
  device->shared_memory = (int64_t)p.sharedMemPerBlockOptin;
  lpgemm_i_set_rates(device);
  if (device->arch < 90) return LPGEMM_SUCCESS;
  int32_t before;
  LPG_TRY(enter(index, &before));
  lpgemm_status_t status = lpgemm_i_cuda_count_clusters(device->shared_memory, device->clusters);
  leave(index, before);
  return status;
}

/* ---- memory ---- */

static lpgemm_status_t allocate(int32_t device, size_t bytes, void **memory) {
  int32_t before;
  LPG_TRY(enter(device, &before));
  cudaError_t error = cudaMalloc(memory, bytes);
  if (error == cudaErrorMemoryAllocation) cudaGetLastError();
  leave(device, before);
  LPG_CHECK(error != cudaErrorMemoryAllocation, LPGEMM_OUT_OF_MEMORY, "no device memory for %zu bytes", bytes);
  LPG_CUDA(error);
  return LPGEMM_SUCCESS;
}

static void release(int32_t device, void *memory) {
  int32_t before;
  if (enter(device, &before) != LPGEMM_SUCCESS) return;
  cudaFree(memory);
  leave(device, before);
}

/* Device memory of that device, or managed memory. */
static int is_on_device(int32_t device, const void *memory) {
  struct cudaPointerAttributes a;
  if (!memory || cudaPointerGetAttributes(&a, memory) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return (a.type == cudaMemoryTypeDevice && a.device == device) || a.type == cudaMemoryTypeManaged;
}

static cudaStream_t stream_of(lpgemm_handle_t handle) { return (cudaStream_t)handle->stream; }

static lpgemm_status_t copy(lpgemm_handle_t handle, void *to, const void *from, size_t bytes) {
  LPG_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(handle)));
  LPG_CUDA(cudaStreamSynchronize(stream_of(handle)));
  return LPGEMM_SUCCESS;
}

static int equals(lpgemm_handle_t handle, const void *memory, const void *host, size_t bytes) {
  void *staged = malloc(bytes + 1);
  const int is_equal = staged && copy(handle, staged, memory, bytes) == LPGEMM_SUCCESS && !memcmp(staged, host, bytes);
  free(staged);
  return is_equal;
}

static lpgemm_status_t synchronize(lpgemm_handle_t handle) {
  LPG_CUDA(cudaStreamSynchronize(stream_of(handle)));
  return LPGEMM_SUCCESS;
}

static int is_capturing(lpgemm_handle_t handle) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_of(handle), &status) != cudaSuccess) cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

/* ---- weights: on the GPU if the data is there, else on the host, with the same bytes ---- */

enum { SOURCE_ARRAYS = LPG_SECTION_SUPER_ZEROS + 1 };

static const void **source_array(lpgemm_weight_source_t *source, int id) {
  const void **const arrays[SOURCE_ARRAYS] = {[LPG_SECTION_CODES] = &source->codes,
                                              [LPG_SECTION_SCALES] = &source->scales,
                                              [LPG_SECTION_ZEROS] = &source->zeros,
                                              [LPG_SECTION_SUPER_SCALES] = &source->super_scales,
                                              [LPG_SECTION_SUPER_ZEROS] = &source->super_zeros};
  return arrays[id];
}

/* Copies an array of the source into device memory, which the caller releases. */
static lpgemm_status_t bring_over(lpgemm_handle_t handle, const lpg_packed *packed, lpg_source *source, int id,
                                  void **brought) {
  const uint64_t bytes = id == LPG_SECTION_CODES ? lpgemm_i_codes_bytes(packed, source)
                                                 : lpgemm_i_array_bytes(packed, source, (lpg_section_id)id);
  const void **array = source_array(&source->arrays, id);
  LPG_TRY(allocate(handle->device.index, (size_t)bytes, brought));
  LPG_TRY(copy(handle, *brought, *array, (size_t)bytes));
  *array = *brought;
  return LPGEMM_SUCCESS;
}

/* What kernels and packing on the GPU do not know yet: the one place that says so. */
static lpgemm_status_t takes(const lpg_packed *packed) {
  LPG_CHECK(lpg_format_version(&packed->desc) == LPG_FORMAT_PLAIN, LPGEMM_NOT_SUPPORTED,
            "desc has columns %d, row_scales %s and group_n %lld; the CUDA backend takes weights where all are 0",
            (int)packed->desc.columns, lpgemm_dtype_name(packed->desc.row_scales), (long long)packed->desc.group_n);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_whole(const lpg_packed *packed, const lpg_source *source) {
  const lpgemm_weight_source_t *a = &source->arrays;
  const int is_dense = a->order == LPGEMM_ROW_MAJOR
                           ? a->scales_ld == packed->group.count && a->super_ld == packed->super.count
                           : a->scales_ld == packed->desc.n && a->super_ld == packed->desc.n;
  LPG_CHECK(
      source->rows == packed->desc.n && is_dense && !a->row_order, LPGEMM_NOT_SUPPORTED,
      "the source has %lld of %lld rows, leading dimensions of scales of %lld and %lld, and %s order of rows; the "
      "CUDA backend packs whole matrices with dense scales in order",
      (long long)source->rows, (long long)packed->desc.n, (long long)a->scales_ld, (long long)a->super_ld,
      a->row_order ? "an" : "no");
  return LPGEMM_SUCCESS;
}

/* All rows, to a finished blob. From device memory if one array of the source lies there: those on the host are brought
 * over. */
static lpgemm_status_t pack_rows(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                                 int64_t first_row, uint8_t *blob, lpg_content *content) {
  lpg_source here = *source;
  (void)first_row;
  void *brought[SOURCE_ARRAYS] = {0};
  int there[SOURCE_ARRAYS], any = 0;
  LPG_TRY(check_whole(packed, source));
  for (int id = 0; id < SOURCE_ARRAYS; id++) {
    there[id] = is_on_device(handle->device.index, *source_array(&here.arrays, id));
    any |= there[id];
  }
  if (!any) {
    uint8_t *staged = malloc((size_t)packed->total_bytes);
    LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)packed->total_bytes);
    lpgemm_status_t status = lpgemm_i_pack_host(packed, source, staged, content);
    if (status == LPGEMM_SUCCESS) status = copy(handle, blob, staged, (size_t)packed->total_bytes);
    free(staged);
    return status;
  }
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int id = 0; id < SOURCE_ARRAYS && status == LPGEMM_SUCCESS; id++) {
    if (*source_array(&here.arrays, id) && !there[id]) status = bring_over(handle, packed, &here, id, &brought[id]);
  }
  if (status == LPGEMM_SUCCESS) {
    status = lpgemm_i_cuda_pack(packed, &here.arrays, blob, content, handle->scratch, stream_of(handle));
  }
  for (int id = 0; id < SOURCE_ARRAYS; id++) {
    if (brought[id]) release(handle->device.index, brought[id]);
  }
  return status;
}

static lpgemm_status_t quantize(lpgemm_handle_t handle, const lpg_packed *packed, lpgemm_quantize_method_t method,
                                const void *w, lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob,
                                lpg_content *content) {
  if (is_on_device(handle->device.index, w)) {
    return lpgemm_i_cuda_quantize(packed, method, w, w_type, ldw, blob, content, handle->scratch, stream_of(handle));
  }
  uint8_t *staged = malloc((size_t)packed->total_bytes);
  LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)packed->total_bytes);
  lpgemm_status_t status = lpgemm_i_quantize_host(packed, method, w, w_type, ldw, staged, content);
  if (status == LPGEMM_SUCCESS) status = copy(handle, blob, staged, (size_t)packed->total_bytes);
  free(staged);
  return status;
}

static lpgemm_status_t unpack(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                              lpgemm_dtype_t out_type, void *out, int64_t ldo) {
  if (is_on_device(handle->device.index, out)) {
    return lpgemm_i_cuda_unpack(packed, blob, out_type, out, ldo, stream_of(handle));
  }
  uint8_t *staged = malloc((size_t)packed->total_bytes);
  LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)packed->total_bytes);
  lpgemm_status_t status = copy(handle, staged, blob, (size_t)packed->total_bytes);
  if (status == LPGEMM_SUCCESS) lpgemm_i_unpack_host(packed, staged, out_type, out, ldo);
  free(staged);
  return status;
}

static lpgemm_status_t unpack_part(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                                   lpg_section_id id, void *out) {
  lpg_packed alone = *packed; /* a blob that starts with the section */
  size_t bytes = (size_t)packed->section[id].bytes;
  alone.section[id].offset = 0;
  uint8_t *staged = malloc(bytes);
  LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %zu bytes", bytes);
  lpgemm_status_t status = copy(handle, staged, blob + packed->section[id].offset, bytes);
  if (status == LPGEMM_SUCCESS) lpgemm_i_unpack_part_host(&alone, staged, id, out);
  free(staged);
  return status;
}

/* ---- activations ---- */

static lpgemm_status_t quantize_activations(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x,
                                            lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type, void *out,
                                            int64_t ldo, float *scale, lpgemm_x_scale_t mode) {
  return lpgemm_i_cuda_quantize_activations(&handle->device, m, k, x, x_type, ldx, out_type, out, ldo, scale, mode,
                                            stream_of(handle));
}

static lpgemm_status_t lut_build(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x, lpgemm_dtype_t x_type,
                                 int64_t ldx, void *tables) {
  (void)handle, (void)m, (void)k, (void)x, (void)x_type, (void)ldx, (void)tables;
  LPG_CHECK(0, LPGEMM_NOT_SUPPORTED,
            "tables are for the CPU backend; lookup kernels on CUDA make their own in each call");
}

const lpg_backend lpgemm_i_cuda_backend = {
    .open = open_device,
    .enter = enter,
    .leave = leave,
    .prepare = lpgemm_i_cuda_prepare_activations,
    .allocate = allocate,
    .release = release,
    .can_read = is_on_device,
    .copy_in = copy,
    .copy_out = copy,
    .equals = equals,
    .synchronize = synchronize,
    .is_capturing = is_capturing,
    .takes = takes,
    .pack_rows = pack_rows,
    .quantize = quantize,
    .unpack = unpack,
    .unpack_part = unpack_part,
    .quantize_activations = quantize_activations,
    .lut_build = lut_build,
};
