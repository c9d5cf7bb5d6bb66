/* gemv1 (src/bitserial/gemv1.cuh), what is plain arithmetic: fixed-point activations, their planes beside packed words,
 * plans. The suite gemm runs the kernels; here they meet data with outliers. */
#include <math.h>

#include "bitserial/gemv1_fixed.h"
#include "bitserial/gemv1_plan.h"
#include "devices.h"
#include "plans.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

/* ---- fixed point ---- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The power of two is above the magnitude, and no larger than it must be; units and their inverses are exact. */
static void check_exponent(float most) {
  const int e = lpg_fixed_exponent(bits_of(most));
  CHECK((double)most < ldexp(1, e));
  CHECK(e == LPG_LEAST_EXPONENT || (double)most >= ldexp(1, e - 1));
  for (int bits = 1; bits <= 2; bits++) {
    const int digits = lpg_fixed_digits(bits);
    CHECK((double)float_of(lpg_power_bits(e - digits + 1)) == ldexp(1, e - digits + 1));
    CHECK((double)float_of(lpg_power_bits(digits - 1 - e)) == ldexp(1, digits - 1 - e));
  }
}

static void test_fixed_point(void) {
  if (test_case("gemv1/exponent")) {
    static const float some[] = {0, 1e-45f, 0x1p-126f, 0x1p-103f, 0x1p-102f, 0.75f, 1, 1.5f, 65504, 0x1.fep127f};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) check_exponent(some[i]);
    for (int i = 0; i < 1000; i++) check_exponent((float)ldexp(test_uniform(0, 1), (int)test_between(-140, 127)));
    CHECK(lpg_is_not_finite(bits_of(INFINITY)) && lpg_is_not_finite(bits_of(NAN) & 0x7fffffffu));
    CHECK(!lpg_is_not_finite(bits_of(3.4e38f)));
  }
}

/* ---- planes ---- */

/* A number in two's complement of its digits is the sum of its planes' weights, beside each bit of a code times that
 * bit's weight; and all columns together fit three tensor-core blocks. */
static void check_planes(int bits, int32_t a) {
  for (int i = 0; i < bits; i++) {
    int64_t sum = 0;
    for (int q = 0; q < LPG_PLANES; q++) {
      sum += (int64_t)lpg_plane_weight(bits, q) * lpg_plane_bit(bits, (uint32_t)a, i, q);
    }
    CHECK_INT(sum, (int64_t)a * ((int64_t)1 << i));
  }
}

/* Packed words of a chunk by its planes, all 32-bit arithmetic: what the tensor cores count is the product. */
static void check_product(int bits) {
  const int tile_k = lpg_tile_k(bits), unit_codes = lpg_unit_codes(bits), words = LPG_CHUNK_K * bits / 32 / 4;
  const int32_t limit = 1 << (lpg_fixed_digits(bits) - 1);
  uint32_t packed[4][2] = {{0}}, plane[LPG_PLANES][4][2];
  int64_t want = 0;
  uint32_t got = 0;
  memset(plane, 0, sizeof plane);
  for (int c = 0; c < LPG_CHUNK_K; c++) {
    const int t = c % 8 / 2, pair = 2 * (c % tile_k / 16) + c % 16 / 8, unit = pair / (unit_codes / 2);
    const lpg_field field = lpg_field_of(bits, pair % (unit_codes / 2));
    const int32_t a = test_between(0, 3) ? (int32_t)test_between(1 - limit, limit - 1) : limit - 1;
    const uint32_t code = (uint32_t)test_between(0, (1 << bits) - 1);
    CHECK(unit < words && field.word == 0);
    want += (int64_t)a * code;
    for (int i = 0; i < bits; i++) {
      const int at = field.shift + 16 * (c % 2) + i;
      packed[t][unit] |= (code >> i & 1u) << at;
      for (int q = 0; q < LPG_PLANES; q++) plane[q][t][unit] |= lpg_plane_bit(bits, (uint32_t)a, i, q) << at;
    }
  }
  for (int q = 0; q < LPG_PLANES; q++) {
    uint32_t count = 0;
    for (int t = 0; t < 4; t++) {
      for (int w = 0; w < words; w++) count += (uint32_t)__builtin_popcount(packed[t][w] & plane[q][t][w]);
    }
    got += count * (uint32_t)lpg_plane_weight(bits, q);
  }
  CHECK_INT((int32_t)got, want);
}

static void test_gemm1(void) {
  for (int bits = 1; bits <= 2; bits++) {
    if (test_case("gemv1/planes/u%d", bits)) {
      const int32_t limit = 1 << (lpg_fixed_digits(bits) - 1);
      const int32_t some[] = {0, 1, -1, limit - 1, -limit, 1 - limit, limit / 2, -limit / 2};
      for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) check_planes(bits, some[i]);
      for (int i = 0; i < 1000; i++) check_planes(bits, (int32_t)test_between(-limit, limit - 1));
    }
    if (test_case("gemv1/product/u%d", bits)) {
      for (int i = 0; i < 100; i++) check_product(bits);
    }
  }
}

/* ---- plans ---- */

static void check_plan(const lpg_gemv1_plan *p, const lpg_packed *w, int64_t m) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int row_tiles = lpg_gemv1_row_tiles(p->tile_m), chunks = lpg_gemv1_chunks(p->tile_m);
  CHECK((int64_t)p->blocks * chunks * LPG_CHUNK_K >= w->k_padded);
  CHECK((int64_t)p->super_tiles * row_tiles >= w->row_tiles);
  CHECK(p->tile_m >= m && p->tile_m <= LPG_GEMV1_MOST_X);
  CHECK(p->x_stride == blocks * chunks / 2 * lpg_gemv1_block_words(w->bits) * 4 && p->x_stride % 16 == 0);
  CHECK(p->slots == p->tile_m * p->x_stride);
  CHECK(p->peers == p->slots + (tiles + LPG_GEMV1_WARPS - 1) * p->slot_bytes && p->peers % 16 == 0);
  CHECK(p->split_k == 1 || (int64_t)p->peer_bytes * p->split_k >= (int64_t)tiles * p->slot_bytes);
  CHECK(p->shared_bytes == p->peers + p->split_k * p->peer_bytes);
}

/* ---- data that fixed point finds hard ---- */

/* X of which one value in a thousand is 100 to 1000 times the others; weights beside those are zero if asked. */
static void check_outliers(lpgemm_handle_t handle, lpgemm_dtype_t type, lpgemm_dtype_t x_type, int hidden) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = type, .n = 200, .k = 8192, .group_k = 128}, .m = 2};
  problem p;
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT ? LPGEMM_ZERO_CONSTANT : LPGEMM_ZERO_NONE;
  s.desc.zero_constant = s.desc.zero == LPGEMM_ZERO_CONSTANT ? 1 : 0;
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  if (problem_make(&p, handle, &s)) {
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes;
    for (int64_t k = 0; k < s.desc.k; k++) {
      const int outlier = test_between(0, 999) == 0;
      for (int64_t m = 0; m < s.m; m++) {
        double x = -6;
        for (int i = 0; i < 12; i++) x += test_uniform(0, 1);
        ref_store(x_type, p.x, m * s.desc.k + k, outlier ? x * test_uniform(100, 1000) : x);
      }
      for (int64_t n = 0; n < s.desc.n && outlier && hidden; n++) codes[n * s.desc.k + k] = 1;
    }
    problem_repack(&p, handle);
    problem_expect(&p);
    const char *names[PROBLEM_KERNELS];
    const int count = problem_kernels(names);
    int runs = 0;
    for (int i = 0; i < count; i++) {
      if (strncmp(names[i], "gemv1.", 6) != 0 || problem_run(&p, handle, names[i]) != LPGEMM_SUCCESS) continue;
      problem_check(&p, names[i]);
      runs++;
      double worst = 0;
      for (int64_t at = 0; at < s.m * s.desc.n; at++) {
        const double error = fabs((double)((float *)p.y)[at] - p.want[at]) / p.bound[at];
        if (error > worst) worst = error;
      }
      CHECK(worst <= 1); /* here it keeps even the bound without the term for fixed point */
    }
    CHECK_INT(runs, 1);
  }
  problem_free(&p);
}

/* ---- K in slices ---- */

static const struct {
  int64_t m, n, k, group;
  lpgemm_dtype_t type, scale, zero_type;
} sliced[] = {
    {1, 300, 9000, 128, LPGEMM_UINT(1), LPGEMM_F16, 0},
    {1, 2500, 14336, 0, LPGEMM_UINT(2), LPGEMM_F32, 0},
    {2, 1000, 14336, 128, LPGEMM_UINT(2), LPGEMM_F16, LPGEMM_U8},
    {2, 17, 20001, 256, LPGEMM_BIPOLAR(1), LPGEMM_BF16, 0},
    {1, 5000, 28672, 128, LPGEMM_INT(2), LPGEMM_F16, 0},
};

/* Rows that are so long that several CTAs share them, with the rest of the epilogue. */
static void check_sliced(lpgemm_handle_t handle, int i) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = sliced[i].type, .n = sliced[i].n, .k = sliced[i].k}};
  s.desc.group_k = sliced[i].group;
  s.desc.scale_type = sliced[i].scale;
  if (sliced[i].zero_type) s.desc.zero = LPGEMM_ZERO_PER_GROUP, s.desc.zero_type = sliced[i].zero_type;
  s.m = sliced[i].m;
  s.x_type = i % 2 ? LPGEMM_BF16 : LPGEMM_F16;
  s.y_type = LPGEMM_F32;
  s.alpha = -0.5f;
  s.beta = 0.5f;
  s.bias_type = LPGEMM_F32;
  s.pad_x = i;
  lpg_packed weights;
  lpg_gemv1_plan plan;
  CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &weights), LPGEMM_SUCCESS);
  const lpg_problem sized = plan_problem(&weights, s.x_type, s.m);
  CHECK(plan_of(&lpgemm_i_gemv1_planner, &sized, &sm90, &plan) && plan.split_k > 1);
  const char *names[PROBLEM_KERNELS];
  const int count = problem_kernels(names);
  problem p;
  if (problem_make(&p, handle, &s)) {
    problem_expect(&p);
    for (int j = 0; j < count; j++) {
      if (strncmp(names[j], "gemv1.", 6) != 0 || problem_run(&p, handle, names[j]) != LPGEMM_SUCCESS) continue;
      problem_check(&p, names[j]);
      problem_check_again(&p, handle, names[j]);
    }
  }
  problem_free(&p);
}

void suite_gemv1(void) {
  test_fixed_point();
  test_gemm1();
  check_gemv1_plans("gemv1", &lpgemm_i_gemv1_planner, LPGEMM_F16, LPG_GEMV1_MOST_X, check_plan);
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(1), LPGEMM_BIPOLAR(1), LPGEMM_UINT(2), LPGEMM_INT(2),
                                         LPGEMM_BIPOLAR(2)};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  lpgemm_handle_t handle = problem_handle(1);
  for (int i = 0; i < 20; i++) {
    const lpgemm_dtype_t type = types[i / 4], x_type = x_types[i / 2 % 2];
    const char *name = lpgemm_dtype_name(type);
    if (!test_case("gemv1/outliers/%s/%s/%s", name, lpgemm_dtype_name(x_type), i % 2 ? "hidden" : "seen")) continue;
    check_outliers(handle, type, x_type, i % 2);
  }
  for (int i = 0; i < 5; i++) {
    if (test_case("gemv1/sliced/%d", i)) check_sliced(handle, i);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
