/* The choice of a kernel and its plan: forced, else tuned, else cheapest. */
#include <math.h>
#include <stdio.h>

#include "dispatch.h"

/* ---- kernels by name ---- */

const lpg_kernel *lpgemm_i_find_kernel(const lpg_kernel *kernels, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
  }
  return NULL;
}

/* Letters to insert, remove or replace to make one name of the other. */
static int edit_distance(const char *name, const char *other) {
  int row[LPG_KERNEL_NAME_BYTES];
  int length = (int)strlen(name);
  for (int j = 0; j <= length; j++) row[j] = j;
  for (int i = 0; other[i]; i++) {
    int diagonal = row[0];
    row[0] = i + 1;
    for (int j = 0; j < length; j++) {
      int replaced = diagonal + (name[j] != other[i]);
      int shorter = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
      diagonal = row[j + 1];
      row[j + 1] = replaced < shorter ? replaced : shorter;
    }
  }
  return row[length];
}

/* NULL: none is near. */
static const char *closest_name(const lpg_kernel *kernels, int count, const char *name) {
  const char *closest = NULL;
  int least = ((int)strlen(name) + 1) / 2; /* half of the name may be wrong */
  for (int i = 0; i < count; i++) {        /* as much of each name as was given */
    char start[LPG_KERNEL_NAME_BYTES];
    snprintf(start, sizeof start, "%.*s", (int)strlen(name), kernels[i].name);
    int distance = edit_distance(start, name);
    if (distance < least) {
      least = distance;
      closest = kernels[i].name;
    }
  }
  return closest;
}

lpgemm_status_t lpgemm_i_name_kernel(const lpg_kernel *kernels, int count, const char *what, const char *name,
                                     const lpg_kernel **kernel) {
  *kernel = lpgemm_i_find_kernel(kernels, count, name);
  if (*kernel) return LPGEMM_SUCCESS;
  const char *closest = closest_name(kernels, count, name);
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT,
            "%s is \"%.80s\", which this build does not have%s%s%s; lpgemm-info --kernels and lpgemm_list_kernels() "
            "have all names",
            what, name, closest ? "; the closest name is \"" : "", closest ? closest : "", closest ? "\"" : "");
  return LPGEMM_SUCCESS;
}

/* ---- the choice ---- */

/* "u4 (n 4096, k 4096) by f16 (m 16) to f16" */
static const char *describe(const lpg_problem *p, char *text, size_t bytes) {
  snprintf(text, bytes, "%s (n %lld, k %lld) by %s (m %lld) to %s", lpgemm_dtype_name(p->weights->desc.type),
           (long long)p->weights->desc.n, (long long)p->weights->desc.k, lpgemm_dtype_name(p->x_type), (long long)p->m,
           lpgemm_dtype_name(p->y_type));
  return text;
}

static lpgemm_status_t choose_forced(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                     const lpg_device *device, const char *name, lpg_choice *choice) {
  const lpg_kernel *kernel;
  LPG_TRY(lpgemm_i_name_kernel(kernels, count, "kernel", name, &kernel));
  const char *reason = lpgemm_i_plan_kernel(kernel, problem, device, &choice->planned);
  char text[160];
  LPG_CHECK(!reason, LPGEMM_NOT_SUPPORTED, "kernel %s, which is forced, cannot multiply %s on %s: %s", name,
            describe(problem, text, sizeof text), device->name, reason);
  choice->kernel = kernel;
  choice->why = "forced by name";
  return LPGEMM_SUCCESS;
}

/* The most able kernels of a backend stand last: the refusal of the last one that takes such weights says most, or if
 * none does, that of the last one. */
static const char *last_reason(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                               const lpg_device *device) {
  const char *last = "this build has none for this backend";
  int takes_weights = 0;
  for (int i = 0; i < count; i++) {
    const char *reason = lpgemm_i_infeasible(&kernels[i], problem, device);
    int takes = lpgemm_i_may_take(&kernels[i], problem->weights, device);
    if (kernels[i].backend != device->backend || !reason || takes < takes_weights) continue;
    last = reason;
    takes_weights = takes;
  }
  return last;
}

/* 1 if it may be chosen, as far as can be said without a plan. */
static int is_automatic(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  return lpgemm_i_may_choose(kernel, problem, device) && !lpgemm_i_not_automatic(kernel, problem, device);
}

void lpgemm_i_cheapest(const lpg_kernel *kernels, int count, const lpg_problem *problem, const lpg_device *device,
                       const lpg_kernel *except, lpg_choice *choice) {
  double least = HUGE_VAL;
  choice->kernel = NULL;
  choice->why = "the cheapest by the cost model";
  for (int i = 0; i < count; i++) {
    lpg_planned planned;
    if (&kernels[i] == except || !is_automatic(&kernels[i], problem, device)) continue;
    if (problem->batch_invariant && lpgemm_i_estimate(&kernels[i], problem, device) >= least) continue;
    if (lpgemm_i_plan(kernels[i].planner, problem, device, &planned)) continue;
    const double us = problem->batch_invariant ? lpgemm_i_estimate(&kernels[i], problem, device) : planned.launch.us;
    if (choice->kernel && us >= least) continue;
    choice->kernel = &kernels[i];
    choice->planned = planned;
    least = us;
  }
}

void lpgemm_i_choose_if_any(const lpg_kernel *kernels, int count, const lpg_problem *problem, const lpg_device *device,
                            const lpg_tuning *tuning, lpg_choice *choice) {
  const char *tuned = tuning && !problem->experts ? lpgemm_i_tuning_find(tuning, problem, device->threads) : NULL;
  const lpg_kernel *kernel = tuned ? lpgemm_i_find_kernel(kernels, count, tuned) : NULL;
  if (kernel && lpgemm_i_may_choose(kernel, problem, device) &&
      !lpgemm_i_plan(kernel->planner, problem, device, &choice->planned)) {
    choice->kernel = kernel;
    choice->why = "the fastest that was measured";
    return;
  }
  lpgemm_i_cheapest(kernels, count, problem, device, NULL, choice);
}

lpgemm_status_t lpgemm_i_choose(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                const lpg_device *device, const lpg_tuning *tuning, const char *forced,
                                lpg_choice *choice) {
  choice->kernel = NULL;
  if (forced && *forced) return choose_forced(kernels, count, problem, device, forced, choice);
  lpgemm_i_choose_if_any(kernels, count, problem, device, tuning, choice);
  char text[160];
  LPG_CHECK(choice->kernel, LPGEMM_NOT_SUPPORTED, "no kernel multiplies %s on %s; of the last one: %s",
            describe(problem, text, sizeof text), device->name, last_reason(kernels, count, problem, device));
  return LPGEMM_SUCCESS;
}

/* Bytes with which the kernel does all that it can: some do without a part, and take longer. */
static size_t wanted_workspace(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  const lpg_planner *planner = kernel->planner;
  return lpgemm_i_workspace_of(kernel, problem, device) +
         (planner->more_workspace ? planner->more_workspace(planner, problem, device) : 0);
}

/* One line, and another one if the cost model would take another kernel or plan, had it the workspace. */
static void log_choice(const lpg_kernel *kernels, int count, const lpg_problem *problem, const lpg_device *device,
                       const lpg_choice *choice) {
  char text[160], plan[160];
  lpgemm_i_describe_plan(choice->kernel->planner, &choice->planned.launch, plan, sizeof plan);
  lpgemm_i_log(LPGEMM_LOG_DISPATCH, "%s: %s, %s, about %.1f us; %s", describe(problem, text, sizeof text),
               choice->kernel->name, choice->why, choice->planned.launch.us, plan);
  lpg_problem free_to_choose = *problem;
  lpg_choice best;
  free_to_choose.workspace = SIZE_MAX;
  lpgemm_i_cheapest(kernels, count, &free_to_choose, device, NULL, &best);
  if (!best.kernel) return;
  const size_t bytes = wanted_workspace(best.kernel, &free_to_choose, device);
  const int is_faster = best.planned.launch.us < 0.95 * choice->planned.launch.us && problem->workspace < bytes;
  if (lpgemm_i_has_workspace(best.kernel, problem, device) && !is_faster) return;
  lpgemm_i_log(LPGEMM_LOG_DISPATCH, "%s: %s would take about %.1f us, with a workspace of %zu bytes; %zu are bound",
               text, best.kernel->name, best.planned.launch.us, bytes, problem->workspace);
}

lpgemm_status_t lpgemm_i_select(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                const lpg_device *device, const lpg_tuning *tuning, const char *forced,
                                lpg_choice *choice) {
  LPG_TRY(lpgemm_i_choose(kernels, count, problem, device, tuning, forced, choice));
  if (lpgemm_i_log_level() == LPGEMM_LOG_DISPATCH) log_choice(kernels, count, problem, device, choice);
  return LPGEMM_SUCCESS;
}

/* ---- workspace ---- */

/* Kernels for few rows count with as many as they take, so that more rows never need less; and beyond this many, where
 * some refuse and none needs more, all of them with this many. */
enum { MOST_ROWS = INT32_MAX / 2 };
size_t lpgemm_i_workspace(const lpg_kernel *kernels, int count, const lpg_problem *problem, const lpg_device *device,
                          const char *forced) {
  size_t largest = 0;
  for (int i = 0; i < count; i++) {
    lpg_problem p = *problem;
    p.workspace = SIZE_MAX;
    if (p.m > MOST_ROWS) p.m = MOST_ROWS;
    if (kernels[i].m_max && p.m > kernels[i].m_max) p.m = kernels[i].m_max;
    int counts = forced && *forced ? strcmp(kernels[i].name, forced) == 0 : is_automatic(&kernels[i], &p, device);
    if (!counts || !kernels[i].planner->workspace || lpgemm_i_infeasible(&kernels[i], &p, device)) continue;
    const size_t bytes = wanted_workspace(&kernels[i], &p, device);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}
