/* The choice of a kernel: forced, else tuned, else cheapest. */
#include <stdarg.h>
#include <stdio.h>

#include "dispatch.h"

typedef struct lpg_choice {
  const lpg_kernel *kernel;
  const char *why;
} lpg_choice;

const lpg_kernel *lpgemm_i_find_kernel(const lpg_kernel *kernels, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
  }
  return NULL;
}

/* ---- words ---- */

/* "u4 (n 4096, k 4096) by f16 (m 16) to f16" */
static const char *describe(const lpg_problem *p, char *text, size_t bytes) {
  snprintf(text, bytes, "%s (n %lld, k %lld) by %s (m %lld) to %s", lpgemm_dtype_name(p->weights->desc.type),
           (long long)p->weights->desc.n, (long long)p->weights->desc.k, lpgemm_dtype_name(p->x_type), (long long)p->m,
           lpgemm_dtype_name(p->y_type));
  return text;
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

static const char *closest_name(const lpg_kernel *kernels, int count, const char *name) {
  const char *closest = "none";
  int least = INT32_MAX;
  for (int i = 0; *name && i < count; i++) { /* a family, or the start of a name */
    if (strncmp(kernels[i].name, name, strlen(name)) == 0) return kernels[i].name;
  }
  for (int i = 0; i < count; i++) {
    int distance = edit_distance(kernels[i].name, name);
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
  LPG_CHECK(*kernel, LPGEMM_INVALID_ARGUMENT,
            "%s is \"%.80s\", which this build does not have; the closest name is \"%s\", and lpgemm-info --kernels "
            "and lpgemm_list_kernels() have all",
            what, name, closest_name(kernels, count, name));
  return LPGEMM_SUCCESS;
}

/* ---- the choice ---- */

static lpgemm_status_t choose_forced(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                     const lpg_device *device, const char *name, lpg_choice *choice) {
  const lpg_kernel *kernel;
  LPG_TRY(lpgemm_i_name_kernel(kernels, count, "kernel", name, &kernel));
  const char *reason = lpgemm_i_infeasible(kernel, problem, device);
  char text[160];
  LPG_CHECK(!reason, LPGEMM_NOT_SUPPORTED, "kernel %s, which is forced, cannot multiply %s on %s: %s", name,
            describe(problem, text, sizeof text), device->name, reason);
  choice->kernel = kernel;
  choice->why = "forced by name";
  return LPGEMM_SUCCESS;
}

static size_t workspace_of(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  return kernel->workspace ? kernel->workspace(problem, device) : 0;
}

/* A kernel that reads tables has to build them first; where it needs workspace for that, a plain call, which binds
 * none, must not meet it. */
static int only_when_forced(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  if (kernel->flags & LPG_K_FORCE_ONLY) return 1;
  return kernel->flags & LPG_K_TABLES && !problem->tables && workspace_of(kernel, problem, device) > 0;
}

int lpgemm_i_may_choose(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device) {
  return !lpgemm_i_infeasible(kernel, problem, device) && !only_when_forced(kernel, problem, device) &&
         workspace_of(kernel, problem, device) <= problem->workspace;
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

/* Of those that may be chosen the cheapest by the cost model, but not `except`; NULL if there is
 * none. */
static const lpg_kernel *cheapest(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                  const lpg_device *device, const lpg_kernel *except) {
  const lpg_kernel *found = NULL;
  double least = 0;
  for (int i = 0; i < count; i++) {
    if (&kernels[i] == except || !lpgemm_i_may_choose(&kernels[i], problem, device)) continue;
    double estimate = lpgemm_i_estimate(&kernels[i], problem, device);
    if (found && estimate >= least) continue;
    found = &kernels[i];
    least = estimate;
  }
  return found;
}

static lpgemm_status_t choose(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                              const lpg_device *device, const lpg_tuning *tuning, const char *forced,
                              lpg_choice *choice) {
  if (forced && *forced) return choose_forced(kernels, count, problem, device, forced, choice);

  const char *tuned = tuning ? lpgemm_i_tuning_find(tuning, problem) : NULL;
  const lpg_kernel *kernel = tuned ? lpgemm_i_find_kernel(kernels, count, tuned) : NULL;
  choice->why = "the fastest that was measured";
  if (!kernel || !lpgemm_i_may_choose(kernel, problem, device)) {
    kernel = cheapest(kernels, count, problem, device, NULL);
    choice->why = "the cheapest by the cost model";
  }
  char text[160];
  LPG_CHECK(kernel, LPGEMM_NOT_SUPPORTED, "no kernel multiplies %s on %s; of the last one: %s",
            describe(problem, text, sizeof text), device->name, last_reason(kernels, count, problem, device));
  choice->kernel = kernel;
  return LPGEMM_SUCCESS;
}

/* One line, and another one if the cost model would take another kernel, had it the workspace. */
static void log_choice(const lpg_kernel *kernels, int count, const lpg_problem *problem, const lpg_device *device,
                       lpg_choice *choice) {
  char text[160];
  const double time = lpgemm_i_estimate(choice->kernel, problem, device);
  lpgemm_i_log(LPG_LOG_DISPATCH, "%s: %s, %s, about %.1f us", describe(problem, text, sizeof text),
               choice->kernel->name, choice->why, time);
  lpg_problem free_to_choose = *problem;
  free_to_choose.workspace = SIZE_MAX;
  const lpg_kernel *best = cheapest(kernels, count, &free_to_choose, device, NULL);
  if (!best || workspace_of(best, problem, device) <= problem->workspace) return;
  lpgemm_i_log(LPG_LOG_DISPATCH, "%s: %s would take about %.1f us, with a workspace of %zu bytes; %zu are bound", text,
               best->name, lpgemm_i_estimate(best, problem, device), workspace_of(best, problem, device),
               problem->workspace);
}

lpgemm_status_t lpgemm_i_select(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                const lpg_device *device, const lpg_tuning *tuning, const char *forced,
                                const lpg_kernel **chosen) {
  lpg_choice choice = {.kernel = NULL};
  *chosen = NULL;
  LPG_TRY(choose(kernels, count, problem, device, tuning, forced, &choice));
  *chosen = choice.kernel;
  if (lpgemm_i_log_level() == LPG_LOG_DISPATCH) log_choice(kernels, count, problem, device, &choice);
  return LPGEMM_SUCCESS;
}

/* ---- the explanation ---- */

typedef struct lpg_text {
  char *at;
  size_t left; /* with the final 0; at least 1 */
} lpg_text;

static void add(lpg_text *text, const char *format, ...) LPG_PRINTF(2, 3);

static void add(lpg_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int wanted = vsnprintf(text->at, text->left, format, args);
  va_end(args);
  if (wanted < 0) return;
  size_t written = (size_t)wanted < text->left ? (size_t)wanted : text->left - 1;
  text->at += written;
  text->left -= written;
}

lpgemm_status_t lpgemm_i_explain(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                 const lpg_device *device, const lpg_tuning *tuning, const char *forced, char *text,
                                 size_t text_bytes) {
  lpg_text out;
  out.at = text;
  out.left = text_bytes;
  lpg_choice choice = {.kernel = NULL};
  lpgemm_status_t status = choose(kernels, count, problem, device, tuning, forced, &choice);
  if (status == LPGEMM_SUCCESS) {
    add(&out, "%s: chosen, %s, about %.1f us\n", choice.kernel->name, choice.why,
        lpgemm_i_estimate(choice.kernel, problem, device));
  } else {
    add(&out, "none: %s\n", lpgemm_last_error());
  }
  const lpg_kernel *second = choice.kernel ? cheapest(kernels, count, problem, device, choice.kernel) : NULL;
  for (int i = 0; i < count; i++) {
    if (&kernels[i] == choice.kernel) continue;
    const char *reason = lpgemm_i_infeasible(&kernels[i], problem, device);
    if (reason) {
      add(&out, "%s: not possible, %s\n", kernels[i].name, reason);
      continue;
    }
    const size_t workspace = workspace_of(&kernels[i], problem, device);
    add(&out, "%s: possible%s%s", kernels[i].name,
        only_when_forced(&kernels[i], problem, device) ? " when forced by name" : "",
        &kernels[i] == second ? ", the runner-up" : "");
    if (workspace > problem->workspace) add(&out, " with a workspace of %zu bytes", workspace);
    add(&out, ", about %.1f us\n", lpgemm_i_estimate(&kernels[i], problem, device));
  }
  return status;
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
    int counts =
        forced && *forced ? strcmp(kernels[i].name, forced) == 0 : lpgemm_i_may_choose(&kernels[i], &p, device);
    if (!counts || !kernels[i].workspace || lpgemm_i_infeasible(&kernels[i], &p, device)) continue;
    size_t bytes = workspace_of(&kernels[i], &p, device);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}
