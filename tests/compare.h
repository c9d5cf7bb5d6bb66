/* Compares a result with what it should be. */
#ifndef COMPARE_H
#define COMPARE_H

#include "lpgemm.h"

typedef struct compare_result {
  int64_t bad;         /* elements that are wrong */
  int64_t row, column; /* of the first */
  double got, want, bound;
} compare_result;

/* y[m][ldy] of type against want[m][n] and bound[m][n], dense. An element is right if
 *
 *   want is finite:      |got - want| <= bound < Inf, so never if got is NaN; or got is infinite where a number within
 *                        the bound of want rounds to that infinity
 *   want is not finite:  got is not finite either, and with `same_class` NaN for NaN and the same infinity for one */
compare_result compare_matrix(lpgemm_dtype_t type, const void *y, int64_t ldy, int64_t m, int64_t n, const double *want,
                              const double *bound, int same_class);

/* Fails the open case, with the first wrong element, unless everything is right. `what` is the kernel or the like. */
#define CHECK_MATRIX(result, what)                                                                                  \
  do {                                                                                                              \
    compare_result r_ = (result);                                                                                   \
    if (r_.bad)                                                                                                     \
      test_fail(__FILE__, __LINE__, "%s: y[%lld][%lld] is %.9g, not %.9g within %.3g; %lld wrong elements", (what), \
                (long long)r_.row, (long long)r_.column, r_.got, r_.want, r_.bound, (long long)r_.bad);             \
  } while (0)

#endif
