/* Layers of experts: lpgemm_run_experts() against fp64, slot by slot; that tokens and experts do not touch one another;
 * chunks, orders of sums, batch invariance. */
#include <math.h>

#include "compare.h"
#include "dispatch/dispatch.h"
#include "problem.h"
#include "ref/experts_ref.h"
#include "ref/gemm_ref.h"
#include "stack.h"
#include "test.h"

static lpgemm_handle_t handle;

static const lpgemm_gate_t gpt_oss = {.size = sizeof gpt_oss, .alpha = 1.702f, .limit = 7.0f, .up_offset = 1.0f};
static const lpgemm_gate_t tight = {.size = sizeof tight, .alpha = 1.702f, .limit = 0.3f, .up_offset = 1.0f};

enum { UNIFORM, ONE_EXPERT, NONE, SOME_LEFT_OUT, TWICE };

typedef struct layer_spec {
  lpgemm_weight_desc_t up, down; /* n, k and experts are set from below */
  int experts, top_k, routing, first_expert;
  int64_t m, hidden, inter, outputs;
  lpgemm_dtype_t x_type, y_type, bias_type, quantize_x, quantize_h;
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_activation_t activation;
  const lpgemm_gate_t *gate;
  float beta;
  int in_place, pad, no_weights, given_routing, invariant, exact;
} layer_spec;

typedef struct layer {
  layer_spec spec;
  stack up, down;
  lpgemm_experts_args_t args;
  lpgemm_route_args_t route;
  int32_t *expert;
  float *weight, *x_scale;
  void *x, *y, *c, *up_bias, *down_bias, *routing;
  ref_expert ref[STACK_MOST];
} layer;

static void *draw(lpgemm_dtype_t type, int64_t rows, int64_t columns, int64_t ld) {
  const int64_t count = rows > 0 ? (rows - 1) * ld + columns : 0;
  void *x = test_alloc((size_t)(count * ref_bytes(type)));
  for (int64_t i = 0; i < count; i++) {
    if (type == LPGEMM_I8) {
      ((int8_t *)x)[i] = (int8_t)test_between(-127, 127);
    } else {
      ref_store(type, x, i, test_uniform(-1, 1));
    }
  }
  return x;
}

static int32_t draw_index(const layer_spec *s, int64_t t, int64_t j) {
  const int32_t any = s->first_expert + (int32_t)test_between(0, s->experts - 1);
  switch (s->routing) {
    case ONE_EXPERT: return s->first_expert + s->experts - 1;
    case NONE: return s->first_expert + (j % 2 ? s->experts : -1);
    case SOME_LEFT_OUT: return t % 3 == 0 || test_between(0, 3) == 0 ? (j % 2 ? -1 : INT32_MAX) : any;
    case TWICE: return s->first_expert + (int32_t)(t % s->experts);
    default: return any;
  }
}

static void layer_make(layer *l, const layer_spec *spec) {
  memset(l, 0, sizeof *l);
  l->spec = *spec;
  layer_spec *s = &l->spec;
  s->up.experts = s->down.experts = s->experts;
  s->up.k = s->hidden;
  s->up.n = s->up.rows == LPGEMM_ROWS_PAIRED ? 2 * s->inter : s->inter;
  s->down.k = s->inter;
  s->down.n = s->outputs;
  stack_make(&l->up, handle, &s->up, 1.5 / sqrt((double)s->hidden + 1), 1);
  stack_make(&l->down, handle, &s->down, 1.5 / sqrt((double)s->inter + 1), 1);
  for (int e = 0; e < s->experts; e++) {
    l->ref[e] =
        (ref_expert){l->up.expert[e].desc, l->down.expert[e].desc, l->up.expert[e].source, l->down.expert[e].source};
  }
  const int64_t slots = s->m * s->top_k;
  l->expert = test_alloc((size_t)slots * sizeof *l->expert);
  for (int64_t i = 0; i < slots; i++) l->expert[i] = draw_index(s, i / s->top_k, i % s->top_k);
  if (!s->no_weights) {
    l->weight = test_alloc((size_t)slots * sizeof *l->weight);
    for (int64_t i = 0; i < slots; i++) {
      const int64_t e = (int64_t)l->expert[i] - s->first_expert;
      l->weight[i] = (float)test_uniform(-0.5, 1) * (test_between(0, 9) != 0);
      if (e < 0 || e >= s->experts) l->weight[i] = NAN; /* is not read */
    }
  }
  lpgemm_route_args_t *r = &l->route;
  *r = (lpgemm_route_args_t){.size = sizeof *r, .m = s->m, .top_k = s->top_k, .experts = s->experts};
  r->first_expert = s->first_expert;
  r->expert = l->expert;
  r->weight = l->weight;
  lpgemm_experts_args_t *a = &l->args;
  a->size = sizeof *a;
  a->up = l->up.weights;
  a->down = l->down.weights;
  a->route = r;
  a->ldx = s->hidden + s->pad;
  a->ldy = s->outputs + 2 * s->pad;
  a->ldc = s->in_place ? a->ldy : s->outputs + s->pad;
  a->x_type = s->x_type;
  a->y_type = s->y_type;
  a->x = l->x = draw(s->x_type, s->m, s->hidden, a->ldx);
  const size_t y_bytes = (size_t)(((s->m > 0 ? s->m - 1 : 0) * a->ldy + s->outputs) * ref_bytes(s->y_type));
  a->y = l->y = test_alloc(y_bytes);
  if (s->beta != 0) {
    a->beta = &l->spec.beta;
    a->c = l->c = draw(s->y_type, s->m, s->outputs, a->ldc);
  }
  a->bias_type = s->bias_type;
  if (s->bias_type) {
    a->up_bias = l->up_bias = draw(s->bias_type, s->experts, s->up.n, s->up.n);
    a->down_bias = l->down_bias = draw(s->bias_type, s->experts, s->outputs, s->outputs);
  }
  a->activation = s->activation;
  a->gate = s->gate;
  a->quantize_x = s->quantize_x;
  a->quantize_h = s->quantize_h;
  a->batch_invariant = s->invariant;
  a->x_scale_mode = s->x_scale_mode;
  if (s->x_scale_mode) {
    a->x_scale = l->x_scale = test_alloc((size_t)(s->m + 1) * sizeof(float));
    for (int64_t i = 0; i <= s->m; i++) l->x_scale[i] = (float)test_uniform(0.5, 1) / 64.0f;
  }
}

static void layer_free(layer *l) {
  stack_free(&l->up);
  stack_free(&l->down);
  test_free(l->expert);
  test_free(l->weight);
  test_free(l->x_scale);
  test_free(l->x);
  test_free(l->y);
  test_free(l->c);
  test_free(l->up_bias);
  test_free(l->down_bias);
  test_free(l->routing);
}

/* After the codes or scales of the first experts were changed. */
static void repack(layer *l, int experts) {
  for (int e = 0; e < experts; e++) {
    sample_lay_out(&l->up.expert[e], LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
    sample_lay_out(&l->down.expert[e], LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
    l->ref[e].up = l->up.expert[e].source;
    l->ref[e].down = l->down.expert[e].source;
  }
  stack_pack(&l->up, handle);
  stack_pack(&l->down, handle);
  l->args.up = l->up.weights;
  l->args.down = l->down.weights;
}

/* With a poisoned workspace of that many bytes; 0: what the library asks for. */
static lpgemm_status_t layer_run(layer *l, size_t bytes) {
  lpgemm_experts_args_t args = l->args;
  if (bytes == 0) CHECK_STATUS(lpgemm_experts_workspace(handle, l->spec.m, &args, &bytes), LPGEMM_SUCCESS);
  void *workspace = test_alloc(bytes);
  memset(workspace, 0x7f, bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, bytes ? workspace : NULL, bytes), LPGEMM_SUCCESS);
  if (l->spec.given_routing) {
    size_t routing_bytes = 0;
    CHECK_STATUS(lpgemm_route_size(handle, l->spec.m, l->spec.top_k, l->spec.experts, &routing_bytes), LPGEMM_SUCCESS);
    test_free(l->routing);
    l->routing = test_alloc(routing_bytes);
    CHECK_STATUS(lpgemm_route(handle, &l->route, l->routing, routing_bytes), LPGEMM_SUCCESS);
    args.routing = l->routing;
    args.routing_bytes = routing_bytes;
  }
  const size_t row = (size_t)(l->args.ldy * ref_bytes(l->spec.y_type)),
               used = (size_t)(l->spec.outputs * ref_bytes(l->spec.y_type));
  if (l->spec.in_place && l->c) {
    for (int64_t t = 0; t < l->spec.m; t++)
      memcpy((uint8_t *)l->y + (size_t)t * row, (uint8_t *)l->c + (size_t)t * row, used);
    args.c = l->y;
  }
  const lpgemm_status_t status = lpgemm_run_experts(handle, &args);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(workspace);
  return status;
}

static void layer_check(const layer *l, const char *what) {
  const int64_t m = l->spec.m, n = l->spec.outputs;
  double *want = test_alloc((size_t)(m * n) * sizeof *want), *bound = test_alloc((size_t)(m * n) * sizeof *bound);
  ref_experts(l->ref, &l->args, test_backend() == LPGEMM_BACKEND_CUDA, want, bound);
  CHECK_MATRIX(compare_matrix(l->spec.y_type, l->y, l->args.ldy, m, n, want, bound, 1), what);
  for (int64_t t = 0; t + 1 < m; t++) { /* gaps between rows */
    const uint8_t *y = (const uint8_t *)l->y + t * l->args.ldy * ref_bytes(l->spec.y_type);
    int touched = 0;
    for (int64_t i = n * ref_bytes(l->spec.y_type); i < l->args.ldy * ref_bytes(l->spec.y_type); i++)
      touched += y[i] != 0xcd;
    CHECK_INT(touched, 0);
  }
  test_free(want);
  test_free(bound);
}

static layer_spec spec_of(int experts, int top_k, int64_t m, int64_t hidden, int64_t inter, lpgemm_dtype_t type) {
  layer_spec s = {.experts = experts, .top_k = top_k, .m = m, .hidden = hidden, .inter = inter, .outputs = hidden};
  const int is_float = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_FLOAT;
  s.up = sample_desc(0, 0, type, 32, is_float ? LPGEMM_E8M0 : LPGEMM_F16);
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT) s.up.zero = LPGEMM_ZERO_CONSTANT, s.up.zero_constant = 8;
  s.down = s.up;
  s.up.rows = LPGEMM_ROWS_PAIRED;
  s.activation = LPGEMM_ACTIVATION_SILU;
  s.x_type = s.y_type = LPGEMM_F16;
  return s;
}

static void run_spec(const layer_spec *s, const char *what) {
  layer l;
  layer_make(&l, s);
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  layer_check(&l, what);
  layer_free(&l);
}

/* ---- layers ---- */

static void layers(void) {
  static const int64_t rows[] = {0, 1, 7, 8, 9, 16, 17, 65};
  for (int i = 0; i < 8; i++) {
    const int64_t m = rows[i];
    if (test_case("experts_layer/mixtral/%d", (int)m)) {
      layer_spec s = spec_of(8, 2, m, 96, 160, LPGEMM_UINT(4));
      run_spec(&s, "mixtral");
      s.up.rows = LPGEMM_ROWS_PLAIN;
      s.activation = LPGEMM_ACTIVATION_RELU;
      s.pad = 3;
      run_spec(&s, "plain rows");
    }
    if (test_case("experts_layer/gpt-oss/%d", (int)m)) {
      layer_spec s = spec_of(16, 4, m, 90, 90, LPGEMM_FLOAT(2, 1));
      s.x_type = s.y_type = LPGEMM_BF16;
      s.bias_type = LPGEMM_BF16;
      s.gate = &gpt_oss;
      run_spec(&s, "gpt-oss");
      s.gate = &tight;
      s.y_type = LPGEMM_F32;
      run_spec(&s, "a limit that is reached");
    }
    if (test_case("experts_layer/deepseek/%d", (int)m)) {
      layer_spec s = spec_of(32, 8, m, 128, 64, LPGEMM_E4M3);
      s.up.group_k = s.down.group_k = 128;
      s.up.scale_type = s.down.scale_type = LPGEMM_F32;
      s.up.group_n = s.down.group_n = 64;
      s.x_type = s.y_type = LPGEMM_BF16;
      s.beta = 1;
      run_spec(&s, "deepseek");
      s.in_place = 1;
      s.quantize_x = LPGEMM_E4M3;
      run_spec(&s, "deepseek in place, quantised");
    }
  }
}

static void options(void) {
  for (int option = 0; option < 16; option++) {
    if (!test_case("experts_layer/options/%d", option)) continue;
    for (int rows = 0; rows < 2; rows++) {
      layer_spec s = spec_of(5, 3, 23, 100, 72, LPGEMM_UINT(4));
      if (!rows) s.up.rows = LPGEMM_ROWS_PLAIN;
      s.pad = option % 3;
      s.routing = option % 5;
      s.first_expert = option % 4 == 3 ? -17 : option;
      switch (option) {
        case 0: s.no_weights = 1; break;
        case 1: s.given_routing = 1, s.beta = -0.5f; break;
        case 2: s.x_type = LPGEMM_I8, s.x_scale_mode = LPGEMM_X_SCALE_ROW; break;
        case 3: s.x_type = LPGEMM_E4M3, s.x_scale_mode = LPGEMM_X_SCALE_TENSOR, s.y_type = LPGEMM_F32; break;
        case 4: s.quantize_x = LPGEMM_I8; break;
        case 5: s.quantize_h = LPGEMM_I8; break;
        case 6: s.quantize_x = s.quantize_h = LPGEMM_E4M3, s.y_type = LPGEMM_BF16; break;
        case 7: s.up.columns = LPGEMM_COLUMNS_ORDERED; break;
        case 8: s.down.columns = LPGEMM_COLUMNS_ORDERED; break;
        case 9:
          s.up.columns = s.down.columns = LPGEMM_COLUMNS_ORDERED;
          s.quantize_x = s.quantize_h = LPGEMM_I8;
          break;
        case 10: s.x_type = s.y_type = LPGEMM_F32; break;
        case 11: s.up.row_scales = s.down.row_scales = LPGEMM_F32, s.bias_type = LPGEMM_F32; break;
        case 12: s.top_k = 1, s.outputs = 33; break;
        case 13: s.top_k = 5, s.invariant = 1; break;
        case 14: s.experts = 1, s.top_k = 2; break;
        default: s.top_k = 64, s.m = 3; break;
      }
      run_spec(&s, rows ? "paired" : "plain");
    }
  }
}

/* Every type of weights, in up and in down. */
static void types(void) {
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    if (!test_case("experts_layer/types/%s", lpgemm_dtype_name(sample_type(i)))) continue;
    layer_spec s = spec_of(3, 2, 5, 64, 64, LPGEMM_UINT(4));
    s.up = sample_desc(0, 0, sample_type(i), i % 2 ? 32 : 0, sample_scale[1 + i % 4]);
    s.down = sample_desc(0, 0, sample_type(SAMPLE_TYPES - 1 - i), 32, LPGEMM_F16);
    s.up.rows = i % 3 ? LPGEMM_ROWS_PAIRED : LPGEMM_ROWS_PLAIN;
    s.x_type = s.y_type = LPGEMM_BF16;
    run_spec(&s, "types");
  }
}

/* ---- sizes ---- */

static void sizes(void) {
  static const int64_t inters[] = {0, 1, 15, 16, 17, 63, 65, 255};
  for (int i = 0; i < 8; i++) {
    if (!test_case("experts_layer/inter/%d", (int)inters[i])) continue;
    layer_spec s = spec_of(4, 2, 9, 48 + inters[i] % 7, inters[i], LPGEMM_UINT(4));
    s.beta = 1;
    run_spec(&s, "inter");
    s.bias_type = LPGEMM_F16; /* with inter 0 a slot is down's bias */
    run_spec(&s, "inter and bias");
  }
  if (test_case("experts_layer/no_outputs")) {
    layer_spec s = spec_of(4, 2, 9, 48, 32, LPGEMM_UINT(4));
    s.outputs = 0;
    run_spec(&s, "no outputs");
  }
  if (test_case("experts_layer/no_columns")) {
    layer_spec s = spec_of(4, 2, 9, 0, 32, LPGEMM_UINT(4));
    s.outputs = 20;
    s.bias_type = LPGEMM_F32;
    run_spec(&s, "no columns");
  }
}

/* Chunks of tokens: any workspace from the least on gives the meaning, and where chunks are those of one kernel the
 * bits; a byte less than the least is refused. */
static void chunks(void) {
  if (!test_case("experts_layer/chunks")) return;
  layer_spec s = spec_of(4, 2, 1000, 32, 32, LPGEMM_UINT(4));
  s.invariant = 1;
  s.beta = 1;
  s.x_type = LPGEMM_I8;
  s.x_scale_mode = LPGEMM_X_SCALE_ROW;
  layer l;
  layer_make(&l, &s);
  size_t all = 0, least = 0;
  CHECK_STATUS(lpgemm_experts_workspace(handle, 1000, &l.args, &all), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_experts_workspace(handle, 256, &l.args, &least), LPGEMM_SUCCESS);
  CHECK(least < all);
  const size_t y_bytes = (size_t)((999 * l.args.ldy + s.outputs) * 2);
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  layer_check(&l, "all at once");
  void *first = test_alloc(y_bytes);
  memcpy(first, l.y, y_bytes);
  for (int i = 0; i <= 8; i++) {
    const size_t bytes = (least + (all - least) * (size_t)i / 8) / 256 * 256;
    memset(l.y, 0xcd, y_bytes);
    CHECK_STATUS(layer_run(&l, bytes < least ? least : bytes), LPGEMM_SUCCESS);
    CHECK(memcmp(first, l.y, y_bytes) == 0);
  }
  l.spec.given_routing = 1; /* of all tokens, which chunks cannot use */
  memset(l.y, 0xcd, y_bytes);
  CHECK_STATUS(layer_run(&l, least), LPGEMM_SUCCESS);
  CHECK(memcmp(first, l.y, y_bytes) == 0);
  CHECK_STATUS(layer_run(&l, least / 2), LPGEMM_WORKSPACE_TOO_SMALL);
  CHECK(strstr(lpgemm_last_error(), "lpgemm_experts_workspace") != NULL);
  CHECK(memcmp(first, l.y, y_bytes) == 0);
  size_t before = 0;
  for (int64_t m = 0; m < 600; m += 37) { /* monotone */
    size_t bytes = 0;
    CHECK_STATUS(lpgemm_experts_workspace(handle, m, &l.args, &bytes), LPGEMM_SUCCESS);
    CHECK(bytes >= before);
    before = bytes;
  }
  test_free(first);
  layer_free(&l);
}

/* ---- who touches whom ---- */

/* NaN and Inf in X, in a router's weight and in experts reach the tokens that have them, and no other. */
static void isolation(void) {
  if (!test_case("experts_layer/isolation")) return;
  layer_spec s = spec_of(6, 2, 12, 64, 48, LPGEMM_E4M3);
  s.up.scale_type = s.down.scale_type = LPGEMM_F16;
  s.bias_type = LPGEMM_F32;
  s.beta = 1;
  layer l;
  layer_make(&l, &s);
  for (int64_t t = 0; t < 12; t++) { /* expert 0: nobody's; expert 1: token 7's; token 11 has none */
    for (int j = 0; j < 2; j++) l.expert[2 * t + j] = t == 11 ? -1 : t == 7 && j == 1 ? 1 : 2 + (int32_t)((t + j) % 4);
    for (int j = 0; j < 2; j++) l.weight[2 * t + j] = t == 11 ? NAN : 0.5f;
  }
  /* what the tokens get without any of it */
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  layer_check(&l, "clean");
  uint16_t *clean = test_alloc((size_t)(12 * 64) * 2), *y = l.y;
  memcpy(clean, l.y, (size_t)(12 * 64) * 2);
  /* a NaN code, an infinite scale, an infinite bias */
  memset(l.up.expert[0].codes, 0x7f, (size_t)(s.hidden * 2));
  memset(l.down.expert[0].codes, 0x7f, (size_t)s.inter);
  memset(l.down.expert[1].codes + s.inter, 0x7f, (size_t)s.inter);
  ref_store(LPGEMM_F16, l.up.expert[0].part[LPGEMM_PART_SCALES], 3, (double)INFINITY);
  ref_store(LPGEMM_F16, l.up.expert[1].part[LPGEMM_PART_SCALES], 0, (double)INFINITY);
  ((float *)l.up_bias)[0] = ((float *)l.down_bias)[1] = INFINITY;
  repack(&l, 2);
  ref_store(LPGEMM_F16, l.x, 3 * l.args.ldx + 5, (double)NAN);
  ref_store(LPGEMM_F16, l.x, 4 * l.args.ldx + 6, (double)INFINITY);
  l.weight[2 * 5] = NAN;
  l.weight[2 * 6 + 1] = INFINITY;
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  for (int64_t t = 0; t < 12; t++) {
    const int is_hit = t >= 3 && t <= 7;
    int not_finite = 0;
    for (int64_t i = 0; i < 64; i++) not_finite += !isfinite(ref_load(LPGEMM_F16, y, t * l.args.ldy + i));
    if (is_hit) CHECK(not_finite > 0);
    if (!is_hit) CHECK(memcmp(y + t * l.args.ldy, clean + t * 64, 128) == 0);
  }
  test_free(clean);
  layer_free(&l);
}

/* A token's bits do not depend on who is with it. */
static void invariance(void) {
  for (int i = 0; i < 3; i++) {
    if (!test_case("experts_layer/invariant/%d", i)) continue;
    layer_spec s = spec_of(8, 3, 70, 96, 64, i ? LPGEMM_FLOAT(2, 1) : LPGEMM_UINT(4));
    s.invariant = 1;
    if (i == 2) s.quantize_x = s.quantize_h = LPGEMM_I8;
    layer l;
    layer_make(&l, &s);
    const size_t row = (size_t)s.hidden * 2;
    CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
    layer_check(&l, "all");
    uint16_t *all = test_alloc(70 * row), *y = l.y;
    memcpy(all, l.y, 70 * row);
    CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
    CHECK(memcmp(all, l.y, 70 * row) == 0);            /* again */
    for (int64_t first = 0; first < 70; first += 23) { /* some alone, with other tokens' routing around them */
      for (int64_t m = 1; m <= 9; m += 4) {
        if (first + m > 70) continue;
        layer some = l;
        some.spec.m = some.route.m = m;
        some.args.route = &some.route;
        some.args.x = (const uint16_t *)l.x + first * l.args.ldx;
        some.route.expert = l.expert + 3 * first;
        some.route.weight = l.weight + 3 * first;
        CHECK_STATUS(layer_run(&some, 0), LPGEMM_SUCCESS);
        CHECK(memcmp(all + first * s.hidden, y, (size_t)m * row) == 0);
      }
    }
    test_free(all);
    layer_free(&l);
  }
}

/* Small integers, where every sum is exact: equal to the last bit. */
static void exact_numbers(void) {
  if (!test_case("experts_layer/exact")) return;
  layer_spec s = spec_of(4, 2, 33, 64, 32, LPGEMM_INT(3));
  s.up.rows = LPGEMM_ROWS_PAIRED;
  s.up.scale_type = s.down.scale_type = 0;
  s.up.group_k = s.down.group_k = 0;
  s.activation = LPGEMM_ACTIVATION_NONE;
  s.x_type = s.y_type = LPGEMM_F32;
  layer l;
  layer_make(&l, &s);
  for (int64_t i = 0; i < 33 * 64; i++) ((float *)l.x)[i] = (float)test_between(-1, 1);
  for (int64_t i = 0; i < 66; i++) l.weight[i] = (float)test_between(-2, 2);
  for (int e = 0; e < 4; e++) {
    l.up.expert[e].desc.global_scale = l.ref[e].up_desc.global_scale = e % 2 ? 1.0f : 0.5f;
    l.down.expert[e].desc.global_scale = l.ref[e].down_desc.global_scale = e % 2 ? 2.0f : 1.0f;
    for (int64_t i = 0; i < 64 * 64; i++) l.up.expert[e].codes[i] = (uint8_t)(i * 7 % 3 ? 0 : i % 5 ? 1 : 7);
    for (int64_t i = 0; i < 64 * 32; i++) l.down.expert[e].codes[i] = (uint8_t)(i * 5 % 7 == 0);
  }
  repack(&l, 4);
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  double *want = test_alloc(33 * 64 * sizeof *want), *bound = test_alloc(33 * 64 * sizeof *bound);
  ref_experts(l.ref, &l.args, test_backend() == LPGEMM_BACKEND_CUDA, want, bound);
  int wrong = 0, nothing = 0;
  for (int64_t i = 0; i < 33 * 64; i++) wrong += (double)((float *)l.y)[i] != want[i];
  for (int64_t i = 0; i < 33 * 64; i++) nothing += want[i] == 0;
  CHECK_INT(wrong, 0);
  CHECK(nothing < 33 * 32);
  test_free(want);
  test_free(bound);
  layer_free(&l);
}

/* ---- few tokens, by the kernels for them where the backend has them, and in any case the same meaning ---- */

typedef struct fan_type {
  const char *words; /* of a kernel's name */
  lpgemm_dtype_t type, scale;
  int64_t group;
} fan_type;

static const fan_type fan_types[] = {
    {"u4", LPGEMM_UINT(4), LPGEMM_F16, 128},     {"u4", LPGEMM_INT(4), LPGEMM_BF16, 64},
    {"u4", LPGEMM_UINT(4), LPGEMM_F16, 0},       {"u8", LPGEMM_INT(8), LPGEMM_F16, 32},
    {"u2", LPGEMM_UINT(2), LPGEMM_F16, 64},      {"f4", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, 32},
    {"f4", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, 16}, {"f8", LPGEMM_E4M3, LPGEMM_F32, 0},
};

static layer_spec fan_spec(const fan_type *t, int experts, int top_k, int64_t m, int64_t hidden, int64_t inter) {
  layer_spec s = spec_of(experts, top_k, m, hidden, inter, t->type);
  s.up = s.down = sample_desc(0, 0, t->type, t->group, t->scale);
  if (LPGEMM_DTYPE_KIND(t->type) == LPGEMM_KIND_UINT) {
    s.up.zero = s.down.zero = LPGEMM_ZERO_CONSTANT;
    s.up.zero_constant = s.down.zero_constant = t->type == LPGEMM_UINT(4) ? 8 : 2;
  }
  s.up.rows = LPGEMM_ROWS_PAIRED;
  return s;
}

/* Forces kernels of these families, if they are there. */
static int fan_force(layer *l, const fan_type *t, const char *const families[2]) {
  static char names[2][LPG_KERNEL_NAME_BYTES];
  const char *x = l->spec.x_type == LPGEMM_BF16 ? "bf16" : "f16";
  l->args.up_kernel = l->args.down_kernel = NULL;
  for (int i = 0; i < 2; i++) {
    snprintf(names[i], sizeof names[i], "%s.%s.%s.16x8.sm80", families[i], t->words, x);
    if (!problem_has_kernel(names[i])) return 0;
  }
  l->args.up_kernel = names[0];
  l->args.down_kernel = names[1];
  return 1;
}

/* By the token form and by the segment form, each twice: the same bits. Then up by the automatic choice. */
static void fan_run(const layer_spec *s, const fan_type *t, const char *what) {
  static const char *const forms[][2] = {{"fanout", "fanin"}, {"segment", "segment"}};
  layer l;
  layer_make(&l, s);
  const size_t y_bytes = (size_t)(((s->m - 1) * l.args.ldy + s->outputs) * ref_bytes(s->y_type));
  for (int i = 0; i < 3; i++) {
    const int forced = i < 2 && fan_force(&l, t, forms[i]);
    if (i == 1 && !forced) break;
    if (i == 2) l.args.up_kernel = NULL;
    CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
    layer_check(&l, what);
    if (!forced) continue;
    void *first = test_alloc(y_bytes);
    memcpy(first, l.y, y_bytes);
    CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
    CHECK(memcmp(first, l.y, y_bytes) == 0);
    test_free(first);
  }
  layer_free(&l);
}

static void fan_routings(void) {
  for (int i = 0; i < (int)(sizeof fan_types / sizeof fan_types[0]); i++) {
    const fan_type *const t = &fan_types[i];
    for (int routing = UNIFORM; routing <= TWICE; routing++) {
      if (!test_case("experts_layer/token/routing/%d/%d", i, routing)) continue;
      const int large = i == 0; /* several k blocks */
      layer_spec s = fan_spec(t, 4, 3, routing == ONE_EXPERT ? 19 : 5 + routing, large ? 272 : 80, large ? 528 : 48);
      s.routing = routing;
      s.first_expert = routing == SOME_LEFT_OUT ? -3 : 7;
      if (i % 2) s.x_type = s.y_type = LPGEMM_BF16;
      s.bias_type = routing % 2 ? LPGEMM_F32 : LPGEMM_F16;
      s.pad = routing;
      fan_run(&s, t, "paired");
      s.up.rows = LPGEMM_ROWS_PLAIN;
      s.activation = LPGEMM_ACTIVATION_RELU;
      s.bias_type = 0;
      s.no_weights = routing == UNIFORM;
      s.y_type = LPGEMM_F32;
      s.beta = 0.75f;
      fan_run(&s, t, "plain");
    }
  }
}

static void fan_sizes(void) {
  static const int sizes[][6] = {/* experts, top_k, m, hidden, inter, outputs */
                                 {1, 1, 1, 16, 16, 16},     {1, 1, 32, 64, 48, 40},    {64, 8, 1, 130, 64, 96},
                                 {64, 8, 16, 40, 50, 90},   {4, 2, 8, 512, 1100, 256}, {3, 2, 33, 33, 1, 17},
                                 {32, 32, 8, 128, 64, 128}, {4, 64, 4, 40, 72, 56},    {2, 2, 24, 96, 80, 3},
                                 {2, 2, 1, 2100, 600, 520}};
  for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
    if (!test_case("experts_layer/token/sizes/%d", i)) continue;
    const int *const z = sizes[i];
    layer_spec s = fan_spec(&fan_types[0], z[0], z[1], z[2], z[3], z[4]);
    s.outputs = z[5];
    fan_run(&s, &fan_types[0], "sizes");
    s.x_type = LPGEMM_BF16;
    s.y_type = LPGEMM_F32;
    s.up.row_scales = LPGEMM_F32;
    s.gate = &tight;
    fan_run(&s, &fan_types[0], "sizes, scales of rows");
  }
}

/* The comparison notices a wrong weight, a slot left out, and experts exchanged. */
static void the_test_itself(void) {
  if (!test_case("experts_layer/comparison")) return;
  layer_spec s = spec_of(4, 2, 6, 64, 48, LPGEMM_UINT(4));
  layer l;
  layer_make(&l, &s);
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  double want[6 * 64], bound[6 * 64];
  for (int64_t i = 0; i < 12; i++) l.weight[i] = 0.5f, l.expert[i] = (int32_t)(i % 4);
  CHECK_STATUS(layer_run(&l, 0), LPGEMM_SUCCESS);
  for (int change = 0; change < 4; change++) {
    const int32_t index = l.expert[5];
    const ref_expert third = l.ref[2];
    if (change == 1) l.weight[5] = 0.55f;
    if (change == 2) l.expert[5] = -1;
    if (change == 3) l.ref[2] = l.ref[1], l.ref[1] = third;
    ref_experts(l.ref, &l.args, test_backend() == LPGEMM_BACKEND_CUDA, want, bound);
    const compare_result r = compare_matrix(LPGEMM_F16, l.y, l.args.ldy, 6, 64, want, bound, 1);
    CHECK((r.bad > 0) == (change > 0));
    if (change == 3) l.ref[1] = l.ref[2], l.ref[2] = third;
    l.weight[5] = 0.5f;
    l.expert[5] = index;
  }
  layer_free(&l);
}

void suite_experts_layer(void) {
  handle = sample_handle();
  layers();
  options();
  types();
  sizes();
  chunks();
  isolation();
  invariance();
  exact_numbers();
  fan_routings();
  fan_sizes();
  the_test_itself();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
