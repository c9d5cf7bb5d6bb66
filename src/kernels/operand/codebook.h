/* A codebook as tensor cores read it: its values by a factor, rounded to X's type. */
#ifndef LPG_KERNELS_CODEBOOK_H
#define LPG_KERNELS_CODEBOOK_H

#include "../../internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LPG_CODEBOOK_ENTRIES = 16 };

typedef struct lpg_rounded_codebook {
  float factor; /* value i of the codebook is about factor * rounded[i] */
  uint16_t rounded[LPG_CODEBOOK_ENTRIES];
} lpg_rounded_codebook;

/* Of 2^bits entries. The same values give the same numbers on every thread; a thread that asks again for what it asked
 * for last does not compute it again: every call asks, and weights of a model mostly share their codebook. */
lpg_rounded_codebook lpgemm_i_round_codebook(const float *value, int bits, int bf16);

#ifdef __cplusplus
}
#endif

#endif
