/* Plans of random problems by kernels that have the frame of src/bitserial/bits_frame.cuh. */
#ifndef LPG_TESTS_BITS_PLANS_H
#define LPG_TESTS_BITS_PLANS_H

#include "bitserial/gemv1_plan.h"
#include "internal.h"

/* Cases FAMILY/plan/0 and 1, a device each: draws problems of up to so many rows of X, checks what all such plans have
 * in common, and leaves the rest to `check`. */
void check_gemv1_plans(const char *family, int most_rows, lpg_gemv1_mode (*form_of)(int bits, int64_t m),
                       void (*check)(const lpg_gemv1_plan *p, const lpg_packed *weights, int64_t m));

#endif
