/* What the dequantisers make of packed codes, without a GPU. */
#ifndef TEST_DECODERS_H
#define TEST_DECODERS_H

#include "internal.h"

/* The weights of pair `pair` of a unit of packed words (word i of the unit is unit[2 i]) without their scale, as the
 * decode kernels (wide: the wide ones) for that type of X get them: factor * decoded number + what goes on the sum of
 * X. */
LPG_EXTERN_C void decoded_pair(const lpg_packed *packed, lpgemm_dtype_t x_type, int wide, const uint32_t *unit,
                               int pair, double value[2]);

/* The same of integers of 2, 3, 4 and 8 bits as the wide kernels scale them at once: fp16 numbers. */
LPG_EXTERN_C void scaled_pair(int bits, int center, uint16_t scale, const uint32_t *unit, int pair, uint16_t value[2]);

#endif
