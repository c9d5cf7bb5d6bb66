/* Importing on the GPU: tensors in device memory become rows of a blob there, in one pass. What lies on the host beside
 * them, and is small, is copied to the GPU. */
#include "../pack/pack_device.h"
#include "at.h"
#include "device.h"
#include "iq2.h"
#include "nibbles.h"
#include "ordered.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr size_t most_scratch = 64 << 20;

/* Most of what is copied is a grid, or some numbers, and fits behind the report in the handle's scratch: allocating and
 * releasing memory would take longer than copying. */
constexpr size_t report_bytes = 2304;
static_assert(sizeof(lpg_pack_report) <= report_bytes && report_bytes < LPG_HANDLE_SCRATCH, "both must fit");

static const void *kernel_of(const lpg_at *at) {
  const void *(*const all[])(int, int) = {lpgemm_i_kernel_of_words, lpgemm_i_kernel_of_streams,
                                          lpgemm_i_kernel_of_bytes, lpgemm_i_kernel_of_gguf,
                                          lpgemm_i_kernel_of_k,     lpgemm_i_kernel_of_iq};
  for (const auto find : all) {
    const void *kernel = find(at->arrangement, at->bits);
    if (kernel) return kernel;
  }
  return NULL;
}

/* ---- what must be copied to the GPU ---- */

/* Counts bytes first and copies them then, when there is memory. */
struct scratch {
  uint8_t *memory;
  size_t used;
};

static lpgemm_status_t take_over(scratch *s, const void *from, size_t bytes, const uint8_t **to, cudaStream_t stream) {
  if (s->memory) {
    LPG_CUDA(cudaMemcpyAsync(s->memory + s->used, from, bytes, cudaMemcpyHostToDevice, stream));
    *to = s->memory + s->used;
  }
  s->used += (bytes + 255) / 256 * 256;
  return LPGEMM_SUCCESS;
}

static bool is_here(lpgemm_handle_t handle, const void *memory) {
  return handle->backend->can_read(handle->device.index, memory);
}

/* A tensor, and where in it the matrix begins. */
static lpgemm_status_t take_tensor(lpgemm_handle_t handle, scratch *s, const lpgemm_tensor_t *tensor,
                                   const uint8_t **data) {
  if (!tensor || is_here(handle, tensor->data)) return LPGEMM_SUCCESS;
  const size_t skipped = (size_t)(*data - (const uint8_t *)tensor->data);
  return take_over(s, *data, tensor->bytes - skipped, data, (cudaStream_t)handle->stream);
}

/* The part as it lies on the GPU, or will when there is memory. */
static lpgemm_status_t take_part(lpgemm_handle_t handle, scratch *s, lpg_part *part, const lpg_slice *slice, lpg_at *at,
                                 int *found) {
  LPG_TRY(take_tensor(handle, s, part->scales, &part->scale_data));
  LPG_TRY(take_tensor(handle, s, part->zeros, &part->zero_data));
  for (int i = 0; i < LPG_MORE; i++) LPG_TRY(take_tensor(handle, s, part->more[i], &part->more_data[i]));
  *found = lpgemm_i_find_at(part, at);
  const uint8_t *grid = (const uint8_t *)at->grid;
  if (!grid || lpg_is_whole_iq2(at, slice->n1 - slice->n0, slice->k0, slice->k1)) return LPGEMM_SUCCESS;
  LPG_TRY(take_over(s, grid, lpgemm_i_grid_bytes(at), &grid, (cudaStream_t)handle->stream));
  at->grid = (const uint16_t *)grid;
  return LPGEMM_SUCCESS;
}

/* ---- which parts kernels read ---- */

/* Codes are on the GPU, and every part but the last ends with a row tile, so that no tile has rows of two. *bytes: of
 * scratch. */
static lpgemm_status_t check_parts(lpgemm_handle_t handle, const lpg_joined *joined, size_t *bytes, int *can) {
  scratch s = {};
  *can = 1;
  for (size_t i = 0; i < joined->count && *can; i++) {
    lpg_part part = joined->part[i];
    const int64_t rows = joined->slice[i].n1 - joined->slice[i].n0;
    lpg_at at;
    int found;
    LPG_TRY(take_part(handle, &s, &part, &joined->slice[i], &at, &found));
    *can = found && kernel_of(&at) && is_here(handle, part.codes->data) && lpgemm_i_is_aligned(&at) &&
           (rows % LPG_TILE_ROWS == 0 || i + 1 == joined->count);
  }
  if (s.used > most_scratch) *can = 0;
  *bytes = s.used;
  return LPGEMM_SUCCESS;
}

/* ---- packing ---- */

/* With an order of columns a block takes all columns of its rows where there are rows enough: neighbours in the order
 * lie anywhere in a row, which then comes from memory once. */
static int64_t chunks_of(lpgemm_handle_t handle, const lpg_rows_args *args) {
  const int64_t tiles = lpg_ceil_div(args->rows, LPG_TILE_ROWS);
  return args->column_order && tiles >= handle->device.sms ? INT32_MAX : args->chunks;
}

/* The kernel, and what it needs. Words in an order have one of its own, where all columns of 16 rows fit into shared
 * memory. */
static lpgemm_status_t choose_kernel(lpgemm_handle_t handle, lpg_rows_args *args, lpg_iq2_grid *grid,
                                     const void **kernel) {
  constexpr int64_t others = 1024;
  const int bits = args->at.bits;
  const int64_t columns = lpg_round_up(args->at.k, LPG_STEP_K);
  *kernel = kernel_of(&args->at);
  if (lpg_are_nibbles(args)) {
    *kernel = lpgemm_i_kernel_of_nibbles(args->at.arrangement);
    args->chunks = LPG_NIBBLES_CHUNKS;
    args->row_tiles = lpg_nibbles_tiles(args->at.arrangement);
    return LPGEMM_SUCCESS;
  }
  if (lpg_is_whole_iq2(&args->at, args->rows, args->first_column, args->first_column + args->k)) {
    *kernel = lpgemm_i_kernel_of_iq2(args->at.arrangement);
    args->chunks = LPG_IQ2_CHUNKS;
    memcpy(grid->entry, args->at.grid, lpgemm_i_grid_bytes(&args->at));
    args->grid = grid;
    return LPGEMM_SUCCESS;
  }
  if (!args->column_order || args->at.arrangement != LPG_AT_GPTQ) return LPGEMM_SUCCESS;
  if (columns * (lpg_ordered_column(bits) + 1) + others > handle->device.shared_memory) return LPGEMM_SUCCESS;
  args->chunks = INT32_MAX;
  args->shared_bytes = (int)lpg_ordered_place(bits, (uint32_t)columns);
  const bool fewer = bits == 4 && args->shared_bytes + others <= handle->device.shared_memory / 3;
  args->threads = fewer ? LPG_ORDERED_FEWER : LPG_ORDERED_THREADS;
  *kernel = lpgemm_i_kernel_of_ordered(bits, args->threads);
  return allow_shared(*kernel, (size_t)args->shared_bytes);
}

static lpgemm_status_t pack_part(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_part *part,
                                 const lpg_slice *slice, const lpg_at *at, int64_t first_row, uint8_t *blob,
                                 lpg_pack_report *report) {
  const lpgemm_weight_desc_t *d = &part->desc;
  lpg_rows_args args;
  lpg_iq2_grid grid;
  const void *kernel;
  lpgemm_i_cuda_rows_args(packed, first_row, slice->n1 - slice->n0, blob, report, &args);
  args.at = *at;
  args.flip ^= at->flip;
  args.first_source_row = slice->n0;
  args.first_column = slice->k0;
  args.each = args.column_order || slice->k0 % LPG_STEP_K != 0;
  args.chunks = chunks_of(handle, &args);
  LPG_TRY(choose_kernel(handle, &args, &grid, &kernel));
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const bool is_super = id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS;
    const int64_t group = is_super ? d->super_k : d->group_k;
    args.numbers[id].first_group = group ? slice->k0 / group : 0;
  }
  LPG_TRY(lpgemm_i_cuda_put_row_scales(packed, first_row, args.rows, NULL, NULL,
                                       d->global_scale / packed->desc.global_scale, blob,
                                       (cudaStream_t)handle->stream));
  return lpgemm_i_cuda_launch_rows(kernel, &args, (cudaStream_t)handle->stream);
}

static lpgemm_status_t pack_parts(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_joined *joined,
                                  scratch *s, int64_t first_row, uint8_t *blob, lpg_content *content, int *bad) {
  lpg_pack_report *report = (lpg_pack_report *)handle->scratch;
  int64_t row = first_row;
  LPG_TRY(lpgemm_i_cuda_start_report(report, (cudaStream_t)handle->stream));
  for (size_t i = 0; i < joined->count; i++) {
    lpg_part part = joined->part[i];
    const lpg_slice *slice = &joined->slice[i];
    lpg_at at;
    int found;
    LPG_TRY(take_part(handle, s, &part, slice, &at, &found));
    LPG_TRY(pack_part(handle, packed, &part, slice, &at, row, blob, report));
    row += slice->n1 - slice->n0;
  }
  return lpgemm_i_cuda_end_rows(packed, first_row, joined->desc.n, blob, report, content, bad,
                                (cudaStream_t)handle->stream);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_import_rows(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_joined *joined,
                                          int64_t first_row, uint8_t *blob, lpg_content *content, int *done) {
  lpg::scratch s = {};
  size_t bytes;
  int can, bad = 0;
  *done = 0;
  LPG_TRY(lpg::check_parts(handle, joined, &bytes, &can));
  if (!can) return LPGEMM_SUCCESS;
  const bool fits = bytes <= LPG_HANDLE_SCRATCH - lpg::report_bytes;
  s.memory = (uint8_t *)handle->scratch + lpg::report_bytes;
  if (!fits) LPG_TRY(handle->backend->allocate(handle->device.index, bytes, (void **)&s.memory));
  lpgemm_status_t status = lpg::pack_parts(handle, packed, joined, &s, first_row, blob, content, &bad);
  if (!fits) handle->backend->release(handle->device.index, s.memory);
  *done = status == LPGEMM_SUCCESS && !bad; /* what is wrong, and where, the host finds */
  if (bad) *content = {};
  return status;
}
