/* What a handle remembers of its problems: found again, and never for another problem, another description or other
 * tuning results. On the CPU backend, which every build has. */
#include <string.h>

#include "dispatch/dispatch.h"
#include "test.h"

#define MARK (-1.0) /* no plan takes so long: what was remembered is found again */

static uint8_t codes[64 * 64], scales[64 * 2];

static lpgemm_weights_t pack(lpgemm_handle_t handle, float global_scale) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .n = 64, .k = 64, .scale_type = LPGEMM_F16};
  desc.global_scale = global_scale;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes, .codes_bytes = sizeof codes};
  source.scales = scales;
  source.scales_bytes = sizeof scales;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  return weights;
}

static lpg_remembered *remember(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, lpgemm_dtype_t y_type) {
  static uint8_t x[4096], y[4096];
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = m, .x = x, .y = y, .y_type = y_type};
  lpg_problem problem;
  lpg_remembered *found = NULL;
  CHECK_STATUS(lpgemm_i_describe(handle, &args, &problem), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_i_remember(handle, weights, &problem, &found), LPGEMM_SUCCESS);
  return found;
}

void suite_remember(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  lpgemm_weights_t weights = pack(handle, 1.0f);
  if (test_case("remember/same_problem")) {
    lpg_remembered *first = remember(handle, weights, 3, LPGEMM_F16);
    CHECK(first->kernel != NULL && first->planned.launch.us > 0);
    first->planned.launch.us = MARK;
    CHECK(remember(handle, weights, 3, LPGEMM_F16) == first && first->planned.launch.us == MARK);
  }
  if (test_case("remember/other_problem")) { /* same place, so that it takes it over */
    remember(handle, weights, 3, LPGEMM_F16)->planned.launch.us = MARK;
    CHECK(remember(handle, weights, 3, LPGEMM_F32)->planned.launch.us != MARK);
    remember(handle, weights, 3, LPGEMM_F16)->planned.launch.us = MARK;
    CHECK(remember(handle, weights, 3 + LPG_REMEMBERED, LPGEMM_F16)->planned.launch.us != MARK);
    CHECK(remember(handle, weights, 3, LPGEMM_F16)->planned.launch.us != MARK);
  }
  if (test_case("remember/tuning")) {
    const lpg_kernel *untuned = remember(handle, weights, 4, LPGEMM_F16)->kernel;
    const char *other = strcmp(untuned->name, "reference.any.any.1x1.cpu") ? "reference.any.any.1x1.cpu" : NULL;
    CHECK(other != NULL);
    lpg_remembered *r = remember(handle, weights, 4, LPGEMM_F16);
    lpg_problem problem = r->problem;
    r->planned.launch.us = MARK;
    CHECK_STATUS(lpgemm_i_tuning_put(handle->tuning, &problem, 0, other, 1.0), LPGEMM_SUCCESS);
    CHECK(other && strcmp(remember(handle, weights, 4, LPGEMM_F16)->kernel->name, other) == 0);
    CHECK(r->planned.launch.us != MARK);
    CHECK_STATUS(lpgemm_tuning_clear(handle), LPGEMM_SUCCESS);
    CHECK(remember(handle, weights, 4, LPGEMM_F16)->kernel == untuned);
  }
  if (test_case("remember/other_weights")) {
    lpgemm_weights_t same = pack(handle, 1.0f);
    remember(handle, weights, 1, LPGEMM_F16)->planned.launch.us = MARK;
    CHECK(remember(handle, same, 1, LPGEMM_F16)->planned.launch.us ==
          MARK); /* what the choice depends on is the same */
    same->content.scale_span++;
    CHECK(remember(handle, same, 1, LPGEMM_F16)->planned.launch.us != MARK);
    CHECK_STATUS(lpgemm_weights_destroy(same), LPGEMM_SUCCESS);
    for (int i = 0; i < 3 * LPG_REMEMBERED; i++) { /* whatever their addresses, and where the hashes say */
      lpgemm_weights_t others = pack(handle, 2.0f + (float)i);
      others->desc_hash = weights->desc_hash;
      lpg_remembered *r = remember(handle, others, 1, LPGEMM_F16);
      CHECK(r->planned.launch.us != MARK);
      r->planned.launch.us = MARK;
      CHECK_STATUS(lpgemm_weights_destroy(others), LPGEMM_SUCCESS);
    }
  }
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
