/* What the programs share: words of a command line, what is said when they are wrong, JSON. A program ends where it
 * fails: it has nothing to undo. Written against lpgemm.h alone, as any other program. */
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include <stdint.h>

#include "lpgemm.h"

#define CLI_COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit codes */

extern const char cli_program[]; /* each program's own name */

/* ---- what ends a program ---- */

_Noreturn void cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A status that is no success ends the program with the library's sentence: a wrong argument is wrong usage. */
void cli_check(lpgemm_status_t status);

/* The exit code, or a failure if what was printed could not be written. */
int cli_finish(int code);

void *cli_allocate(size_t bytes); /* never NULL */

/* ---- the command line ---- */

typedef struct cli_words {
  char **word;
  int count, at;
} cli_words;

/* The word after the current one, which becomes the current one; `right` says what it should be. */
const char *cli_next(cli_words *words, const char *option, const char *right);

int64_t cli_number(const char *option, const char *text, int64_t least, int64_t most);

enum { CLI_MAX_SIZE = 1 << 30 }; /* of N and K; the library says which products are too large */

/* ---- handles ---- */

lpgemm_backend_t cli_backend(const char *text); /* "cpu", "cuda"; NULL is automatic */
const char *cli_backend_name(lpgemm_backend_t backend);
lpgemm_handle_t cli_open(lpgemm_backend_t backend);

/* ---- JSON ---- */

void cli_json_text(const char *text); /* in quotes; NULL is null */

#endif
