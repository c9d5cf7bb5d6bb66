/* Groups of any size: that fast kernels take them, by plans for an H200; the chunks in which gemm prepares the scales
 * of large matrices; and all kernels of a machine on such groups. */
#include "devices.h"
#include "kernels/gemm/gemm_mode.h"
#include "plans.h"
#include "problem.h"
#include "sample.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

extern const lpg_kernel test_every_kernel[];
extern const int test_every_kernel_count;

/* ---- weights in words ---- */

static const struct form {
  const char *name;
  lpgemm_dtype_t type, scale, zero_type, super;
  lpgemm_zero_t zero;
  float constant;
} forms[] = {
    {"u4", LPGEMM_UINT(4), LPGEMM_F16, 0, 0, LPGEMM_ZERO_CONSTANT, 8},
    {"u3_zeros", LPGEMM_UINT(3), LPGEMM_F16, LPGEMM_U8, 0, LPGEMM_ZERO_PER_GROUP, 0},
    {"u2_minima", LPGEMM_UINT(2), LPGEMM_F32, LPGEMM_F16, 0, LPGEMM_ZERO_MINIMUM, 0},
    {"u8_bf16", LPGEMM_UINT(8), LPGEMM_BF16, 0, 0, LPGEMM_ZERO_CONSTANT, 128},
    {"e2m1", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, 0, 0, LPGEMM_ZERO_NONE, 0},
    {"nf4", LPGEMM_CODEBOOK(4), LPGEMM_F16, 0, 0, LPGEMM_ZERO_NONE, 0},
    {"u4_levels", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_UINT(6), LPGEMM_F16, LPGEMM_ZERO_MINIMUM, 0},
    {"i6_levels", LPGEMM_INT(6), LPGEMM_I8, 0, LPGEMM_F16, LPGEMM_ZERO_NONE, 0},
    {"u4_nibbles", LPGEMM_UINT(4), LPGEMM_UINT(4), LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_ZERO_MINIMUM, 0},
};

/* Odd ones, and those of which a k block has none. Super-groups are whole k blocks. */
static const int64_t groups[] = {48, 80, 96, 112, 144, 160, 192, 224, 256, 384, 512, 640, 768, 1024};

static lpgemm_weight_desc_t desc_of(const struct form *form, int64_t group, int64_t n, int64_t k) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .type = form->type, .n = n, .k = k, .group_k = group};
  d.scale_type = form->scale;
  d.zero = form->zero;
  d.zero_type = form->zero_type;
  d.zero_constant = form->constant;
  if (form->super) {
    d.super_scale_type = form->super;
    if (form->zero == LPGEMM_ZERO_MINIMUM) d.super_zero_type = form->super;
    for (d.super_k = group; d.super_k % LPG_BLOCK_K != 0;) d.super_k += group;
  }
  for (int i = 0; i < 16 && lpg_kind(form->type) == LPGEMM_KIND_CODEBOOK; i++) {
    d.codebook[i] = (float)(i * i - 60) / 128;
  }
  return d;
}

/* ---- the choice ---- */

static int is_last_resort(const lpg_kernel *kernel) {
  return strcmp(kernel->family, "generic") == 0 || strcmp(kernel->family, "dequant") == 0;
}

static int count_fast(const lpg_problem *problem) {
  int fast = 0;
  for (int i = 0; i < test_every_kernel_count; i++) {
    const lpg_kernel *kernel = &test_every_kernel[i];
    fast += !is_last_resort(kernel) && !lpgemm_i_infeasible(kernel, problem, &sm90);
  }
  return fast;
}

/* Every group has a fast kernel, and up to 100 rows one is chosen. */
static void check_choice(const struct form *form, lpgemm_dtype_t x_type) {
  static const int64_t rows[] = {1, 19, 100, 600};
  for (int64_t group = 16; group <= 1280; group += group < 288 ? 16 : 112) {
    const lpgemm_weight_desc_t d = desc_of(form, group, 4096, 7168);
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
    for (int r = 0; r < COUNT(rows); r++) {
      lpg_problem problem = plan_problem(&w, x_type, rows[r]);
      problem.scale_span = 3;
      lpg_choice choice = {.kernel = NULL};
      if (count_fast(&problem) == 0) {
        test_fail(__FILE__, __LINE__, "groups of %lld, %lld rows: no fast kernel", (long long)group,
                  (long long)rows[r]);
      }
      if (rows[r] > 100) continue;
      CHECK_STATUS(lpgemm_i_select(test_every_kernel, test_every_kernel_count, &problem, &sm90, NULL, NULL, &choice),
                   LPGEMM_SUCCESS);
      CHECK(choice.kernel && !is_last_resort(choice.kernel));
    }
  }
}

/* ---- chunks ---- */

/* A chunk is of multiples of 256 rows and of rows that share scales, its scales fit, and the workspace is monotone in
 * m. */
static void check_chunks(void) {
  int several = 0;
  for (int i = 0; i < 2000; i++) {
    const struct form *form = &forms[test_between(0, COUNT(forms) - 1)];
    lpgemm_weight_desc_t d = desc_of(form, 16 * test_between(1, 20), test_between(1, 60000), test_between(1, 60000));
    if (test_between(0, 3) == 0) d.group_n = 16 << test_between(0, 12);
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
    const int64_t rows = lpg_gemm_chunk_rows(&w, LPG_GEMM_SCALES_PREPARED);
    const size_t most = (size_t)64 << 20;
    CHECK(lpg_gemm_chunk_rows(&w, LPG_GEMM_SCALES_ROW) == d.n && rows <= d.n);
    CHECK((size_t)lpg_gemm_made_bytes(&w, LPG_GEMM_SCALES_PREPARED) <= most);
    if (rows == 0 || rows == d.n) continue;
    several++;
    CHECK(rows % LPG_GEMM_TILE_N == 0 && (d.group_n == 0 || d.group_n >= d.n || rows % d.group_n == 0));
    const lpg_planner *planner = &lpgemm_i_gemm_planner;
    lpg_problem problem = plan_problem(&w, LPGEMM_F16, test_between(17, 300));
    problem.scale_span = 3;
    const int is_prepared = lpg_gemm_is_prepared(lpgemm_i_gemm_scaling(&w, problem.x_type, 3).mode);
    if (!is_prepared || planner->refuses(planner, &problem, &sm90)) continue;
    const size_t bytes = planner->workspace(planner, &problem, &sm90);
    const size_t more = planner->more_workspace(planner, &problem, &sm90);
    CHECK(bytes + more <= most + lpg_x_copy_bytes(&problem, 2) + 16);
    lpg_planned planned;
    CHECK(!lpgemm_i_plan(planner, &problem, &sm90, &planned));
    CHECK(planned.launch.passes == lpg_ceil_div(d.n, rows) && planned.launch.passes > 1);
    problem.m++;
    CHECK(planner->workspace(planner, &problem, &sm90) >= bytes);
  }
  CHECK(several > 500);
}

/* ---- products ---- */

/* Columns of which sums of u8 are exact; the largest groups of all have two of them. */
enum { EXACT_K = 1300 };

/* exact: each sum is exact in fp32, so that a wrong scale cannot hide. */
static void check_products(lpgemm_handle_t handle, const struct form *form, lpgemm_dtype_t x_type, int exact) {
  const int on_gpu = test_backend() == LPGEMM_BACKEND_CUDA;
  for (int i = 0; i < COUNT(groups); i += on_gpu ? 1 : 9) {
    static const int64_t rows[] = {1, 5, 16, 19, 70, 150};
    problem_spec s = {.alpha = 1, .x_type = x_type, .y_type = LPGEMM_F32, .exact = exact};
    const int64_t k = groups[i] * test_between(1, 3) + test_between(1, 300);
    s.desc = desc_of(form, groups[i], test_between(1, 300), exact && k > EXACT_K ? EXACT_K : k);
    s.m = rows[(i + exact) % (on_gpu ? COUNT(rows) : 3)];
    s.bias_type = i % 2 ? LPGEMM_F32 : 0;
    problem p;
    const int is_drawn = i % 3 == 2; /* rows may share scales in a way that only others take */
    if (is_drawn ? problem_make_drawn(&p, handle, &s) : problem_make(&p, handle, &s)) {
      const int runs = problem_check_by_all(&p, handle, "gemv", "gemm");
      CHECK(!on_gpu || is_drawn || runs > 0);
    }
    problem_free(&p);
  }
}

/* Chunks of 768 rows and 272, with all that runs along N: bias, C, and factors of rows. */
static void check_large(lpgemm_handle_t handle) {
  const char *const kernel = "gemm.u2.f16.256x128.sm90a";
  problem_spec s = {.alpha = 1, .beta = 0.5f, .m = 3, .x_type = LPGEMM_F16, .y_type = LPGEMM_F32};
  s.desc = desc_of(&forms[2], 48, 1040, 131072);
  s.desc.row_scales = LPGEMM_F32;
  s.bias_type = LPGEMM_F32;
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &w), LPGEMM_SUCCESS);
  CHECK(lpg_gemm_chunk_rows(&w, LPG_GEMM_SCALES_PREPARED) == 768);
  problem p;
  if (!problem_has_kernel(kernel)) {
    test_skip("%s is not here", kernel);
    return;
  }
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
    problem_check(&p, kernel);
    problem_check_again(&p, handle, kernel);
  }
  problem_free(&p);
}

void suite_groups(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  lpgemm_handle_t handle = problem_handle(2);
  for (int i = 0; i < COUNT(forms) * COUNT(x_types); i++) {
    const struct form *form = &forms[i / COUNT(x_types)];
    const lpgemm_dtype_t x = x_types[i % COUNT(x_types)];
    if (test_backend() == LPGEMM_BACKEND_CPU && test_case("groups/choice/%s/%s", form->name, lpgemm_dtype_name(x))) {
      check_choice(form, x);
    }
    if (test_case("groups/exact/%s/%s", form->name, lpgemm_dtype_name(x))) check_products(handle, form, x, 1);
    if (test_case("groups/random/%s/%s", form->name, lpgemm_dtype_name(x))) check_products(handle, form, x, 0);
  }
  if (test_backend() == LPGEMM_BACKEND_CPU) {
    if (test_case("groups/chunks")) check_chunks();
  } else if (test_case("groups/large")) {
    check_large(handle);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
