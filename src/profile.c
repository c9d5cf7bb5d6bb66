/* LPGEMM_LOG=profile: one line of CSV a call. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "clock.h"
#include "internal.h"

static int is_timed(lpgemm_handle_t handle) {
  return !handle->backend->is_capturing || !handle->backend->is_capturing(handle);
}

lpgemm_status_t lpgemm_i_profile_start(lpgemm_handle_t handle, double *start) {
  if (lpgemm_i_log_level() != LPGEMM_LOG_PROFILE || !is_timed(handle)) return LPGEMM_SUCCESS;
  LPG_TRY(handle->backend->synchronize(handle));
  *start = lpg_seconds();
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_profile_end(lpgemm_handle_t handle, const lpg_problem *p, const char *kernel, double start) {
  static atomic_flag headed = ATOMIC_FLAG_INIT;
  const lpgemm_weight_desc_t *d = &p->weights->desc;
  char time[32] = "";
  if (lpgemm_i_log_level() != LPGEMM_LOG_PROFILE) return LPGEMM_SUCCESS;
  if (is_timed(handle)) {
    LPG_TRY(handle->backend->synchronize(handle));
    long long nanoseconds = llround((lpg_seconds() - start) * 1e9); /* no %f: its decimal point depends on the locale */
    snprintf(time, sizeof time, "%lld.%03lld", nanoseconds / 1000, nanoseconds % 1000);
  }
  if (!atomic_flag_test_and_set(&headed)) lpgemm_i_log(LPGEMM_LOG_PROFILE, "profile,weights,group,x,y,n,k,m,kernel,us");
  lpgemm_i_log(LPGEMM_LOG_PROFILE, "profile,%s,%lld,%s,%s,%lld,%lld,%lld,%s,%s", lpgemm_dtype_name(d->type),
               (long long)d->group_k, lpgemm_dtype_name(p->x_type), lpgemm_dtype_name(p->y_type), (long long)d->n,
               (long long)d->k, (long long)p->m, kernel, time);
  return LPGEMM_SUCCESS;
}
