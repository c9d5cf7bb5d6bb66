/* One row of X by matrices of so many rows that gemv may have two CTAs an SM: by every kernel of gemv's, in one round
 * and several, with a ragged end, and with an order of columns. */
#include "problem.h"
#include "test.h"

static void check(lpgemm_handle_t handle, lpgemm_dtype_t type, lpgemm_dtype_t x) {
  static const int64_t groups[] = {0, 16, 32, 64, 128};
  for (int i = 0; i < 5; i++) {
    problem_spec s = {.desc = {.size = sizeof s.desc}, .m = 1, .x_type = x, .y_type = x, .alpha = 1};
    s.desc.type = type;
    s.desc.scale_type = LPGEMM_F16;
    s.desc.group_k = groups[i];
    s.desc.n = 1100 + 517 * i;
    s.desc.k = i % 2 ? 1296 : 256 * i + 512;
    if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT) {
      s.desc.zero = LPGEMM_ZERO_CONSTANT;
      s.desc.zero_constant = (float)(1 << (lpgemm_dtype_bits(type) - 1));
    }
    if (i == 2) s.desc.columns = LPGEMM_COLUMNS_ORDERED;
    problem p;
    if (problem_make(&p, handle, &s)) problem_check_by_all(&p, handle, "gemv", NULL);
    problem_free(&p);
  }
}

void suite_one_row(void) {
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(3), LPGEMM_UINT(4), LPGEMM_INT(3), LPGEMM_INT(4)};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  lpgemm_handle_t handle = problem_handle(2);
  for (int t = 0; t < 4; t++) {
    for (int x = 0; x < 2; x++) {
      if (test_case("one_row/%s/%s", lpgemm_dtype_name(types[t]), lpgemm_dtype_name(x_types[x])))
        check(handle, types[t], x_types[x]);
    }
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
