/* Programs as a user starts them: exit codes, what they print. They lie in bin/ beside the program of the tests, the
 * examples in examples/. */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

enum { PROGRAM_OUTPUT = 1 << 18, PROGRAM_PATH = 1024 };
extern char program_output[PROGRAM_OUTPUT];
extern const char *program_folder; /* their TMPDIR */

/* Where a program lies, "bin/lpgemm-info"; 0, and the case fails, if it is not there. */
int program_find(const char *name, char path[PROGRAM_PATH]);

/* The exit code of a command, "info --help" or "examples/parallel --help", whose output is then in program_output: all
 * of it, or stdout alone. */
int program_run(const char *command, int all);

/* Fails the case unless the exit code is `want` and `part` is in the output. */
void program_check(const char *command, int want, const char *part);
/* The same for stdout alone, which must be JSON. */
void program_check_json(const char *command, int want, const char *part);

/* Lines of the output in which `part` stands; "": that are not empty. */
int program_lines(const char *part);

#endif
