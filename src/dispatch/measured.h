/* What was measured on a GPU beforehand, and ships in the library: tables of src/dispatch/measured/, which
 * tools/measured.py turns into C. The estimate of a kernel is multiplied by how far off it was at the nearest point. */
#ifndef LPG_DISPATCH_MEASURED_H
#define LPG_DISPATCH_MEASURED_H

#include "dispatch.h"

enum { LPG_MEASURED_FORMS = 24 }; /* columns of a table, at most */

/* A problem with one level of scales. */
typedef struct lpg_measured_point {
  lpgemm_dtype_t type, x_type, scale_type; /* scale_type: 0 = none */
  lpgemm_zero_t zero;
  lpgemm_dtype_t zero_type; /* of zeros and minima of groups */
  int32_t group;            /* columns; 0 = the row */
  int32_t n, k, m;
  float log2_n, log2_k, log2_m;
  int32_t alike; /* points from this one on that differ in their sizes alone */
} lpg_measured_point;

typedef struct lpg_measured {
  const char *device; /* its name: on another one the table does not count */
  /* A form is the name of a kernel without its weights, and with f16 where bf16 stands: both are the same there. */
  const char *form[LPG_MEASURED_FORMS];
  int32_t forms, count;
  const lpg_measured_point *point;
  const float *us; /* microseconds, a number a form for each point; 0 = not timed */
} lpg_measured;

extern const lpg_measured lpgemm_i_measured[];
extern const int lpgemm_i_measured_count;

/* Two points this far apart know nothing of each other; in between a ratio counts the less the farther it is. */
#define LPG_MEASURED_REACH 4.0

/* How far a point is from a problem: the octaves between their sizes (n, k, m); what mostly runs other code: 2 for each
 * class of groups (16; up to 64; more), 2 between zeros a group and none, 2 between scales of X's type (or one a row)
 * and others; and what matters less: 0.5 for each bit of the weights or of X's codes, 0.5 between kinds of zeros or
 * types of X of 8 bits, 0.25 between fp16 and bf16, 0.1 between groups, 0.05 between types of weights that are as wide.
 * Points of another kind of weights (integers, floats, codebooks) or sort of X (16 bits, 8 bits, codes, fp32) are out
 * of reach. */
double lpgemm_i_measured_distance(const lpg_measured_point *point, const lpg_problem *problem);

/* For each form the nearest point within reach at which it was timed. */
typedef struct lpg_near {
  const lpg_measured *table;                           /* NULL: none for this device or problem */
  const lpg_measured_point *point[LPG_MEASURED_FORMS]; /* NULL: none */
  double distance[LPG_MEASURED_FORMS];
  const lpg_measured_point *planned; /* the point that was asked for last, as a problem; NULL: none */
  lpg_plan plan;
} lpg_near;

void lpgemm_i_measured_near(const lpg_problem *problem, const lpg_device *device, lpg_near *near);

/* The estimate of a kernel, corrected by what was measured; *distance: of the point it was corrected by, negative where
 * there is none. distance may be NULL. */
double lpgemm_i_expect(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device, lpg_near *near,
                       double *distance);

#endif
