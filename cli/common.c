#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what ends a program ---- */

static void say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void say(const char *format, va_list args) {
  fflush(stdout);
  fprintf(stderr, "%s: ", cli_program);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
}

void cli_usage(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
  fprintf(stderr, "%s --help lists the options.\n", cli_program);
  exit(CLI_USAGE);
}

void cli_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
  exit(CLI_FAILED);
}

void cli_check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  if (status / 10 == 1) cli_usage("%s", lpgemm_last_error()); /* the tens say whose fault it is */
  cli_fail("%s", lpgemm_last_error());
}

int cli_finish(int code) {
  if (fflush(stdout) != 0 || ferror(stdout)) cli_fail("the output cannot be written: %s", strerror(errno));
  return code;
}

void *cli_allocate(size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) cli_fail("no memory for %zu bytes", bytes);
  return memory;
}

/* ---- the command line ---- */

const char *cli_next(cli_words *words, const char *option, const char *right) {
  if (words->at + 1 >= words->count) cli_usage("%s has no value; it needs %s", option, right);
  const char *text = words->word[++words->at];
  if (strncmp(text, "--", 2) == 0) cli_usage("%s is followed by the option %s; it needs %s", option, text, right);
  return text;
}

int64_t cli_number(const char *option, const char *text, int64_t least, int64_t most) {
  int64_t value = 0;
  const char *s = text;
  while (*s >= '0' && *s <= '9' && value <= most) value = value * 10 + (*s++ - '0');
  if (s == text || *s || value < least || value > most) {
    cli_usage("%s is '%s'; it must be a whole number from %lld to %lld", option, text, (long long)least,
              (long long)most);
  }
  return value;
}

/* ---- handles ---- */

lpgemm_backend_t cli_backend(const char *text) {
  if (!text) return LPGEMM_BACKEND_AUTO;
  if (strcmp(text, "cpu") == 0) return LPGEMM_BACKEND_CPU;
  if (strcmp(text, "cuda") == 0) return LPGEMM_BACKEND_CUDA;
  cli_usage("--backend is '%s'; it must be cpu or cuda", text);
}

const char *cli_backend_name(lpgemm_backend_t backend) { return backend == LPGEMM_BACKEND_CUDA ? "cuda" : "cpu"; }

lpgemm_handle_t cli_open(lpgemm_backend_t backend) {
  lpgemm_config_t config = {.size = sizeof config, .backend = backend};
  lpgemm_handle_t handle;
  if (lpgemm_create(&handle, &config) != LPGEMM_SUCCESS) cli_fail("%s", lpgemm_last_error()); /* of the environment */
  return handle;
}

/* ---- JSON ---- */

void cli_json_text(const char *text) {
  if (!text) {
    fputs("null", stdout);
    return;
  }
  putchar('"');
  for (const char *s = text; *s; s++) {
    if ((unsigned char)*s < ' ') {
      printf("\\u%04x", (unsigned)*s);
    } else {
      if (*s == '"' || *s == '\\') putchar('\\');
      putchar(*s);
    }
  }
  putchar('"');
}
