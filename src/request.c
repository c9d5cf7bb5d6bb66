/* Arguments of a run -> checked ones and the problem. */
#include "request.h"

#include <math.h>

/* ---- checks, one concern each ---- */

static lpgemm_status_t check_types(const lpg_request *r) {
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
  LPG_CHECK(!a->bias || lpg_is_real(a->bias_type), LPGEMM_INVALID_TYPE, "bias_type is %s; it must be f16, bf16 or f32",
            lpgemm_dtype_name(a->bias_type));
  return LPGEMM_SUCCESS;
}

static int64_t x_rows(const lpg_request *r) { return r->x_rows ? r->x_rows : r->args.m; }

static lpgemm_status_t check_sizes(const lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  LPG_CHECK(a->m >= 0, LPGEMM_INVALID_SIZE, "m is %lld; it must be 0 or more", (long long)a->m);
  LPG_CHECK(a->m <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "m is %lld; at most %d rows fit", (long long)a->m, INT32_MAX);
  LPG_TRY(lpgemm_i_check_ld("ldx", a->ldx, packed->desc.x_k ? "x_k" : "k", packed->x_k, x_rows(r)));
  const char *outputs = packed->desc.rows == LPGEMM_ROWS_PAIRED ? "n / 2" : "n";
  LPG_TRY(lpgemm_i_check_ld("ldy", a->ldy, outputs, packed->outputs, a->m));
  return lpgemm_i_check_ld("ldc", a->ldc, outputs, packed->outputs, a->m);
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

static lpgemm_status_t check_pairs(const lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  if (packed->desc.rows == LPGEMM_ROWS_PLAIN) {
    LPG_CHECK(!a->gate, LPGEMM_INVALID_ARGUMENT,
              "gate is given, but the weights' rows are LPGEMM_ROWS_PLAIN; only pairs have a gate");
    return LPGEMM_SUCCESS;
  }
  LPG_CHECK(
      a->y_type != LPGEMM_I32, LPGEMM_NOT_SUPPORTED,
      "y_type is i32, but the weights' rows are LPGEMM_ROWS_PAIRED; a product of two sums needs f16, bf16 or f32");
  return LPGEMM_SUCCESS;
}

/* What integer output asks of the operands. */
static lpgemm_status_t check_int32(const lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  const lpgemm_weight_desc_t *d = &packed->desc;
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

lpgemm_status_t lpgemm_i_check_pointer(const char *name, const void *pointer, lpgemm_dtype_t type) {
  LPG_CHECK(pointer, LPGEMM_NULL_POINTER, "%s is NULL", name);
  LPG_CHECK((uintptr_t)pointer % (uintptr_t)lpg_bytes(type) == 0, LPGEMM_MISALIGNED,
            "%s is %p; it must be aligned to its element type %s", name, pointer, lpgemm_dtype_name(type));
  return LPGEMM_SUCCESS;
}

/* Whether one of the two begins in the other, where that one's rows leave no gaps: rows of both may take turns. */
static int overlap(const lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  const uintptr_t x = (uintptr_t)a->x, y = (uintptr_t)a->y;
  const uint64_t k = (uint64_t)packed->x_k, n = (uint64_t)packed->outputs, m = (uint64_t)a->m;
  if (k == 0 || n == 0 || m == 0) return 0;
  const int in_x = a->ldx == packed->x_k && y >= x && y - x < (uint64_t)x_rows(r) * k * (uint64_t)lpg_bytes(a->x_type);
  const int in_y = a->ldy == packed->outputs && x >= y && x - y < m * n * (uint64_t)lpg_bytes(a->y_type);
  return x == y || in_x || in_y;
}

static lpgemm_status_t check_x(const lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  if (packed->desc.k > 0) LPG_TRY(lpgemm_i_check_pointer("x", a->x, a->x_type));
  LPG_CHECK(a->prepared_x || a->prepared_x_bytes == 0, LPGEMM_NULL_POINTER,
            "prepared_x is NULL, but prepared_x_bytes is %zu", a->prepared_x_bytes);
  LPG_CHECK(!overlap(r, packed), LPGEMM_INVALID_ARGUMENT,
            "x is %p and y is %p; one lies in the other, and they must not overlap", a->x, a->y);
  if (a->x_scale_mode != LPGEMM_X_SCALE_NONE) return lpgemm_i_check_pointer("x_scale", a->x_scale, LPGEMM_F32);
  LPG_CHECK(!a->x_scale, LPGEMM_INVALID_ARGUMENT, "x_scale is given, but x_scale_mode is LPGEMM_X_SCALE_NONE");
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_read_gate(lpg_request *r) {
  lpg_gate *gate = &r->call.gate;
  lpgemm_gate_t g = {.size = sizeof g};
  if (r->args.gate) LPG_TRY(lpgemm_i_copy_struct(&g, sizeof g, sizeof g, r->args.gate, "gate"));
  LPG_TRY(lpgemm_i_check_reserved(g.reserved, 3, "gate"));
  LPG_CHECK(isfinite(g.alpha) && g.alpha >= 0.0f, LPGEMM_INVALID_ARGUMENT,
            "gate.alpha is %g; it must be positive, or 0 for 1", (double)g.alpha);
  LPG_CHECK(g.alpha == 0.0f || g.alpha == 1.0f || r->args.activation == LPGEMM_ACTIVATION_SILU, LPGEMM_INVALID_ARGUMENT,
            "gate.alpha is %g, but activation is %d; only LPGEMM_ACTIVATION_SILU has it", (double)g.alpha,
            (int)r->args.activation);
  LPG_CHECK(g.limit >= 0.0f, LPGEMM_INVALID_ARGUMENT, "gate.limit is %g; it must be positive, or 0 for none",
            (double)g.limit);
  LPG_CHECK(isfinite(g.up_offset), LPGEMM_INVALID_ARGUMENT, "gate.up_offset is %g; it must be finite",
            (double)g.up_offset);
  gate->alpha = g.alpha != 0.0f ? g.alpha : 1.0f;
  gate->limit = g.limit != 0.0f ? g.limit : INFINITY;
  gate->up_offset = g.up_offset;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_pointers(lpg_request *r, const lpg_packed *packed) {
  const lpgemm_run_args_t *a = &r->args;
  LPG_CHECK(!a->c || packed->desc.rows == LPGEMM_ROWS_PLAIN, LPGEMM_INVALID_ARGUMENT,
            "c is given, but the weights' rows are LPGEMM_ROWS_PAIRED; beta * C cannot be added to those");
  LPG_TRY(lpgemm_i_read_gate(r));
  LPG_TRY(lpgemm_i_check_pointer("y", a->y, a->y_type));
  LPG_TRY(check_x(r, packed));
  if (a->bias) LPG_TRY(lpgemm_i_check_pointer("bias", a->bias, a->bias_type));
  if (r->call.c) {
    LPG_TRY(lpgemm_i_check_pointer("c", r->call.c, a->y_type));
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

lpgemm_status_t lpgemm_i_read_scalars(lpg_request *r, lpgemm_handle_t handle, const lpg_scalars *scalars) {
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

lpgemm_status_t lpgemm_i_read_args(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_request *r) {
  memset(r, 0, sizeof *r);
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(args, LPGEMM_NULL_POINTER, "args is NULL");
  LPG_TRY(lpgemm_i_copy_struct(&r->args, sizeof r->args, LPG_LEAST_RUN_ARGS, args, "args"));
  LPG_TRY(lpgemm_i_check_reserved(r->args.reserved, 2, "args"));
  return LPGEMM_SUCCESS;
}

/* Where X lies, if the call says: what is quantised inside lies in the workspace, row after row. */
static int x_is_unaligned(const lpg_request *r) {
  const lpgemm_run_args_t *a = &r->args;
  const int64_t k = r->call.problem.weights->desc.k;
  if (r->ordered_bytes) return 0;
  if (a->quantize_x) return k % 16 != 0;
  return (uintptr_t)a->x % 16 != 0 || a->ldx * lpg_bytes(a->x_type) % 16 != 0 || a->ldx >= INT64_C(1) << 39;
}

size_t lpgemm_i_aligned_bytes(lpgemm_handle_t handle, const lpg_request *r) {
  enum { FEW_ROWS = 16 }; /* for them kernels were chosen that read X anywhere */
  const lpg_problem *p = &r->call.problem;
  const int64_t bytes = lpg_bytes(p->x_type), row_bytes = p->weights->desc.k * bytes;
  if (!handle->backend->align || !p->x_unaligned || p->m <= FEW_ROWS) return 0;
  if (bytes > 2) return 0;           /* fp32 has slow kernels alone, which read it anywhere */
  if (row_bytes % 16 != 0) return 0; /* kernels copy it themselves */
  return lpg_align256((size_t)p->m * (size_t)row_bytes);
}

/* Resolves defaults, checks everything but pointers and scalars, and fills the problem. */
lpgemm_status_t lpgemm_i_make_problem(lpgemm_handle_t handle, lpg_request *r, const lpg_packed *packed,
                                      uint32_t scale_span) {
  lpgemm_run_args_t *a = &r->args;
  if (a->x_type == 0) a->x_type = handle->default_type;
  if (a->y_type == 0) a->y_type = handle->default_type;
  if (a->bias_type == 0) a->bias_type = a->y_type;
  if (a->ldx == 0) a->ldx = packed->x_k;
  if (a->ldy == 0) a->ldy = packed->outputs;
  if (a->ldc == 0) a->ldc = packed->outputs;
  LPG_TRY(check_types(r));
  LPG_TRY(check_sizes(r, packed));
  LPG_TRY(lpgemm_i_check_slice(handle, packed, a));
  LPG_TRY(check_pairs(r, packed));
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
  p->paired = packed->desc.rows == LPGEMM_ROWS_PAIRED;
  p->activation = p->paired ? a->activation : LPGEMM_ACTIVATION_NONE;
  p->workspace = SIZE_MAX;
  r->forced = a->kernel ? a->kernel : handle->forced_kernel;
  r->rows_at_once = a->m;
  if (a->quantize_x) {
    r->quantized_bytes = lpg_align256((size_t)a->m * (size_t)packed->x_k);
    r->scale_bytes = lpg_align256((size_t)a->m * sizeof(float));
  }
  if (packed->desc.columns) {
    r->ordered_ld = lpg_round_up(packed->desc.k, 16 / lpg_bytes(p->x_type));
    r->ordered_bytes = lpg_align256((size_t)a->m * (size_t)r->ordered_ld * (size_t)lpg_bytes(p->x_type));
  }
  p->x_unaligned = x_is_unaligned(r);
  return LPGEMM_SUCCESS;
}

void lpgemm_i_fill_call(lpgemm_handle_t handle, lpg_request *r) {
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
  call->y = a->y;
  call->ldy = a->ldy;
  call->ldc = a->ldc;
  call->bias = a->bias;
  call->bias_type = a->bias_type;
  call->activation = a->activation;
  call->device = &handle->device;
  call->stream = handle->stream;
  call->pool = handle->pool;
  call->blob = w->memory;
  call->stride = w->packed.total_bytes;
  call->bias_stride = w->packed.desc.n;
  if (w->packed.desc.k == 0) call->skip_product = 1;
  if (call->skip_product) call->row_scales = NULL; /* what no product is multiplied by has no effect, NaN or not */
}

lpgemm_status_t lpgemm_i_refuse_stack(const lpg_packed *packed, const char *name) {
  LPG_CHECK(packed->experts == 1, LPGEMM_INVALID_ARGUMENT,
            "the weights are a stack of %lld experts, and %s takes one matrix; stacks are for lpgemm_run_grouped() and "
            "lpgemm_run_experts()",
            (long long)packed->experts, name);
  return LPGEMM_SUCCESS;
}
