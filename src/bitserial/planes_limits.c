#include "planes_limits.h"

#include <math.h>

#include "planes_images.h"

/* With fewer rows of X than this images never pay, and nobody shall provide a workspace for them. */
enum { LEAST_ROWS = 33 };

/* bytes: 1 where codes stay bytes. */
static int make_plan(const lpg_problem *problem, const lpg_device *device, int bytes, lpg_planes_plan *plan) {
  return lpg_planes_make_plan(problem->plan, problem->m, lpg_bits(problem->x_type), bytes, device, plan);
}

/* The largest magnitude of a number of the type less `zero`. */
static int64_t largest(lpgemm_dtype_t type, int64_t zero) {
  const int64_t low = lpg_integer_offset(type);
  const int64_t high = low + (int64_t)lpg_integer_step(type) * ((1 << lpg_bits(type)) - 1);
  return zero - low > high - zero ? zero - low : high - zero;
}

/* The same for the weights, whatever the zero of a row is: from 0 to 2^bits. */
static int64_t largest_weight(const lpgemm_weight_desc_t *d) {
  if (d->zero == LPGEMM_ZERO_CONSTANT) return largest(d->type, (int64_t)d->zero_constant);
  const int64_t low = largest(d->type, 0);
  const int64_t high = d->zero == LPGEMM_ZERO_PER_GROUP ? largest(d->type, 1 << lpg_bits(d->type)) : 0;
  return low > high ? low : high;
}

/* NULL, or why no kernel for integers by integers takes it: sums must be int32, scaled once. */
static const char *refuses_form(const lpg_problem *problem) {
  const lpg_plan *plan = problem->plan;
  const lpgemm_weight_desc_t *d = &plan->desc;
  if (d->k == 0 || d->n == 0 || problem->m == 0) return "there is nothing to multiply";
  if ((d->scale_type || d->zero == LPGEMM_ZERO_PER_GROUP) && (plan->group.count > 1 || plan->super.count > 1)) {
    return "it takes one scale and one zero a row only";
  }
  if (d->zero == LPGEMM_ZERO_MINIMUM || (d->zero == LPGEMM_ZERO_PER_GROUP && lpg_is_real(d->zero_type)) ||
      (d->zero == LPGEMM_ZERO_CONSTANT &&
       (fabsf(d->zero_constant) > 65536.0f || floorf(d->zero_constant) != d->zero_constant))) {
    return "the weights' zeros are no integers";
  }
  if (plan->n_padded > INT32_MAX / 2 || plan->k_padded > INT32_MAX / 4 || problem->m > INT32_MAX / 2) {
    return "it takes no matrix as large as this";
  }
  if (d->k > INT32_MAX / (largest_weight(d) * largest(problem->x_type, 0))) {
    return "sums of so many columns may not be int32";
  }
  return NULL;
}

static const char *refuses(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan unused;
  const char *reason = refuses_form(problem);
  if (reason) return reason;
  if (problem->m < LEAST_ROWS) return "it makes images of the operands, which takes 33 rows to pay";
  return make_plan(problem, device, bytes, &unused) ? NULL : "the rows are too long for its workspace";
}

static size_t workspace(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan plan;
  if (!make_plan(problem, device, bytes, &plan)) return 0;
  return (size_t)lpg_planes_workspace(&plan, lpg_planes_most_items(&plan));
}

/* Of a chunk of so many row items. */
static double chunk_cost(const lpg_planes_plan *p, int32_t row_items, double units) {
  const int64_t rounds = ((int64_t)row_items * p->token_items + p->groups - 1) / p->groups;
  const double bytes = (double)(row_items * lpg_planes_w_bytes(p));
  return 3.0 + bytes / (units * 10000.0) + (double)rounds * (p->p * p->q * p->k_stages * 0.75 + 2.5);
}

static double estimate(const lpg_problem *problem, const lpg_device *device, int bytes) {
  lpg_planes_plan p;
  if (!make_plan(problem, device, bytes, &p)) return HUGE_VAL;
  const double units = device->units > 0 ? device->units : 1.0;
  const double x = (double)problem->m * (double)problem->plan->desc.k;
  const int32_t chunks = p.chunk_items > 0 ? p.row_items / p.chunk_items : 0;
  const int32_t left = p.row_items - chunks * p.chunk_items;
  return 3.0 + x * (1.0 + 0.15 * p.q) / (units * 27000.0) + chunks * chunk_cost(&p, p.chunk_items, units) +
         (left > 0 ? chunk_cost(&p, left, units) : 0.0);
}

#define FORM(name, bytes)                                                                       \
  const char *lpgemm_i_##name##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return refuses(problem, device, bytes);                                                     \
  }                                                                                             \
  size_t lpgemm_i_##name##_workspace(const lpg_problem *problem, const lpg_device *device) {    \
    return workspace(problem, device, bytes);                                                   \
  }                                                                                             \
  double lpgemm_i_##name##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return estimate(problem, device, bytes);                                                    \
  }
FORM(planes, 0)
FORM(bytes, 1)
#undef FORM

/* ---- few rows ---- */

static const char *few_refuses(const lpg_problem *problem, const lpg_device *device, int tokens) {
  lpg_few_plan unused;
  double cost = 0.0;
  const char *reason = refuses_form(problem);
  if (reason) return reason;
  return lpg_few_make_plan(problem->plan, problem->m, tokens, device, &unused, &cost)
             ? NULL
             : "the rows are too long for shared memory";
}

static double few_estimate(const lpg_problem *problem, const lpg_device *device, int tokens) {
  lpg_few_plan p;
  double ns = 0.0;
  if (!lpg_few_make_plan(problem->plan, problem->m, tokens, device, &p, &ns)) return HUGE_VAL;
  /* What the plan's cost leaves out, the same for all plans. Storing: 4096 x 4096 by 64 rows, 1 and 2 bits
   * (bench/results/h200-planes.json), by rows of Y at odd places more; and rows of X at odd places, which come byte by
   * byte (both: seven problems of bench/results/h200-regret.json). */
  const lpgemm_weight_desc_t *d = &problem->plan->desc;
  const double store = (d->n % 4 ? 7.5e-6 : 2.5e-6) * (double)problem->m * (double)d->n;
  const double item_rows = problem->m < tokens ? (double)problem->m : (double)tokens;
  const double odd_x = d->k % 16 ? 4e-5 * item_rows * (double)d->k : 0.0;
  return ns / 1000.0 + store + odd_x;
}

#define TOKENS(tokens)                                                                                \
  const char *lpgemm_i_few_##tokens##_refuses(const lpg_problem *problem, const lpg_device *device) { \
    return few_refuses(problem, device, tokens);                                                      \
  }                                                                                                   \
  double lpgemm_i_few_##tokens##_estimate(const lpg_problem *problem, const lpg_device *device) {     \
    return few_estimate(problem, device, tokens);                                                     \
  }
TOKENS(8)
TOKENS(16)
TOKENS(32)
TOKENS(64)
#undef TOKENS
