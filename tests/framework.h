/* What main.c hands to the framework: the table of suites and the command line. Suites themselves include test.h. */
#ifndef TEST_FRAMEWORK_H
#define TEST_FRAMEWORK_H

typedef struct test_suite {
  const char *name;
  void (*run)(void); /* NULL if the suite is not linked: counts as one failed case */
} test_suite;

/* Runs the suites as the command line says and returns the exit code of the program. */
int test_main(int argc, char **argv, const test_suite *suites, int count);

#endif
