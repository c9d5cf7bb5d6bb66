/* What the codes of a type stand for, looked at one by one. */
#ifndef LPG_LAYOUTS_VALUES_H
#define LPG_LAYOUTS_VALUES_H

#include "lpgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest finite magnitude, of weights or of scales and zeros; the codebook is for codebooks only. */
double lpgemm_i_largest_value(lpgemm_dtype_t type, const float *codebook);

#ifdef __cplusplus
}
#endif

#endif
