/* What a handle remembers of its problems: found again without a search, and never for another problem, another
 * description or other tuning results. On the CPU backend, which every build has, and with made-up kernels and devices.
 */
#include <string.h>

#include "experts/layer.h"
#include "kernels/plan/fan.h"
#include "made_up.h"

#define MARK (-1.0) /* no plan takes so long: what was remembered is found again */
#define REFERENCE_NAME "reference.any.any.1x1.cpu"

static uint8_t codes[64 * 64], scales[64 * 2];

static lpgemm_weight_desc_t small_desc(float global_scale) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .n = 64, .k = 64, .scale_type = LPGEMM_F16};
  desc.global_scale = global_scale;
  return desc;
}

static lpgemm_weights_t pack(lpgemm_handle_t handle, float global_scale) {
  const lpgemm_weight_desc_t desc = small_desc(global_scale);
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.scales = scales;
  source.scales_bytes = sizeof scales;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  return weights;
}

static lpg_problem problem_of(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, lpgemm_dtype_t y_type) {
  static _Alignas(16) uint8_t x[4096], y[4096];
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = m, .x = x, .y = y, .y_type = y_type};
  lpg_problem problem = {.weights = NULL};
  CHECK_STATUS(lpgemm_i_describe(handle, &args, &problem), LPGEMM_SUCCESS);
  return problem;
}

static lpg_remembered *remember(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, lpgemm_dtype_t y_type) {
  lpg_remembered *found = NULL;
  const lpg_problem problem = problem_of(handle, weights, m, y_type);
  CHECK_STATUS(lpgemm_i_remember(handle, weights, &problem, &found), LPGEMM_SUCCESS);
  return found;
}

/* Whether the next choice is one that was marked. */
static int is_marked(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, lpgemm_dtype_t y_type) {
  return remember(handle, weights, m, y_type)->planned.launch.us == MARK;
}

static void mark(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, lpgemm_dtype_t y_type) {
  remember(handle, weights, m, y_type)->planned.launch.us = MARK;
}

/* ---- problems ---- */

static void test_problems(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  if (test_case("remember/same_problem")) {
    lpg_remembered *first = remember(handle, weights, 3, LPGEMM_F16);
    CHECK(first->kernel != NULL && first->planned.launch.us > 0);
    first->planned.launch.us = MARK;
    CHECK(remember(handle, weights, 3, LPGEMM_F16) == first && first->planned.launch.us == MARK);
  }
  if (test_case("remember/other_problem")) {
    mark(handle, weights, 3, LPGEMM_F16);
    CHECK(!is_marked(handle, weights, 3, LPGEMM_F32));
    CHECK(!is_marked(handle, weights, 4, LPGEMM_F16));
    CHECK(is_marked(handle, weights, 3, LPGEMM_F16));
  }
  if (test_case("remember/every_field")) { /* whatever the choice may depend on */
    lpg_problem plain = problem_of(handle, weights, 5, LPGEMM_F16), other[15];
    plain.slots = plain.m; /* so that all of them meet in one set */
    for (int i = 0; i < COUNT(other); i++) other[i] = plain;
    other[0].scale_span++;
    other[1].m += LPG_REMEMBERED;
    other[2].x_type = LPGEMM_BF16;
    other[3].y_type = LPGEMM_BF16;
    other[4].x_scale_mode = LPGEMM_X_SCALE_ROW;
    other[5].level = LPGEMM_LEVEL_FAST;
    other[6].batch_invariant = 1;
    other[7].experts = 1;
    other[8].top_k = 1;
    other[9].slots = 1;
    other[10].paired = 1;
    other[11].activation = LPGEMM_ACTIVATION_SILU;
    other[12].x_unaligned = 1;
    other[13].fan = LPG_FAN_OUT;
    other[14].workspace = plain.workspace + 4096;
    for (int i = 0; i < COUNT(other); i++) {
      memset(handle->remembered, 0, sizeof handle->remembered);
      lpg_remembered *r = lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &plain);
      if (r) r->planned.launch.us = MARK;
      r = lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &other[i]);
      if (r && r->planned.launch.us == MARK) test_fail(__FILE__, __LINE__, "field %d makes no difference", i);
      r = lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &plain);
      CHECK(r && r->planned.launch.us == MARK);
    }
  }
  if (test_case("remember/where_x_lies")) { /* TMA cannot read all of it: another problem, and back again */
    static _Alignas(16) uint8_t x[4096], y[4096];
    lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = 2, .x = x, .y = y};
    lpg_problem aligned, moved, apart;
    CHECK_STATUS(lpgemm_i_describe(handle, &args, &aligned), LPGEMM_SUCCESS);
    args.x = x + 2;
    CHECK_STATUS(lpgemm_i_describe(handle, &args, &moved), LPGEMM_SUCCESS);
    args.x = x;
    args.ldx = 65;
    CHECK_STATUS(lpgemm_i_describe(handle, &args, &apart), LPGEMM_SUCCESS);
    CHECK(!aligned.x_unaligned && moved.x_unaligned && apart.x_unaligned);
    mark(handle, weights, 2, LPGEMM_F16); /* of an X that is aligned */
    lpg_remembered *r = NULL;
    CHECK_STATUS(lpgemm_i_remember(handle, weights, &moved, &r), LPGEMM_SUCCESS);
    CHECK(r && r->planned.launch.us != MARK);
    CHECK_STATUS(lpgemm_i_remember(handle, weights, &aligned, &r), LPGEMM_SUCCESS);
    CHECK(r && r->planned.launch.us == MARK);
  }
  if (test_case("remember/sets")) { /* four that meet are all kept; the next one drives out the oldest */
    const int64_t step = LPG_REMEMBERED;
    for (int64_t i = 0; i < 4; i++) mark(handle, weights, 1 + i * step, LPGEMM_F16);
    for (int64_t i = 0; i < 4; i++) CHECK(is_marked(handle, weights, 1 + i * step, LPGEMM_F16));
    CHECK(!is_marked(handle, weights, 1 + 4 * step, LPGEMM_F16));
    for (int64_t i = 1; i < 4; i++) CHECK(is_marked(handle, weights, 1 + i * step, LPGEMM_F16));
    CHECK(!is_marked(handle, weights, 1, LPGEMM_F16));
  }
}

static void test_tuning(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  if (test_case("remember/tuning")) {
    const lpg_kernel *untuned = remember(handle, weights, 4, LPGEMM_F16)->kernel;
    const char *other = strcmp(untuned->name, REFERENCE_NAME) ? REFERENCE_NAME : NULL;
    CHECK(other != NULL);
    const lpg_problem problem = problem_of(handle, weights, 4, LPGEMM_F16);
    mark(handle, weights, 4, LPGEMM_F16);
    CHECK_STATUS(lpgemm_i_tuning_put(handle->tuning, &problem, 0, other, 1.0), LPGEMM_SUCCESS);
    CHECK(other && strcmp(remember(handle, weights, 4, LPGEMM_F16)->kernel->name, other) == 0);
    CHECK(!is_marked(handle, weights, 4, LPGEMM_F16));
    CHECK_STATUS(lpgemm_tuning_clear(handle), LPGEMM_SUCCESS);
    CHECK(remember(handle, weights, 4, LPGEMM_F16)->kernel == untuned);
    CHECK(!is_marked(handle, weights, 4, LPGEMM_F16));
  }
  if (test_case("remember/threads")) { /* times depend on their number */
    mark(handle, weights, 6, LPGEMM_F16);
    CHECK_STATUS(lpgemm_set_num_threads(handle, handle->device.threads == 2 ? 3 : 2), LPGEMM_SUCCESS);
    CHECK(!is_marked(handle, weights, 6, LPGEMM_F16));
  }
}

/* ---- weights ---- */

static void test_weights(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  if (test_case("remember/other_weights")) {
    lpgemm_weights_t same = pack(handle, 1.0f);
    mark(handle, weights, 1, LPGEMM_F16);
    CHECK(is_marked(handle, same, 1, LPGEMM_F16)); /* what the choice depends on is the same */
    same->content.scale_span++;
    CHECK(!is_marked(handle, same, 1, LPGEMM_F16));
    CHECK_STATUS(lpgemm_weights_destroy(same), LPGEMM_SUCCESS);
    for (int i = 0; i < 3 * LPG_REMEMBERED; i++) { /* whatever their addresses, and where the hashes say */
      lpgemm_weights_t others = pack(handle, 2.0f + (float)i);
      others->desc_hash = weights->desc_hash;
      CHECK(!is_marked(handle, others, 1, LPGEMM_F16));
      mark(handle, others, 1, LPGEMM_F16);
      CHECK_STATUS(lpgemm_weights_destroy(others), LPGEMM_SUCCESS);
    }
  }
  if (test_case("remember/same_address")) { /* weights that are gone, and others where they were */
    _Alignas(8) uint8_t storage[LPGEMM_WEIGHTS_BYTES];
    static _Alignas(64) uint8_t blob[2][16384];
    lpgemm_weights_t views[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
      lpgemm_weights_t whole = pack(handle, 1.5f + (float)i);
      lpgemm_weights_info_t info = {.size = sizeof info};
      CHECK_STATUS(lpgemm_weights_info(whole, &info), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_serialize(handle, whole, blob[i], sizeof blob[i]), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
      CHECK_STATUS(
          lpgemm_weights_from_blob(handle, NULL, 0, blob[i], info.packed_bytes, storage, sizeof storage, &views[i]),
          LPGEMM_SUCCESS);
      CHECK(!is_marked(handle, views[i], 7, LPGEMM_F16));
      mark(handle, views[i], 7, LPGEMM_F16);
      CHECK_STATUS(lpgemm_weights_destroy(views[i]), LPGEMM_SUCCESS);
    }
    CHECK(views[0] == views[1]);
  }
}

/* Nothing of a call's data is remembered with its kernel. */
static void test_data(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  if (!test_case("remember/data")) return;
  enum { M = 2, LD = 70 };
  static uint16_t x[2][M * LD];
  static float y[3][M * LD], c[M * LD], bias[64];
  for (int i = 0; i < M * LD; i++) {
    x[0][i] = (uint16_t)(0x3c00 + i);
    x[1][i] = (uint16_t)(0xb800 + 3 * i);
    c[i] = (float)i;
  }
  for (int i = 0; i < 64; i++) bias[i] = (float)(64 - i);
  const float one = 1.0f;
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = M, .x = x[0], .y = y[0]};
  args.y_type = LPGEMM_F32;
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  const lpg_remembered *r = remember(handle, weights, M, LPGEMM_F32);
  const lpg_kernel *kernel = r->kernel;
  args.x = x[1];
  args.ldx = 72 - 8; /* rows begin at multiples of 16 bytes: the same problem */
  args.y = y[1];
  args.ldy = args.ldc = LD;
  args.beta = &one;
  args.c = c;
  args.bias = bias;
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  CHECK(remember(handle, weights, M, LPGEMM_F32)->kernel == kernel);
  lpgemm_handle_t fresh = NULL;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  CHECK_STATUS(lpgemm_create(&fresh, &config), LPGEMM_SUCCESS);
  args.kernel = kernel->name;
  args.y = y[2];
  CHECK_STATUS(lpgemm_run(fresh, &args), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(fresh), LPGEMM_SUCCESS);
  CHECK(memcmp(y[1], y[2], sizeof y[1]) == 0 && memcmp(y[0], y[1], sizeof y[0]) != 0);
}

/* ---- forced kernels, and the log ---- */

static lpgemm_status_t choose_for_run(lpgemm_handle_t handle, lpgemm_weights_t weights, const char *forced,
                                      lpg_planned *planned, const lpg_kernel **kernel) {
  const lpg_problem problem = problem_of(handle, weights, 9, LPGEMM_F16);
  const lpg_planned *found = planned;
  *kernel = NULL;
  LPG_TRY(lpgemm_i_choose_for_run(handle, weights, &problem, forced, planned, kernel, &found));
  if (found != planned) *planned = *found;
  return LPGEMM_SUCCESS;
}

static void count_line(void *context, lpgemm_log_level_t level, const char *line) {
  (void)line;
  *(int *)context += level == LPGEMM_LOG_DISPATCH;
}

static void test_forced(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  lpg_planned planned;
  const lpg_kernel *kernel, *automatic;
  if (test_case("remember/forced")) {
    CHECK_STATUS(choose_for_run(handle, weights, NULL, &planned, &automatic), LPGEMM_SUCCESS);
    CHECK(strcmp(automatic->name, REFERENCE_NAME) != 0);
    CHECK_STATUS(choose_for_run(handle, weights, REFERENCE_NAME, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK_TEXT(kernel->name, REFERENCE_NAME);
    lpg_remembered *r;
    const lpg_problem problem = problem_of(handle, weights, 9, LPGEMM_F16);
    CHECK_STATUS(lpgemm_i_recall_forced(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem,
                                        REFERENCE_NAME, &r),
                 LPGEMM_SUCCESS);
    r->planned.launch.us = MARK;
    CHECK_STATUS(choose_for_run(handle, weights, REFERENCE_NAME, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(planned.launch.us == MARK);
    CHECK_STATUS(lpgemm_tuning_clear(handle), LPGEMM_SUCCESS); /* another version of nothing */
    CHECK_STATUS(choose_for_run(handle, weights, REFERENCE_NAME, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(planned.launch.us == MARK);
    CHECK_STATUS(choose_for_run(handle, weights, NULL, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(kernel == automatic && planned.launch.us != MARK);
    CHECK_STATUS(choose_for_run(handle, weights, "", &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(kernel == automatic && planned.launch.us != MARK);
    CHECK_STATUS(choose_for_run(handle, weights, "no such kernel", &planned, &kernel), LPGEMM_INVALID_ARGUMENT);
    CHECK_STATUS(choose_for_run(handle, weights, REFERENCE_NAME, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK_TEXT(kernel->name, REFERENCE_NAME);
  }
  if (test_case("remember/log")) { /* every choice has its line, so none is from memory */
    int lines = 0;
    CHECK_STATUS(choose_for_run(handle, weights, NULL, &planned, &kernel), LPGEMM_SUCCESS);
    mark(handle, weights, 9, LPGEMM_F16);
    const lpgemm_log_level_t level = lpgemm_i_log_level();
    CHECK_STATUS(lpgemm_set_log(LPGEMM_LOG_DISPATCH, count_line, &lines), LPGEMM_SUCCESS);
    for (int i = 1; i <= 2; i++) {
      CHECK_STATUS(choose_for_run(handle, weights, NULL, &planned, &kernel), LPGEMM_SUCCESS);
      CHECK(lines >= i && planned.launch.us != MARK);
    }
    const int before = lines;
    CHECK_STATUS(choose_for_run(handle, weights, REFERENCE_NAME, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(lines > before && planned.launch.us != MARK);
    CHECK_STATUS(lpgemm_set_log(level, NULL, NULL), LPGEMM_SUCCESS);
    CHECK_STATUS(choose_for_run(handle, weights, NULL, &planned, &kernel), LPGEMM_SUCCESS);
    CHECK(planned.launch.us == MARK);
  }
}

/* That there is none is remembered as well: the second search would find one. */
static void test_none(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  if (!test_case("remember/none")) return;
  lpg_problem problem = problem_of(handle, weights, 10, LPGEMM_F16);
  CHECK_STATUS(lpgemm_set_stream(NULL, NULL), LPGEMM_NULL_POINTER);
  char sentence[128];
  snprintf(sentence, sizeof sentence, "%s", lpgemm_last_error());
  CHECK(!lpgemm_i_recall(handle, NULL, 0, weights, &problem));
  CHECK(!lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem));
  CHECK_TEXT(lpgemm_last_error(), sentence); /* nothing has failed */
  lpg_remembered *found;
  CHECK_STATUS(lpgemm_i_recall_forced(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem,
                                      REFERENCE_NAME, &found),
               LPGEMM_SUCCESS);
  CHECK(!lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem));
  problem.m++;
  CHECK(lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem));
  problem.m--;
  CHECK_STATUS(lpgemm_tuning_clear(handle), LPGEMM_SUCCESS); /* another version: it looks again */
  CHECK(lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, weights, &problem));
}

/* ---- a layer of experts: both forms of both products are remembered ---- */

/* An H200 that need not be there, and stacks without memory: for choices alone. */
typedef struct made_up_layer {
  lpg_backend backend;
  struct lpgemm_handle handle;
  struct lpgemm_weights up, down;
  lpgemm_route_args_t route;
  lpgemm_experts_args_t args;
} made_up_layer;

static void make_stack(struct lpgemm_weights *w, int64_t n, int64_t k, lpgemm_rows_t rows) {
  lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), n, k);
  d.rows = rows;
  d.experts = 8;
  d.zero = LPGEMM_ZERO_CONSTANT;
  d.zero_constant = 8.0f;
  memset(w, 0, sizeof *w);
  CHECK_STATUS(lpgemm_i_make_packed(&d, &w->packed), LPGEMM_SUCCESS);
  w->desc_hash = lpgemm_i_hash((const uint8_t *)&w->packed.desc, sizeof w->packed.desc);
  w->content.scale_span = 3;
  w->backend = LPGEMM_BACKEND_CUDA;
  CHECK_STATUS(lpgemm_i_live_add(w, LPG_OBJECT_WEIGHTS), LPGEMM_SUCCESS);
}

static void make_layer(made_up_layer *made) {
  memset(made, 0, sizeof *made);
  made->handle.device = sm90;
  made->handle.backend = &made->backend; /* of which a choice asks only whether the host reads offsets: no */
  made->handle.default_type = LPGEMM_F16;
  made->handle.tuning = lpgemm_i_tuning_create();
  CHECK_STATUS(lpgemm_i_live_add(&made->handle, LPG_OBJECT_HANDLE), LPGEMM_SUCCESS);
  make_stack(&made->up, 2 * 1024, 512, LPGEMM_ROWS_PAIRED);
  make_stack(&made->down, 512, 1024, LPGEMM_ROWS_PLAIN);
  made->route = (lpgemm_route_args_t){.size = sizeof made->route, .m = 2, .top_k = 2, .experts = 8};
  made->args = (lpgemm_experts_args_t){.size = sizeof made->args, .up = &made->up, .down = &made->down};
  made->args.route = &made->route;
  made->args.activation = LPGEMM_ACTIVATION_SILU;
}

static void drop_layer(made_up_layer *made) {
  CHECK(lpgemm_i_live_remove(&made->up, LPG_OBJECT_WEIGHTS));
  CHECK(lpgemm_i_live_remove(&made->down, LPG_OBJECT_WEIGHTS));
  CHECK(lpgemm_i_live_remove(&made->handle, LPG_OBJECT_HANDLE));
  lpgemm_i_tuning_destroy(made->handle.tuning);
}

enum { LAYER_WORKSPACE = 1 << 20 };

static lpg_layer choose_form(made_up_layer *made) {
  lpg_layer l;
  CHECK_STATUS(lpgemm_i_open_layer(&made->handle, &made->args, NULL, &l), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_i_choose_form(&made->handle, &l, LAYER_WORKSPACE), LPGEMM_SUCCESS);
  return l;
}

/* The problems of a layer that choose_form() asks for, chosen before among records that no library has: of the token
 * form's `fans` records. The library has none for this device, or others, so whoever searches again is found out. */
static void choose_before(made_up_layer *made, int fans) {
  lpg_layer l;
  CHECK_STATUS(lpgemm_i_open_layer(&made->handle, &made->args, NULL, &l), LPGEMM_SUCCESS);
  for (int i = 0; i < 4; i++) {
    const lpg_grouped *p = i % 2 ? &l.down : &l.up;
    lpg_problem problem = p->r.call.problem;
    problem.workspace = LAYER_WORKSPACE;
    if (i / 2) lpg_set_fan(&problem, i % 2 ? LPG_FAN_IN : LPG_FAN_OUT, l.m, l.route.top_k);
    const lpg_remembered *r = lpgemm_i_recall(&made->handle, test_every_kernel, i / 2 ? fans : test_every_kernel_count,
                                              p->r.args.weights, &problem);
    CHECK(i / 2 && !fans ? r == NULL : r != NULL);
  }
}

static int is_of_tests(const lpg_kernel *kernel) {
  return kernel >= test_every_kernel && kernel < test_every_kernel + test_every_kernel_count;
}

static void test_layer(void) {
  static made_up_layer made;
  for (int forms = 0; forms < 2; forms++) {
    if (!test_case("remember/layer/%s", forms ? "token_form" : "no_token_form")) continue;
    make_layer(&made);
    choose_before(&made, forms ? test_every_kernel_count : 0);
    for (int again = 0; again < 3; again++) {
      const lpg_layer l = choose_form(&made);
      CHECK_INT(l.is_fan, forms);
      CHECK(is_of_tests(l.up.kernel) && is_of_tests(l.down.kernel));
      CHECK_INT((l.up.kernel->flags & LPG_K_FAN_OUT) != 0, forms);
      CHECK_INT((l.down.kernel->flags & LPG_K_FAN_IN) != 0, forms);
    }
    drop_layer(&made);
  }
}

void suite_remember(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  lpgemm_weights_t weights = pack(handle, 1.0f);
  test_problems(handle, weights);
  test_tuning(handle, weights);
  test_weights(handle, weights);
  test_data(handle, weights);
  test_forced(handle, weights);
  test_none(handle, weights);
  test_layer();
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
