/* What the decoders make of packed codes, without a GPU. */
#ifndef TEST_DECODERS_H
#define TEST_DECODERS_H

#include "internal.h"

/* The weights of pair `pair` of a unit of packed words (word i of the unit is unit[2 i]) without their scale, as the
 * decode kernels for that type of X get them: factor * decoded number + what goes on the sum of X. */
LPG_EXTERN_C void decoded_pair(const lpg_plan *plan, lpgemm_dtype_t x_type, const uint32_t *unit, int pair,
                               double value[2]);

#endif
