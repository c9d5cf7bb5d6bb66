/* Routings, products with stacks, and products of pairs: against a sort on the host and the fp64 reference. */
#include <math.h>

#include "compare.h"
#include "problem.h"
#include "ref/experts_ref.h"
#include "ref/gemm_ref.h"
#include "stack.h"
#include "test.h"

static lpgemm_handle_t handle;

/* ---- routing ---- */

enum { UNIFORM, ONE_EXPERT, SAME, NONE, ONE_TOKEN_WITHOUT, EACH_ONCE, LAST, TWICE, WILD, ROUTINGS };

static int32_t draw_index(int kind, int64_t t, int64_t j, int64_t m, int32_t experts, int32_t first) {
  static const int32_t wild[] = {INT32_MIN, INT32_MAX, -1, INT32_MIN + 1, INT32_MAX - 1};
  const int32_t any = first + (int32_t)test_between(0, experts - 1);
  switch (kind) {
    case ONE_EXPERT: return first + experts / 2;
    case SAME: return first + (int32_t)(j % experts);
    case NONE: return j % 2 ? first - 1 : first + experts;
    case ONE_TOKEN_WITHOUT: return t == m / 2 ? -1 : any;
    case EACH_ONCE: return t < experts && j == 0 ? first + (int32_t)(experts - 1 - t) : first - 1;
    case LAST: return first + experts - 1;
    case TWICE: return first + (int32_t)(t % experts);
    case WILD: return test_between(0, 1) ? any : wild[test_between(0, 4)];
    default: return any;
  }
}

/* The view against a sort that is written down plainly: for each expert all slots in turn. */
static void check_routing(const lpgemm_route_args_t *a, const lpgemm_routing_view_t *v) {
  const int64_t slots = a->m * a->top_k;
  int64_t at = 0;
  for (int64_t e = 0; e < a->experts; e++) {
    CHECK_INT(v->offsets[e], at);
    for (int64_t s = 0; s < slots; s++) {
      if ((int64_t)a->expert[s] - a->first_expert != e) continue;
      CHECK_INT(v->position[s], at);
      CHECK_INT(v->token[at], s / a->top_k);
      at++;
    }
  }
  CHECK_INT(v->offsets[a->experts], at);
  CHECK_INT(*v->left_out, slots - at);
  for (; at < slots; at++) CHECK_INT(v->token[at], -1);
  for (int64_t s = 0; s < slots; s++) {
    const int64_t e = (int64_t)a->expert[s] - a->first_expert;
    if (e < 0 || e >= a->experts) CHECK_INT(v->position[s], -1);
  }
}

static void route_once(int kind, int64_t m, int32_t top_k, int32_t experts, int32_t first) {
  size_t bytes = 0, less = 0;
  int32_t *index = test_alloc((size_t)(m * top_k) * sizeof *index);
  for (int64_t s = 0; s < m * top_k; s++) index[s] = draw_index(kind, s / top_k, s % top_k, m, experts, first);
  CHECK_STATUS(lpgemm_route_size(handle, m, top_k, experts, &bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_route_size(handle, m / 2, top_k, experts, &less), LPGEMM_SUCCESS);
  CHECK(less <= bytes && bytes % 256 == 0);
  void *routing = test_alloc(bytes);
  lpgemm_route_args_t args = {.size = sizeof args, .m = m, .top_k = top_k, .experts = experts};
  args.first_expert = first;
  args.expert = index;
  lpgemm_routing_view_t view = {.size = sizeof view};
  for (int again = 0; again < 2; again++) { /* into what the first one has left, too */
    CHECK_STATUS(lpgemm_route(handle, &args, routing, bytes), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_routing_view(handle, &args, routing, &view), LPGEMM_SUCCESS);
    test_wait();
    check_routing(&args, &view);
  }
  test_free(routing);
  test_free(index);
}

static void routings(void) {
  static const struct {
    int64_t m;
    int32_t top_k, experts, first;
  } sizes[] = {{0, 2, 8, 0},     {1, 1, 1, 0},      {1, 8, 128, 0},  {7, 2, 8, 3},       {8, 8, 8, 0},
               {9, 3, 5, -2},    {15, 64, 64, 0},   {16, 6, 256, 0}, {17, 8, 128, 1000}, {63, 4, 32, -7},
               {64, 1, 3, 0},    {65, 8, 4096, 0},  {511, 8, 7, 0},  {512, 8, 64, 0},    {513, 8, 64, 5},
               {1000, 4, 40, 0}, {1000, 64, 100, 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (!test_case("experts/route/%d-%d-%d", (int)sizes[i].m, sizes[i].top_k, sizes[i].experts)) continue;
    for (int kind = 0; kind < ROUTINGS; kind++) {
      route_once(kind, sizes[i].m, sizes[i].top_k, sizes[i].experts, sizes[i].first);
    }
  }
  if (test_case("experts/route/ends")) { /* differences that int32 does not hold */
    const int32_t index[6] = {INT32_MIN, INT32_MAX, 0, -1, INT32_MIN + 3, INT32_MAX - 3};
    static const int32_t firsts[] = {INT32_MIN, INT32_MAX, INT32_MAX - 3, INT32_MIN + 1, 0};
    for (int i = 0; i < 5; i++) {
      size_t bytes = 0;
      int32_t *copy = test_alloc(sizeof index);
      memcpy(copy, index, sizeof index);
      CHECK_STATUS(lpgemm_route_size(handle, 3, 2, 4, &bytes), LPGEMM_SUCCESS);
      void *routing = test_alloc(bytes);
      lpgemm_route_args_t args = {.size = sizeof args, .m = 3, .top_k = 2, .experts = 4, .first_expert = firsts[i]};
      args.expert = copy;
      lpgemm_routing_view_t view = {.size = sizeof view};
      CHECK_STATUS(lpgemm_route(handle, &args, routing, bytes), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_routing_view(handle, &args, routing, &view), LPGEMM_SUCCESS);
      test_wait();
      check_routing(&args, &view);
      test_free(routing);
      test_free(copy);
    }
  }
}

/* ---- operands ---- */

/* Numbers around 1, or codes; scales make those of codes so too. */
static void *draw_x(lpgemm_dtype_t type, int64_t rows, int64_t columns, int64_t ld) {
  const int64_t count = rows > 0 ? (rows - 1) * ld + columns : 0;
  const int is_code = LPGEMM_DTYPE_KIND(type) != LPGEMM_KIND_REAL && LPGEMM_DTYPE_KIND(type) != LPGEMM_KIND_FLOAT;
  void *x = test_alloc((size_t)(count * ref_bytes(type)));
  for (int64_t i = 0; i < count; i++) {
    if (!is_code) {
      ref_store(type, x, i, test_uniform(-1, 1));
    } else if (type == LPGEMM_I8) {
      ((int8_t *)x)[i] = (int8_t)test_between(-127, 127);
    } else {
      ((uint8_t *)x)[i] = (uint8_t)test_between(0, (1 << lpgemm_dtype_bits(type)) - 1);
    }
  }
  return x;
}

static float *draw_scales(int64_t count) {
  float *scale = test_alloc((size_t)count * sizeof *scale);
  for (int64_t i = 0; i < count; i++) scale[i] = (float)test_uniform(0.5, 1.0) / 64.0f;
  return scale;
}

/* ---- products with a stack ---- */

typedef struct grouped_spec {
  lpgemm_weight_desc_t desc;
  int64_t m, x_rows; /* x_rows: by number of row */
  lpgemm_dtype_t x_type, y_type, bias_type, quantize_x;
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_activation_t activation;
  float alpha, beta;
  const lpgemm_gate_t *gate;
  int own_scales, pad, invariant;
} grouped_spec;

typedef struct grouped {
  grouped_spec spec;
  stack stack;
  lpgemm_run_args_t args;
  lpgemm_groups_t groups;
  int32_t *offsets, *row;
  void *x, *y, *c, *bias;
  float *x_scale;
  void *workspace;
} grouped;

static int64_t outputs_of(const lpgemm_weight_desc_t *d) { return d->rows == LPGEMM_ROWS_PAIRED ? d->n / 2 : d->n; }

static void grouped_make(grouped *g, const grouped_spec *spec) {
  memset(g, 0, sizeof *g);
  g->spec = *spec;
  stack_make(&g->stack, handle, &spec->desc, 1 / sqrt((double)spec->desc.k + 1), spec->own_scales);
  const lpgemm_weight_desc_t *d = &g->stack.desc;
  const int64_t k = sample_x_k(d), outputs = outputs_of(d), rows = spec->x_rows ? spec->x_rows : spec->m;
  const int experts = g->stack.experts;
  lpgemm_run_args_t *a = &g->args;
  a->size = sizeof *a;
  a->weights = g->stack.weights;
  a->m = spec->m;
  a->x_type = spec->x_type;
  a->y_type = spec->y_type;
  a->ldx = k + spec->pad;
  a->ldy = outputs + 3 * spec->pad;
  a->ldc = outputs + spec->pad;
  g->x = draw_x(spec->x_type, rows, k, a->ldx);
  g->y = test_alloc((size_t)(((spec->m > 0 ? spec->m - 1 : 0) * a->ldy + outputs) * ref_bytes(spec->y_type)));
  a->x = g->x;
  a->y = g->y;
  if (spec->alpha != 1.0f) a->alpha = &g->spec.alpha;
  if (spec->beta != 0.0f) {
    a->beta = &g->spec.beta;
    a->c = g->c = draw_x(spec->y_type, spec->m, outputs, a->ldc);
  }
  if (spec->bias_type) {
    a->bias_type = spec->bias_type;
    a->bias = g->bias = draw_x(spec->bias_type, experts, d->n, d->n);
  }
  a->activation = spec->activation;
  a->gate = spec->gate;
  a->x_scale_mode = spec->x_scale_mode;
  if (spec->x_scale_mode) a->x_scale = g->x_scale = draw_scales(rows);
  a->quantize_x = spec->quantize_x;
  a->batch_invariant = spec->invariant;
  g->offsets = test_alloc((size_t)(experts + 1) * sizeof *g->offsets);
  g->offsets[0] = 0;
  for (int e = 0; e < experts; e++) {
    const int64_t left = spec->m - g->offsets[e];
    g->offsets[e + 1] =
        g->offsets[e] + (test_between(0, 3) ? (int32_t)test_between(0, left / 2 + 1 < left ? left / 2 + 1 : left) : 0);
  }
  g->groups.size = sizeof g->groups;
  g->groups.offsets = g->offsets;
  if (spec->x_rows) {
    g->row = test_alloc((size_t)spec->m * sizeof *g->row);
    for (int64_t i = 0; i < spec->m; i++) {
      static const int32_t bad[] = {-1, INT32_MIN, INT32_MAX};
      g->row[i] = test_between(0, 9) ? (int32_t)test_between(0, spec->x_rows - 1) : bad[test_between(0, 2)];
      if (test_between(0, 19) == 0) g->row[i] = (int32_t)spec->x_rows;
    }
    g->groups.row = g->row;
    g->groups.x_rows = spec->x_rows;
  }
}

/* With a workspace of just what the library asks for, poisoned; one matrix needs rows of X more. */
static lpgemm_status_t grouped_run(grouped *g) {
  size_t bytes = 0;
  const int64_t most = g->spec.x_rows > g->spec.m ? g->spec.x_rows : g->spec.m;
  CHECK_STATUS(lpgemm_workspace_size(handle, g->args.weights, most, &g->args, &bytes), LPGEMM_SUCCESS);
  if (g->row && g->stack.experts == 1)
    bytes += ((size_t)g->spec.m * (size_t)(g->spec.desc.k + 16) * 4 + 511) / 256 * 256;
  g->workspace = test_alloc(bytes);
  memset(g->workspace, 0x7f, bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, bytes ? g->workspace : NULL, bytes), LPGEMM_SUCCESS);
  const lpgemm_status_t status = lpgemm_run_grouped(handle, &g->args, &g->groups);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(g->workspace);
  return status;
}

static int64_t clamp(int64_t offset, int64_t before, int64_t m) {
  return offset < before ? before : offset > m ? m : offset;
}

/* Rows first .. end - 1, of one expert, against the reference, which decodes its weights once for all of them. */
static void grouped_check_expert(const grouped *g, int expert, int64_t first, int64_t end, const char *what) {
  const lpgemm_run_args_t *a = &g->args;
  const int64_t outputs = outputs_of(&g->stack.desc), k = sample_x_k(&g->stack.desc), m = end - first;
  const int64_t y_bytes = ref_bytes(a->y_type), x_bytes = ref_bytes(a->x_type);
  const int64_t x_rows = g->spec.x_rows ? g->spec.x_rows : g->spec.m;
  double *want = test_alloc((size_t)(m * outputs) * sizeof *want);
  double *bound = test_alloc((size_t)(m * outputs) * sizeof *bound);
  uint8_t *x = test_alloc((size_t)(m * k * x_bytes));
  float *scale = test_alloc((size_t)m * sizeof *scale);
  lpgemm_run_args_t one = *a;
  memset(x, 0, (size_t)(m * k * x_bytes));
  for (int64_t i = 0; i < m; i++) {
    const int64_t row = g->row ? g->row[first + i] : first + i;
    const int is_there = row >= 0 && row < x_rows;
    if (is_there) memcpy(x + i * k * x_bytes, (const uint8_t *)a->x + row * a->ldx * x_bytes, (size_t)(k * x_bytes));
    if (a->x_scale_mode == LPGEMM_X_SCALE_ROW) scale[i] = a->x_scale[is_there ? row : 0];
  }
  one.m = m;
  one.x = x;
  one.ldx = k;
  if (a->x_scale_mode == LPGEMM_X_SCALE_ROW) one.x_scale = scale;
  if (a->c) one.c = (const uint8_t *)a->c + first * a->ldc * y_bytes;
  if (a->bias) one.bias = (const uint8_t *)a->bias + expert * g->stack.desc.n * ref_bytes(a->bias_type);
  ref_product(&g->stack.expert[expert].desc, &g->stack.expert[expert].source, &one,
              test_backend() == LPGEMM_BACKEND_CUDA, want, bound);
  CHECK_MATRIX(
      compare_matrix(a->y_type, (const uint8_t *)a->y + first * a->ldy * y_bytes, a->ldy, m, outputs, want, bound, 1),
      what);
  test_free(want);
  test_free(bound);
  test_free(x);
  test_free(scale);
}

/* Each expert's rows against the reference; all other bytes of Y are as they were. */
static void grouped_check(const grouped *g, const char *what) {
  const lpgemm_run_args_t *a = &g->args;
  const int64_t outputs = outputs_of(&g->stack.desc), m = g->spec.m, y_bytes = ref_bytes(a->y_type);
  uint8_t *written = test_alloc((size_t)m + 1);
  memset(written, 0, (size_t)m + 1);
  int64_t first = clamp(g->offsets[0], 0, m);
  for (int e = 0; e < g->stack.experts; e++) {
    const int64_t end = clamp(g->offsets[e + 1], first, m);
    memset(written + first, 1, (size_t)(end - first));
    if (end > first) grouped_check_expert(g, e, first, end, what);
    first = end;
  }
  for (int64_t i = 0; i < m; i++) {
    const uint8_t *y = (const uint8_t *)a->y + i * a->ldy * y_bytes;
    const int64_t from = written[i] ? outputs * y_bytes : 0, to = i + 1 < m ? a->ldy * y_bytes : outputs * y_bytes;
    int touched = 0;
    for (int64_t j = from; j < to; j++) touched += y[j] != 0xcd;
    CHECK_INT(touched, 0);
  }
  test_free(written);
}

static void grouped_free(grouped *g) {
  stack_free(&g->stack);
  test_free(g->offsets);
  test_free(g->row);
  test_free(g->x);
  test_free(g->y);
  test_free(g->c);
  test_free(g->bias);
  test_free(g->x_scale);
}

static grouped_spec grouped_of(lpgemm_weight_desc_t desc, int experts, int64_t m) {
  grouped_spec s = {.desc = desc, .m = m, .x_type = LPGEMM_F16, .y_type = LPGEMM_F16, .alpha = 1};
  s.desc.experts = experts;
  return s;
}

static void run_spec(const grouped_spec *spec, const char *what) {
  grouped g;
  grouped_make(&g, spec);
  CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
  grouped_check(&g, what);
  grouped_free(&g);
}

static const lpgemm_gate_t gpt_oss = {.size = sizeof gpt_oss, .alpha = 1.702f, .limit = 7.0f, .up_offset = 1.0f};
static const lpgemm_gate_t tight = {.size = sizeof tight, .alpha = 1.702f, .limit = 0.25f, .up_offset = 1.0f};

static void grouped_types(void) {
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    if (!test_case("experts/grouped/%s", lpgemm_dtype_name(sample_type(i)))) continue;
    const lpgemm_dtype_t scales[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0, 0};
    grouped_spec s = grouped_of(sample_desc(40, 96, sample_type(i), 32, scales[i % 5]), 4, 21);
    s.x_type = i % 3 ? LPGEMM_F16 : LPGEMM_BF16;
    s.own_scales = i % 2;
    run_spec(&s, "plain");
    s.desc.rows = LPGEMM_ROWS_PAIRED;
    s.activation = LPGEMM_ACTIVATION_SILU;
    s.x_rows = 9;
    run_spec(&s, "paired");
  }
}

static void grouped_options(void) {
  static const int64_t rows[] = {0, 1, 7, 33, 100};
  for (int i = 0; i < 5; i++) {
    if (!test_case("experts/grouped/options/%d", (int)rows[i])) continue;
    for (int option = 0; option < 14; option++) {
      grouped_spec s = grouped_of(sample_desc_zeros(52, 130, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8), 5, rows[i]);
      s.own_scales = option % 2;
      s.pad = option % 3;
      s.y_type = option % 4 == 1 ? LPGEMM_F32 : LPGEMM_F16;
      if (option >= 7) s.x_rows = 13;
      switch (option % 7) {
        case 0: s.bias_type = LPGEMM_F32; break;
        case 1: s.alpha = 0.5f, s.beta = -2.0f, s.bias_type = LPGEMM_F16; break;
        case 2: s.x_type = LPGEMM_I8, s.x_scale_mode = LPGEMM_X_SCALE_ROW; break;
        case 3: s.x_type = LPGEMM_E4M3, s.x_scale_mode = LPGEMM_X_SCALE_TENSOR, s.y_type = LPGEMM_BF16; break;
        case 4: s.quantize_x = LPGEMM_I8; break;
        case 5: s.alpha = 0.0f, s.beta = 1.0f; break;
        default: s.activation = LPGEMM_ACTIVATION_GELU_ERF, s.invariant = 1; break;
      }
      run_spec(&s, "plain");
      s.desc.columns = LPGEMM_COLUMNS_ORDERED;
      run_spec(&s, "ordered");
      s.desc.x_k = 150;
      run_spec(&s, "a part of ordered columns");
      s.desc.rows = LPGEMM_ROWS_PAIRED;
      s.beta = 0;
      s.desc.row_scales = LPGEMM_F32;
      run_spec(&s, "ordered pairs");
    }
  }
}

/* With alpha = 0 scales of rows have no effect, NaN or not: by the automatic choice, and by name where there is such a
 * kernel. */
static void grouped_no_product(void) {
  static const char *const kernels[] = {NULL, "segment.u4.f16.16x8.sm80", "gemm.u4.f16.256x128.sm90a",
                                        "generic.w4.any.16x8.sm80", "generic.w4.any.64x64.sm80"};
  for (int i = 0; i < 10; i++) {
    const char *const kernel = kernels[i / 2];
    if (!test_case("experts/grouped/no-product/%s/%s", i % 2 ? "pairs" : "plain", kernel ? kernel : "any")) continue;
    if (kernel && !problem_has_kernel(kernel)) {
      test_skip("there is no %s", kernel);
      continue;
    }
    grouped_spec s = grouped_of(sample_desc(32, 96, LPGEMM_UINT(4), 32, LPGEMM_F16), 2, 6);
    s.desc.zero = LPGEMM_ZERO_CONSTANT, s.desc.zero_constant = 8;
    s.desc.row_scales = LPGEMM_F32;
    s.alpha = 0;
    s.bias_type = LPGEMM_F16;
    if (i % 2) s.desc.rows = LPGEMM_ROWS_PAIRED, s.activation = LPGEMM_ACTIVATION_SILU;
    grouped g;
    grouped_make(&g, &s);
    for (int e = 0; e < 2; e++) {
      for (int row = 0; row < 32; row++) ((float *)g.stack.expert[e].part[LPGEMM_PART_ROW_SCALES])[row] = NAN;
      sample_lay_out(&g.stack.expert[e], LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
    }
    stack_pack(&g.stack, handle);
    g.args.weights = g.stack.weights;
    g.args.kernel = kernel;
    g.offsets[1] = 3;
    g.offsets[2] = 6;
    CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
    const int64_t outputs = outputs_of(&g.stack.desc);
    for (int64_t j = 0; j < 6 * outputs; j++) {
      CHECK(isfinite(ref_load(LPGEMM_F16, g.y, j / outputs * g.args.ldy + j % outputs)));
    }
    grouped_free(&g);
  }
}

static void grouped_pairs(void) {
  static const int64_t outputs[] = {1, 7, 8, 9, 24, 65};
  for (int i = 0; i < 6; i++) {
    if (!test_case("experts/grouped/pairs/%d", (int)outputs[i])) continue;
    for (int option = 0; option < 10; option++) {
      lpgemm_weight_desc_t desc = sample_desc(2 * outputs[i], 96, LPGEMM_UINT(4), 32, LPGEMM_F16);
      if (option % 2) desc = sample_desc(2 * outputs[i], 96, LPGEMM_FLOAT(2, 1), 32, LPGEMM_E8M0);
      grouped_spec s = grouped_of(desc, option == 3 ? 1 : 3, 17);
      s.desc.rows = LPGEMM_ROWS_PAIRED;
      s.activation = (lpgemm_activation_t)(option % 5);
      s.x_type = option % 3 ? LPGEMM_BF16 : LPGEMM_F32;
      s.y_type = s.x_type;
      s.bias_type = option % 3 == 1 ? LPGEMM_F32 : 0;
      if (option >= 5) s.activation = LPGEMM_ACTIVATION_SILU;
      if (option == 5 || option == 6) s.gate = &gpt_oss;
      if (option == 7 || option == 8) s.gate = &tight;
      run_spec(&s, "pairs");
    }
  }
  if (test_case("experts/grouped/pairs/blocks")) {
    lpgemm_weight_desc_t desc = sample_desc(2 * 128, 256, LPGEMM_E4M3, 128, LPGEMM_F32);
    desc.group_n = 64;
    grouped_spec s = grouped_of(desc, 3, 20);
    s.desc.rows = LPGEMM_ROWS_PAIRED;
    s.activation = LPGEMM_ACTIVATION_SILU;
    s.x_type = s.y_type = LPGEMM_BF16;
    run_spec(&s, "blocks of rows in pairs");
    s.x_type = LPGEMM_E4M3;
    s.x_scale_mode = LPGEMM_X_SCALE_ROW;
    run_spec(&s, "blocks of rows in pairs, e4m3");
  }
}

/* One matrix is a stack of one. */
static void grouped_one(void) {
  for (int option = 0; option < 6; option++) {
    if (!test_case("experts/grouped/one/%d", option)) continue;
    grouped_spec s = grouped_of(sample_desc(40, 96, LPGEMM_UINT(4), 32, LPGEMM_F16), option % 2, 19);
    if (option >= 2) s.x_rows = 11;
    if (option >= 4) s.quantize_x = LPGEMM_I8, s.desc.columns = LPGEMM_COLUMNS_ORDERED;
    run_spec(&s, "one");
  }
}

/* Offsets that nobody should give. */
static void grouped_offsets(void) {
  static const int32_t lists[][5] = {
      {0, 0, 0, 0, 0},         {0, 40, 40, 40, 40},   {5, 9, 3, 20, 12},   {-7, INT32_MIN, 10, INT32_MAX, -1},
      {INT32_MAX, 0, 0, 0, 0}, {0, 41, 10, 40, 1000}, {39, 39, 40, 40, 40}};
  for (int i = 0; i < 7; i++) {
    if (!test_case("experts/grouped/offsets/%d", i)) continue;
    grouped_spec s = grouped_of(sample_desc(40, 64, LPGEMM_UINT(4), 32, LPGEMM_F16), 4, 40);
    s.desc.columns = i % 2 ? LPGEMM_COLUMNS_ORDERED : LPGEMM_COLUMNS_PLAIN;
    grouped g;
    grouped_make(&g, &s);
    memcpy(g.offsets, lists[i], sizeof lists[i]);
    CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
    grouped_check(&g, "offsets");
    grouped_free(&g);
  }
}

/* Matrices so large, and as many rows an expert, that the automatic choice takes each of gemm's work tiles on an H200
 * (gemm_family/plan/experts says which): experts with as many rows as a work tile has, with one more or less, with one
 * and with none. Rows of W end inside a work tile. */
static void grouped_tiles(void) {
  enum { EXPERTS = 6 };
  static const int rows[][EXPERTS] = {{12, 32, 0, 33, 31, 1},     {40, 64, 30, 65, 33, 1},
                                      {70, 96, 0, 97, 95, 1},     {128, 129, 96, 97, 127, 0},
                                      {150, 192, 0, 193, 191, 1}, {400, 256, 257, 255, 1, 224}};
  const lpgemm_weight_desc_t kinds[] = {sample_desc(5624, 200, LPGEMM_UINT(4), 128, LPGEMM_F16),
                                        sample_desc(5624, 200, LPGEMM_FLOAT(2, 1), 32, LPGEMM_E8M0),
                                        sample_desc(5624, 200, LPGEMM_UINT(8), 128, LPGEMM_F16),
                                        sample_desc(5624, 100, LPGEMM_E4M3, 0, LPGEMM_F32)};
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < 6; i++) {
      if (!test_case("experts/grouped/tiles/%s/%d", lpgemm_dtype_name(kinds[kind].type), i)) continue;
      grouped_spec s = grouped_of(kinds[kind], EXPERTS, 0);
      s.x_type = s.y_type = (kind + i) % 2 ? LPGEMM_F16 : LPGEMM_BF16;
      s.own_scales = 1;
      if (i % 3 == 1) {
        s.desc.n = 5616;
        s.desc.rows = LPGEMM_ROWS_PAIRED;
        s.activation = LPGEMM_ACTIVATION_SILU;
      }
      for (int e = 0; e < EXPERTS; e++) s.m += rows[i][e];
      grouped g;
      grouped_make(&g, &s);
      for (int e = 0; e < EXPERTS; e++) g.offsets[e + 1] = g.offsets[e] + rows[i][e];
      CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
      grouped_check(&g, "tiles");
      grouped_free(&g);
    }
  }
}

/* The segment form by its name: experts with none, one, few rows, and more than are multiplied at once; widths and
 * groups that it has kernels for; K in several parts, and rows of W so many that a CTA has strips of several experts,
 * or several rounds of one. Twice: the same bits. */
typedef struct segment_kind {
  const char *words;
  lpgemm_dtype_t type, scale;
  int64_t group, n, k;
} segment_kind;

static void run_segments(const segment_kind *kind, const int *rows, int experts, int option, const char *kernel) {
  grouped_spec s = grouped_of(sample_desc(kind->n, kind->k, kind->type, kind->group, kind->scale), experts, 3);
  if (kind->type == LPGEMM_UINT(4)) s.desc.zero = LPGEMM_ZERO_CONSTANT, s.desc.zero_constant = 8;
  s.x_type = strstr(kernel, "bf16") ? LPGEMM_BF16 : LPGEMM_F16;
  s.y_type = option == 4 ? LPGEMM_F32 : s.x_type;
  s.own_scales = 1;
  s.pad = option == 4 ? 8 : option;
  if (option == 0 || option == 4) s.x_rows = 11; /* by number */
  if (option % 3 == 0) s.desc.row_scales = LPGEMM_F32;
  if (option % 2) s.desc.rows = LPGEMM_ROWS_PAIRED, s.activation = LPGEMM_ACTIVATION_SILU, s.gate = &gpt_oss;
  if (option % 2 == 0) s.beta = 0.5f, s.alpha = 0.75f, s.activation = LPGEMM_ACTIVATION_GELU_ERF;
  s.bias_type = option > 1 ? LPGEMM_F16 : 0;
  for (int e = 0; e < experts; e++) s.m += rows[e]; /* three rows are nobody's */
  grouped g;
  grouped_make(&g, &s);
  g.args.kernel = kernel;
  for (int e = 0; e < experts; e++) g.offsets[e + 1] = g.offsets[e] + rows[e];
  CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
  grouped_check(&g, kernel);
  const size_t bytes = (size_t)(((s.m - 1) * g.args.ldy + outputs_of(&g.stack.desc)) * ref_bytes(s.y_type));
  void *first = test_alloc(bytes);
  memcpy(first, g.y, bytes);
  CHECK_STATUS(grouped_run(&g), LPGEMM_SUCCESS);
  CHECK(memcmp(first, g.y, bytes) == 0);
  test_free(first);
  grouped_free(&g);
}

static void grouped_segments(void) {
  enum { EXPERTS = 7, OPTIONS = 5 };
  static const segment_kind kinds[] = {
      {"u4", LPGEMM_UINT(4), LPGEMM_F16, 128, 40, 300},    {"u4", LPGEMM_INT(4), LPGEMM_BF16, 64, 4112, 130},
      {"u4", LPGEMM_UINT(4), LPGEMM_F16, 0, 24, 18000},    {"u8", LPGEMM_INT(8), LPGEMM_F16, 32, 152, 1030},
      {"u2", LPGEMM_UINT(2), LPGEMM_F16, 64, 1000, 257},   {"f4", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 32, 80, 2880},
      {"f4", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, 16, 64, 48}, {"f4", LPGEMM_FLOAT(3, 0), LPGEMM_F16, 32, 64, 64},
      {"f8", LPGEMM_E4M3, LPGEMM_F32, 0, 40, 7000}};
  static const int rows[OPTIONS][EXPERTS] = {{1, 0, 8, 3, 0, 9, 2},
                                             {0, 17, 0, 0, 1, 0, 0},
                                             {0, 0, 0, 0, 0, 0, 0},
                                             {1, 1, 1, 1, 1, 1, 1},
                                             {5, 0, 24, 7, 16, 1, 33}};
  for (int i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++) {
    for (int j = 0; j < OPTIONS; j++) {
      if (!test_case("experts/grouped/segments/%d/%d", i, j)) continue;
      char kernel[64];
      snprintf(kernel, sizeof kernel, "segment.%s.%s.16x8.sm80", kinds[i].words, (i + j) % 2 ? "bf16" : "f16");
      if (problem_has_kernel(kernel)) {
        run_segments(&kinds[i], rows[j], EXPERTS, j, kernel);
      } else {
        test_skip("there is no %s", kernel);
      }
    }
  }
}

/* ---- pairs of one matrix, by every kernel ---- */

/* Runs with a poisoned workspace of just what is asked for. */
static lpgemm_status_t run(const lpgemm_run_args_t *a) {
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_workspace_size(handle, a->weights, a->m, a, &bytes), LPGEMM_SUCCESS);
  void *workspace = test_alloc(bytes);
  memset(workspace, 0x7f, bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, bytes ? workspace : NULL, bytes), LPGEMM_SUCCESS);
  const lpgemm_status_t status = lpgemm_run(handle, a);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(workspace);
  return status;
}

/* With alpha = 0 what the product would be multiplied by has no effect, NaN or not. */
static void check_no_product(const lpgemm_run_args_t *pairs, sample *s, int64_t outputs) {
  const float none = 0;
  const float *const bias = pairs->bias;
  const uint16_t *const y = pairs->y;
  lpgemm_run_args_t a = *pairs;
  ((float *)s->source_part[LPGEMM_PART_ROW_SCALES])[0] = NAN;
  lpgemm_weights_t weights = sample_pack(handle, s);
  a.weights = weights;
  a.alpha = &none;
  CHECK_STATUS(run(&a), LPGEMM_SUCCESS);
  for (int64_t i = 0; i < outputs * a.m; i++) {
    const double g = (double)bias[i % outputs], u = (double)bias[outputs + i % outputs];
    const double v = ref_load(a.y_type, y, i), want = ref_pair(a.activation, a.gate, g, u);
    CHECK(fabs(v - want) <= ref_pair_bound(a.activation, a.gate, a.y_type, g, 0, u, 0));
  }
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

/* Y of pairs against the sums that the same kernel gives for all rows, as plain ones in fp32. */
static void check_pairs(const char *kernel, int64_t m_wanted, lpgemm_dtype_t row_scales) {
  enum { N = 88, OUTPUTS = N / 2, MOST = 64 };
  problem_spec spec = {.desc = sample_desc(N, 256, LPGEMM_UINT(4), 128, LPGEMM_F16), .m = m_wanted, .alpha = 1};
  spec.x_type = LPGEMM_F16;
  problem_suit(&spec, kernel);
  if (strncmp(kernel, "gemv.", 5) == 0) spec.m = m_wanted; /* it takes any number, in passes */
  spec.desc.row_scales = row_scales;
  const int64_t m = spec.m < MOST ? spec.m : MOST;
  sample s;
  spec.desc.n = N;
  sample_make(&s, &spec.desc);
  stack_tame(&s, 1 / sqrt((double)spec.desc.k));
  lpgemm_weights_t plain = sample_pack(handle, &s), pairs;
  s.desc.rows = LPGEMM_ROWS_PAIRED;
  pairs = sample_pack(handle, &s);
  lpgemm_run_args_t a = {.size = sizeof a, .weights = plain, .m = m, .x_type = spec.x_type, .y_type = LPGEMM_F32};
  a.kernel = kernel;
  a.level = LPGEMM_LEVEL_FAST; /* allows all kernels */
  a.bias_type = LPGEMM_F32;
  void *x = draw_x(a.x_type, m, spec.desc.k, spec.desc.k), *bias = draw_x(LPGEMM_F32, 1, N, N);
  float *sums = test_alloc((size_t)(N * m) * sizeof *sums), *scale = draw_scales(m);
  uint16_t *y = test_alloc((size_t)(OUTPUTS * m) * sizeof *y);
  a.x = x;
  a.bias = bias;
  if (LPGEMM_DTYPE_KIND(a.x_type) != LPGEMM_KIND_REAL) a.x_scale_mode = LPGEMM_X_SCALE_ROW, a.x_scale = scale;
  a.y = sums;
  const lpgemm_status_t takes_plain = run(&a);
  CHECK_STATUS(takes_plain, LPGEMM_SUCCESS);
  a.weights = pairs;
  a.activation = LPGEMM_ACTIVATION_SILU;
  a.gate = &gpt_oss;
  a.y = y;
  a.y_type = LPGEMM_F16;
  const lpgemm_status_t status = run(&a);
  if (test_backend() == LPGEMM_BACKEND_CUDA && status == LPGEMM_NOT_SUPPORTED && strstr(lpgemm_last_error(), "pairs")) {
    test_skip("%s takes no pairs", kernel);
  } else {
    CHECK_STATUS(status, LPGEMM_SUCCESS);
    double want[OUTPUTS * MOST], bound[OUTPUTS * MOST];
    for (int64_t i = 0; i < OUTPUTS * m; i++) {
      const double g = (double)sums[i / OUTPUTS * N + i % OUTPUTS],
                   u = (double)sums[i / OUTPUTS * N + OUTPUTS + i % OUTPUTS];
      want[i] = ref_pair(a.activation, a.gate, g, u);
      bound[i] = ref_pair_bound(a.activation, a.gate, a.y_type, g, 0x1p-24 * fabs(g), u, 0x1p-24 * fabs(u));
    }
    CHECK_MATRIX(compare_matrix(a.y_type, y, OUTPUTS, m, OUTPUTS, want, bound, 1), kernel);
    if (row_scales) check_no_product(&a, &s, OUTPUTS);
  }
  test_free(x);
  test_free(y);
  test_free(sums);
  test_free(scale);
  test_free(bias);
  sample_free(&s);
  CHECK_STATUS(lpgemm_weights_destroy(plain), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(pairs), LPGEMM_SUCCESS);
}

static void pairs_by_kernel(void) {
  static const char *names[PROBLEM_KERNELS];
  const int count = problem_kernels(names);
  for (int i = 0; i < count; i++) {
    if (!test_case("experts/pairs/%s", names[i])) continue;
    check_pairs(names[i], 5, 0);
    check_pairs(names[i], 19, LPGEMM_F32);
  }
}

void suite_experts(void) {
  handle = sample_handle();
  routings();
  grouped_types();
  grouped_options();
  grouped_no_product();
  grouped_pairs();
  grouped_one();
  grouped_offsets();
  if (test_backend() == LPGEMM_BACKEND_CUDA) grouped_tiles();
  if (test_backend() == LPGEMM_BACKEND_CUDA) grouped_segments();
  pairs_by_kernel();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
