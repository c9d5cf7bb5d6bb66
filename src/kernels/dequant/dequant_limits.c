#include "dequant_limits.h"

#include <math.h>

/* With fewer rows of X than this it never pays to expand the weights, and nobody shall provide a workspace for it. */
enum { LEAST_ROWS = 33 };

static int make_frame(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma,
                      lpg_dequant_plan *plan) {
  const lpg_expand_scaling scaling = lpgemm_i_expand_scaling(problem, image);
  return lpg_dequant_frame(problem->weights, problem->m, lpg_bytes(image), scaling, wgmma, device, plan);
}

static const char *refuses(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma) {
  lpg_dequant_plan plan;
  if (problem->m < LEAST_ROWS) return "it expands the weights, which takes 33 rows to pay";
  if (problem->y_type == LPGEMM_I32 && image != LPGEMM_I8) return "its sums are no integers";
  if (image == LPGEMM_I8 && !lpg_x_is_int8(problem->x_type))
    return "the activations' codes are not the numbers as int8";
  if (problem->weights->desc.k == 0) return "there is nothing to expand";
  const char *reason = lpgemm_i_expand_refuses(problem, image);
  if (reason) return reason;
  if (!wgmma && lpgemm_i_expand_scaling(problem, image).in_table) return "it puts no scales of groups on sums";
  return make_frame(problem, device, image, wgmma, &plan) ? NULL : "the rows are too long for its workspace";
}

static size_t workspace(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma) {
  lpg_dequant_plan plan;
  if (!make_frame(problem, device, image, wgmma, &plan)) return 0;
  plan.chunk_tiles = lpg_dequant_most_tiles(&plan); /* else it would not be monotone in m */
  return (size_t)lpg_dequant_chunk_bytes(&plan) + lpg_dequant_copy_bytes(problem, (int)lpg_bytes(image));
}

/* How much longer a product takes than the plan's constants say: of 16 bits by bench/results/h200-prefill.json (1.02 to
 * 1.18 in 17 cases). Of 8 bits groups of int8 are scaled in fp32, and so are the sums of a stage of e4m3, by
 * bench/results/h200-eight.json. */
static double slower_than_planned(lpgemm_dtype_t image, const lpg_dequant_plan *plan) {
  if (lpg_bytes(image) == 2) return 1.1;
  return image == LPGEMM_E4M3 ? 1.25 : plan->scale_data > 1 ? 1.4 : 1.0;
}

static double estimate(const lpg_problem *problem, const lpg_device *device, lpgemm_dtype_t image, int wgmma) {
  lpg_dequant_plan plan;
  const lpg_expand_scaling scaling = lpgemm_i_expand_scaling(problem, image);
  if (!lpg_dequant_make_plan(problem->weights, problem->m, lpg_bytes(image), scaling, wgmma, device, &plan))
    return HUGE_VAL;
  const double slower = wgmma ? 1.0 : 1.9 / lpg_pace_of(device->pace.mma); /* mma.sync, on the H200 */
  return lpg_x_copy_us(problem, (int)lpg_bytes(image)) +
         lpg_dequant_cost(&plan, device) * slower_than_planned(image, &plan) * slower / 1000.0;
}

#define FORM(name, image, wgmma)                                                                        \
  const char *lpgemm_i_dequant_##name##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return refuses(problem, device, image, wgmma);                                                      \
  }                                                                                                     \
  size_t lpgemm_i_dequant_##name##_workspace(const lpg_problem *problem, const lpg_device *device) {    \
    return workspace(problem, device, image, wgmma);                                                    \
  }                                                                                                     \
  double lpgemm_i_dequant_##name##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return estimate(problem, device, image, wgmma);                                                     \
  }
LPG_DEQUANT_FORMS(FORM)
