/* lpgemm_run_grouped(): arguments -> X as kernels read it -> the product. */
#include "experts.h"

/* What stands in the workspace in front of the kernel's part: numbers of X quantised inside with their scales, and rows
 * of X as they are dealt out, with theirs. Offsets; bytes is the sum. */
typedef struct memory {
  size_t codes, code_scales, rows, row_scales, bytes;
  int64_t ld; /* of rows */
} memory;

static size_t add(memory *m, int64_t count, int64_t bytes) {
  const size_t at = m->bytes;
  m->bytes += lpg_align256((size_t)count * (size_t)bytes);
  return at;
}

/* rows: 1 if X is taken by number of row. */
static memory plan_memory(const lpg_request *r, int64_t x_rows, int by_row) {
  const lpg_packed *packed = r->call.problem.weights;
  const int bytes = lpg_bytes(r->call.problem.x_type);
  memory m = {0};
  m.ld = lpg_round_up(packed->desc.k, 16 / bytes);
  if (r->args.quantize_x) {
    m.codes = add(&m, x_rows, packed->x_k);
    m.code_scales = add(&m, x_rows, sizeof(float));
  }
  if (by_row || packed->desc.columns) m.rows = add(&m, r->args.m, m.ld * bytes);
  if (by_row && r->call.problem.x_scale_mode == LPGEMM_X_SCALE_ROW) m.row_scales = add(&m, r->args.m, sizeof(float));
  return m;
}

lpgemm_status_t lpgemm_i_grouped_workspace(lpgemm_handle_t handle, const lpg_request *request, size_t *bytes) {
  lpg_grouped p = {.r = *request};
  size_t of_kernel;
  LPG_TRY(lpgemm_i_open_product(handle, &p, 1, 0));
  LPG_TRY(lpgemm_i_product_workspace(handle, &p, &of_kernel));
  *bytes = plan_memory(&p.r, p.r.args.m, 1).bytes + of_kernel;
  return LPGEMM_SUCCESS;
}

/* ---- checks ---- */

static lpgemm_status_t read_groups(const lpgemm_groups_t *from, lpg_request *r, lpgemm_groups_t *groups) {
  LPG_CHECK(from, LPGEMM_NULL_POINTER, "groups is NULL");
  LPG_TRY(lpgemm_i_copy_struct(groups, sizeof *groups, sizeof *groups, from, "groups"));
  LPG_TRY(lpgemm_i_check_reserved(groups->reserved, 4, "groups"));
  LPG_CHECK(groups->x_rows >= 0 && groups->x_rows <= INT32_MAX, LPGEMM_INVALID_SIZE,
            "groups.x_rows is %lld; it must be 0 (as many as m) to %d", (long long)groups->x_rows, INT32_MAX);
  LPG_CHECK(groups->row || groups->x_rows == 0 || groups->x_rows == r->args.m, LPGEMM_INVALID_ARGUMENT,
            "groups.x_rows is %lld, but groups.row is NULL; X has m = %lld rows then", (long long)groups->x_rows,
            (long long)r->args.m);
  r->x_rows = groups->x_rows ? groups->x_rows : r->args.m;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_groups(const lpg_request *r, const lpgemm_groups_t *groups) {
  LPG_TRY(lpgemm_i_check_pointer("groups.offsets", groups->offsets, LPGEMM_I32));
  if (groups->row) LPG_TRY(lpgemm_i_check_pointer("groups.row", groups->row, LPGEMM_I32));
  LPG_CHECK(r->args.n_begin == 0 && r->args.n_end == r->call.problem.weights->desc.n, LPGEMM_NOT_SUPPORTED,
            "n_begin is %lld and n_end %lld; a product with experts has all rows of W", (long long)r->args.n_begin,
            (long long)r->args.n_end);
  return LPGEMM_SUCCESS;
}

/* ---- the work ---- */

/* X quantised, by number of row and in the order of columns, where that is asked for. */
static lpgemm_status_t prepare_x(lpgemm_handle_t handle, lpg_grouped *p, const lpgemm_groups_t *groups,
                                 const memory *m) {
  lpg_request *r = &p->r;
  lpg_call *call = &r->call;
  const lpg_packed *packed = call->problem.weights;
  uint8_t *own = handle->workspace;
  if (r->args.quantize_x) {
    float *scale = (float *)(void *)(own + m->code_scales);
    LPG_TRY(handle->backend->quantize_activations(handle, r->x_rows, packed->x_k, call->x, r->args.x_type, call->ldx,
                                                  r->args.quantize_x, own + m->codes, packed->x_k, scale,
                                                  LPGEMM_X_SCALE_ROW));
    call->x = own + m->codes;
    call->ldx = packed->x_k;
    call->x_scale = scale;
  }
  if (!groups->row && !packed->desc.columns) return LPGEMM_SUCCESS;
  if (groups->row && lpgemm_i_try_by_row(p, call->x, call->ldx, groups->row, r->x_rows)) return LPGEMM_SUCCESS;
  const int has_scales = groups->row && call->problem.x_scale_mode == LPGEMM_X_SCALE_ROW;
  lpg_gather gather = lpg_gather_of(call);
  gather.rows = r->args.m;
  gather.row = groups->row;
  gather.x_rows = r->x_rows;
  gather.out = own + m->rows;
  gather.ldo = m->ld;
  if (has_scales) {
    gather.x_scale = call->x_scale;
    gather.out_scale = (float *)(void *)(own + m->row_scales);
  }
  LPG_TRY(handle->backend->gather_rows(handle, &gather));
  call->x = gather.out;
  call->ldx = gather.ldo;
  if (has_scales) call->x_scale = gather.out_scale;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_run_grouped(lpgemm_handle_t handle, const lpgemm_run_args_t *args,
                                   const lpgemm_groups_t *groups) {
  lpg_grouped p;
  lpg_request *r = &p.r;
  lpgemm_groups_t g;
  LPG_TRY(lpgemm_i_read_args(handle, args, r));
  LPG_TRY(lpgemm_i_check_pair(handle, r->args.weights));
  const lpg_packed *packed = &r->args.weights->packed;
  LPG_TRY(read_groups(groups, r, &g));
  LPG_TRY(lpgemm_i_open_product(handle, &p, g.row || packed->desc.columns, 0));
  LPG_TRY(check_groups(r, &g));
  const memory m = plan_memory(r, r->x_rows, g.row != NULL);
  LPG_CHECK(
      handle->workspace_bytes >= m.bytes, LPGEMM_WORKSPACE_TOO_SMALL,
      "the workspace has %zu bytes, but X as it is dealt out to experts needs %zu; see lpgemm_workspace_size() and "
      "lpgemm_set_workspace()",
      handle->workspace_bytes, m.bytes);
  LPG_TRY(lpgemm_i_choose_product(handle, &p, handle->workspace_bytes - m.bytes));
  if (r->args.m == 0 || packed->desc.n == 0) return LPGEMM_SUCCESS;
  const lpg_scalars scalars = {r->args.alpha, r->args.beta, LPGEMM_F32};
  LPG_TRY(lpgemm_i_read_scalars(r, handle, &scalars));
  LPG_TRY(lpgemm_i_check_pointers(r, packed));
  lpgemm_i_fill_call(handle, r);
  r->call.offsets = g.offsets;
  void *rest = handle->workspace_bytes > m.bytes ? (uint8_t *)handle->workspace + m.bytes : NULL;
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = r->call.skip_product ? LPGEMM_SUCCESS : prepare_x(handle, &p, &g, &m);
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_run_product(handle, &p, rest);
  lpgemm_i_leave(handle, before);
  return status;
}
