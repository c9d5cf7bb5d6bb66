/* Errors and small helpers of the benchmark. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "lpgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL is success, else a sentence that is valid until the next failure. */
typedef const char *bench_error;

bench_error bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define BENCH_CHECK(condition, ...)                   \
  do {                                                \
    if (!(condition)) return bench_fail(__VA_ARGS__); \
  } while (0)

#define BENCH_TRY(call)                            \
  do {                                             \
    bench_error bench_try_error_ = (call);         \
    if (bench_try_error_) return bench_try_error_; \
  } while (0)

/* The same for a call of the library. */
#define BENCH_LPGEMM(call) BENCH_CHECK((call) == LPGEMM_SUCCESS, "%s: %s", #call, lpgemm_last_error())

/* A symbol of a shared library; its address goes into the function pointer at `function`. 0 if it is not there. */
int bench_symbol(void *library, const char *name, void *function);

/* The median of `count` numbers, which it sorts; then the first is the least and the last the greatest. */
double bench_median(double *values, int count);

/* Seconds of a steady clock. */
double bench_now(void);

#ifdef __cplusplus
}
#endif

#endif
