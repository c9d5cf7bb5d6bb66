/* Values of weights by the rule of their format, read from the file's bytes one by one: cli/convert_formula.c. Knows
 * nothing of packing, so that --check does not compare the library with itself. */
#ifndef CLI_CONVERT_FORMULA_H
#define CLI_CONVERT_FORMULA_H

#include "convert.h"

/* Whether there is a formula for the layer (GPTQ, AWQ, pack-quantized, int8 and fp8). desc: of the whole layer. */
int convert_has_formula(const lpgemm_import_t *import, const lpgemm_weight_desc_t *desc);

/* Row `row` of the file's matrix: desc.k values in the order of the file. terms: memory for 2 * (k + 1) numbers. */
void convert_formula_row(const lpgemm_import_t *import, const lpgemm_weight_desc_t *desc, int64_t row, double *terms,
                         float *values);

#endif
