/* What calls for experts refuse, in words that name the argument, before one byte is written. */
#include <math.h>

#include "stack.h"
#include "test.h"

enum { EXPERTS = 3, HIDDEN = 48, INTER = 32, M = 4, TOP_K = 2 };

static lpgemm_handle_t handle;
static stack up, down, plain_up, other;
static uint16_t *x, *y;
static int32_t *expert;
static float *weight;
static void *workspace;
static size_t workspace_bytes;

static void untouched(const char *file, int line) {
  for (int i = 0; i < M * HIDDEN; i++) {
    if (y[i] != 0xcdcd) {
      test_fail(file, line, "y was written");
      return;
    }
  }
}

#define REFUSED(call, status, word)                                                          \
  do {                                                                                       \
    CHECK_STATUS((call), (status));                                                          \
    if (!strstr(lpgemm_last_error(), (word)))                                                \
      test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", lpgemm_last_error(), (word)); \
    untouched(__FILE__, __LINE__);                                                           \
  } while (0)

static lpgemm_route_args_t route_args(void) {
  lpgemm_route_args_t r = {.size = sizeof r, .m = M, .top_k = TOP_K, .experts = EXPERTS};
  r.expert = expert;
  r.weight = weight;
  return r;
}

static lpgemm_experts_args_t layer_args(const lpgemm_route_args_t *route) {
  lpgemm_experts_args_t a = {.size = sizeof a, .up = up.weights, .down = down.weights, .route = route, .x = x, .y = y};
  return a;
}

/* ---- routing ---- */

#define ROUTE(change, status, word)                                  \
  do {                                                               \
    lpgemm_route_args_t r = route_args();                            \
    change;                                                          \
    REFUSED(lpgemm_route(handle, &r, routing, bytes), status, word); \
  } while (0)

static void routing_refusals(void) {
  if (!test_case("experts_misuse/route")) return;
  size_t bytes = 0;
  lpgemm_routing_view_t view = {.size = sizeof view};
  REFUSED(lpgemm_route_size(NULL, M, TOP_K, EXPERTS, &bytes), LPGEMM_NULL_POINTER, "handle");
  REFUSED(lpgemm_route_size(handle, M, TOP_K, EXPERTS, NULL), LPGEMM_NULL_POINTER, "bytes");
  REFUSED(lpgemm_route_size(handle, -1, TOP_K, EXPERTS, &bytes), LPGEMM_INVALID_SIZE, "m is -1");
  REFUSED(lpgemm_route_size(handle, INT64_MAX, TOP_K, EXPERTS, &bytes), LPGEMM_SIZE_OVERFLOW, "m is");
  REFUSED(lpgemm_route_size(handle, 1 << 30, 2, EXPERTS, &bytes), LPGEMM_SIZE_OVERFLOW, "tokens fit");
  CHECK_STATUS(lpgemm_route_size(handle, (1 << 30) - 1, 2, 4096, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes > (size_t)16 << 30);
  REFUSED(lpgemm_route_size(handle, M, 0, EXPERTS, &bytes), LPGEMM_INVALID_ARGUMENT, "top_k");
  REFUSED(lpgemm_route_size(handle, M, 65, EXPERTS, &bytes), LPGEMM_INVALID_ARGUMENT, "top_k");
  REFUSED(lpgemm_route_size(handle, M, INT32_MIN, EXPERTS, &bytes), LPGEMM_INVALID_ARGUMENT, "top_k");
  REFUSED(lpgemm_route_size(handle, M, TOP_K, 0, &bytes), LPGEMM_INVALID_ARGUMENT, "experts");
  REFUSED(lpgemm_route_size(handle, M, TOP_K, 4097, &bytes), LPGEMM_INVALID_ARGUMENT, "experts");
  CHECK_STATUS(lpgemm_route_size(handle, M, TOP_K, EXPERTS, &bytes), LPGEMM_SUCCESS);
  uint8_t *routing = test_alloc(bytes);
  ROUTE(r.size = 8, LPGEMM_INVALID_STRUCT, "route.size");
  ROUTE(r.reserved = 1, LPGEMM_INVALID_STRUCT, "reserved");
  ROUTE(r.m = -1, LPGEMM_INVALID_SIZE, "m is -1");
  ROUTE(r.top_k = 0, LPGEMM_INVALID_ARGUMENT, "top_k");
  ROUTE(r.experts = -1, LPGEMM_INVALID_ARGUMENT, "experts");
  ROUTE(r.expert = NULL, LPGEMM_NULL_POINTER, "expert");
  ROUTE(r.expert = (const int32_t *)(const void *)((const char *)expert + 2), LPGEMM_MISALIGNED, "expert");
  ROUTE(r.m = 100, LPGEMM_BUFFER_TOO_SMALL, "routing_bytes");
  const lpgemm_route_args_t r = route_args();
  REFUSED(lpgemm_route(handle, NULL, routing, bytes), LPGEMM_NULL_POINTER, "arguments");
  REFUSED(lpgemm_route(handle, &r, NULL, bytes), LPGEMM_NULL_POINTER, "routing");
  REFUSED(lpgemm_route(handle, &r, routing + 128, bytes), LPGEMM_MISALIGNED, "256");
  REFUSED(lpgemm_route(handle, &r, routing, bytes - 1), LPGEMM_BUFFER_TOO_SMALL, "lpgemm_route_size");
  REFUSED(lpgemm_routing_view(handle, &r, routing, NULL), LPGEMM_NULL_POINTER, "view");
  view.size = 1;
  REFUSED(lpgemm_routing_view(handle, &r, routing, &view), LPGEMM_INVALID_STRUCT, "view.size");
  for (size_t i = 0; i < bytes; i++) CHECK(routing[i] == 0xcd);
  test_free(routing);
}

/* ---- products with a stack ---- */

#define GROUPED(change, status, word)                                                          \
  do {                                                                                         \
    lpgemm_run_args_t a = {.size = sizeof a, .weights = down.weights, .m = M, .x = x, .y = y}; \
    lpgemm_groups_t g = {.size = sizeof g, .offsets = offsets};                                \
    change;                                                                                    \
    REFUSED(lpgemm_run_grouped(handle, &a, &g), status, word);                                 \
  } while (0)

static void grouped_refusals(void) {
  if (!test_case("experts_misuse/grouped")) return;
  int32_t *offsets = test_alloc(64), *row = test_alloc(64);
  for (int i = 0; i < 16; i++) offsets[i] = i, row[i] = 0;
  const float two = 2;
  const lpgemm_gate_t gate = {.size = sizeof gate};
  lpgemm_run_args_t args = {.size = sizeof args, .weights = down.weights, .m = M, .x = x, .y = y};
  REFUSED(lpgemm_run_grouped(handle, &args, NULL), LPGEMM_NULL_POINTER, "groups");
  REFUSED(lpgemm_run_grouped(handle, NULL, NULL), LPGEMM_NULL_POINTER, "args");
  GROUPED(g.size = 3, LPGEMM_INVALID_STRUCT, "groups.size");
  GROUPED(g.reserved[1] = 1, LPGEMM_INVALID_STRUCT, "groups.reserved[1]");
  GROUPED(g.offsets = NULL, LPGEMM_NULL_POINTER, "offsets");
  GROUPED(g.offsets = (const int32_t *)(const void *)((const char *)offsets + 1), LPGEMM_MISALIGNED, "offsets");
  GROUPED((g.row = (const int32_t *)(const void *)((const char *)row + 1), g.x_rows = 3), LPGEMM_MISALIGNED, "row");
  GROUPED(g.x_rows = 3, LPGEMM_INVALID_ARGUMENT, "x_rows");
  GROUPED(g.x_rows = -1, LPGEMM_INVALID_SIZE, "x_rows");
  GROUPED((g.row = row, g.x_rows = INT64_MAX), LPGEMM_INVALID_SIZE, "x_rows");
  GROUPED(a.weights = NULL, LPGEMM_NULL_POINTER, "weights");
  GROUPED(a.m = -1, LPGEMM_INVALID_SIZE, "m is -1");
  GROUPED(a.y = NULL, LPGEMM_NULL_POINTER, "y");
  GROUPED(a.x = NULL, LPGEMM_NULL_POINTER, "x");
  GROUPED(a.ldy = HIDDEN - 1, LPGEMM_INVALID_SIZE, "ldy");
  GROUPED(a.prepared_x = x, LPGEMM_NOT_SUPPORTED, "prepared_x");
  GROUPED(a.gate = &gate, LPGEMM_INVALID_ARGUMENT, "gate");
  GROUPED(a.beta = &two, LPGEMM_NULL_POINTER, "beta");
  GROUPED(a.kernel = "none.such", LPGEMM_INVALID_ARGUMENT, "none.such");
  GROUPED((a.n_begin = 16, a.n_end = 32), LPGEMM_NOT_SUPPORTED, "n_begin");
  GROUPED(a.y_type = LPGEMM_I32, LPGEMM_NOT_SUPPORTED, "i32");
  GROUPED((a.weights = up.weights, a.c = y, a.beta = &two), LPGEMM_INVALID_ARGUMENT, "c is given");
  GROUPED((a.weights = up.weights, a.y_type = LPGEMM_I32), LPGEMM_NOT_SUPPORTED, "i32");
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  GROUPED((g.row = row, g.x_rows = 3), LPGEMM_WORKSPACE_TOO_SMALL, "lpgemm_workspace_size");
  GROUPED(a.quantize_x = LPGEMM_I8, LPGEMM_WORKSPACE_TOO_SMALL, "lpgemm_workspace_size");
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, workspace_bytes), LPGEMM_SUCCESS);
  test_free(offsets);
  test_free(row);
}

/* ---- what a gate may be ---- */

#define GATE(change, status, word)                                                           \
  do {                                                                                       \
    lpgemm_gate_t gate = {.size = sizeof gate, .alpha = 1.702f, .limit = 7, .up_offset = 1}; \
    lpgemm_route_args_t r = route_args();                                                    \
    lpgemm_experts_args_t a = layer_args(&r);                                                \
    a.activation = LPGEMM_ACTIVATION_SILU;                                                   \
    a.gate = &gate;                                                                          \
    change;                                                                                  \
    REFUSED(lpgemm_run_experts(handle, &a), status, word);                                   \
  } while (0)

static void gates(void) {
  if (!test_case("experts_misuse/gate")) return;
  GATE(gate.size = 0, LPGEMM_INVALID_STRUCT, "gate.size");
  GATE(gate.reserved[2] = 1, LPGEMM_INVALID_STRUCT, "reserved");
  GATE(gate.alpha = -1, LPGEMM_INVALID_ARGUMENT, "gate.alpha");
  GATE(gate.alpha = NAN, LPGEMM_INVALID_ARGUMENT, "gate.alpha");
  GATE(gate.alpha = INFINITY, LPGEMM_INVALID_ARGUMENT, "gate.alpha");
  GATE(a.activation = LPGEMM_ACTIVATION_RELU, LPGEMM_INVALID_ARGUMENT, "gate.alpha");
  GATE(gate.limit = -1, LPGEMM_INVALID_ARGUMENT, "gate.limit");
  GATE(gate.limit = NAN, LPGEMM_INVALID_ARGUMENT, "gate.limit");
  GATE(gate.up_offset = NAN, LPGEMM_INVALID_ARGUMENT, "gate.up_offset");
  GATE(gate.up_offset = -INFINITY, LPGEMM_INVALID_ARGUMENT, "gate.up_offset");
  GATE(a.up = plain_up.weights, LPGEMM_INVALID_ARGUMENT, "gate");
}

/* ---- layers ---- */

#define LAYER(change, status, word)                        \
  do {                                                     \
    lpgemm_route_args_t r = route_args();                  \
    lpgemm_experts_args_t a = layer_args(&r);              \
    change;                                                \
    REFUSED(lpgemm_run_experts(handle, &a), status, word); \
  } while (0)

static void layer_refusals(void) {
  if (!test_case("experts_misuse/layer")) return;
  const float two = 2;
  uint8_t *w = workspace;
  LAYER(a.size = 8, LPGEMM_INVALID_STRUCT, "args.size");
  LAYER(a.reserved[3] = 1, LPGEMM_INVALID_STRUCT, "reserved[3]");
  LAYER(a.up = NULL, LPGEMM_NULL_POINTER, "up");
  LAYER(a.down = NULL, LPGEMM_NULL_POINTER, "down");
  LAYER(a.up = (lpgemm_weights_t)(void *)y, LPGEMM_INVALID_HANDLE, "weights");
  LAYER(a.down = up.weights, LPGEMM_INVALID_ARGUMENT, "PAIRED");
  LAYER(a.down = plain_up.weights, LPGEMM_INVALID_SIZE, "down has 48 columns");
  LAYER(a.down = other.weights, LPGEMM_INVALID_ARGUMENT, "experts");
  LAYER(a.route = NULL, LPGEMM_NULL_POINTER, "routing");
  LAYER(r.size = 1, LPGEMM_INVALID_STRUCT, "route.size");
  LAYER(r.experts = 4, LPGEMM_INVALID_ARGUMENT, "route.experts");
  LAYER(r.top_k = 0, LPGEMM_INVALID_ARGUMENT, "top_k");
  LAYER(r.m = -1, LPGEMM_INVALID_SIZE, "m is -1");
  LAYER(r.m = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "m is");
  LAYER(r.expert = NULL, LPGEMM_NULL_POINTER, "route.expert");
  LAYER(r.weight = (const float *)(const void *)((const char *)weight + 1), LPGEMM_MISALIGNED, "route.weight");
  LAYER(a.x = NULL, LPGEMM_NULL_POINTER, "x is");
  LAYER(a.y = NULL, LPGEMM_NULL_POINTER, "y is");
  LAYER(a.x = (const char *)x + 1, LPGEMM_MISALIGNED, "x is");
  LAYER(a.ldx = HIDDEN - 1, LPGEMM_INVALID_SIZE, "ldx");
  LAYER(a.ldx = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "ldx");
  LAYER(a.ldy = -HIDDEN, LPGEMM_INVALID_SIZE, "ldy");
  LAYER(a.ldc = 1, LPGEMM_INVALID_SIZE, "ldc");
  LAYER(a.x_type = LPGEMM_UINT(16), LPGEMM_INVALID_TYPE, "x_type");
  LAYER(a.y_type = LPGEMM_I32, LPGEMM_INVALID_TYPE, "y_type");
  LAYER(a.y_type = 12345, LPGEMM_INVALID_TYPE, "y_type");
  LAYER((a.up_bias = x, a.bias_type = LPGEMM_I8), LPGEMM_INVALID_TYPE, "bias_type");
  LAYER(a.up_bias = (const char *)x + 1, LPGEMM_MISALIGNED, "up_bias");
  LAYER(a.down_bias = (const char *)x + 1, LPGEMM_MISALIGNED, "down_bias");
  LAYER(a.activation = (lpgemm_activation_t)77, LPGEMM_INVALID_ARGUMENT, "activation");
  LAYER(a.x_scale = weight, LPGEMM_INVALID_ARGUMENT, "x_scale");
  LAYER(a.x_scale_mode = LPGEMM_X_SCALE_ROW, LPGEMM_INVALID_ARGUMENT, "x_scale_mode");
  LAYER((a.x_type = LPGEMM_I8, a.x_scale_mode = LPGEMM_X_SCALE_ROW), LPGEMM_NULL_POINTER, "x_scale");
  LAYER((a.x_type = LPGEMM_I8, a.quantize_x = LPGEMM_I8), LPGEMM_INVALID_ARGUMENT, "quantize_x");
  LAYER(a.quantize_h = LPGEMM_F16, LPGEMM_INVALID_TYPE, "quantize_h");
  LAYER(a.level = (lpgemm_level_t)2, LPGEMM_INVALID_ARGUMENT, "level");
  LAYER(a.batch_invariant = 2, LPGEMM_INVALID_ARGUMENT, "batch_invariant");
  LAYER(a.up_kernel = "none.such", LPGEMM_INVALID_ARGUMENT, "none.such");
  LAYER(a.down_kernel = "none.such", LPGEMM_INVALID_ARGUMENT, "none.such");
  LAYER(a.beta = &two, LPGEMM_NULL_POINTER, "beta");
  LAYER((a.beta = &two, a.c = y, a.ldc = HIDDEN + 1), LPGEMM_INVALID_ARGUMENT, "ldc");
  LAYER((a.beta = &two, a.c = y + 1, a.ldc = HIDDEN), LPGEMM_INVALID_ARGUMENT, "overlap");
  LAYER(a.x = y + 1, LPGEMM_INVALID_ARGUMENT, "overlap");
  LAYER(a.y = x + 2, LPGEMM_INVALID_ARGUMENT, "overlap");
  LAYER(a.x = w, LPGEMM_INVALID_ARGUMENT, "workspace");
  LAYER(a.y = w + workspace_bytes - 64, LPGEMM_INVALID_ARGUMENT, "workspace");
  LAYER(r.expert = (const int32_t *)(const void *)y, LPGEMM_INVALID_ARGUMENT, "route.expert");
  LAYER(r.weight = (const float *)(const void *)w, LPGEMM_INVALID_ARGUMENT, "route.weight");
  LAYER((a.routing = w, a.routing_bytes = 1 << 20), LPGEMM_INVALID_ARGUMENT, "routing");
  LAYER(a.routing_bytes = 256, LPGEMM_NULL_POINTER, "routing");
  uint8_t *routing = test_alloc(4096);
  LAYER((a.routing = routing + 1, a.routing_bytes = 4000), LPGEMM_MISALIGNED, "routing");
  LAYER((a.routing = routing, a.routing_bytes = 512), LPGEMM_BUFFER_TOO_SMALL, "lpgemm_route_size");
  test_free(routing);
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  LAYER((void)0, LPGEMM_WORKSPACE_TOO_SMALL, "lpgemm_experts_workspace");
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, 256), LPGEMM_SUCCESS);
  LAYER((void)0, LPGEMM_WORKSPACE_TOO_SMALL, "lpgemm_experts_workspace");
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, workspace_bytes), LPGEMM_SUCCESS);
  lpgemm_route_args_t r = route_args();
  lpgemm_experts_args_t a = layer_args(&r);
  REFUSED(lpgemm_run_experts(NULL, &a), LPGEMM_NULL_POINTER, "handle");
  REFUSED(lpgemm_run_experts(handle, NULL), LPGEMM_NULL_POINTER, "args");
}

/* A routing whose bytes are anything leads nowhere outside. */
static void wild_routings(void) {
  if (!test_case("experts_misuse/wild_routing")) return;
  if (test_backend() != LPGEMM_BACKEND_CPU) {
    test_skip("only the CPU backend reads a routing on the host");
    return;
  }
  size_t bytes = 0;
  lpgemm_route_args_t r = route_args();
  lpgemm_experts_args_t a = layer_args(&r);
  CHECK_STATUS(lpgemm_route_size(handle, M, TOP_K, EXPERTS, &bytes), LPGEMM_SUCCESS);
  int32_t *routing = test_alloc(bytes);
  a.routing = routing;
  a.routing_bytes = bytes;
  for (int i = 0; i < 50; i++) { /* canaries see writes, sanitizers see reads */
    for (size_t j = 0; j < bytes / 4; j++) {
      routing[j] = test_between(0, 3) ? (int32_t)test_between(-2, 12) : (int32_t)test_random();
    }
    CHECK_STATUS(lpgemm_run_experts(handle, &a), LPGEMM_SUCCESS);
  }
  test_free(routing);
}

/* ---- asking ---- */

static void asking(void) {
  if (!test_case("experts_misuse/asking")) return;
  lpgemm_route_args_t r = route_args();
  lpgemm_experts_args_t a = layer_args(&r);
  size_t bytes = 0;
  char text[2048], little[8];
  /* no pointer but weights and route need be real */
  r.expert = (const int32_t *)(uintptr_t)4;
  r.weight = (const float *)(uintptr_t)4;
  a.x = a.up_bias = a.down_bias = a.c = (const void *)(uintptr_t)2;
  a.y = (void *)(uintptr_t)2;
  a.gate = (const lpgemm_gate_t *)(uintptr_t)8;
  CHECK_STATUS(lpgemm_experts_workspace(handle, 100, &a, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes > 0);
  REFUSED(lpgemm_experts_workspace(handle, 100, &a, NULL), LPGEMM_NULL_POINTER, "bytes");
  REFUSED(lpgemm_experts_workspace(handle, -1, &a, &bytes), LPGEMM_INVALID_SIZE, "m_max");
  REFUSED(lpgemm_experts_workspace(handle, 100, NULL, &bytes), LPGEMM_NULL_POINTER, "args");
  CHECK_STATUS(lpgemm_explain_experts(handle, &a, text, sizeof text), LPGEMM_SUCCESS);
  CHECK(strstr(text, "4 tokens, 2 of 3 experts") != NULL);
  CHECK(strstr(text, "\nup: u4") != NULL && strstr(text, "\ndown: u4") != NULL && strstr(text, "in pairs") != NULL);
  CHECK_STATUS(lpgemm_explain_experts(handle, &a, little, sizeof little), LPGEMM_SUCCESS);
  CHECK_INT(strlen(little), 7);
  REFUSED(lpgemm_explain_experts(handle, &a, NULL, 9), LPGEMM_NULL_POINTER, "text");
  REFUSED(lpgemm_explain_experts(handle, &a, text, 0), LPGEMM_BUFFER_TOO_SMALL, "text_bytes");
  a.up_kernel = "none.such";
  REFUSED(lpgemm_explain_experts(handle, &a, text, sizeof text), LPGEMM_INVALID_ARGUMENT, "none.such");
  a.up_kernel = NULL;
  r.m = 0;
  CHECK_STATUS(lpgemm_explain_experts(handle, &a, text, sizeof text), LPGEMM_SUCCESS);
  CHECK(strstr(text, "0 tokens") != NULL);
  CHECK_STATUS(lpgemm_supports(handle, &up.desc, LPGEMM_F16, LPGEMM_F16, 16), LPGEMM_SUCCESS);
}

void suite_experts_misuse(void) {
  handle = sample_handle();
  lpgemm_weight_desc_t desc = sample_desc(2 * INTER, HIDDEN, LPGEMM_UINT(4), 16, LPGEMM_F16);
  desc.experts = EXPERTS;
  desc.rows = LPGEMM_ROWS_PAIRED;
  stack_make(&up, handle, &desc, 0.1, 0);
  desc.rows = LPGEMM_ROWS_PLAIN;
  desc.n = INTER;
  stack_make(&plain_up, handle, &desc, 0.1, 0);
  desc = sample_desc(HIDDEN, INTER, LPGEMM_UINT(4), 16, LPGEMM_F16);
  desc.experts = EXPERTS + 1;
  stack_make(&other, handle, &desc, 0.1, 0);
  desc.experts = EXPERTS;
  stack_make(&down, handle, &desc, 0.1, 0);
  x = test_alloc(M * HIDDEN * 2);
  y = test_alloc(M * HIDDEN * 2);
  memset(x, 0, M * HIDDEN * 2);
  expert = test_alloc(M * TOP_K * 4);
  weight = test_alloc(M * TOP_K * 4);
  for (int i = 0; i < M * TOP_K; i++) expert[i] = i % EXPERTS, weight[i] = 1;
  workspace_bytes = 1 << 20;
  workspace = test_alloc(workspace_bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, workspace_bytes), LPGEMM_SUCCESS);
  routing_refusals();
  grouped_refusals();
  gates();
  layer_refusals();
  asking();
  wild_routings();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(x);
  test_free(y);
  test_free(expert);
  test_free(weight);
  test_free(workspace);
  stack_free(&up);
  stack_free(&plain_up);
  stack_free(&down);
  stack_free(&other);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
