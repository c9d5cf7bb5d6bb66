/* What main.c hands to the framework: the table of suites and the command line. Suites themselves include test.h. */
#ifndef TEST_FRAMEWORK_H
#define TEST_FRAMEWORK_H

#include <stddef.h>

typedef struct test_suite {
  const char *name;
  void (*run)(void); /* NULL if the suite is not linked: counts as one failed case */
} test_suite;

/* Runs the suites as the command line says and returns the exit code of the program. */
int test_main(int argc, char **argv, const test_suite *suites, int count);

/* Where the memory of test_alloc() comes from; 256-byte aligned. */
typedef struct test_memory {
  void *(*allocate)(size_t bytes);
  void (*release)(void *memory);
} test_memory;

/* Memory that the GPU and the host share; in builds with CUDA. */
extern const test_memory test_cuda_memory __attribute__((weak));

#endif
