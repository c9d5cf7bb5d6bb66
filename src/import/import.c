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

enum { TENSORS_OF_A_PART = 3 + LPG_MORE };

static lpgemm_status_t bring_all(lpgemm_handle_t handle, lpg_joined *joined, void **copies) {
  for (size_t i = 0; i < joined->count; i++) {
    lpg_part *part = &joined->part[i];
    void **copy = copies + i * TENSORS_OF_A_PART;
    LPG_TRY(bring(handle, part->codes, &part->code_data, &copy[0]));
    LPG_TRY(bring(handle, part->scales, &part->scale_data, &copy[1]));
    LPG_TRY(bring(handle, part->zeros, &part->zero_data, &copy[2]));
    for (int m = 0; m < LPG_MORE; m++) LPG_TRY(bring(handle, part->more[m], &part->more_data[m], &copy[3 + m]));
  }
  return LPGEMM_SUCCESS;
}

typedef struct import_job {
  lpg_joined *joined;
  void **copies;
  int is_here; /* 1: the host can read all tensors */
} import_job;

/* Some rows of the parts, from `from` on: slices of slices. */
static void cut_joined(const lpg_joined *all, int64_t from, int64_t rows, lpg_joined *some) {
  int64_t start = 0;
  for (size_t i = 0; i < all->count; i++) {
    lpg_slice *s = &some->slice[i];
    const int64_t n0 = s->n0, end = start + s->n1 - n0;
    const int64_t low = from < start ? start : from > end ? end : from;
    const int64_t high = from + rows < start ? start : from + rows > end ? end : from + rows;
    s->n0 = n0 + low - start;
    s->n1 = n0 + high - start;
    start = end;
  }
  some->desc.n = rows;
}

/* By the backend if it can, else on the host. */
static lpgemm_status_t pack_joined(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row, uint8_t *blob,
                                   int64_t from, int64_t rows, lpg_content *content, void *context) {
  import_job *job = context;
  lpg_joined some = *job->joined;
  int done = 0;
  some.slice = malloc(some.count * sizeof *some.slice);
  LPG_CHECK(some.slice, LPGEMM_OUT_OF_MEMORY, "no memory for a list of %zu parts", some.count);
  memcpy(some.slice, job->joined->slice, some.count * sizeof *some.slice);
  cut_joined(job->joined, from, rows, &some);
  lpgemm_status_t status = LPGEMM_SUCCESS;
  if (handle->backend->import_rows) {
    status = handle->backend->import_rows(handle, packed, &some, first_row, blob, content, &done);
  }
  if (status == LPGEMM_SUCCESS && !done && !job->is_here) {
    status = bring_all(handle, job->joined, job->copies);
    job->is_here = 1;
  }
  if (status == LPGEMM_SUCCESS && !done) {
    status = lpgemm_i_import_rows(handle, packed, first_row, &some, blob, content);
  }
  free(some.slice);
  return status;
}

/* Rows of parts that were opened, on the handle's device. */
static lpgemm_status_t import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                   lpg_joined *joined) {
  const size_t count = joined->count * TENSORS_OF_A_PART;
  lpg_content content = {0};
  void **copies = calloc(count, sizeof *copies);
  LPG_CHECK(copies, LPGEMM_OUT_OF_MEMORY, "no memory for a list of %zu tensors", count);
  int32_t before;
  lpgemm_status_t status = lpgemm_i_enter(handle, &before);
  if (status == LPGEMM_SUCCESS) {
    import_job job = {joined, copies, 0};
    status = lpgemm_i_begin_rows(handle, weights, expert, first_row, joined);
    if (status == LPGEMM_SUCCESS) {
      status = lpgemm_i_pack_piece(handle, weights, expert, first_row, joined->desc.n, pack_joined, &job, &content);
    }
    if (status == LPGEMM_SUCCESS) lpgemm_i_add_rows(weights, expert, first_row, joined->desc.n, &content);
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
  if (status == LPGEMM_SUCCESS) status = import_rows(handle, made, 0, 0, &joined);
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
  LPG_CHECK(weights->row_scales || weights->experts || part->global_scale == weights->global_scale,
            LPGEMM_INVALID_ARGUMENT,
            "the part's %s stands for a scale of %g, and the weights have %g and no row_scales: give them row_scales",
            joined->part[0].global_name ? joined->part[0].global_name : "format", (double)part->global_scale,
            (double)weights->global_scale);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                   const lpgemm_import_t *part) {
  LPG_TRY(lpgemm_i_check_pieces(handle, weights));
  lpg_joined joined;
  lpgemm_status_t status = lpgemm_i_open_parts(part, 1, &joined);
  if (status == LPGEMM_SUCCESS) status = check_fits(&weights->packed.desc, &joined);
  const lpgemm_weight_desc_t *desc = &weights->packed.desc;
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_check_rows(weights, expert, first_row, joined.desc.n);
  if (status == LPGEMM_SUCCESS && desc->experts && !desc->row_scales) {
    status = lpgemm_i_take_scale(weights, expert, joined.desc.global_scale != 0.0f ? joined.desc.global_scale : 1.0f);
  }
  if (status == LPGEMM_SUCCESS) status = import_rows(handle, weights, expert, first_row, &joined);
  lpgemm_i_close_parts(&joined);
  return status;
}
