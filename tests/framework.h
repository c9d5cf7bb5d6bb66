/* What main.c hands to the framework: the table of suites and the command line. Suites themselves include test.h. */
#ifndef TEST_FRAMEWORK_H
#define TEST_FRAMEWORK_H

#include <stddef.h>

/* Where a suite runs; one that nvcc compiles is skipped in a build without it. */
enum { TEST_ON_CPU = 1, TEST_ON_CUDA = 2, TEST_NEEDS_NVCC = 4 };

typedef struct test_suite {
  const char *name;
  int backends;
  void (*run)(void); /* NULL if the suite is not linked: counts as one failed case */
} test_suite;

/* Runs the suites as the command line says and returns the exit code of the program. */
int test_main(int argc, char **argv, const test_suite *suites, int count);

/* What the framework needs of a backend. */
typedef struct test_device {
  void *(*allocate)(size_t bytes); /* for test_alloc(); 256-byte aligned */
  void (*release)(void *memory);
  void (*wait)(void);
  /* Whole pages of the backend's kind, nothing in them; and making them such that an access ends the program. */
  void *(*map)(size_t bytes);
  void (*lock)(void *pages, size_t bytes);
  void (*unlock)(void *pages, size_t bytes);
  void (*unmap)(void *pages, size_t bytes);
} test_device;

/* In builds with CUDA. */
extern const test_device test_cuda __attribute__((weak));

#endif
