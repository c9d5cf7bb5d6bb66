/* The calls that make weights of the tensors of a checkpoint. */
#include "import.h"

#include <stdlib.h>

#include "rows.h"

lpgemm_status_t lpgemm_import_desc(const lpgemm_import_t *parts, size_t count, lpgemm_weight_desc_t *desc) {
  LPG_CHECK(desc, LPGEMM_NULL_POINTER, "desc is NULL");
  LPG_CHECK(desc->size >= sizeof *desc, LPGEMM_INVALID_STRUCT,
            "desc.size is %zu; set it to the struct's sizeof, %zu in this version", desc->size, sizeof *desc);
  lpg_joined joined;
  lpgemm_status_t status = lpgemm_i_open_parts(parts, count, &joined);
  if (status == LPGEMM_SUCCESS) {
    size_t size = desc->size;
    *desc = joined.desc;
    desc->size = size;
  }
  lpgemm_i_close_parts(&joined);
  return status;
}

/* ---- tensors that the host cannot read ---- */

/* The one place that asks where the bytes of a tensor lie. Tensors in memory of another backend are copied to the host
 * whole, and *data then points into the copy. */
static lpgemm_status_t bring(lpgemm_handle_t handle, const lpgemm_tensor_t *tensor, const uint8_t **data, void **copy) {
  *copy = NULL;
  if (!tensor || handle->device.backend == LPGEMM_BACKEND_CPU) return LPGEMM_SUCCESS;
  if (!handle->backend->can_read(handle->device.index, tensor->data)) return LPGEMM_SUCCESS; /* it is the host's */
  *copy = malloc(tensor->bytes);
  LPG_CHECK(*copy, LPGEMM_OUT_OF_MEMORY, "no memory for a copy of %s, %zu bytes", tensor->name, tensor->bytes);
  LPG_TRY(handle->backend->copy_out(handle, *copy, tensor->data, tensor->bytes));
  *data = (const uint8_t *)*copy + (*data - (const uint8_t *)tensor->data);
  return LPGEMM_SUCCESS;
}

enum { TENSORS_OF_A_PART = 3 };

static lpgemm_status_t bring_all(lpgemm_handle_t handle, lpg_joined *joined, void **copies) {
  for (size_t i = 0; i < joined->count; i++) {
    lpg_part *part = &joined->part[i];
    void **copy = copies + i * TENSORS_OF_A_PART;
    LPG_TRY(bring(handle, part->codes, &part->code_data, &copy[0]));
    LPG_TRY(bring(handle, part->scales, &part->scale_data, &copy[1]));
    LPG_TRY(bring(handle, part->zeros, &part->zero_data, &copy[2]));
  }
  return LPGEMM_SUCCESS;
}

/* Rows of parts that were opened, on the handle's device. */
static lpgemm_status_t import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t first_row,
                                   lpg_joined *joined) {
  const size_t count = joined->count * TENSORS_OF_A_PART;
  void **copies = calloc(count, sizeof *copies);
  LPG_CHECK(copies, LPGEMM_OUT_OF_MEMORY, "no memory for a list of %zu tensors", count);
  int32_t before;
  lpgemm_status_t status = lpgemm_i_enter(handle, &before);
  if (status == LPGEMM_SUCCESS) {
    status = bring_all(handle, joined, copies);
    if (status == LPGEMM_SUCCESS) status = lpgemm_i_import_rows(handle, weights, first_row, joined);
    lpgemm_i_leave(handle, before);
  }
  for (size_t i = 0; i < count; i++) free(copies[i]);
  free(copies);
  return status;
}

/* ---- the calls ---- */

lpgemm_status_t lpgemm_import_weights(lpgemm_handle_t handle, const lpgemm_import_t *parts, size_t count, void *memory,
                                      size_t memory_bytes, lpgemm_weights_t *weights) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; pass the address of an lpgemm_weights_t");
  lpg_joined joined;
  lpgemm_weights_t made = NULL;
  lpgemm_status_t status = lpgemm_i_open_parts(parts, count, &joined);
  if (status == LPGEMM_SUCCESS) status = lpgemm_weights_create(handle, &joined.desc, memory, memory_bytes, &made);
  if (status == LPGEMM_SUCCESS) status = import_rows(handle, made, 0, &joined);
  if (status == LPGEMM_SUCCESS) status = lpgemm_weights_finish(handle, made);
  if (status == LPGEMM_SUCCESS) {
    *weights = made;
  } else if (made) {
    (void)lpgemm_weights_destroy(made);
  }
  lpgemm_i_close_parts(&joined);
  return status;
}

/* The weights may have more rows, row scales and another global scale; nothing else may differ. */
static lpgemm_status_t check_fits(const lpgemm_weight_desc_t *weights, const lpg_joined *joined) {
  const lpgemm_weight_desc_t *part = &joined->desc, *w = weights;
  LPG_CHECK(w->k == part->k && w->x_k == part->x_k && w->type == part->type, LPGEMM_INVALID_ARGUMENT,
            "the part has %lld columns of %s, and the weights have %lld of %s: create them from lpgemm_import_desc()",
            (long long)part->k, lpgemm_dtype_name(part->type), (long long)w->k, lpgemm_dtype_name(w->type));
  const int same_groups = w->group_k == part->group_k && w->super_k == part->super_k && w->group_n == part->group_n;
  const int same_types = w->scale_type == part->scale_type && w->super_scale_type == part->super_scale_type &&
                         w->zero_type == part->zero_type && w->super_zero_type == part->super_zero_type;
  const int same_zeros = w->zero == part->zero && w->zero_constant == part->zero_constant;
  LPG_CHECK(same_groups && same_types && same_zeros && w->columns == part->columns && lpgemm_i_same_codebook(w, part),
            LPGEMM_INVALID_ARGUMENT,
            "the weights have other groups, scales, zeros, order or codebook than the part, which has groups of %lld "
            "columns with scales of %s and blocks of %lld rows: create them from lpgemm_import_desc()",
            (long long)part->group_k, lpgemm_dtype_name(part->scale_type), (long long)part->group_n);
  LPG_CHECK(weights->row_scales || part->global_scale == weights->global_scale, LPGEMM_INVALID_ARGUMENT,
            "the part's %s stands for a scale of %g, and the weights have %g and no row_scales: give them row_scales",
            joined->part[0].global_name ? joined->part[0].global_name : "format", (double)part->global_scale,
            (double)weights->global_scale);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                   const lpgemm_import_t *part) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  LPG_CHECK(expert == 0, LPGEMM_INVALID_ARGUMENT, "expert is %lld; one matrix has expert 0 only", (long long)expert);
  lpg_joined joined;
  lpgemm_status_t status = lpgemm_i_open_parts(part, 1, &joined);
  if (status == LPGEMM_SUCCESS) status = check_fits(&weights->packed.desc, &joined);
  if (status == LPGEMM_SUCCESS) status = import_rows(handle, weights, first_row, &joined);
  lpgemm_i_close_parts(&joined);
  return status;
}
