/* The scale and zero (or minimum) of a group with which its codes come near to real weights. */
#ifndef LPG_PACK_FIT_H
#define LPG_PACK_FIT_H

#include "grid.h"
#include "pack.h"

typedef struct lpg_quantizer {
  const lpg_plan *plan;
  lpgemm_quantize_method_t method;
  lpg_grid codes, scale_codes, shift_codes; /* the latter two where scales or minima have at most 8 bits */
  double least, most;                       /* of the codes' values */
} lpg_quantizer;

/* A number as it is stored, and its value. */
typedef struct lpg_stored {
  uint32_t number;
  double value;
} lpg_stored;

/* Scale and zero (or minimum) of a group, such that w = (value(code) - zero) * scale + minimum. */
typedef struct lpg_fit {
  lpg_stored scale, shift; /* shift: whichever of the two below is stored a group */
  double zero, minimum;
  double error; /* MSE: the sum of squared errors */
} lpg_fit;

/* Super scale and super zero: what a scale code and a minimum code of 1 stand for. */
typedef struct lpg_units {
  lpg_stored scale, shift;
} lpg_units;

/* The units of one level. */
static inline lpg_units lpg_no_units(void) { return (lpg_units){{0, 1.0}, {0, 1.0}}; }

/* Columns of group j. */
static inline int64_t lpg_group_size(const lpg_plan *plan, int64_t j) {
  int64_t rest = plan->desc.k - j * plan->group.k;
  return rest < plan->group.k ? rest : plan->group.k;
}

/* The code value that would be exact for x. */
static inline double lpg_wanted_code(const lpg_fit *f, double x) {
  return f->scale.value != 0.0 ? (x - f->minimum) / f->scale.value + f->zero : f->zero;
}

/* Refuses a method that the plan has no numbers for. */
lpgemm_status_t lpgemm_i_make_quantizer(const lpg_plan *plan, lpgemm_quantize_method_t method, lpg_quantizer *q);

/* Two levels: the units of groups first .. end - 1 of a row x. */
lpg_units lpgemm_i_fit_units(const lpg_quantizer *q, const double *x, int64_t first, int64_t end);

/* Fits one group. */
lpg_fit lpgemm_i_fit_group(const lpg_quantizer *q, const lpg_units *units, const double *x, int64_t count);

#endif
