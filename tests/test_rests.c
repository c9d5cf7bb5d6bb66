/* Scales of one level with rests, which gemm's kernels make (LPG_GEMM_SCALES_RESTS): fp16 minima, fp16 zeros, zeros
 * between two codes, bipolar codes, rare widths. By fp16 X a row gets a power of two by a bound of its rests. */
#include <math.h>

#include "kernels/gemm/gemm_mode.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
  const char *name;
  lpgemm_dtype_t type;
  int64_t group;
  lpgemm_zero_t zero;
  float constant;
} forms[] = {
    {"q4_1", LPGEMM_UINT(4), 32, LPGEMM_ZERO_MINIMUM, 0},
    {"q5_1", LPGEMM_UINT(5), 32, LPGEMM_ZERO_MINIMUM, 0},
    {"i8_minima", LPGEMM_INT(8), 64, LPGEMM_ZERO_MINIMUM, 0},
    {"u2_minima_a_row", LPGEMM_UINT(2), 0, LPGEMM_ZERO_MINIMUM, 0},
    {"hqq", LPGEMM_UINT(4), 64, LPGEMM_ZERO_PER_GROUP, 0},
    {"hqq_3", LPGEMM_UINT(3), 128, LPGEMM_ZERO_PER_GROUP, 0},
    {"hqq_i5", LPGEMM_INT(5), 256, LPGEMM_ZERO_PER_GROUP, 0},
    {"half", LPGEMM_UINT(2), 128, LPGEMM_ZERO_CONSTANT, 1.5f},
    {"bipolar", LPGEMM_BIPOLAR(3), 128, LPGEMM_ZERO_NONE, 0},
    {"rare", LPGEMM_UINT(5), 32, LPGEMM_ZERO_CONSTANT, 16},
};

/* Else another mode would be tested; as it is where a zero is a code and one scale has all of a row. */
static void check_mode(const problem_spec *s) {
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&s->desc, &w), LPGEMM_SUCCESS);
  if (s->desc.zero == LPGEMM_ZERO_CONSTANT && s->desc.zero_constant == 16 && w.group.count <= 1) return;
  CHECK(lpgemm_i_gemm_scaling(&w, s->x_type, 12).mode == LPG_GEMM_SCALES_RESTS);
}

static problem_spec spec_of(int form, lpgemm_dtype_t x_type, int64_t m, int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = forms[form].type, .n = n, .k = k}};
  s.desc.group_k = forms[form].group;
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = forms[form].zero;
  s.desc.zero_constant = forms[form].constant;
  if (s.desc.zero != LPGEMM_ZERO_CONSTANT && s.desc.zero != LPGEMM_ZERO_NONE) s.desc.zero_type = LPGEMM_F16;
  s.m = m;
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  check_mode(&s);
  return s;
}

/* Rows of W and columns that end anywhere, by every kernel. */
static void check_rows(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type) {
  static const int64_t shapes[][3] = {{17, 40, 1},    {17, 40, 33},    {17, 40, 257},     {40, 70, 5000},
                                      {64, 515, 700}, {100, 130, 999}, {200, 1000, 1111}, {300, 2100, 512}};
  for (int i = 0; i < COUNT(shapes); i++) {
    problem_spec s = spec_of(form, x_type, shapes[i][0], shapes[i][1], shapes[i][2]);
    s.not_finite = i == 4;
    problem p;
    if (i % 2 ? problem_make_drawn(&p, handle, &s) : problem_make(&p, handle, &s))
      CHECK(problem_check_by_all(&p, handle, "gemm", NULL) == 1);
    problem_free(&p);
  }
}

/* One group of each row, here and there, has rests far beyond all else that the row has (with one group a row all are):
 * where they are not seen its weights leave fp16. In `small` all else is so small that it needs the row's power of two;
 * forms without rests of groups have that alone. */
static void check_large_rests(lpgemm_handle_t handle, int form, lpgemm_dtype_t x_type, int small) {
  problem_spec s = spec_of(form, x_type, 19, 100, 2000);
  problem p;
  if (problem_make(&p, handle, &s)) {
    const int64_t each = forms[form].group ? forms[form].group : s.desc.k, groups = (s.desc.k + each - 1) / each;
    void *const scales = (void *)(uintptr_t)p.source.scales, *const zeros = (void *)(uintptr_t)p.source.zeros;
    for (int64_t i = 0; i < s.desc.n * groups; i++) {
      const int64_t row = i / groups, group = i % groups;
      const double scale = ldexp(ref_load(LPGEMM_F16, scales, i), small ? -10 : 0);
      ref_store(LPGEMM_F16, scales, i, scale);
      if (!zeros) continue;
      const int is_minimum = s.desc.zero == LPGEMM_ZERO_MINIMUM;
      if (small && is_minimum) ref_store(LPGEMM_F16, zeros, i, ldexp(ref_load(LPGEMM_F16, zeros, i), -10));
      if (group == row * 7 % groups) ref_store(LPGEMM_F16, zeros, i, row % 2 ? -3000 : is_minimum ? 60000 : 900);
    }
    problem_repack(&p, handle);
    CHECK(problem_check_by_all(&p, handle, "gemm", NULL) == 1);
  }
  problem_free(&p);
}

void suite_rests(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  lpgemm_handle_t handle = problem_handle(2);
  for (int form = 0; form < COUNT(forms); form++) {
    for (int i = 0; i < COUNT(x_types); i++) {
      const char *x = lpgemm_dtype_name(x_types[i]);
      if (test_case("rests/rows/%s/%s", forms[form].name, x)) check_rows(handle, form, x_types[i]);
      const int has_rests = forms[form].zero == LPGEMM_ZERO_MINIMUM || forms[form].zero == LPGEMM_ZERO_PER_GROUP;
      for (int small = !has_rests; small < 2; small++) {
        if (test_case("rests/large/%s/%s/%s", forms[form].name, x, small ? "small" : "as_drawn"))
          check_large_rests(handle, form, x_types[i], small);
      }
    }
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
