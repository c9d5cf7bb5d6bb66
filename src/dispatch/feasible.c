/* Whether a kernel can do a problem on a device, and if not, why not. */
#include <math.h>

#include "kinds.h"

/* The sums are integers and nothing scales them. */
static int is_integer_problem(const lpg_problem *p) {
  const lpgemm_weight_desc_t *d = &p->weights->desc;
  uint32_t zero = lpg_zero_member(d);
  int integer_zeros = zero == LPG_Z_NONE || zero == LPG_Z_INTEGER ||
                      (zero == LPG_Z_CONSTANT && floorf(d->zero_constant) == d->zero_constant);
  return lpg_is_integer_kind(p->x_type) && p->x_scale_mode == LPGEMM_X_SCALE_NONE && lpg_is_integer_kind(d->type) &&
         lpg_scale_member(d) == LPG_S_NONE && d->global_scale == 1.0f && integer_zeros;
}

/* Why the device cannot run the kernel, or NULL. */
static const char *device_reason(const lpg_kernel *k, const lpg_device *device) {
  if (k->backend != device->backend) return "it is for another backend";
  if (k->arch_exact && device->arch != k->arch) return "it runs only on another GPU architecture";
  if (device->arch < k->arch) return "it needs a newer GPU architecture";
  if (k->isa & ~device->isa) return "it needs an instruction set that this processor lacks";
  return NULL;
}

/* Why the kernel cannot read such weights, or NULL. */
static const char *weights_reason(const lpg_kernel *k, const lpg_packed *packed) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  if (!(k->weights & lpg_weight_member(d->type))) return "it does not take this kind of weights";
  if (!(k->widths >> packed->bits & 1)) return "it does not take weights of this many bits";
  if (!(k->scales & lpg_scale_member(d))) return "it does not take scales of this type";
  if (!(k->zeros & lpg_zero_member(d))) return "it does not take this kind of zeros";
  if (!(k->groups & lpg_group_member(packed))) return "it does not take groups of this size";
  if (d->group_n && k->flags & LPG_K_OWN_ROWS) return "it does not take scales that rows share";
  if (packed->experts > 1 && !(k->flags & LPG_K_GROUPED)) return "it does not take stacks of experts";
  if (d->rows != LPGEMM_ROWS_PLAIN && !(k->flags & LPG_K_PAIRED)) return "it does not take pairs of rows";
  return NULL;
}

int lpgemm_i_runs_on(const lpg_kernel *kernel, const lpg_device *device) { return !device_reason(kernel, device); }

int lpgemm_i_may_take(const lpg_kernel *kernel, const lpg_packed *packed, const lpg_device *device) {
  return !device_reason(kernel, device) && !weights_reason(kernel, packed);
}

const char *lpgemm_i_refused(const lpg_kernel *kernel, const lpg_problem *p, const lpg_device *device) {
  const lpg_kernel *k = kernel;
  const char *reason = device_reason(k, device);
  if (!reason) reason = weights_reason(k, p->weights);
  if (reason) return reason;

  if (p->experts && !(k->flags & LPG_K_GROUPED)) return "it does not take stacks of experts";
  const uint32_t fans = LPG_K_FAN_OUT | LPG_K_FAN_IN;
  const uint32_t fan_flag = p->fan == LPG_FAN_OUT ? LPG_K_FAN_OUT : p->fan == LPG_FAN_IN ? LPG_K_FAN_IN : 0;
  if ((k->flags & fans) != fan_flag) {
    return p->fan ? "it is not for the token form of a layer" : "it is for the token form of a layer";
  }
  if (!(k->x_types & lpg_x_member(p->x_type))) return "it does not take activations of this type";
  if (!(k->y_types & lpg_y_member(p->y_type))) return "it does not write outputs of this type";
  if (p->y_type == LPGEMM_I32 && !is_integer_problem(p)) {
    return "int32 output needs integer weights, integer activations, integer zeros and no scales";
  }
  if (p->level == LPGEMM_LEVEL_EXACT && k->flags & LPG_K_FAST) return "it holds only the level FAST";
  /* A kernel for few rows would leave the others to a kernel with other bits. */
  if (p->batch_invariant && (!(k->flags & LPG_K_BATCH_INVARIANT) || k->m_max)) {
    return "its results may depend on the number of rows, and the call asks for batch invariance";
  }
  if (k->m_max && p->m > k->m_max) return "it does not take this many rows";
  return k->planner->refuses ? k->planner->refuses(k->planner, p, device) : NULL;
}

const char *lpgemm_i_plan_kernel(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device,
                                 lpg_planned *planned) {
  const char *reason = lpgemm_i_refused(kernel, problem, device);
  return reason ? reason : lpgemm_i_plan(kernel->planner, problem, device, planned);
}

const char *lpgemm_i_infeasible(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  lpg_planned unused;
  return lpgemm_i_plan_kernel(kernel, problem, device, &unused);
}

size_t lpgemm_i_workspace_of(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  const lpg_planner *planner = kernel->planner;
  return planner->workspace ? planner->workspace(planner, problem, device) : 0;
}

int lpgemm_i_has_workspace(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  return lpgemm_i_workspace_of(kernel, problem, device) <= problem->workspace;
}

/* Where a kernel needs workspace for its tables, a plain call, which binds none, must not meet it. */
static const char *only_when_forced(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  if (kernel->flags & LPG_K_FORCE_ONLY) return "it is for tests";
  const int builds = kernel->flags & LPG_K_TABLES;
  return builds && lpgemm_i_workspace_of(kernel, problem, device) > 0 ? "it would build its tables in a workspace"
                                                                      : NULL;
}

int lpgemm_i_may_choose(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  return !lpgemm_i_refused(kernel, problem, device) && !only_when_forced(kernel, problem, device) &&
         lpgemm_i_has_workspace(kernel, problem, device);
}

const char *lpgemm_i_not_automatic(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  const lpg_planner *planner = kernel->planner;
  const char *reason = only_when_forced(kernel, problem, device);
  if (reason) return reason;
  return planner->automatic ? planner->automatic(planner, problem, device) : NULL;
}

/* Batch invariance asks for one kernel whatever the number of rows, so its estimate must not see it, nor where X lies:
 * with more rows it is copied to aligned places. */
enum { INVARIANT_ROWS = 32 };

double lpgemm_i_estimate(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  lpg_problem p = *problem;
  lpg_planned planned;
  if (p.batch_invariant) {
    p.m = INVARIANT_ROWS;
    if (p.slots > 0) p.slots = INVARIANT_ROWS; /* experts: as many */
    p.x_unaligned = 0;
    p.batch_invariant = 0;
  }
  return lpgemm_i_plan(kernel->planner, &p, device, &planned) ? HUGE_VAL : planned.launch.us;
}
