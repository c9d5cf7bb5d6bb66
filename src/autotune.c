/* lpgemm_autotune() and tuning files: times every feasible kernel and remembers the best. */
#include <stdlib.h>

#include "clock.h"
#include "dispatch/dispatch.h"
#include "internal.h"

/* One row count: X and Y in memory of the backend's kind, filled so that no value is special. */
typedef struct trial {
  lpgemm_run_args_t args;
  void *x, *y, *x_scale, *workspace;
} trial;

/* Memory of `bytes` bytes that hold the pattern, whose size divides a block, again and again. */
static lpgemm_status_t fill(lpgemm_handle_t handle, size_t bytes, const void *pattern, size_t pattern_bytes,
                            void **memory) {
  enum { BLOCK = 1 << 20 };
  const size_t padded = (bytes / pattern_bytes + 1) * pattern_bytes, block = padded < BLOCK ? padded : BLOCK;
  uint8_t *host = malloc(block);
  LPG_CHECK(host, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes of trial data", block);
  for (size_t i = 0; i < block; i += pattern_bytes) memcpy(host + i, pattern, pattern_bytes);
  lpgemm_status_t status = handle->backend->allocate(handle->device.index, padded, memory);
  for (size_t at = 0; at < padded && status == LPGEMM_SUCCESS; at += block) {
    status = handle->backend->copy_in(handle, (uint8_t *)*memory + at, host, block < padded - at ? block : padded - at);
  }
  free(host);
  return status;
}

static lpgemm_status_t prepare_trial(lpgemm_handle_t handle, trial *t) {
  static const float one = 1.0f;
  const lpg_packed *packed = &t->args.weights->packed;
  /* 0.8125 and the like in every type: the bytes 0x3a and 0x3b are ordinary numbers in all of them */
  static const uint8_t pattern[8] = {0x3a, 0x3b, 0x3b, 0x3a, 0x3a, 0x3a, 0x3b, 0x3b};
  size_t m = (size_t)t->args.m, workspace_bytes = 0;
  size_t x_bytes = m * (size_t)packed->x_k * (size_t)lpg_bytes(t->args.x_type);
  size_t y_bytes = m * (size_t)packed->outputs * (size_t)lpg_bytes(t->args.y_type);
  LPG_TRY(fill(handle, x_bytes, pattern, sizeof pattern, &t->x));
  LPG_TRY(fill(handle, y_bytes, pattern, sizeof pattern, &t->y));
  t->args.x = t->x;
  t->args.y = t->y;
  t->args.c = NULL;
  t->args.bias = NULL;
  t->args.alpha = t->args.beta = NULL;
  t->args.x_scale = NULL;
  if (t->args.x_scale_mode != LPGEMM_X_SCALE_NONE) {
    LPG_TRY(fill(handle, (m + 1) * sizeof one, &one, sizeof one, &t->x_scale));
    t->args.x_scale = t->x_scale;
  }
  LPG_TRY(lpgemm_workspace_size(handle, t->args.weights, t->args.m, &t->args, &workspace_bytes));
  if (workspace_bytes) LPG_TRY(handle->backend->allocate(handle->device.index, workspace_bytes, &t->workspace));
  return lpgemm_set_workspace(handle, t->workspace, workspace_bytes);
}

/* Seconds of a run, of `count` back to back. */
static lpgemm_status_t run_batch(lpgemm_handle_t handle, const trial *t, int count, double *seconds) {
  double start = lpg_seconds();
  for (int i = 0; i < count; i++) LPG_TRY(lpgemm_run(handle, &t->args));
  LPG_TRY(handle->backend->synchronize(handle));
  *seconds = (lpg_seconds() - start) / count;
  return LPGEMM_SUCCESS;
}

/* Microseconds of the best of some batches, which are so long that the wait for the device counts little. A kernel that
 * is slow already in its first run is not run again. */
static lpgemm_status_t time_kernel(lpgemm_handle_t handle, trial *t, const char *kernel, double *microseconds) {
  enum { LEAST_BATCHES = 5, MOST_BATCHES = 25, LONGEST_BATCH = 64 };
  static const double slow_seconds = 0.05, batch_seconds = 0.0002, enough_seconds = 0.005;
  double best, seconds;
  t->args.kernel = kernel;
  LPG_TRY(run_batch(handle, t, 1, &best)); /* warms up */
  if (best <= slow_seconds) {
    LPG_TRY(run_batch(handle, t, 1, &best));
    const int count = best * LONGEST_BATCH < batch_seconds ? LONGEST_BATCH : 1 + (int)(batch_seconds / best);
    double start = lpg_seconds();
    for (int i = 0; i < LEAST_BATCHES || (i < MOST_BATCHES && lpg_seconds() - start < enough_seconds); i++) {
      LPG_TRY(run_batch(handle, t, count, &seconds));
      if (seconds < best) best = seconds;
    }
  }
  *microseconds = best * 1e6;
  return LPGEMM_SUCCESS;
}

/* First the kernel that would be chosen without tuning, so that what is remembered when time is over is never worse. */
static lpgemm_status_t time_kernels(lpgemm_handle_t handle, trial *t, double deadline) {
  LPG_TRY(prepare_trial(handle, t));
  lpg_problem problem;
  LPG_TRY(lpgemm_i_describe(handle, &t->args, &problem));
  lpg_choice choice;
  LPG_TRY(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &problem, &handle->device, NULL, NULL, &choice));
  const lpg_kernel *untuned = choice.kernel;
  const lpg_kernel *best = untuned;
  double time, best_time;
  LPG_TRY(time_kernel(handle, t, untuned->name, &best_time));
  for (int i = 0; i < lpgemm_i_registry_count && lpg_seconds() < deadline; i++) {
    const lpg_kernel *kernel = &lpgemm_i_registry[i];
    if (kernel == untuned || !lpgemm_i_may_choose(kernel, &problem, &handle->device)) continue;
    /* skip one that is estimated hopeless */
    if (lpgemm_i_estimate(kernel, &problem, &handle->device) > 20 * best_time) continue;
    LPG_TRY(time_kernel(handle, t, kernel->name, &time));
    if (time < best_time) {
      best = kernel;
      best_time = time;
    }
  }
  return lpgemm_i_tuning_put(handle->tuning, &problem, handle->device.threads, best->name, best_time);
}

static void release_trial(lpgemm_handle_t handle, trial *t) {
  void *memory[] = {t->x, t->y, t->x_scale, t->workspace};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
    if (memory[i]) handle->backend->release(handle->device.index, memory[i]);
  }
}

/* The caller's workspace is bound again, and the trial's memory gone, before anything of the caller's runs. */
static lpgemm_status_t tune_rows(lpgemm_handle_t handle, const lpgemm_run_args_t *args, double deadline) {
  void *workspace = handle->workspace;
  size_t workspace_bytes = handle->workspace_bytes;
  trial t = {.args = *args};
  lpgemm_status_t status = time_kernels(handle, &t, deadline);
  handle->workspace = workspace;
  handle->workspace_bytes = workspace_bytes;
  release_trial(handle, &t);
  return status;
}

static lpgemm_status_t read_options(lpgemm_handle_t handle, const lpgemm_autotune_options_t *from,
                                    lpgemm_autotune_options_t *options, lpgemm_run_args_t *args) {
  memset(options, 0, sizeof *options);
  memset(args, 0, sizeof *args);
  if (from) LPG_TRY(lpgemm_i_copy_struct(options, sizeof *options, sizeof *options, from, "options"));
  if (options->args) LPG_TRY(lpgemm_i_copy_struct(args, sizeof *args, LPG_LEAST_RUN_ARGS, options->args, "args"));
  args->size = sizeof *args;
  args->ldx = args->ldy = args->ldc = 0;
  args->n_begin = args->n_end = 0;
  args->kernel = NULL;
  args->prepared_x = NULL;
  args->prepared_x_bytes = 0;
  if (args->x_type == 0) args->x_type = handle->default_type;
  if (args->y_type == 0) args->y_type = handle->default_type;
  LPG_CHECK(options->seconds >= 0, LPGEMM_INVALID_ARGUMENT, "options.seconds is %g; it must be 0 (10 s) or more",
            options->seconds);
  if (options->seconds == 0) options->seconds = 10;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_autotune(lpgemm_handle_t handle, lpgemm_weights_t weights, const int64_t *rows, size_t count,
                                const lpgemm_autotune_options_t *user_options) {
  LPG_TRY(lpgemm_i_check_pair(handle, weights));
  LPG_CHECK(rows || count == 0, LPGEMM_NULL_POINTER, "rows is NULL, but count is %zu", count);
  lpgemm_autotune_options_t options;
  lpgemm_run_args_t args;
  LPG_TRY(read_options(handle, user_options, &options, &args));
  args.weights = weights;
  lpg_problem problem;
  for (size_t i = 0; i < count; i++) { /* every row count is checked before the first is timed */
    LPG_CHECK(rows[i] >= 0, LPGEMM_INVALID_SIZE, "rows[%zu] is %lld; it must be 0 or more", i, (long long)rows[i]);
    args.m = rows[i];
    LPG_TRY(lpgemm_i_describe(handle, &args, &problem));
  }
  double deadline = lpg_seconds() + options.seconds;
  for (size_t i = 0; i < count; i++) {
    if (rows[i] > 0 && weights->packed.desc.n > 0 && lpg_seconds() < deadline) {
      args.m = rows[i];
      LPG_TRY(tune_rows(handle, &args, deadline));
    }
    if (options.progress) options.progress(options.context, (int)i + 1, (int)count);
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_tuning_save(lpgemm_handle_t handle, const char *path) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(path, LPGEMM_NULL_POINTER, "path is NULL");
  return lpgemm_i_tuning_save(handle->tuning, &handle->device, path);
}

lpgemm_status_t lpgemm_tuning_load(lpgemm_handle_t handle, const char *path, int *used, int *refused) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(path, LPGEMM_NULL_POINTER, "path is NULL");
  return lpgemm_i_tuning_load(handle->tuning, &handle->device, path, used, refused);
}

lpgemm_status_t lpgemm_tuning_clear(lpgemm_handle_t handle) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  lpgemm_i_tuning_clear(handle->tuning);
  return LPGEMM_SUCCESS;
}
