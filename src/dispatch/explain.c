/* Why which kernel, in words: the plan of the one that is taken, the others that could be, and why the rest cannot. */
#include <stdarg.h>
#include <stdio.h>

#include "dispatch.h"

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

static void add_chosen(lpg_text *out, const lpg_choice *choice, const lpg_problem *problem, const lpg_device *device) {
  const lpg_launch *launch = &choice->planned.launch;
  char text[256];
  add(out, "%s: chosen, %s, about %.1f us\n", choice->kernel->name, choice->why, launch->us);
  lpgemm_i_describe_plan(choice->kernel->planner, launch, text, sizeof text);
  add(out, "  plan: %s\n", text);
  lpgemm_i_describe_bounds(choice->kernel->planner, problem, device, launch, text, sizeof text);
  if (*text) add(out, "  time: %s\n", text);
}

static void add_possible(lpg_text *out, const lpg_kernel *kernel, const lpg_launch *launch, int is_second,
                         const lpg_problem *problem, const lpg_device *device) {
  const char *reason = lpgemm_i_not_automatic(kernel, problem, device);
  add(out, "%s: possible%s%s", kernel->name, reason ? " when forced by name" : "", is_second ? ", the runner-up" : "");
  if (!lpgemm_i_has_workspace(kernel, problem, device)) {
    add(out, " with a workspace of %zu bytes", lpgemm_i_workspace_of(kernel, problem, device));
  }
  add(out, ", about %.1f us", launch->us);
  if (launch->passes > 1) add(out, " (%d passes)", launch->passes);
  add(out, reason ? "; %s\n" : "\n", reason);
}

/* Those that share the reason of kernel `first`, if it is the first of them. */
static void add_reason(lpg_text *out, const lpg_kernel *kernels, const char *const *reasons, int count, int first) {
  int of_reason = 0;
  for (int i = 0; i < first; i++) {
    if (reasons[i] && strcmp(reasons[i], reasons[first]) == 0) return;
  }
  for (int i = first; i < count; i++) of_reason += reasons[i] && strcmp(reasons[i], reasons[first]) == 0;
  add(out, "not possible, %s: %d kernel%s, %s%s\n", reasons[first], of_reason, of_reason > 1 ? "s" : "",
      kernels[first].name, of_reason > 1 ? " ..." : "");
}

enum { MOST_KERNELS = 1024 };

lpgemm_status_t lpgemm_i_explain(const lpg_kernel *kernels, int count, const lpg_problem *problem,
                                 const lpg_device *device, const lpg_tuning *tuning, const char *forced, char *text,
                                 size_t text_bytes) {
  const char *reasons[MOST_KERNELS] = {NULL};
  lpg_text out = {.left = text_bytes};
  lpg_choice choice, second = {.kernel = NULL};
  out.at = text;
  lpgemm_status_t status = lpgemm_i_choose(kernels, count, problem, device, tuning, forced, &choice);
  if (status == LPGEMM_SUCCESS) {
    add_chosen(&out, &choice, problem, device);
    lpgemm_i_cheapest(kernels, count, problem, device, choice.kernel, &second);
  } else {
    add(&out, "none: %s\n", lpgemm_last_error());
  }
  for (int i = 0; i < count && i < MOST_KERNELS; i++) {
    lpg_planned planned;
    if (kernels[i].backend != device->backend || &kernels[i] == choice.kernel) continue;
    reasons[i] = lpgemm_i_plan_kernel(&kernels[i], problem, device, &planned);
    if (!reasons[i]) {
      add_possible(&out, &kernels[i], &planned.launch, &kernels[i] == second.kernel, problem, device);
    }
  }
  for (int i = 0; i < count && i < MOST_KERNELS; i++) {
    if (reasons[i]) add_reason(&out, kernels, reasons, count < MOST_KERNELS ? count : MOST_KERNELS, i);
  }
  return status;
}
