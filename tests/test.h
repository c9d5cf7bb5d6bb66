/* The test framework: cases with names, checks that report and go on, one closing line.
 *
 * A file tests/test_NAME.c defines `void suite_NAME(void)`, listed in main.c, which opens cases:
 *
 *     if (test_case("pack/u4/g%d", group)) {     0 when the command line's filter excludes it
 *       CHECK(x == 1);
 *       CHECK_STATUS(lpgemm_destroy(h), LPGEMM_SUCCESS);
 *     }
 *
 * A case fails if any check in it fails; the first failure prints the case, the line, what was wrong and the command
 * that reruns the case alone. */
#ifndef TEST_H
#define TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lpgemm.h"

/* Opens a case, closing the one before; returns 1 if it is to run. */
int test_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Marks the open case failed (or skipped) with a sentence. */
void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) test_fail(__FILE__, __LINE__, "not true: %s", #condition); \
  } while (0)

#define CHECK_INT(got, want)                                                                     \
  do {                                                                                           \
    long long got_ = (long long)(got), want_ = (long long)(want);                                \
    if (got_ != want_) test_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_); \
  } while (0)

#define CHECK_STATUS(call, want)                                                                                       \
  do {                                                                                                                 \
    lpgemm_status_t got_ = (call), want_ = (want);                                                                     \
    if (got_ != want_)                                                                                                 \
      test_fail(__FILE__, __LINE__, "%s gave %s (%s), not %s", #call, lpgemm_status_string(got_), lpgemm_last_error(), \
                lpgemm_status_string(want_));                                                                          \
  } while (0)

/* ---- random numbers: seeded by the case's name, so that a case alone sees what it saw in the whole run ---- */

void test_seed(uint64_t seed);                   /* replaces the seed of the open case */
uint64_t test_random(void);                      /* 64 bits */
int64_t test_between(int64_t low, int64_t high); /* inclusive */
double test_uniform(double low, double high);

/* ---- the backend under test: the CPU, or with --backend cuda the GPU ---- */

lpgemm_backend_t test_backend(void);

/* Returns when the backend has done what it was given, before the host looks at results. The CPU has when a call
 * returns. */
void test_wait(void);

/* ---- memory with canaries: writes before or after it are found by test_free() and fail the case. The host
 * and the backend under test can both read and write it ---- */

void *test_alloc(size_t bytes);                   /* 256-byte aligned, filled with 0xCD */
void *test_alloc_at(size_t bytes, size_t offset); /* the same, `offset` bytes past such an alignment */
void test_free(void *memory);

/* Pages in which the backend, but not always the host, can read and write; while they are locked an access by either
 * ends the program. What they hold survives that. */
void *test_map(size_t bytes);
void test_lock(void *pages, size_t bytes);
void test_unlock(void *pages, size_t bytes);
void test_unmap(void *pages, size_t bytes);

#endif
