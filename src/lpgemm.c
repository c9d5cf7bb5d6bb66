/* Running: arguments -> problem -> choice -> launch. */
#include <math.h>

#include "cpu/cpu.h"
#include "dispatch/dispatch.h"
#include "internal.h"
#include "lut/lut.h"

/* Arguments as they came in, checked and with defaults resolved, and what they need of the workspace in front of the
 * kernel's own part.
 *
 * Weights with an order of columns multiply a copy of X in that order: one step in front of any kernel, so that no
 * kernel knows of it, and X is read in disorder once and not once for every tile of W. The copy lies in the workspace.
 * Where that has no room for it, the CPU backend, which often gets no workspace at all, multiplies some rows after the
 * others, with their copy in memory that the handle has had from the start. */
typedef struct request {
  lpgemm_run_args_t args;
  lpg_call call;
  const char *forced;
  size_t quantized_bytes, scale_bytes; /* of X quantised inside */
  size_t ordered_bytes;                /* of X in the order of columns; 0: it stays where it is */
  int64_t ordered_ld;                  /* whole vectors of 16 bytes */
  int in_handle;                       /* 1: that is memory of the handle */
  int64_t rows_at_once;                /* of X; 0: there is no room for the copy of one */
} request;

static size_t align256(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* ---- checks, one concern each ---- */

static lpgemm_status_t check_types(const request *r) {
  const lpgemm_run_args_t *a = &r->args;
  LPG_CHECK(lpg_is_x_type(a->x_type), LPGEMM_INVALID_TYPE,
            "x_type is %s (0x%x); it must be f16, bf16, f32, e4m3, e5m2 or an integer of 1 to 8 bits",
            lpgemm_dtype_name(a->x_type), (unsigned)a->x_type);
  LPG_CHECK(lpg_is_y_type(a->y_type), LPGEMM_INVALID_TYPE, "y_type is %s (0x%x); it must be f16, bf16, f32 or i32",
            lpgemm_dtype_name(a->y_type), (unsigned)a->y_type);
  LPG_CHECK(a->quantize_x == 0 || lpg_is_quantized_x(a->quantize_x), LPGEMM_INVALID_TYPE,
            "quantize_x is %s; it must be an integer of 1 to 8 bits, e4m3 or 0", lpgemm_dtype_name(a->quantize_x));
  LPG_CHECK(a->quantize_x == 0 || lpg_is_real(a->x_type), LPGEMM_INVALID_ARGUMENT,
            "quantize_x is %s, but x_type is %s; only f16, bf16 and f32 are quantised inside",
            lpgemm_dtype_name(a->quantize_x), lpgemm_dtype_name(a->x_type));
  LPG_CHECK((int)a->x_scale_mode >= 0 && a->x_scale_mode <= LPGEMM_X_SCALE_ROW, LPGEMM_INVALID_ARGUMENT,
            "x_scale_mode is %d; it must be an LPGEMM_X_SCALE_ value", (int)a->x_scale_mode);
  LPG_CHECK(a->x_scale_mode == LPGEMM_X_SCALE_NONE || !lpg_is_real(a->x_type), LPGEMM_INVALID_ARGUMENT,
            "x_scale_mode is %d, but x_type is %s; only 8-bit and narrower X has scales", (int)a->x_scale_mode,
            lpgemm_dtype_name(a->x_type));
  LPG_CHECK(lpg_is_activation(a->activation), LPGEMM_INVALID_ARGUMENT,
            "activation is %d; it must be an LPGEMM_ACTIVATION_ value", (int)a->activation);
  LPG_CHECK((int)a->level >= 0 && a->level <= LPGEMM_LEVEL_FAST, LPGEMM_INVALID_ARGUMENT,
            "level is %d; it must be LPGEMM_LEVEL_EXACT or LPGEMM_LEVEL_FAST", (int)a->level);
  LPG_CHECK(a->batch_invariant == 0 || a->batch_invariant == 1, LPGEMM_INVALID_ARGUMENT,
            "batch_invariant is %d; it must be 0 or 1", a->batch_invariant);
  LPG_CHECK(!a->tables || a->quantize_x == 0, LPGEMM_INVALID_ARGUMENT,
            "tables and quantize_x are both given; tables already stand for x");
  LPG_CHECK(!a->bias || lpg_is_real(a->bias_type), LPGEMM_INVALID_TYPE, "bias_type is %s; it must be f16, bf16 or f32",
            lpgemm_dtype_name(a->bias_type));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_sizes(const request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  LPG_CHECK(a->m >= 0, LPGEMM_INVALID_SIZE, "m is %lld; it must be 0 or more", (long long)a->m);
  LPG_CHECK(a->m <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "m is %lld; at most %d rows fit", (long long)a->m, INT32_MAX);
  LPG_TRY(lpgemm_i_check_ld("ldx", a->ldx, packed->desc.x_k ? "x_k" : "k", packed->x_k, a->m));
  LPG_TRY(lpgemm_i_check_ld("ldy", a->ldy, "n", packed->desc.n, a->m));
  return lpgemm_i_check_ld("ldc", a->ldc, "n", packed->desc.n, a->m);
}

/* The largest magnitude of an integer type's values minus a zero. */
static int64_t largest_integer(const lpgemm_weight_desc_t *desc, lpgemm_dtype_t type) {
  int64_t low = lpg_integer_offset(type), high = low + (int64_t)lpg_integer_step(type) * ((1 << lpg_bits(type)) - 1);
  int64_t zero_low = 0, zero_high = 0;
  if (desc && desc->zero == LPGEMM_ZERO_CONSTANT) zero_low = zero_high = (int64_t)desc->zero_constant;
  if (desc && desc->zero == LPGEMM_ZERO_PER_GROUP) zero_high = INT64_C(1) << lpg_bits(type);
  int64_t down = zero_high - low, up = high - zero_low;
  return down > up ? down : up;
}

/* What integer output asks of the operands. */
static lpgemm_status_t check_int32(const request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  const lpgemm_weight_desc_t *d = &packed->desc;
  LPG_CHECK(!a->tables, LPGEMM_NOT_SUPPORTED, "y_type is i32, and tables are given; int32 output needs x itself");
  LPG_CHECK(lpg_is_integer_kind(a->x_type) && a->x_scale_mode == LPGEMM_X_SCALE_NONE, LPGEMM_NOT_SUPPORTED,
            "y_type is i32, but x is %s%s; int32 output needs integer X without scales", lpgemm_dtype_name(a->x_type),
            a->x_scale_mode != LPGEMM_X_SCALE_NONE ? " with scales" : "");
  LPG_CHECK(lpg_is_integer_kind(d->type) && d->scale_type == 0 && d->global_scale == 1.0f && d->row_scales == 0,
            LPGEMM_NOT_SUPPORTED,
            "y_type is i32, but the weights are %s with %s scales; int32 output needs integer weights without scales",
            lpgemm_dtype_name(d->type),
            d->scale_type   ? lpgemm_dtype_name(d->scale_type)
            : d->row_scales ? "row"
                            : "global");
  LPG_CHECK(d->zero == LPGEMM_ZERO_NONE ||
                (d->zero == LPGEMM_ZERO_CONSTANT && fabsf(d->zero_constant) <= 256.0f &&
                 d->zero_constant == (float)(int)d->zero_constant) ||
                (d->zero == LPGEMM_ZERO_PER_GROUP && !lpg_is_real(d->zero_type)),
            LPGEMM_NOT_SUPPORTED, "y_type is i32, but the weights' zeros are not integers of magnitude 256 or less");
  LPG_CHECK(!a->bias && a->activation == LPGEMM_ACTIVATION_NONE, LPGEMM_NOT_SUPPORTED,
            "y_type is i32; int32 output has no bias and no activation");
  int64_t most = largest_integer(d, d->type) * largest_integer(NULL, a->x_type);
  LPG_CHECK(most == 0 || d->k <= INT32_MAX / most, LPGEMM_SIZE_OVERFLOW,
            "y_type is i32, but k = %lld products of up to %lld could exceed int32; use f32 output", (long long)d->k,
            (long long)most);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_pointer(const char *name, const void *pointer, lpgemm_dtype_t type) {
  LPG_CHECK(pointer, LPGEMM_NULL_POINTER, "%s is NULL", name);
  LPG_CHECK((uintptr_t)pointer % (uintptr_t)lpg_bytes(type) == 0, LPGEMM_MISALIGNED,
            "%s is %p; it must be aligned to its element type %s", name, pointer, lpgemm_dtype_name(type));
  return LPGEMM_SUCCESS;
}

/* Whether one of the two begins in the other, where that one's rows leave no gaps: rows of both may take turns. */
static int overlap(const lpgemm_run_args_t *a, const lpg_packed *packed) {
  const uintptr_t x = (uintptr_t)a->x, y = (uintptr_t)a->y;
  const uint64_t k = (uint64_t)packed->x_k, n = (uint64_t)packed->desc.n, m = (uint64_t)a->m;
  if (k == 0 || n == 0 || m == 0) return 0;
  const int in_x = a->ldx == packed->x_k && y >= x && y - x < m * k * (uint64_t)lpg_bytes(a->x_type);
  const int in_y = a->ldy == packed->desc.n && x >= y && x - y < m * n * (uint64_t)lpg_bytes(a->y_type);
  return x == y || in_x || in_y;
}

static lpgemm_status_t check_x(const request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  if (a->tables) {
    LPG_TRY(lpgemm_i_check_tables(a->tables, a->tables_bytes, a->m, packed->desc.k, "y", a->y, packed->desc.n, a->ldy,
                                  a->y_type));
  } else {
    LPG_CHECK(a->tables_bytes == 0, LPGEMM_NULL_POINTER, "tables is NULL, but tables_bytes is %zu", a->tables_bytes);
    if (packed->desc.k > 0) LPG_TRY(check_pointer("x", a->x, a->x_type));
    LPG_CHECK(!overlap(a, packed), LPGEMM_INVALID_ARGUMENT,
              "x is %p and y is %p; one lies in the other, and they must not overlap", a->x, a->y);
  }
  if (a->x_scale_mode != LPGEMM_X_SCALE_NONE) return check_pointer("x_scale", a->x_scale, LPGEMM_F32);
  LPG_CHECK(!a->x_scale, LPGEMM_INVALID_ARGUMENT, "x_scale is given, but x_scale_mode is LPGEMM_X_SCALE_NONE");
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_pointers(const request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  LPG_TRY(check_pointer("y", a->y, a->y_type));
  LPG_TRY(check_x(r, packed));
  if (a->bias) LPG_TRY(check_pointer("bias", a->bias, a->bias_type));
  if (r->call.c) {
    LPG_TRY(check_pointer("c", r->call.c, a->y_type));
    LPG_CHECK(r->call.c != a->y || a->ldc == a->ldy, LPGEMM_INVALID_ARGUMENT,
              "c is y, but ldc = %lld is not ldy = %lld", (long long)a->ldc, (long long)a->ldy);
  }
  return LPGEMM_SUCCESS;
}

/* ---- alpha and beta ---- */

static float read_scalar(const void *pointer, lpgemm_dtype_t type, float otherwise) {
  if (!pointer) return otherwise;
  if (type == LPGEMM_I32) return (float)*(const int32_t *)pointer;
  return lpg_load(type, pointer, 0);
}

static lpgemm_status_t read_scalars(request *r, const lpgemm_handle_t handle, const lpg_scalars *scalars) {
  lpg_call *call = &r->call;
  call->scalar_type = scalars->type;
  call->alpha = 1.0f;
  if (handle->pointer_mode == LPGEMM_POINTER_DEVICE && handle->device.backend == LPGEMM_BACKEND_CUDA) {
    call->device_alpha = scalars->alpha;
    call->device_beta = scalars->beta;
    LPG_CHECK(!scalars->beta || r->args.c, LPGEMM_NULL_POINTER, "beta is given in device memory, but c is NULL");
    call->c = scalars->beta ? r->args.c : NULL;
    return LPGEMM_SUCCESS;
  }
  call->alpha = read_scalar(scalars->alpha, scalars->type, 1.0f);
  call->beta = read_scalar(scalars->beta, scalars->type, 0.0f);
  call->skip_product = call->alpha == 0.0f;
  LPG_CHECK(call->beta == 0.0f || r->args.c, LPGEMM_NULL_POINTER, "beta is %g, but c is NULL", (double)call->beta);
  call->c = call->beta != 0.0f ? r->args.c : NULL;
  if (r->args.y_type == LPGEMM_I32) {
    LPG_CHECK((call->alpha == 0.0f || call->alpha == 1.0f) && (call->beta == 0.0f || call->beta == 1.0f),
              LPGEMM_INVALID_ARGUMENT, "alpha is %g and beta %g; with int32 output each must be 0 or 1",
              (double)call->alpha, (double)call->beta);
  }
  return LPGEMM_SUCCESS;
}

/* ---- from arguments to a request ---- */

static lpgemm_status_t read_args(lpgemm_handle_t handle, const lpgemm_run_args_t *args, request *r) {
  memset(r, 0, sizeof *r);
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(args, LPGEMM_NULL_POINTER, "args is NULL");
  LPG_TRY(lpgemm_i_copy_struct(&r->args, sizeof r->args, LPG_LEAST_RUN_ARGS, args, "args"));
  LPG_TRY(lpgemm_i_check_reserved(r->args.reserved, 4, "args"));
  return LPGEMM_SUCCESS;
}

/* Where X lies, if the call says: what is quantised inside lies in the workspace, row after row. */
static int x_is_unaligned(const request *r) {
  const lpgemm_run_args_t *a = &r->args;
  const int64_t k = r->call.problem.weights->desc.k;
  if (r->ordered_bytes) return 0;
  if (a->quantize_x) return k % 16 != 0;
  return (uintptr_t)a->x % 16 != 0 || a->ldx * lpg_bytes(a->x_type) % 16 != 0 || a->ldx >= INT64_C(1) << 39;
}

/* Resolves defaults, checks everything but pointers and scalars, and fills the problem. */
static lpgemm_status_t make_problem(lpgemm_handle_t handle, request *r, const lpg_packed *packed, uint32_t scale_span) {
  lpgemm_run_args_t *a = &r->args;
  if (a->x_type == 0) a->x_type = handle->default_type;
  if (a->y_type == 0) a->y_type = handle->default_type;
  if (a->bias_type == 0) a->bias_type = a->y_type;
  if (a->ldx == 0) a->ldx = packed->x_k;
  if (a->ldy == 0) a->ldy = packed->desc.n;
  if (a->ldc == 0) a->ldc = packed->desc.n;
  LPG_TRY(check_types(r));
  LPG_TRY(check_sizes(r, packed));
  LPG_TRY(lpgemm_i_check_slice(handle, packed, a));
  if (a->y_type == LPGEMM_I32) LPG_TRY(check_int32(r, packed));
  lpg_problem *p = &r->call.problem;
  p->weights = packed;
  p->scale_span = scale_span;
  p->m = a->m;
  p->x_type = a->quantize_x ? a->quantize_x : a->x_type;
  p->y_type = a->y_type;
  p->x_scale_mode = a->quantize_x ? LPGEMM_X_SCALE_ROW : a->x_scale_mode;
  p->level = a->level;
  p->batch_invariant = a->batch_invariant;
  p->tables = a->tables != NULL;
  p->workspace = SIZE_MAX;
  r->forced = a->kernel ? a->kernel : handle->forced_kernel;
  r->rows_at_once = a->m;
  if (a->quantize_x) {
    r->quantized_bytes = align256((size_t)a->m * (size_t)packed->x_k);
    r->scale_bytes = align256((size_t)a->m * sizeof(float));
  }
  if (packed->desc.columns) {
    LPG_CHECK(!a->tables, LPGEMM_NOT_SUPPORTED,
              "tables are given, but the columns of the weights have an order of their own; those need x itself");
    r->ordered_ld = lpg_round_up(packed->desc.k, 16 / lpg_bytes(p->x_type));
    r->ordered_bytes = align256((size_t)a->m * (size_t)r->ordered_ld * (size_t)lpg_bytes(p->x_type));
  }
  p->x_unaligned = x_is_unaligned(r);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t choose(lpgemm_handle_t handle, const request *r, lpg_choice *choice) {
  return lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &r->call.problem, &handle->device, handle->tuning,
                         r->forced, choice);
}

/* What stands in front of the kernel's part of the workspace. */
static size_t own_bytes(const request *r) {
  return r->quantized_bytes + r->scale_bytes + (r->in_handle ? 0 : r->ordered_bytes);
}

/* Where X in the order of columns goes, and what the handle's workspace leaves for a kernel. */
static void set_workspace(lpgemm_handle_t handle, request *r) {
  const size_t all = handle->workspace_bytes;
  r->in_handle = all < own_bytes(r) && r->ordered_bytes > 0 && handle->ordered_x;
  if (r->in_handle) {
    const size_t row = (size_t)r->ordered_ld * (size_t)lpg_bytes(r->call.problem.x_type);
    r->rows_at_once = (int64_t)(LPG_ORDERED_BYTES / row);
  }
  const size_t own = own_bytes(r);
  r->call.problem.workspace = all > own ? all - own : 0;
}

/* The same for a run: a problem that the handle had before costs no choice. */
static lpgemm_status_t choose_for_run(lpgemm_handle_t handle, request *r, lpg_choice *choice) {
  if ((r->forced && *r->forced) || lpgemm_i_log_level() == LPGEMM_LOG_DISPATCH) {
    LPG_TRY(choose(handle, r, choice));
    r->call.planned = &choice->planned;
    return LPGEMM_SUCCESS;
  }
  lpg_remembered *remembered;
  LPG_TRY(lpgemm_i_remember(handle, r->args.weights, &r->call.problem, &remembered));
  choice->kernel = remembered->kernel;
  r->call.planned = &remembered->planned;
  return LPGEMM_SUCCESS;
}

/* ---- launch ---- */

static void fill_call(lpgemm_handle_t handle, request *r) {
  const lpgemm_run_args_t *a = &r->args;
  lpg_call *call = &r->call;
  lpgemm_weights_t w = a->weights;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    call->section[i] = w->packed.section[i].bytes ? w->memory + w->packed.section[i].offset : NULL;
  }
  call->row_scales = (const float *)(const void *)call->section[LPG_SECTION_ROW_SCALES];
  call->x = a->x;
  call->ldx = a->ldx;
  call->x_scale = a->x_scale;
  call->tables = a->tables;
  call->y = a->y;
  call->ldy = a->ldy;
  call->ldc = a->ldc;
  call->bias = a->bias;
  call->bias_type = a->bias_type;
  call->activation = a->activation;
  call->device = &handle->device;
  call->stream = handle->stream;
  call->pool = handle->pool;
  if (w->packed.desc.k == 0) call->skip_product = 1;
}

static lpgemm_status_t quantize_inside(lpgemm_handle_t handle, request *r) {
  const lpgemm_run_args_t *a = &r->args;
  uint8_t *codes = handle->workspace;
  float *scale = (float *)(void *)(codes + r->quantized_bytes);
  const int64_t k = r->call.problem.weights->x_k;
  LPG_TRY(handle->backend->quantize_activations(handle, a->m, k, a->x, a->x_type, a->ldx, a->quantize_x, codes, k,
                                                scale, LPGEMM_X_SCALE_ROW));
  r->call.x = codes;
  r->call.ldx = k;
  r->call.x_scale = scale;
  return LPGEMM_SUCCESS;
}

/* X in the order of columns, all rows of it or some after the others. */
static lpgemm_status_t multiply_ordered(lpgemm_handle_t handle, const request *r, const lpg_kernel *kernel) {
  const lpg_call *whole = &r->call;
  const lpg_packed *packed = whole->problem.weights;
  const int64_t x_bytes = lpg_bytes(whole->problem.x_type), y_bytes = lpg_bytes(whole->problem.y_type);
  const int32_t *order = (const int32_t *)(const void *)whole->section[LPG_SECTION_COLUMN_ORDER];
  uint8_t *ordered = r->in_handle ? handle->ordered_x : (uint8_t *)handle->workspace + own_bytes(r) - r->ordered_bytes;
  for (int64_t row = 0; row < whole->problem.m; row += r->rows_at_once) {
    lpg_call call = *whole;
    const int64_t left = whole->problem.m - row;
    call.problem.m = left < r->rows_at_once ? left : r->rows_at_once;
    LPG_TRY(handle->backend->gather(handle, packed, call.problem.m,
                                    (const uint8_t *)whole->x + row * whole->ldx * x_bytes, whole->problem.x_type,
                                    whole->ldx, order, ordered, r->ordered_ld));
    call.x = ordered;
    call.ldx = r->ordered_ld;
    if (whole->problem.x_scale_mode == LPGEMM_X_SCALE_ROW) call.x_scale = whole->x_scale + row;
    call.y = (uint8_t *)whole->y + row * whole->ldy * y_bytes;
    if (whole->c) call.c = (const uint8_t *)whole->c + row * whole->ldc * y_bytes;
    LPG_TRY(kernel->launch(&call));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t launch(lpgemm_handle_t handle, request *r, const lpg_kernel *kernel) {
  int32_t before;
  double start = 0;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  lpgemm_status_t status = lpgemm_i_profile_start(handle, &start);
  if (status == LPGEMM_SUCCESS && r->args.quantize_x && !r->call.skip_product) status = quantize_inside(handle, r);
  if (status == LPGEMM_SUCCESS) {
    const int is_ordered = r->ordered_bytes > 0 && !r->call.skip_product;
    status = is_ordered ? multiply_ordered(handle, r, kernel) : kernel->launch(&r->call);
  }
  if (status == LPGEMM_SUCCESS) status = lpgemm_i_profile_end(handle, &r->call.problem, kernel->name, start);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_i_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args, const lpg_scalars *scalars,
                             int check_only) {
  request r;
  lpg_choice choice;
  LPG_TRY(read_args(handle, args, &r));
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  const lpg_packed *packed = &r.args.weights->packed;
  LPG_TRY(make_problem(handle, &r, packed, r.args.weights->content.scale_span));
  set_workspace(handle, &r);
  LPG_TRY(choose_for_run(handle, &r, &choice));
  const lpg_kernel *kernel = choice.kernel;
  if (r.args.m == 0 || packed->desc.n == 0) return LPGEMM_SUCCESS;
  LPG_TRY(read_scalars(&r, handle, scalars));
  LPG_TRY(check_pointers(&r, packed));
  size_t own = own_bytes(&r);
  LPG_CHECK(r.rows_at_once > 0, LPGEMM_WORKSPACE_TOO_SMALL,
            "the workspace has %zu bytes, but X in the order of the weights' %lld columns needs %zu; see "
            "lpgemm_workspace_size() and lpgemm_set_workspace()",
            handle->workspace_bytes, (long long)packed->desc.k, own + r.ordered_bytes);
  size_t needed = own + lpgemm_i_workspace_of(kernel, &r.call.problem, &handle->device);
  LPG_CHECK(handle->workspace_bytes >= needed, LPGEMM_WORKSPACE_TOO_SMALL,
            "the workspace has %zu bytes, but kernel %s needs %zu; see lpgemm_workspace_size() and "
            "lpgemm_set_workspace()",
            handle->workspace_bytes, kernel->name, needed);
  if (check_only || r.args.n_begin == r.args.n_end) return LPGEMM_SUCCESS;
  fill_call(handle, &r);
  lpg_packed part;
  if (r.args.n_end - r.args.n_begin < packed->desc.n) lpgemm_i_slice(&r.call, r.args.n_begin, r.args.n_end, &part);
  r.call.workspace = needed > own ? (uint8_t *)handle->workspace + own : NULL;
  return launch(handle, &r, kernel);
}

lpgemm_status_t lpgemm_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args) {
  LPG_CHECK(args, LPGEMM_NULL_POINTER, "args is NULL");
  lpg_scalars scalars = {NULL, NULL, LPGEMM_F32};
  if (args->size >= LPG_LEAST_RUN_ARGS) { /* a struct that is too small is refused below */
    scalars.alpha = args->alpha;
    scalars.beta = args->beta;
  }
  return lpgemm_i_run(handle, args, &scalars, 0);
}

lpgemm_status_t lpgemm_matmul(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, const void *x, int64_t ldx,
                              void *y, int64_t ldy) {
  lpgemm_run_args_t args = {.size = sizeof args};
  args.weights = weights;
  args.m = m;
  args.x = x;
  args.ldx = ldx;
  args.y = y;
  args.ldy = ldy;
  return lpgemm_run(handle, &args);
}

/* ---- asking before running ---- */

lpgemm_status_t lpgemm_i_describe(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_problem *problem) {
  request r;
  LPG_TRY(read_args(handle, args, &r));
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  LPG_TRY(make_problem(handle, &r, &r.args.weights->packed, r.args.weights->content.scale_span));
  *problem = r.call.problem;
  return LPGEMM_SUCCESS;
}

/* Types and options of a caller who gives no data: the handle's defaults if args is NULL. */
static lpgemm_status_t read_options(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpgemm_weights_t weights,
                                    int64_t m, request *r) {
  lpgemm_run_args_t options = {.size = sizeof options};
  LPG_TRY(read_args(handle, args ? args : &options, r));
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_TRY(lpgemm_i_check_m_max(m));
  r->args.weights = weights;
  r->args.m = m;
  r->args.ldx = r->args.ldy = r->args.ldc = 0;
  return make_problem(handle, r, &weights->packed, weights->content.scale_span);
}

lpgemm_status_t lpgemm_workspace_size(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m_max,
                                      const lpgemm_run_args_t *args, size_t *bytes) {
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  request r;
  LPG_TRY(read_options(handle, args, weights, m_max, &r));
  const lpg_kernel *forced;
  if (r.forced && *r.forced) {
    LPG_TRY(lpgemm_i_name_kernel(lpgemm_i_registry, lpgemm_i_registry_count, "kernel", r.forced, &forced));
  }
  *bytes = own_bytes(&r) +
           lpgemm_i_workspace(lpgemm_i_registry, lpgemm_i_registry_count, &r.call.problem, &handle->device, r.forced);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                  lpgemm_dtype_t y_type, int64_t m) {
  request r = {.args = {.size = sizeof r.args, .m = m, .x_type = x_type, .y_type = y_type}};
  lpg_choice choice;
  lpg_packed packed;
  LPG_TRY(lpgemm_i_read_desc(desc, &packed));
  LPG_TRY(make_problem(handle, &r, &packed, 255));
  return choose(handle, &r, &choice);
}

lpgemm_status_t lpgemm_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                lpgemm_dtype_t y_type, int64_t m) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  return lpgemm_i_supports(handle, desc, x_type, y_type, m);
}

lpgemm_status_t lpgemm_explain(lpgemm_handle_t handle, const lpgemm_run_args_t *args, char *text, size_t text_bytes) {
  request r;
  LPG_TRY(read_args(handle, args, &r));
  LPG_CHECK(text, LPGEMM_NULL_POINTER, "text is NULL");
  LPG_CHECK(text_bytes > 0, LPGEMM_BUFFER_TOO_SMALL, "text_bytes is 0; one byte is the least");
  LPG_TRY(lpgemm_i_check_pair(handle, r.args.weights));
  LPG_TRY(make_problem(handle, &r, &r.args.weights->packed, r.args.weights->content.scale_span));
  set_workspace(handle, &r);
  const lpg_scalars scalars = {r.args.alpha, r.args.beta, LPGEMM_F32};
  LPG_TRY(read_scalars(&r, handle, &scalars));
  return lpgemm_i_explain(lpgemm_i_registry, lpgemm_i_registry_count, &r.call.problem, &handle->device, handle->tuning,
                          r.forced, text, text_bytes);
}
