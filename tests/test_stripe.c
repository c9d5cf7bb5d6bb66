/* stripe: weights that are scaled before they are multiplied (src/kernels/stripe/stripe_plan.c), for which the drawn
 * problems of test_gemm.c have too few rows. */
#include <string.h>

#include "devices.h"
#include "kernels/stripe/stripe_plan.h"
#include "layouts/packed.h"
#include "plans.h"
#include "problem.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* N, K and M end inside of work tiles, units and pieces of 16 bytes. */
static const struct scaled_case {
  const char *name;
  lpgemm_dtype_t type, scale, x, y;
  int64_t group, n, k, m;
  int zeros, pad_x, tiny; /* tiny: some rows have next to the least scales of e8m0 */
} cases[] = {
    {"u4", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1032, 200, 0, 0},
    {"u4/bf16", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_BF16, LPGEMM_BF16, 128, 10500, 1032, 200, 0, 8},
    {"u4/zeros", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1000, 201, 1, 0},
    {"u4/zeros/bf16", LPGEMM_UINT(4), LPGEMM_BF16, LPGEMM_BF16, LPGEMM_F32, 128, 10500, 1000, 201, 1, 0},
    {"u4/odd_x", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1030, 200, 0, 0},
    {"i4/row", LPGEMM_INT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F32, 0, 10500, 1032, 200, 0, 0},
    {"i8", LPGEMM_INT(8), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1032, 200, 0, 0},
    {"u8/zeros", LPGEMM_UINT(8), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 64, 10500, 1032, 200, 1, 0},
    {"u8/zeros/bf16", LPGEMM_UINT(8), LPGEMM_F16, LPGEMM_BF16, LPGEMM_BF16, 128, 10500, 1032, 200, 1, 0},
    {"u3", LPGEMM_UINT(3), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1032, 200, 0, 0},
    {"u1/bf16", LPGEMM_UINT(1), LPGEMM_F16, LPGEMM_BF16, LPGEMM_BF16, 128, 10500, 1032, 200, 1, 0},
    {"u6", LPGEMM_UINT(6), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 10500, 1032, 200, 0, 0},
    {"u4/g32", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 32, 10500, 1032, 200, 0, 0},
    {"u4/g64/zeros/bf16", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_BF16, LPGEMM_BF16, 64, 10500, 1000, 201, 1, 0},
    {"i8/g32", LPGEMM_INT(8), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 32, 10500, 1032, 200, 0, 0},
    {"nf4", LPGEMM_CODEBOOK(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 64, 10500, 1032, 200, 0, 0},
    {"nf4/bf16", LPGEMM_CODEBOOK(4), LPGEMM_F16, LPGEMM_BF16, LPGEMM_BF16, 64, 10500, 1000, 201, 0, 0},
    {"c4/g32", LPGEMM_CODEBOOK(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 32, 10500, 1032, 200, 0, 0},
    {"mxfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, LPGEMM_F16, LPGEMM_F16, 32, 10500, 1032, 200, 0, 0},
    {"mxfp4/bf16", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, LPGEMM_BF16, LPGEMM_BF16, 32, 10500, 1000, 201, 0, 0},
    {"mxfp4/tiny", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, LPGEMM_F16, LPGEMM_F16, 32, 10500, 1024, 200, 0, 0, 1},
    {"nvfp4", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, LPGEMM_F16, LPGEMM_F16, 16, 10500, 1032, 200, 0, 0},
    {"nvfp4/bf16", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, LPGEMM_BF16, LPGEMM_BF16, 16, 10500, 1000, 201, 0, 0},
    {"whole", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_F16, 128, 20600, 264, 500, 0, 0},
};

static problem_spec spec_of(const struct scaled_case *c) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = c->type, .n = c->n, .k = c->k},
                    .m = c->m,
                    .x_type = c->x,
                    .y_type = c->y,
                    .alpha = 1,
                    .pad_x = c->pad_x};
  s.desc.group_k = c->group;
  s.desc.scale_type = c->scale;
  if (lpg_kind(c->type) == LPGEMM_KIND_UINT) {
    s.desc.zero = c->zeros ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_CONSTANT;
    s.desc.zero_type = c->zeros ? LPGEMM_U8 : 0;
    s.desc.zero_constant = c->zeros ? 0.0f : (float)(1 << (lpg_bits(c->type) - 1));
  }
  for (int i = 0; lpg_kind(c->type) == LPGEMM_KIND_CODEBOOK && i < 16; i++) {
    s.desc.codebook[i] = (float)(i * i - 60) / 128;
  }
  return s;
}

/* By fp16 X, how far apart the scales of a row may be. */
static uint32_t span_of(const struct scaled_case *c) {
  if (lpg_kind(c->type) == LPGEMM_KIND_FLOAT) return c->scale == LPGEMM_E8M0 ? 22 : 13;
  return lpg_kind(c->type) == LPGEMM_KIND_CODEBOOK ? 13 : 28 - (uint32_t)lpg_bits(c->type);
}

/* The plan for an H200 scales weights, unless a row's scales are too far apart for fp16. */
static void check_plan(const struct scaled_case *c) {
  const problem_spec s = spec_of(c);
  lpg_packed w;
  lpg_stripe_plan p;
  CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &w), LPGEMM_SUCCESS);
  lpg_problem problem = plan_problem(&w, s.x_type, s.m);
  problem.scale_span = span_of(c);
  CHECK(plan_of(&lpgemm_i_stripe_planner, &problem, &sm90, &p));
  CHECK_INT(p.tile_m, LPG_STRIPE_SCALED_M);
  problem.scale_span++;
  CHECK(plan_of(&lpgemm_i_stripe_planner, &problem, &sm90, &p));
  CHECK((p.tile_m == LPG_STRIPE_SCALED_M) == (s.x_type == LPGEMM_BF16));
}

static void check_on_gpu(lpgemm_handle_t handle, const struct scaled_case *c) {
  const problem_spec s = spec_of(c);
  char kernel[64];
  problem p;
  const char *const weights = lpg_kind(c->type) == LPGEMM_KIND_FLOAT      ? "f"
                              : lpg_kind(c->type) == LPGEMM_KIND_CODEBOOK ? "c"
                                                                          : "u";
  snprintf(kernel, sizeof kernel, "stripe.%s%d.%s.128x64.sm80", weights, lpg_bits(c->type),
           c->x == LPGEMM_BF16 ? "bf16" : "f16");
  if (!problem_has_kernel(kernel)) {
    test_skip("%s is not in this build, or not for this GPU", kernel);
    return;
  }
  if (problem_make(&p, handle, &s)) {
    if (c->tiny) {
      memset((void *)p.source.scales, 1, (size_t)(100 * c->k / c->group));
      problem_repack(&p, handle);
    }
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    problem_expect(&p);
    problem_check(&p, kernel);
    problem_check_again(&p, handle, kernel);
  }
  problem_free(&p);
}

void suite_stripe(void) {
  if (test_backend() == LPGEMM_BACKEND_CUDA) {
    lpgemm_handle_t handle = problem_handle(1);
    for (int i = 0; i < COUNT(cases); i++) {
      if (test_case("stripe/scaled/%s", cases[i].name)) check_on_gpu(handle, &cases[i]);
    }
    CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
    return;
  }
  for (int i = 0; i < COUNT(cases); i++) {
    if (test_case("stripe/plan/%s", cases[i].name)) check_plan(&cases[i]);
  }
}
