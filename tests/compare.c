#include "compare.h"

#include <math.h>

#include "ref/gemm_ref.h"

static int is_right(lpgemm_dtype_t type, double got, double want, double bound, int same_class) {
  if (isnan(want)) return same_class ? isnan(got) : !isfinite(got);
  if (isinf(want)) return same_class ? got == want : !isfinite(got);
  if (isinf(got)) return signbit(got) == signbit(want) && fabs(want) + bound >= ref_overflow(type);
  return isfinite(bound) && fabs(got - want) <= bound;
}

compare_result compare_matrix(lpgemm_dtype_t type, const void *y, int64_t ldy, int64_t m, int64_t n, const double *want,
                              const double *bound, int same_class) {
  compare_result result = {0};
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double got = ref_load(type, y, i * ldy + j);
      if (is_right(type, got, want[i * n + j], bound[i * n + j], same_class)) continue;
      if (result.bad++ == 0) {
        result.row = i;
        result.column = j;
        result.got = got;
        result.want = want[i * n + j];
        result.bound = bound[i * n + j];
      }
    }
  }
  return result;
}
