/* The token form of a layer: two launches that find out themselves which experts few tokens name (kernels/plan/fan.h).
 *
 *     fan out   h, a row a slot, from X by token
 *     fan in    Y, from h, summed by router weights; beta * C with it
 *
 * It is taken where both products can do without all that the other form has in front of them and between them. */
#include "../kernels/plan/fan.h"

#include "layer.h"

/* Microseconds of what the other form launches besides its products: route and combine, and gather where up does not
 * take rows by number (layers of 1 to 16 tokens, H200, 2026-11-28). */
static const double ROUTE_AND_COMBINE = 7.0, GATHER = 3.0;

static double other_launches(const lpg_layer *l) {
  return ROUTE_AND_COMBINE + (l->up.kernel && l->up.kernel->flags & LPG_K_BY_ROW ? 0.0 : GATHER);
}

static int is_of(const char *forced, uint32_t flag) {
  const lpg_kernel *kernel = lpgemm_i_find_kernel(lpgemm_i_registry, lpgemm_i_registry_count, forced);
  return kernel && kernel->flags & flag;
}

static int is_forced(const lpg_grouped *p) { return p->r.forced && *p->r.forced; }

static lpg_problem fan_problem(const lpg_layer *l, const lpg_grouped *p, lpg_fan way) {
  lpg_problem problem = p->r.call.problem;
  lpg_set_fan(&problem, way, l->m, l->route.top_k);
  return problem;
}

/* Sees what the handle remembers of it, so that a layer that it has had before is not planned again, whichever form it
 * took. */
static int has_kernel(lpgemm_handle_t handle, const lpg_layer *l, const lpg_grouped *p, lpg_fan way) {
  const lpg_problem problem = fan_problem(l, p, way);
  return lpgemm_i_recall(handle, lpgemm_i_registry, lpgemm_i_registry_count, p->r.args.weights, &problem) != NULL;
}

/* 1 if both products have a kernel of that form, and the layer asks for nothing that it leaves out. */
static int may_fan(lpgemm_handle_t handle, const lpg_layer *l) {
  const lpgemm_experts_args_t *a = &l->args;
  if (handle->backend->by_expert || a->batch_invariant || a->quantize_x || a->quantize_h) return 0;
  if (l->m != l->route.m || l->slots > LPG_FAN_MOST_SLOTS || l->slots == 0) return 0;
  if (is_forced(&l->up) && !is_of(l->up.r.forced, LPG_K_FAN_OUT)) return 0;
  if (is_forced(&l->down) && !is_of(l->down.r.forced, LPG_K_FAN_IN)) return 0;
  return has_kernel(handle, l, &l->up, LPG_FAN_OUT) && has_kernel(handle, l, &l->down, LPG_FAN_IN);
}

/* Chooses for the product of the token form, beside what was chosen for the other one. */
static lpgemm_status_t choose_fan(lpgemm_handle_t handle, const lpg_layer *l, lpg_grouped *p, lpg_fan way,
                                  lpg_grouped *fan) {
  const lpg_planned *planned;
  *fan = *p;
  fan->r.call.problem = fan_problem(l, p, way);
  LPG_TRY(lpgemm_i_choose_for_run(handle, p->r.args.weights, &fan->r.call.problem, p->r.forced, &fan->own, &fan->kernel,
                                  &planned));
  if (planned != &fan->own) fan->own = *planned;
  fan->needed = 0;
  return LPGEMM_SUCCESS;
}

static double us_of(const lpg_grouped *up, const lpg_grouped *down) { return up->own.launch.us + down->own.launch.us; }

static void take(lpg_grouped *to, const lpg_grouped *from) {
  *to = *from;
  to->r.call.planned = &to->own;
}

lpgemm_status_t lpgemm_i_choose_form(lpgemm_handle_t handle, lpg_layer *l, size_t workspace_bytes) {
  lpg_grouped up, down;
  l->is_fan = 0;
  l->up.r.call.problem.workspace = l->down.r.call.problem.workspace = workspace_bytes;
  const int may = may_fan(handle, l);
  if (may) {
    LPG_TRY(choose_fan(handle, l, &l->up, LPG_FAN_OUT, &up));
    LPG_TRY(choose_fan(handle, l, &l->down, LPG_FAN_IN, &down));
    l->is_fan = is_forced(&l->up) || is_forced(&l->down);
  }
  if (!l->is_fan) {
    LPG_TRY(lpgemm_i_choose_product(handle, &l->up, workspace_bytes));
    LPG_TRY(lpgemm_i_choose_product(handle, &l->down, workspace_bytes));
    l->is_fan = may && us_of(&up, &down) < us_of(&l->up, &l->down) + other_launches(l);
  }
  if (l->is_fan) {
    take(&l->up, &up);
    take(&l->down, &down);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t launch(lpgemm_handle_t handle, const lpg_layer *l, const lpg_grouped *p, const lpg_call *call) {
  const lpg_fan_call fan = {*call, l->route.expert, l->route.weight, l->route.first_expert};
  double start = 0;
  LPG_TRY(lpgemm_i_profile_start(handle, &start));
  LPG_TRY(p->kernel->launch(&fan.call));
  return lpgemm_i_profile_end(handle, &call->problem, p->kernel->name, start);
}

lpgemm_status_t lpgemm_i_run_fan(lpgemm_handle_t handle, lpg_layer *l, const lpg_layer_memory *m) {
  const lpgemm_experts_args_t *a = &l->args;
  lpg_call *up = &l->up.r.call, *down = &l->down.r.call;
  up->x = a->x;
  up->ldx = a->ldx;
  up->y = (uint8_t *)handle->workspace + m->h;
  up->ldy = m->h_ld;
  down->x = up->y;
  down->ldx = m->h_ld;
  down->y = a->y;
  down->ldy = a->ldy;
  down->c = l->c;
  down->ldc = a->ldc;
  down->beta = l->beta;
  down->device_beta = l->device_beta;
  LPG_TRY(launch(handle, l, &l->up, up));
  return launch(handle, l, &l->down, down);
}
