/* Weights: their life, what they hold, files. Checks arguments and leaves the work to the backend. */
#include <stdlib.h>

#include "dispatch/dispatch.h"
#include "internal.h"
#include "pack/pack.h"

lpgemm_status_t lpgemm_prepare(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m_max) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_TRY(lpgemm_i_check_m_max(m_max));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  const int prepares = handle->backend->prepare && !handle->is_prepared;
  lpgemm_status_t status = prepares ? handle->backend->prepare() : LPGEMM_SUCCESS;
  if (status == LPGEMM_SUCCESS) handle->is_prepared = 1;
  for (int i = 0; i < lpgemm_i_registry_count && status == LPGEMM_SUCCESS; i++) {
    const lpg_kernel *kernel = &lpgemm_i_registry[i];
    const int is_known = i < LPG_LOADED && handle->loaded[i];
    if (!kernel->load || is_known || !lpgemm_i_may_take(kernel, &weights->packed, &handle->device)) continue;
    status = kernel->load(&handle->device);
    if (i < LPG_LOADED) handle->loaded[i] = status == LPGEMM_SUCCESS;
  }
  lpgemm_i_leave(handle, before);
  return status;
}

/* ---- making weights: open, fill the memory, then publish or abandon ---- */

static void set_weights(lpgemm_handle_t handle, const lpg_packed *packed, void *memory, lpgemm_weights_t w) {
  memset(w, 0, sizeof *w);
  w->desc_hash = lpgemm_i_hash((const uint8_t *)&packed->desc, sizeof packed->desc);
  w->packed = *packed;
  w->backend = handle->device.backend;
  w->device = handle->device.index;
  w->memory = memory;
}

lpgemm_status_t lpgemm_i_open_weights(lpgemm_handle_t handle, const lpg_packed *packed, void *memory,
                                      lpgemm_weights_t *out) {
  lpgemm_weights_t w = malloc(sizeof *w);
  LPG_CHECK(w, LPGEMM_OUT_OF_MEMORY, "no memory for a weights object");
  set_weights(handle, packed, memory, w);
  if (!memory) {
    lpgemm_status_t status = handle->backend->allocate(w->device, (size_t)packed->stack_bytes, &w->allocation);
    if (status != LPGEMM_SUCCESS) {
      free(w);
      return status;
    }
    w->memory = w->allocation;
  }
  *out = w;
  return LPGEMM_SUCCESS;
}

void lpgemm_i_release_weights(lpgemm_weights_t w) {
  free(w->pieces);
  if (w->allocation) lpgemm_i_backend(w->backend)->release(w->device, w->allocation);
  if (!w->in_storage) lpgemm_i_retire(w);
}

lpgemm_status_t lpgemm_i_close_weights(lpgemm_handle_t handle, lpgemm_weights_t w, lpgemm_status_t status,
                                       lpgemm_weights_t *out) {
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_live_add(w, LPG_OBJECT_WEIGHTS);
  if (status != LPGEMM_SUCCESS) {
    lpgemm_i_release_weights(w);
    return status;
  }
  status = lpgemm_prepare(handle, w, INT32_MAX);
  if (status != LPGEMM_SUCCESS) {
    lpgemm_weights_destroy(w);
    return status;
  }
  *out = w;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_weights_destroy(lpgemm_weights_t weights) {
  if (!weights) return LPGEMM_SUCCESS;
  LPG_CHECK(lpgemm_i_live_remove(weights, LPG_OBJECT_WEIGHTS) || lpgemm_i_live_remove(weights, LPG_OBJECT_PIECES),
            LPGEMM_INVALID_HANDLE, "weights %p are no live weights: they were destroyed before, or never made",
            (void *)weights);
  lpgemm_i_release_weights(weights);
  return LPGEMM_SUCCESS;
}

/* ---- looking at weights ---- */

/* The struct of 0.1.0, whose description ended before group_n: who compiled against that gets his answer in it. */
typedef struct info_0_1 {
  size_t size;
  uint8_t desc[offsetof(lpgemm_weight_desc_t, group_n)];
  lpgemm_backend_t backend;
  int32_t device;
  uint32_t layout_id;
  const void *memory;
  size_t packed_bytes;
  uint64_t payload_hash;
} info_0_1;

static void write_old_info(const lpgemm_weights_info_t *from, info_0_1 *to) {
  memset(to, 0, sizeof *to);
  to->size = sizeof *to;
  memcpy(to->desc, &from->desc, sizeof to->desc);
  const size_t desc_size = sizeof to->desc;
  memcpy(to->desc, &desc_size, sizeof desc_size);
  to->backend = from->backend;
  to->device = from->device;
  to->layout_id = from->layout_id;
  to->memory = from->memory;
  to->packed_bytes = from->packed_bytes;
  to->payload_hash = from->payload_hash;
}

lpgemm_status_t lpgemm_weights_info(lpgemm_weights_t weights, lpgemm_weights_info_t *info) {
  LPG_TRY(lpgemm_i_check_weights(weights));
  LPG_CHECK(info, LPGEMM_NULL_POINTER, "info is NULL");
  lpgemm_weights_info_t i;
  const int is_old = info->size == sizeof(info_0_1);
  if (!is_old) LPG_TRY(lpgemm_i_copy_struct(&i, sizeof i, sizeof i, info, "info"));
  size_t size = info->size;
  memset(&i, 0, sizeof i);
  i.size = size;
  i.desc = weights->packed.desc;
  i.backend = weights->backend;
  i.device = weights->device;
  i.layout_id = LPG_LAYOUT_TILE16;
  i.memory = weights->memory;
  i.packed_bytes = (size_t)weights->packed.stack_bytes;
  i.payload_hash = weights->content.payload_hash;
  if (is_old) {
    write_old_info(&i, (info_0_1 *)(void *)info);
  } else {
    *info = i;
  }
  return LPGEMM_SUCCESS;
}

/* What describes an expert: its global scale is in its header. */
static lpgemm_status_t packed_of_expert(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert,
                                        lpg_packed *packed) {
  *packed = weights->packed;
  packed->experts = 1;
  if (weights->packed.experts == 1) return LPGEMM_SUCCESS;
  uint8_t header[LPG_HEADER_BYTES];
  LPG_TRY(handle->backend->copy_out(handle, header, lpg_blob_of_expert(weights, expert), sizeof header));
  packed->desc.global_scale = lpg_expert_scale(header);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t unpack_experts(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_dtype_t out_type,
                                      void *out, int64_t ldo) {
  for (int64_t e = 0; e < weights->packed.experts; e++) {
    lpg_packed packed;
    uint8_t *to = (uint8_t *)out + e * weights->packed.desc.n * ldo * lpg_bytes(out_type);
    LPG_TRY(packed_of_expert(handle, weights, e, &packed));
    LPG_TRY(handle->backend->unpack(handle, &packed, lpg_blob_of_expert(weights, e), out_type, to, ldo));
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_unpack_weights(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_dtype_t out_type,
                                      void *out, int64_t ldo) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  const lpg_packed *packed = &weights->packed;
  LPG_CHECK(out_type == LPGEMM_U8 || lpg_is_real(out_type), LPGEMM_INVALID_TYPE,
            "out_type is %s; it must be u8 (codes), f32, f16 or bf16 (values)", lpgemm_dtype_name(out_type));
  if (ldo == 0) ldo = packed->x_k;
  LPG_TRY(lpgemm_i_check_ld("ldo", ldo, packed->desc.x_k ? "x_k" : "k", packed->x_k, packed->experts * packed->desc.n));
  if (packed->desc.n == 0 || packed->x_k == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(out, LPGEMM_NULL_POINTER, "out is NULL");
  LPG_CHECK((uintptr_t)out % (uintptr_t)lpg_bytes(out_type) == 0, LPGEMM_MISALIGNED,
            "out is %p; it must be aligned to its element type %s", out, lpgemm_dtype_name(out_type));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = unpack_experts(handle, weights, out_type, out, ldo);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_unpack_part(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_part_t part, void *out,
                                   size_t out_bytes) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_CHECK((int)part >= LPGEMM_PART_SCALES && part <= LPGEMM_PART_COLUMN_ORDER, LPGEMM_INVALID_ARGUMENT,
            "part is %d; it must be an LPGEMM_PART_ value", (int)part);
  const lpgemm_weight_desc_t *d = &weights->packed.desc;
  static const lpg_section_id sections[] = {
      [LPGEMM_PART_SCALES] = LPG_SECTION_SCALES,
      [LPGEMM_PART_ZEROS] = LPG_SECTION_ZEROS,
      [LPGEMM_PART_SUPER_SCALES] = LPG_SECTION_SUPER_SCALES,
      [LPGEMM_PART_SUPER_ZEROS] = LPG_SECTION_SUPER_ZEROS,
      [LPGEMM_PART_ROW_SCALES] = LPG_SECTION_ROW_SCALES,
      [LPGEMM_PART_COLUMN_ORDER] = LPG_SECTION_COLUMN_ORDER,
  };
  const lpg_section_id id = sections[part];
  lpgemm_dtype_t type = lpg_section_type(d, id);
  if (part == LPGEMM_PART_ROW_SCALES) type = d->row_scales;
  if (part == LPGEMM_PART_COLUMN_ORDER && d->columns) type = LPGEMM_I32;
  LPG_CHECK(type, LPGEMM_INVALID_ARGUMENT, "part is %d, but these weights have no such part", (int)part);
  const uint64_t one = lpgemm_i_part_bytes(&weights->packed, id), bytes = one * (uint64_t)weights->packed.experts;
  LPG_CHECK(out_bytes >= bytes, LPGEMM_BUFFER_TOO_SMALL, "out_bytes is %zu; this part has %llu", out_bytes,
            (unsigned long long)bytes);
  if (bytes == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(out, LPGEMM_NULL_POINTER, "out is NULL");
  LPG_CHECK((uintptr_t)out % (uintptr_t)lpg_bytes(type) == 0, LPGEMM_MISALIGNED,
            "out is %p; it must be aligned to its element type %s", out, lpgemm_dtype_name(type));
  for (int64_t e = 0; e < weights->packed.experts; e++) {
    LPG_TRY(handle->backend->unpack_part(handle, &weights->packed, lpg_blob_of_expert(weights, e), id,
                                         (uint8_t *)out + (uint64_t)e * one));
  }
  return LPGEMM_SUCCESS;
}

/* ---- files ---- */

lpgemm_status_t lpgemm_serialize(lpgemm_handle_t handle, lpgemm_weights_t weights, void *buffer, size_t buffer_bytes) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_CHECK(buffer, LPGEMM_NULL_POINTER, "buffer is NULL");
  LPG_CHECK(buffer_bytes >= weights->packed.stack_bytes, LPGEMM_BUFFER_TOO_SMALL,
            "buffer_bytes is %zu; the packed matrix has %llu", buffer_bytes,
            (unsigned long long)weights->packed.stack_bytes);
  return handle->backend->copy_out(handle, buffer, weights->memory, (size_t)weights->packed.stack_bytes);
}

lpgemm_status_t lpgemm_validate(const void *bytes, size_t size) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  lpg_packed packed;
  lpg_content content;
  return lpgemm_i_check_stack(bytes, size, 0, &packed, &content);
}

/* The headers alone, copied to the host: of as many experts as the first one says. */
static lpgemm_status_t check_headers(lpgemm_handle_t handle, const uint8_t *bytes, size_t size, lpg_packed *packed,
                                     lpg_content *content) {
  uint8_t first[LPG_HEADER_BYTES] = {0};
  if (size < sizeof first) return lpgemm_i_read_header(first, size, packed, content);
  LPG_TRY(handle->backend->copy_out(handle, first, bytes, sizeof first));
  const int64_t experts = lpgemm_i_experts_of(first, size);
  uint8_t *headers = malloc((size_t)experts * LPG_HEADER_BYTES);
  LPG_CHECK(headers, LPGEMM_OUT_OF_MEMORY, "no memory for %lld headers", (long long)experts);
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int64_t e = 0; e < experts && status == LPGEMM_SUCCESS; e++) {
    status = handle->backend->copy_out(handle, headers + e * LPG_HEADER_BYTES,
                                       bytes + size / (size_t)experts * (size_t)e, LPG_HEADER_BYTES);
  }
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_check_headers(headers, size, experts, packed, content);
  free(headers);
  return status;
}

/* Where a view lies. */
static lpgemm_status_t check_place(lpgemm_handle_t handle, const void *bytes) {
  const uintptr_t align = lpg_blob_align(&handle->device);
  LPG_CHECK((uintptr_t)bytes % align == 0, LPGEMM_MISALIGNED, "bytes is %p; a view must be %d-byte aligned", bytes,
            (int)align);
  LPG_CHECK(handle->backend->can_read(handle->device.index, bytes), LPGEMM_INVALID_ARGUMENT,
            "bytes is %p, which is not memory of the handle's backend; use LPGEMM_LOAD_COPY", bytes);
  return LPGEMM_SUCCESS;
}

/* Orders of columns alone, copied to the host. */
static lpgemm_status_t check_orders(lpgemm_handle_t handle, const uint8_t *bytes, const lpg_packed *packed) {
  const lpg_section *section = &packed->section[LPG_SECTION_COLUMN_ORDER];
  if (section->bytes == 0) return LPGEMM_SUCCESS;
  uint8_t *order = malloc((size_t)section->bytes);
  LPG_CHECK(order, LPGEMM_OUT_OF_MEMORY, "no memory for an order of %lld columns", (long long)packed->desc.k);
  lpgemm_status_t status = LPGEMM_SUCCESS;
  for (int64_t e = 0; e < packed->experts && status == LPGEMM_SUCCESS; e++) {
    const uint8_t *from = bytes + (uint64_t)e * packed->total_bytes + section->offset;
    status = handle->backend->copy_out(handle, order, from, (size_t)section->bytes);
    if (status == LPGEMM_SUCCESS) status = lpgemm_i_check_blob_order(packed, order);
  }
  free(order);
  return status;
}

/* A view may lie in memory that the host cannot read: the headers, the orders and, unless it is skipped, all blobs are
 * then checked in a copy on the host. */
static lpgemm_status_t check_view(lpgemm_handle_t handle, const void *bytes, size_t size, int skip_checksum,
                                  lpg_packed *packed, lpg_content *content) {
  LPG_TRY(check_place(handle, bytes));
  if (handle->device.backend == LPGEMM_BACKEND_CPU) {
    return lpgemm_i_check_stack(bytes, size, skip_checksum, packed, content);
  }
  if (skip_checksum) {
    LPG_TRY(check_headers(handle, bytes, size, packed, content));
    return check_orders(handle, bytes, packed);
  }
  uint8_t *copy = malloc(size + 1);
  LPG_CHECK(copy, LPGEMM_OUT_OF_MEMORY, "no memory to check %zu bytes", size);
  lpgemm_status_t status = handle->backend->copy_out(handle, copy, bytes, size);
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_check_stack(copy, size, 0, packed, content);
  free(copy);
  return status;
}

lpgemm_status_t lpgemm_deserialize(lpgemm_handle_t handle, const void *bytes, size_t size, uint32_t flags,
                                   lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  LPG_CHECK((flags & ~(uint32_t)(LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM)) == 0, LPGEMM_INVALID_ARGUMENT,
            "flags is 0x%x; it must be made of LPGEMM_LOAD_ values", (unsigned)flags);
  int view = (flags & LPGEMM_LOAD_VIEW) != 0, skip = (flags & LPGEMM_LOAD_SKIP_CHECKSUM) != 0;
  lpg_packed packed;
  lpg_content content;
  LPG_TRY(view ? check_view(handle, bytes, size, skip, &packed, &content)
               : lpgemm_i_check_stack(bytes, size, skip, &packed, &content));
  lpgemm_weights_t w;
  LPG_TRY(lpgemm_i_open_weights(handle, &packed, view ? (void *)(uintptr_t)bytes : NULL, &w));
  w->content = content;
  return lpgemm_i_close_weights(
      handle, w, view ? LPGEMM_SUCCESS : handle->backend->copy_in(handle, w->memory, bytes, size), weights);
}

_Static_assert(sizeof(struct lpgemm_weights) <= LPGEMM_WEIGHTS_BYTES &&
                   _Alignof(struct lpgemm_weights) <= _Alignof(uint64_t) &&
                   (int)LPG_HEADER_BYTES == (int)LPGEMM_HEADER_BYTES,
               "lpgemm.h has these sizes");

/* What headers on the host say of `size` bytes elsewhere. */
static lpgemm_status_t check_host_headers(const void *header, size_t header_bytes, size_t size, lpg_packed *packed,
                                          lpg_content *content) {
  LPG_CHECK(header_bytes >= LPG_HEADER_BYTES, LPGEMM_BUFFER_TOO_SMALL, "header_bytes is %zu; a header has %d",
            header_bytes, (int)LPG_HEADER_BYTES);
  const int64_t experts = lpgemm_i_experts_of(header, size);
  LPG_CHECK(header_bytes == (size_t)experts * LPG_HEADER_BYTES, LPGEMM_INVALID_SIZE,
            "header_bytes is %zu, but %zu bytes are %lld blobs by the first header, each with a header of %d",
            header_bytes, size, (long long)experts, (int)LPG_HEADER_BYTES);
  return lpgemm_i_check_headers(header, size, experts, packed, content);
}

lpgemm_status_t lpgemm_weights_from_blob(lpgemm_handle_t handle, const void *header, size_t header_bytes,
                                         const void *bytes, size_t size, void *storage, size_t storage_bytes,
                                         lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  LPG_CHECK(storage, LPGEMM_NULL_POINTER, "storage is NULL; give it LPGEMM_WEIGHTS_BYTES of memory");
  LPG_CHECK((uintptr_t)storage % _Alignof(uint64_t) == 0, LPGEMM_MISALIGNED,
            "storage is %p; it must be aligned as uint64_t is", storage);
  LPG_CHECK(storage_bytes >= LPGEMM_WEIGHTS_BYTES, LPGEMM_BUFFER_TOO_SMALL, "storage_bytes is %zu; %d are needed",
            storage_bytes, (int)LPGEMM_WEIGHTS_BYTES);
  lpgemm_weights_t w = storage;
  LPG_CHECK(!lpgemm_i_is_live(w, LPG_OBJECT_WEIGHTS), LPGEMM_INVALID_ARGUMENT,
            "storage is %p, where live weights are; lpgemm_weights_destroy() ends them", storage);
  lpg_packed packed;
  lpg_content content;
  if (header) {
    LPG_TRY(check_place(handle, bytes));
    LPG_TRY(check_host_headers(header, header_bytes, size, &packed, &content));
  } else {
    LPG_CHECK(header_bytes == 0, LPGEMM_NULL_POINTER, "header is NULL, but header_bytes is %zu", header_bytes);
    LPG_TRY(check_view(handle, bytes, size, 1, &packed, &content));
  }
  set_weights(handle, &packed, (void *)(uintptr_t)bytes, w);
  w->content = content;
  w->in_storage = 1;
  LPG_TRY(lpgemm_i_live_add(w, LPG_OBJECT_WEIGHTS));
  *weights = w;
  return LPGEMM_SUCCESS;
}
