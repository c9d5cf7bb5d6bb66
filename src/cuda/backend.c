/* CUDA as a backend: devices, memory, and the device functions of pack/ and kernels/. */
#include "cuda.h"

#include <stdlib.h>

#include "../kernels/operand/x_copy.h"
#include "../kernels/operand/x_gather.h"
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

static const lpg_section_id source_ids[] = {LPG_SECTION_CODES,        LPG_SECTION_SCALES,      LPG_SECTION_ZEROS,
                                            LPG_SECTION_SUPER_SCALES, LPG_SECTION_SUPER_ZEROS, LPG_SECTION_ROW_SCALES};

enum { SOURCE_ARRAYS = sizeof source_ids / sizeof source_ids[0] };

static const void **source_array(lpgemm_weight_source_t *source, int i) {
  const void **const arrays[SOURCE_ARRAYS] = {&source->codes,        &source->scales,      &source->zeros,
                                              &source->super_scales, &source->super_zeros, &source->row_scales};
  return arrays[i];
}

/* Copies an array of the source into device memory, which the caller releases. */
static lpgemm_status_t bring_over(lpgemm_handle_t handle, const lpg_packed *packed, lpg_source *source, int i,
                                  void **brought) {
  const lpg_section_id id = source_ids[i];
  const uint64_t bytes =
      id == LPG_SECTION_CODES ? lpgemm_i_codes_bytes(packed, source) : lpgemm_i_array_bytes(packed, source, id);
  const void **array = source_array(&source->arrays, i);
  LPG_TRY(allocate(handle->device.index, (size_t)bytes, brought));
  LPG_TRY(copy(handle, *brought, *array, (size_t)bytes));
  *array = *brought;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t begin(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob) {
  return lpgemm_i_cuda_begin(packed, blob, stream_of(handle));
}

static lpgemm_status_t finish(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob, lpg_content *content) {
  if (packed->desc.rows == LPGEMM_ROWS_PAIRED) { /* words have codes of both halves: none hashed them */
    lpg_content codes = {0};
    LPG_TRY(lpgemm_i_cuda_hash_rows(packed, 0, packed->n_padded, blob, &codes, handle->scratch, stream_of(handle)));
    content->payload_hash = codes.payload_hash;
  }
  return lpgemm_i_cuda_finish(packed, blob, content, handle->scratch, stream_of(handle));
}

enum { BAND_BYTES = 32 << 20 }; /* of packed rows on the host at once */

/* Rows from `first` on of `rows` that are packed at once: a multiple of group_n if so many fit, else of 16, up to the
 * next edge of a group. */
static int64_t band_rows(const lpg_packed *packed, int64_t first, int64_t rows) {
  const int64_t group = packed->desc.group_n ? packed->desc.group_n : LPG_TILE_ROWS;
  const int64_t tile = (int64_t)(packed->total_bytes / (uint64_t)packed->row_tiles) + 1;
  int64_t most = BAND_BYTES / tile * LPG_TILE_ROWS;
  if (most < LPG_TILE_ROWS) most = LPG_TILE_ROWS;
  most = most < group ? (most < group - first % group ? most : group - first % group) : most - most % group;
  return most < rows - first ? most : rows - first;
}

/* Copies a packed band, which is a blob of its own, to its place. */
static lpgemm_status_t copy_band(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row,
                                 const lpg_packed *band, const uint8_t *staged, uint8_t *blob) {
  const int64_t tile = first_row / LPG_TILE_ROWS;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    if (band->section[i].bytes == 0 || id == LPG_SECTION_COLUMN_ORDER) continue;
    int64_t offset;
    switch (id) {
      case LPG_SECTION_CODES: offset = lpg_tile_offset(packed->bits, packed->k_tiles, tile, 0); break;
      case LPG_SECTION_ROW_EXPONENTS: offset = first_row; break;
      case LPG_SECTION_ROW_SCALES: offset = first_row * 4; break;
      default:
        offset = tile / packed->tiles_a_scale * lpg_section_axis(packed, id)->padded *
                 lpg_slot_bytes(lpg_section_type(&packed->desc, id));
        break;
    }
    LPG_TRY(copy(handle, blob + packed->section[i].offset + offset, staged + band->section[i].offset,
                 (size_t)band->section[i].bytes));
  }
  return LPGEMM_SUCCESS;
}

/* One band: packed on the host as a matrix of its own, copied, and hashed where it lies. */
static lpgemm_status_t pack_band(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                                 int64_t first_row, const lpg_band *band, uint8_t *blob, lpg_content *content) {
  lpgemm_weight_desc_t desc = packed->desc;
  lpg_packed own;
  lpg_content part = {0}, hashed = {0};
  lpg_refusal refusal;
  desc.n = band->rows;
  LPG_TRY(lpgemm_i_make_packed(&desc, &own));
  uint8_t *staged = malloc((size_t)own.total_bytes);
  LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %llu bytes", (unsigned long long)own.total_bytes);
  lpgemm_i_begin_host(&own, staged);
  lpgemm_status_t status = lpgemm_i_pack_band(&own, source, -band->first, band, staged, &part, &refusal)
                               ? copy_band(handle, packed, first_row + band->first, &own, staged, blob)
                               : lpgemm_i_refuse(packed, &refusal);
  free(staged);
  LPG_TRY(status);
  LPG_TRY(lpgemm_i_cuda_hash_rows(packed, first_row + band->first, band->rows, blob, &hashed, handle->scratch,
                                  stream_of(handle)));
  part.payload_hash = hashed.payload_hash;
  lpgemm_i_add_content(content, &part);
  return LPGEMM_SUCCESS;
}

/* From device memory if one array of the source lies there: those on the host are brought over. */
static lpgemm_status_t pack_rows(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                                 int64_t first_row, uint8_t *blob, lpg_content *content) {
  lpg_source here = *source;
  void *brought[SOURCE_ARRAYS] = {0};
  int there[SOURCE_ARRAYS], any = 0;
  *content = (lpg_content){0};
  for (int i = 0; i < SOURCE_ARRAYS; i++) {
    there[i] = is_on_device(handle->device.index, *source_array(&here.arrays, i));
    any |= there[i];
  }
  for (lpg_band band = {0, 0}; !any && band.first < source->rows; band.first += band.rows) {
    band.rows = band_rows(packed, band.first, source->rows);
    LPG_TRY(pack_band(handle, packed, source, first_row, &band, blob, content));
  }
  if (!any) return LPGEMM_SUCCESS;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int i = 0; i < SOURCE_ARRAYS && status == LPGEMM_SUCCESS; i++) {
    if (*source_array(&here.arrays, i) && !there[i]) status = bring_over(handle, packed, &here, i, &brought[i]);
  }
  if (status == LPGEMM_SUCCESS) {
    status = lpgemm_i_cuda_pack_rows(packed, &here, first_row, blob, content, handle->scratch, stream_of(handle));
  }
  for (int i = 0; i < SOURCE_ARRAYS; i++) {
    if (brought[i]) release(handle->device.index, brought[i]);
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
  lpg_packed alone = *packed; /* its sections one after the other: a band of rows has them far apart */
  size_t bytes = 0;
  for (int id = 0; id < LPG_SECTIONS; id++) {
    alone.section[id].offset = bytes;
    bytes += (size_t)lpg_round_up((int64_t)packed->section[id].bytes, LPG_SECTION_ALIGN);
  }
  uint8_t *staged = malloc(bytes + 1);
  LPG_CHECK(staged, LPGEMM_OUT_OF_MEMORY, "no host memory for %zu bytes", bytes);
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int id = 0; id < LPG_SECTIONS && status == LPGEMM_SUCCESS; id++) {
    const lpg_section *section = &packed->section[id];
    if (section->bytes == 0) continue;
    status = copy(handle, staged + alone.section[id].offset, blob + section->offset, (size_t)section->bytes);
  }
  if (status == LPGEMM_SUCCESS) lpgemm_i_unpack_host(&alone, staged, out_type, out, ldo);
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

static lpgemm_status_t gather(lpgemm_handle_t handle, const lpg_packed *packed, int64_t m, const void *x,
                              lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out, int64_t ldo) {
  return lpgemm_i_cuda_gather_x(&handle->device, packed, m, x, x_type, ldx, order, out, ldo, handle->stream);
}

static lpgemm_status_t align(lpgemm_handle_t handle, const lpg_call *call, void *copy) {
  (void)handle; /* its stream is the call's */
  return lpgemm_i_cuda_align_x(call, copy);
}

/* ---- mixtures of experts ---- */

static lpgemm_status_t pair_rows(lpgemm_handle_t handle, const lpg_packed *own, const uint8_t *rows,
                                 const lpg_packed *packed, int half, int64_t output, uint8_t *blob) {
  return lpgemm_i_cuda_pair_rows(own, rows, packed, half, output, blob, stream_of(handle));
}

static lpgemm_status_t route(lpgemm_handle_t handle, const lpg_route *args) {
  return lpgemm_i_cuda_route(&handle->device, args, stream_of(handle));
}

static lpgemm_status_t gather_rows(lpgemm_handle_t handle, const lpg_gather *args) {
  return lpgemm_i_cuda_gather_rows(&handle->device, args, stream_of(handle));
}

static lpgemm_status_t combine(lpgemm_handle_t handle, const lpg_combine *args) {
  return lpgemm_i_cuda_combine(&handle->device, args, stream_of(handle));
}

static lpgemm_status_t prepare(void) {
  int device, shared_memory;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&shared_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  LPG_TRY(lpgemm_i_cuda_prepare_activations());
  LPG_TRY(lpgemm_i_cuda_load_route(shared_memory));
  LPG_TRY(lpgemm_i_cuda_load_gather_rows());
  LPG_TRY(lpgemm_i_cuda_load_combine());
  LPG_TRY(lpgemm_i_cuda_prepare_copy_x());
  return lpgemm_i_cuda_load_gather_x();
}

const lpg_backend lpgemm_i_cuda_backend = {
    .open = open_device,
    .enter = enter,
    .leave = leave,
    .prepare = prepare,
    .allocate = allocate,
    .release = release,
    .can_read = is_on_device,
    .copy_in = copy,
    .copy_out = copy,
    .equals = equals,
    .synchronize = synchronize,
    .is_capturing = is_capturing,
    .begin = begin,
    .pack_rows = pack_rows,
    .import_rows = lpgemm_i_cuda_import_rows,
    .pair_rows = pair_rows,
    .finish = finish,
    .quantize = quantize,
    .unpack = unpack,
    .unpack_part = unpack_part,
    .quantize_activations = quantize_activations,
    .gather = gather,
    .align = align,
    .route = route,
    .gather_rows = gather_rows,
    .combine = combine,
};
