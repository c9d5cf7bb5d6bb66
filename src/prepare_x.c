/* X made ready once for several products: what lies in args.prepared_x, and what a run takes of it.
 *
 *     header | scales of quantize_x | its codes | the order of columns | X in that order | what the kernel made of X
 *
 * Where the parts lie follows from the arguments of a call, never from the bytes. The order is kept whole, to be
 * compared: a hash of it would be no cheaper. */
#include "dispatch/dispatch.h"
#include "request.h"

static const char mark[16] = "lpgemm prepared";

typedef struct header {
  char mark[16];
  int64_t m, x_k, k;      /* k: of the weights, where they have an order of columns; else 0 */
  uint64_t bytes;         /* of all */
  const lpg_x_form *form; /* compared, not followed */
  lpgemm_dtype_t x_type, quantized;
  int32_t variant;
  uint32_t unused;
} header;

enum { HEADER_BYTES = 128 };
_Static_assert(sizeof(header) <= HEADER_BYTES, "the header has grown");

/* Where the parts begin. */
typedef struct layout {
  size_t scale, codes, order, ordered, made, bytes;
} layout;

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t made_bytes(const lpg_request *r, const lpg_kernel *kernel) {
  return kernel->x_form && r->args.m > 0 ? kernel->x_form->bytes(&r->call.problem) : 0;
}

static layout layout_of(const lpg_request *r, const lpg_kernel *kernel) {
  const lpg_packed *packed = r->call.problem.weights;
  const int is_ordered = packed->desc.columns == LPGEMM_COLUMNS_ORDERED;
  layout at;
  at.scale = HEADER_BYTES;
  at.codes = at.scale + lines(r->scale_bytes);
  at.order = at.codes + lines(r->quantized_bytes);
  at.ordered = at.order + lines(is_ordered ? (size_t)packed->desc.k * sizeof(int32_t) : 0);
  at.made = at.ordered + lines(r->ordered_bytes);
  at.bytes = at.made + lines(made_bytes(r, kernel));
  return at;
}

static header header_of(const lpg_request *r, const lpg_kernel *kernel, const layout *at) {
  const lpg_packed *packed = r->call.problem.weights;
  header h = {.m = r->args.m,
              .x_k = packed->x_k,
              .k = packed->desc.columns == LPGEMM_COLUMNS_ORDERED ? packed->desc.k : 0,
              .bytes = at->bytes,
              .form = kernel->x_form,
              .x_type = r->args.x_type,
              .quantized = r->args.quantize_x,
              .variant = kernel->x_form ? kernel->x_form->variant(&r->call.problem) : 0};
  memcpy(h.mark, mark, sizeof mark);
  return h;
}

static lpgemm_status_t check_backend(const lpg_device *device) {
  LPG_CHECK(device->backend == LPGEMM_BACKEND_CPU, LPGEMM_NOT_SUPPORTED,
            "prepared_x is for the CPU backend; kernels on CUDA read x itself");
  return LPGEMM_SUCCESS;
}

/* ---- making it ---- */

/* As a run would begin: the arguments, and the kernel that it would take. */
static lpgemm_status_t begin(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_request *r,
                             lpg_planned *own_plan, const lpg_kernel **kernel) {
  LPG_TRY(lpgemm_i_read_args(handle, args, r));
  LPG_TRY(lpgemm_i_check_pair(handle, r->args.weights));
  LPG_TRY(check_backend(&handle->device));
  const lpg_packed *packed = &r->args.weights->packed;
  LPG_TRY(lpgemm_i_refuse_stack(packed, "this call"));
  LPG_TRY(lpgemm_i_make_problem(handle, r, packed, r->args.weights->content.scale_span));
  lpgemm_i_set_workspace(handle, r);
  return lpgemm_i_choose_for_run(handle, r->args.weights, &r->call.problem, r->forced, own_plan, kernel,
                                 &r->call.planned);
}

lpgemm_status_t lpgemm_prepared_x_size(lpgemm_handle_t handle, const lpgemm_run_args_t *args, size_t *bytes) {
  lpg_request r;
  lpg_planned own_plan;
  const lpg_kernel *kernel;
  LPG_TRY(begin(handle, args, &r, &own_plan, &kernel));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  *bytes = layout_of(&r, kernel).bytes;
  return LPGEMM_SUCCESS;
}

/* From the first to the last element of a matrix. */
static size_t matrix_bytes(int64_t m, int64_t columns, int64_t ld, lpgemm_dtype_t type) {
  return m > 0 ? (size_t)((m - 1) * ld + columns) * (size_t)lpg_bytes(type) : 0;
}

static lpgemm_status_t check_memory(const char *name, const void *prepared, size_t bytes, const char *other,
                                    const void *matrix, size_t matrix_bytes) {
  const uintptr_t at = (uintptr_t)prepared, from = (uintptr_t)matrix;
  LPG_CHECK(prepared, LPGEMM_NULL_POINTER, "%s is NULL", name);
  LPG_CHECK(at % 64 == 0, LPGEMM_MISALIGNED, "%s is %p; it must be 64-byte aligned", name, prepared);
  LPG_CHECK(matrix_bytes == 0 || from + matrix_bytes <= at || at + bytes <= from, LPGEMM_INVALID_ARGUMENT,
            "%s is %p and %s is %p; they must not overlap", name, prepared, other, matrix);
  return LPGEMM_SUCCESS;
}

/* The parts, each from the one before. */
static lpgemm_status_t make_parts(lpgemm_handle_t handle, lpg_request *r, const lpg_kernel *kernel, const layout *at,
                                  uint8_t *out) {
  const lpgemm_run_args_t *a = &r->args;
  const lpg_packed *packed = r->call.problem.weights;
  lpg_call *call = &r->call;
  if (a->quantize_x) {
    LPG_TRY(handle->backend->quantize_activations(handle, a->m, packed->x_k, a->x, a->x_type, a->ldx, a->quantize_x,
                                                  out + at->codes, packed->x_k, (float *)(void *)(out + at->scale),
                                                  LPGEMM_X_SCALE_ROW));
    call->x = out + at->codes;
    call->ldx = packed->x_k;
  }
  if (r->ordered_bytes > 0) {
    const int32_t *order = (const int32_t *)(const void *)call->section[LPG_SECTION_COLUMN_ORDER];
    memcpy(out + at->order, order, (size_t)packed->desc.k * sizeof *order);
    LPG_TRY(handle->backend->gather(handle, packed, a->m, call->x, call->problem.x_type, call->ldx, order,
                                    out + at->ordered, r->ordered_ld));
    call->x = out + at->ordered;
    call->ldx = r->ordered_ld;
  }
  return kernel->x_form && packed->desc.k > 0 ? kernel->x_form->make(call, out + at->made) : LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_prepare_x(lpgemm_handle_t handle, const lpgemm_run_args_t *args, void *prepared,
                                 size_t prepared_bytes) {
  lpg_request r;
  lpg_planned own_plan;
  const lpg_kernel *kernel;
  LPG_TRY(begin(handle, args, &r, &own_plan, &kernel));
  const lpg_packed *packed = r.call.problem.weights;
  if (r.args.m > 0 && packed->desc.k > 0) LPG_TRY(lpgemm_i_check_pointer("x", r.args.x, r.args.x_type));
  const layout at = layout_of(&r, kernel);
  LPG_TRY(check_memory("prepared", prepared, at.bytes, "x", r.args.x,
                       matrix_bytes(r.args.m, packed->x_k, r.args.ldx, r.args.x_type)));
  LPG_CHECK(prepared_bytes >= at.bytes, LPGEMM_BUFFER_TOO_SMALL,
            "prepared_bytes is %zu; lpgemm_prepared_x_size() "
            "says %zu for these args",
            prepared_bytes, at.bytes);
  memset(prepared, 0, HEADER_BYTES); /* nothing, should it fail */
  if (r.args.m > 0) {
    lpgemm_i_fill_call(handle, &r);
    LPG_TRY(make_parts(handle, &r, kernel, &at, prepared));
  }
  const header h = header_of(&r, kernel, &at);
  memcpy(prepared, &h, sizeof h);
  return LPGEMM_SUCCESS;
}

/* ---- taking it ---- */

lpgemm_status_t lpgemm_i_read_prepared(lpg_request *r, const lpg_kernel *kernel) {
  const lpgemm_run_args_t *a = &r->args;
  const lpg_packed *packed = r->call.problem.weights;
  const uint8_t *from = a->prepared_x;
  const layout at = layout_of(r, kernel);
  const header mine = header_of(r, kernel, &at);
  header h;
  LPG_TRY(check_backend(r->call.device));
  LPG_TRY(check_memory("prepared_x", from, a->prepared_x_bytes, "y", a->y,
                       matrix_bytes(a->m, packed->outputs, a->ldy, a->y_type)));
  LPG_CHECK(a->prepared_x_bytes >= HEADER_BYTES, LPGEMM_BUFFER_TOO_SMALL,
            "prepared_x_bytes is %zu; it is what lpgemm_prepare_x() was given", a->prepared_x_bytes);
  memcpy(&h, from, sizeof h);
  LPG_CHECK(memcmp(h.mark, mark, sizeof mark) == 0, LPGEMM_INVALID_ARGUMENT,
            "prepared_x is %p, where no prepared X lies; lpgemm_prepare_x() must have made it", a->prepared_x);
  LPG_CHECK(h.m == a->m && h.x_k == packed->x_k && h.x_type == a->x_type && h.quantized == a->quantize_x,
            LPGEMM_INVALID_ARGUMENT,
            "prepared_x is of an X of %lld rows and %lld columns of %s, quantised to %s, and the call has %lld, %lld, "
            "%s and %s",
            (long long)h.m, (long long)h.x_k, lpgemm_dtype_name(h.x_type), lpgemm_dtype_name(h.quantized),
            (long long)a->m, (long long)packed->x_k, lpgemm_dtype_name(a->x_type), lpgemm_dtype_name(a->quantize_x));
  LPG_CHECK(h.bytes <= a->prepared_x_bytes, LPGEMM_BUFFER_TOO_SMALL,
            "prepared_x_bytes is %zu, and what lpgemm_prepare_x() made has %llu", a->prepared_x_bytes,
            (unsigned long long)h.bytes);
  if (r->call.skip_product || packed->desc.k == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(h.bytes >= at.order, LPGEMM_INVALID_ARGUMENT, "prepared_x is damaged");
  if (a->quantize_x) {
    r->prepared_codes = from + at.codes;
    r->prepared_scale = (const float *)(const void *)(from + at.scale);
  }
  if (h.k != mine.k) return LPGEMM_SUCCESS;
  LPG_CHECK(h.bytes >= at.made, LPGEMM_INVALID_ARGUMENT, "prepared_x is damaged");
  if (mine.k > 0) {
    const void *order = r->call.section[LPG_SECTION_COLUMN_ORDER];
    if (memcmp(from + at.order, order, (size_t)mine.k * sizeof(int32_t)) != 0) return LPGEMM_SUCCESS;
    r->prepared_order = from + at.ordered;
  }
  if (!mine.form || h.form != mine.form || h.variant != mine.variant) return LPGEMM_SUCCESS;
  LPG_CHECK(h.bytes == at.bytes, LPGEMM_INVALID_ARGUMENT, "prepared_x is damaged");
  r->call.made_x = from + at.made;
  return LPGEMM_SUCCESS;
}
