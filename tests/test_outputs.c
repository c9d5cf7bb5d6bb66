/* From sums to outputs by the kernels of many rows, which have short ways for outputs that lie in whole pieces of 16
 * bytes, or 8, with nothing but scales, C and a bias, and a long one for all else. The problems of other tests are
 * mostly too small for whole work tiles. */
#include <string.h>

#include "devices.h"
#include "kernels/gemm/gemm_plan.h"
#include "plans.h"
#include "problem.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Few rows of X; split-K; work tiles of 128 and of 256 rows of X, the last ones with fewer, of 192 rows of W by 128
 * and 192 of X; where TMA cannot read X, of 256 and of 128 rows of X. Rows of W in whole work tiles and not. */
static const struct {
  int64_t m, n, k;
  int pad_x;
} shapes[] = {{40, 256, 264, 0},  {150, 1024, 2056, 0}, {450, 4096, 72, 0},  {14300, 496, 40, 0}, {4300, 392, 72, 0},
              {450, 5120, 72, 3}, {120, 24000, 136, 3}, {120, 33000, 72, 0}, {190, 25000, 72, 0}};

static const struct way {
  const char *name;
  lpgemm_dtype_t y, bias;
  float alpha, beta;
  int pad_y, pad_c, in_place;
  lpgemm_activation_t activation;
} ways[] = {
    {"residual", LPGEMM_F16, 0, 1, 1, 0, 0, 1, LPGEMM_ACTIVATION_NONE},
    {"apart", LPGEMM_BF16, 0, 0.75f, -0.5f, 8, 24, 0, LPGEMM_ACTIVATION_NONE},
    {"bias", LPGEMM_F16, LPGEMM_F32, 1, 0, 0, 0, 0, LPGEMM_ACTIVATION_NONE},
    {"both", LPGEMM_BF16, LPGEMM_BF16, 1, 0.5f, 0, 16, 0, LPGEMM_ACTIVATION_NONE},
    {"by_8_bytes", LPGEMM_F16, LPGEMM_F16, 1, 1, 4, 4, 1, LPGEMM_ACTIVATION_NONE},
    {"c_at_odd_places", LPGEMM_F16, 0, 1, 1, 0, 3, 0, LPGEMM_ACTIVATION_NONE},
    {"activation", LPGEMM_F16, LPGEMM_F16, 1, 1, 0, 0, 1, LPGEMM_ACTIVATION_SILU},
    {"fp32", LPGEMM_F32, LPGEMM_F32, 1, 1, 0, 0, 1, LPGEMM_ACTIVATION_NONE},
};

static const struct {
  const char *name;
  lpgemm_dtype_t type, x;
} kernels[] = {{"gemm.u4.f16.256x128.sm90a", LPGEMM_UINT(4), LPGEMM_F16},
               {"gemm.f4.bf16.256x128.sm90a", LPGEMM_FLOAT(2, 1), LPGEMM_BF16},
               {"gemm8.u4.i8.256x128.sm90a", LPGEMM_UINT(4), LPGEMM_INT(8)},
               {"gemm8.u4.e4m3.256x128.sm90a", LPGEMM_UINT(4), LPGEMM_E4M3},
               {"dequant.any.f16.128x256.sm90a", LPGEMM_UINT(4), LPGEMM_F16},
               {"dequant.any.f16.256x128.sm90a", LPGEMM_FLOAT(6, 1), LPGEMM_F16}, /* tf32 */
               {"dequant.any.f16.256x128.sm80", LPGEMM_UINT(4), LPGEMM_F16}};

static problem_spec spec_of(int kernel, int shape, const struct way *way) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = shapes[shape].m};
  s.desc.type = kernels[kernel].type;
  s.desc.n = shapes[shape].n;
  s.desc.k = shapes[shape].k;
  s.desc.scale_type = LPGEMM_F16;
  s.x_type = kernels[kernel].x;
  s.pad_x = shapes[shape].pad_x;
  s.no_workspace = s.pad_x != 0;
  s.y_type = way->y;
  s.bias_type = way->bias;
  s.x_scale_mode = lpgemm_dtype_bits(s.x_type) == 8 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_NONE;
  s.alpha = way->alpha;
  s.beta = way->beta;
  s.pad_y = way->pad_y;
  s.pad_c = way->pad_c;
  s.in_place = way->in_place;
  s.activation = way->activation;
  return s;
}

static void check_by(lpgemm_handle_t handle, int kernel, int shape, const struct way *way) {
  const problem_spec s = spec_of(kernel, shape, way);
  const char *const name = kernels[kernel].name;
  problem p;
  if (!problem_has_kernel(name)) {
    test_skip("%s is not in this build, or not for this GPU", name);
    return;
  }
  if (problem_make(&p, handle, &s)) {
    CHECK_STATUS(problem_run(&p, handle, name), LPGEMM_SUCCESS);
    problem_expect(&p);
    problem_check(&p, name);
    problem_check_again(&p, handle, name);
  }
  problem_free(&p);
}

static const lpg_gemm_tile work_tiles[] = {
#define TILE(tile_m, teams, warps) {tile_m, teams, warps},
    LPG_GEMM_TILES(TILE)
#undef TILE
};

/* On an H200 gemm takes every sort of work tile for them. */
static void check_tiles(void) {
  int sliced = 0, whole = 0, shared = 0, tall[2] = {0};
  for (int i = 0; i < COUNT(shapes); i++) {
    const problem_spec s = spec_of(0, i, &ways[0]);
    lpg_packed w;
    lpg_gemm_planned planned = LPG_ZERO;
    CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &w), LPGEMM_SUCCESS);
    lpg_problem problem = plan_problem(&w, s.x_type, s.m);
    problem.x_unaligned = s.pad_x != 0;
    CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &planned));
    const lpg_gemm_plan p = planned.plan;
    sliced += p.split_k > 1;
    whole += p.parts == 1 && p.multicast == 1;
    shared += p.multicast > 1;
    if (work_tiles[planned.tile].warps == 12) tall[p.x_rows > 128]++;
  }
  CHECK(sliced > 0 && whole > 0 && shared > 1 && tall[0] > 0 && tall[1] > 0);
}

/* Rows of X at odd places: who asks for a workspace with such an ldx gets room for an aligned copy, where kernels make
 * none themselves and X has more than 16 rows; and the product is right with that and without. */
static void check_aligned(lpgemm_handle_t handle, lpgemm_dtype_t x_type, int64_t m, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}, .m = m};
  s.desc.type = LPGEMM_UINT(4);
  s.desc.n = 264;
  s.desc.k = k;
  s.desc.scale_type = LPGEMM_F16;
  s.x_type = x_type;
  s.y_type = LPGEMM_F16;
  s.pad_x = 1;
  s.alpha = 1;
  const size_t bytes = (size_t)(m * k) * (size_t)lpgemm_dtype_bits(x_type) / 8;
  const int is_copied = m > 16 && k % (128 / (int)lpgemm_dtype_bits(x_type)) == 0;
  size_t with = 0, without = 0;
  problem p;
  if (problem_make(&p, handle, &s)) {
    lpgemm_run_args_t args = p.args;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, m, &args, &with), LPGEMM_SUCCESS);
    args.ldx = 0;
    CHECK_STATUS(lpgemm_workspace_size(handle, p.weights, m, &args, &without), LPGEMM_SUCCESS);
    CHECK(with == without + (is_copied ? (bytes + 255) / 256 * 256 : 0));
    char text[4096];
    void *workspace = test_alloc(with);
    CHECK_STATUS(lpgemm_set_workspace(handle, with ? workspace : NULL, with), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_explain(handle, &p.args, text, sizeof text), LPGEMM_SUCCESS);
    CHECK((strncmp(text, "X, whose rows", 13) == 0) == is_copied);
    CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
    test_free(workspace);
    problem_expect(&p);
    for (p.spec.no_workspace = 0; p.spec.no_workspace < 2; p.spec.no_workspace++) {
      CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
      problem_check(&p, "rows at odd places");
    }
  }
  problem_free(&p);
}

void suite_outputs(void) {
  if (test_case("outputs/tiles")) check_tiles();
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  lpgemm_handle_t handle = problem_handle(1);
  for (int i = 0; i < 12; i++) {
    static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_INT(8)};
    const int64_t rows[] = {16, 17, 40, 300};
    if (!test_case("outputs/aligned/%s/%lld", lpgemm_dtype_name(x_types[i % 3]), (long long)rows[i / 3])) continue;
    check_aligned(handle, x_types[i % 3], rows[i / 3], 528);
    check_aligned(handle, x_types[i % 3], rows[i / 3], 523);
  }
  for (int k = 0; k < COUNT(kernels); k++) {
    for (int w = 0; w < COUNT(ways); w++) {
      if (!test_case("outputs/%s/%s", kernels[k].name, ways[w].name)) continue;
      for (int s = 0; s < COUNT(shapes); s++) check_by(handle, k, s, &ways[w]);
    }
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
