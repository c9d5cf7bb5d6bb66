/* Scales of two levels as GGUF's K-quants have them, for which gemv and gemm have kernels of their own
 * (gemv_levels.cuh; LPG_GEMM_SCALES_LEVELS_32 and _16): few rows of X by every kernel of gemv that can, on exact
 * numbers, random ones, and weights that their minimum cancels; more by those of gemm. */
#include <math.h>
#include <string.h>

#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
  const char *name;
  int64_t group;
  lpgemm_dtype_t type, codes;
  lpgemm_zero_t zero;
  float constant;
} forms[] = {
    {"q2_k", 16, LPGEMM_UINT(2), LPGEMM_UINT(4), LPGEMM_ZERO_MINIMUM, 0},
    {"q3_k", 16, LPGEMM_UINT(3), LPGEMM_I8, LPGEMM_ZERO_CONSTANT, 4},
    {"q4_k", 32, LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 0},
    {"q5_k", 32, LPGEMM_UINT(5), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 0},
    {"q6_k", 16, LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_ZERO_CONSTANT, 32},
    /* from OF_GEMM on: the same by other codes and constants, of gemm alone */
    {"i5_minima", 32, LPGEMM_INT(5), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 0},
    {"u6", 16, LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_ZERO_NONE, 0},
    {"u6_less_64", 16, LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_ZERO_CONSTANT, 64},
    {"i3_plus_4", 16, LPGEMM_INT(3), LPGEMM_I8, LPGEMM_ZERO_CONSTANT, -4},
    {"iq4_xs", 32, LPGEMM_CODEBOOK(4), LPGEMM_I8, LPGEMM_ZERO_NONE, 0},
    /* the same in groups that those kernels are not for */
    {"q4_k_of_64", 64, LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 0},
    {"iq4_xs_of_64", 64, LPGEMM_CODEBOOK(4), LPGEMM_I8, LPGEMM_ZERO_NONE, 0},
};

enum { OF_GEMM = 8 };

static problem_spec spec_of(int form, lpgemm_dtype_t x_type) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = forms[form].type, .group_k = forms[form].group}};
  s.desc.scale_type = forms[form].codes;
  s.desc.super_k = 256;
  s.desc.super_scale_type = LPGEMM_F16;
  s.desc.zero = forms[form].zero;
  s.desc.zero_constant = forms[form].constant;
  if (s.desc.zero == LPGEMM_ZERO_MINIMUM) {
    s.desc.zero_type = forms[form].codes;
    s.desc.super_zero_type = LPGEMM_F16;
  }
  for (int i = 0; i < 16 && LPGEMM_DTYPE_KIND(s.desc.type) == LPGEMM_KIND_CODEBOOK; i++) {
    s.desc.codebook[i] = (float)(i * 8 - 60 + i % 3);
  }
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  return s;
}

static void check_drawn(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type, int exact) {
  static const int64_t columns[] = {256, 512, 768, 1536, 2816};
  const int rounds = test_backend() == LPGEMM_BACKEND_CUDA ? 12 : 2;
  for (int round = 0; round < rounds; round++) {
    problem_spec s = spec_of(form, x_type);
    s.m = round < 4 ? round + 1 : test_between(5, 16);
    s.desc.n = test_between(1, round % 3 ? 80 : 200);
    s.desc.k = columns[test_between(0, exact ? 1 : COUNT(columns) - 1)];
    s.exact = exact;
    s.not_finite = !exact && round == 5;
    s.bias_type = round % 2 ? LPGEMM_F32 : 0;
    s.pad_x = round % 4;
    problem p;
    if (round % 2 ? problem_make_drawn(&p, handle, &s) : problem_make(&p, handle, &s))
      problem_check_by_all(&p, handle, "gemv", NULL);
    problem_free(&p);
  }
}

/* More rows of X, by every work tile of gemm: its kernels for two levels, or prepared scales. Rows of W and columns end
 * anywhere, rows of more than 256 granules too. */
static void check_rows(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type) {
  static const struct {
    int64_t m, n, k;
  } shapes[] = {{17, 40, 256}, {40, 70, 5000}, {64, 515, 700}, {100, 130, 8448}, {200, 1000, 1111}, {300, 2100, 512}};
  for (int i = 0; i < COUNT(shapes); i++) {
    problem_spec s = spec_of(form, x_type);
    s.m = shapes[i].m;
    s.desc.n = shapes[i].n;
    s.desc.k = shapes[i].k;
    s.not_finite = i == 1;
    problem p;
    if (i % 2 ? problem_make_drawn(&p, handle, &s) : problem_make(&p, handle, &s))
      CHECK(problem_check_by_all(&p, handle, "gemm", NULL) == 1);
    problem_free(&p);
  }
}

/* By the kernels of gemm alone. Returns how many took it. */
static int check_by_gemm(problem *p, lpgemm_handle_t handle) {
  const char *names[PROBLEM_KERNELS];
  const int count = problem_kernels(names);
  int runs = 0;
  problem_expect(p);
  for (int i = 0; i < count; i++) {
    if (strncmp(names[i], "gemm.", 5) != 0) continue;
    const lpgemm_status_t status = problem_run(p, handle, names[i]);
    if (status == LPGEMM_NOT_SUPPORTED) continue;
    CHECK_STATUS(status, LPGEMM_SUCCESS);
    problem_check(p, names[i]);
    problem_check_again(p, handle, names[i]);
    runs++;
  }
  return runs;
}

/* Rows that end within their only super-group, or within their only group. */
static void check_short(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type) {
  static const int64_t columns[] = {1, 15, 16, 17, 31, 32, 33, 100, 255, 257};
  for (int i = 0; i < COUNT(columns); i++) {
    problem_spec s = spec_of(form, x_type);
    s.m = 17;
    s.desc.n = 40;
    s.desc.k = columns[i];
    problem p;
    if (problem_make(&p, handle, &s)) CHECK(check_by_gemm(&p, handle) == 1);
    problem_free(&p);
  }
}

/* The first super-group has a large upper scale, or minimum, whose lower codes are all 0: it says nothing about the
 * row's weights. */
static void check_hidden(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type, int is_minimum) {
  problem_spec s = spec_of(form, x_type);
  s.m = 17;
  s.desc.n = 40;
  s.desc.k = 768;
  problem p;
  if (problem_make(&p, handle, &s)) {
    const int64_t groups = s.desc.k / s.desc.group_k, each = 256 / s.desc.group_k;
    uint8_t *codes = (uint8_t *)(uintptr_t)(is_minimum ? p.source.zeros : p.source.scales);
    void *const upper[] = {(void *)(uintptr_t)p.source.super_scales, (void *)(uintptr_t)p.source.super_zeros};
    for (int64_t i = 0; i < s.desc.n * 3; i++) {
      for (int j = 0; j < 2 && upper[j]; j++)
        ref_store(LPGEMM_F16, upper[j], i, ldexp(ref_load(LPGEMM_F16, upper[j], i), is_minimum ? -11 : -8));
    }
    for (int64_t n = 0; n < s.desc.n; n++) {
      memset(codes + n * groups, 0, (size_t)each);
      ref_store(LPGEMM_F16, upper[is_minimum], n * 3, 60000);
    }
    problem_repack(&p, handle);
    check_by_gemm(&p, handle);
  }
  problem_free(&p);
}

/* alpha = 0 reads no weights: a read of the locked pages would end the program. */
static void check_unread(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type) {
  enum { PAGES = 1 << 20 };
  problem_spec s = spec_of(form, x_type);
  s.m = 17;
  s.desc.n = 40;
  s.desc.k = 512;
  problem p;
  void *memory = test_map(PAGES);
  if (problem_make(&p, handle, &s)) {
    CHECK_STATUS(lpgemm_weights_destroy(p.weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_pack_weights(handle, &s.desc, &p.source, memory, PAGES, &p.weights), LPGEMM_SUCCESS);
    p.args.weights = p.weights;
    p.spec.alpha = 0;
    test_lock(memory, PAGES);
    check_by_gemm(&p, handle);
    test_unlock(memory, PAGES);
  }
  problem_free(&p);
  test_unmap(memory, PAGES);
}

/* By the parts of K that batch invariance gives, and its work tile for few rows. */
static void check_invariant(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type) {
  static const int64_t rows[] = {3, 17, 70, 140};
  const char *names[PROBLEM_KERNELS];
  for (int i = 0; i < COUNT(rows); i++) {
    problem_spec s = spec_of(form, x_type);
    s.m = rows[i];
    s.desc.n = 150;
    s.desc.k = 300 + 1000 * i;
    problem p;
    if (problem_make(&p, handle, &s)) {
      p.args.batch_invariant = 1;
      check_by_gemm(&p, handle);
      for (int j = problem_kernels(names) - 1; j >= 0; j--) {
        if (strncmp(names[j], "gemm.", 5) == 0) problem_check_alone(&p, handle, names[j]);
      }
    }
    problem_free(&p);
  }
}

/* K in slices and phases, and enough rows that every warp goes from one row tile to another. */
static void check_large(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type, int64_t m) {
  problem_spec s = spec_of(form, x_type);
  s.m = m;
  s.desc.n = m == 1 ? 4500 : 300;
  s.desc.k = m == 1 ? 1024 : 14336;
  problem p;
  if (problem_make(&p, handle, &s)) CHECK(problem_check_by_all(&p, handle, "gemv", NULL) == 2);
  problem_free(&p);
}

/* Every 9th column has the code that the minimum cancels, exactly or but for the rounding of the upper level, and X is
 * 30000 times larger there: what is left must be as exact as the bound on |x||w| says. */
static void check_cancel(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type, int code) {
  problem_spec s = spec_of(form, x_type);
  s.m = 3;
  s.desc.n = 40;
  s.desc.k = 512;
  problem p;
  if (problem_make(&p, handle, &s)) {
    uint8_t *codes = (uint8_t *)(uintptr_t)p.source.codes;
    void *upper = (void *)(uintptr_t)p.source.super_zeros;
    for (int64_t i = 0; i < s.desc.n * 2; i++) {
      ref_store(LPGEMM_F16, upper, i, -code * ref_load(LPGEMM_F16, p.source.super_scales, i));
    }
    memcpy((void *)(uintptr_t)p.source.zeros, p.source.scales, p.source.scales_bytes);
    for (int64_t i = 0; i < s.desc.n * s.desc.k; i++) {
      if (i % s.desc.k % 9 == 4) codes[i] = (uint8_t)code;
    }
    for (int64_t i = 0; i < s.m * s.desc.k; i++) {
      if (i % s.desc.k % 9 == 4) ref_store(x_type, p.x, i, 30000 * ref_load(x_type, p.x, i));
    }
    problem_repack(&p, handle);
    problem_check_by_all(&p, handle, "gemv", NULL);
  }
  problem_free(&p);
}

void suite_k_quants(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_I8};
  lpgemm_handle_t handle = problem_handle(2);
  for (int form = 0; form < COUNT(forms); form++) {
    const char *name = forms[form].name;
    for (int i = 0; i < COUNT(x_types); i++) {
      const lpgemm_dtype_t x = x_types[i];
      const char *x_name = lpgemm_dtype_name(x);
      const int is_minimum = forms[form].zero == LPGEMM_ZERO_MINIMUM, is_large = x != LPGEMM_I8;
      const int on_gpu = test_backend() == LPGEMM_BACKEND_CUDA && is_large;
      if (on_gpu && test_case("k_quants/rows/%s/%s", name, x_name)) check_rows(handle, form, x);
      if (on_gpu && test_case("k_quants/short/%s/%s", name, x_name)) check_short(handle, form, x);
      if (on_gpu && test_case("k_quants/invariant/%s/%s", name, x_name)) check_invariant(handle, form, x);
      if (on_gpu && test_case("k_quants/unread/%s/%s", name, x_name)) check_unread(handle, form, x);
      for (int of_minima = 0; of_minima <= is_minimum; of_minima++) {
        if (on_gpu && test_case("k_quants/hidden/%s/%s/%s", name, x_name, of_minima ? "minima" : "scales"))
          check_hidden(handle, form, x, of_minima);
      }
      if (form >= OF_GEMM) continue;
      if (test_case("k_quants/exact/%s/%s", name, x_name)) check_drawn(handle, form, x, 1);
      if (test_case("k_quants/random/%s/%s", name, x_name)) check_drawn(handle, form, x, 0);
      if (on_gpu && test_case("k_quants/large/%s/%s/1_row", name, x_name)) check_large(handle, form, x, 1);
      if (on_gpu && test_case("k_quants/large/%s/%s/16_rows", name, x_name)) check_large(handle, form, x, 16);
      if (is_minimum && is_large && test_case("k_quants/cancel/%s/%s", name, x_name)) {
        for (int code = 1; code < 4; code++) check_cancel(handle, form, x, code);
      }
    }
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
