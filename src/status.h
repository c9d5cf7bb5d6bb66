/* The one error path: a status, and a sentence for lpgemm_last_error(). */
#ifndef LPG_STATUS_H
#define LPG_STATUS_H

#include "lpgemm.h"

#if defined(__GNUC__)
#define LPG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LPG_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps the sentence for this thread, logs it if the log is on, and returns status. */
lpgemm_status_t lpgemm_i_fail(lpgemm_status_t status, const char *file, int line, const char *format, ...)
    LPG_PRINTF(4, 5);

/* Writes a line if the log level is at least `level`: DISPATCH and PROFILE each include ERROR, and callers of these two
 * ask for the level that they are of. */
void lpgemm_i_log(lpgemm_log_level_t level, const char *format, ...) LPG_PRINTF(2, 3);
void lpgemm_i_set_log_level(lpgemm_log_level_t level);
lpgemm_log_level_t lpgemm_i_log_level(void);

#ifdef __cplusplus
}
#endif

/* Returns status from the calling function, with a sentence, unless condition holds. It names status itself in the
 * return, so that compilers see that this is no success. */
#define LPG_CHECK(condition, status, ...)                       \
  do {                                                          \
    if (!(condition)) {                                         \
      lpgemm_i_fail((status), __FILE__, __LINE__, __VA_ARGS__); \
      return (status);                                          \
    }                                                           \
  } while (0)

/* Returns the status of call unless it is success. */
#define LPG_TRY(call)                                              \
  do {                                                             \
    lpgemm_status_t lpg_try_status_ = (call);                      \
    if (lpg_try_status_ != LPGEMM_SUCCESS) return lpg_try_status_; \
  } while (0)

/* The same for a call of the CUDA runtime, whose words go into the sentence. */
#define LPG_CUDA(call)                                                                        \
  do {                                                                                        \
    cudaError_t lpg_cuda_error_ = (call);                                                     \
    LPG_CHECK(lpg_cuda_error_ == cudaSuccess, LPGEMM_CUDA_ERROR, "%s failed: %s (%s)", #call, \
              cudaGetErrorString(lpg_cuda_error_), cudaGetErrorName(lpg_cuda_error_));        \
  } while (0)

#endif
