/* What the fuzzers share: an assertion, a handle, and what every refusal must be. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lpgemm.h"

/* Says what it is that does not hold, since a report of libFuzzer has no line of inlined functions. */
#define must(condition) ((condition) ? (void)0 : must_hold(__FILE__, __LINE__, #condition))

static inline void must_hold(const char *file, int line, const char *condition) {
  fprintf(stderr, "%s:%d: this must hold: %s\nlast sentence: %s\n", file, line, condition, lpgemm_last_error());
  abort();
}

/* One thread, so that a find does not depend on who came first. */
static inline lpgemm_handle_t the_handle(void) {
  static lpgemm_handle_t handle;
  lpgemm_config_t config = {.size = sizeof config};
  config.backend = LPGEMM_BACKEND_CPU;
  config.num_threads = 1;
  if (!handle) must(lpgemm_create(&handle, &config) == LPGEMM_SUCCESS);
  return handle;
}

/* 1 for success. A refusal has one sentence of its own and is the file's fault, not that of the call. */
static inline int is_taken(lpgemm_status_t status) {
  static const char spent[] = "text is \"?\"";
  lpgemm_dtype_t type;
  if (status == LPGEMM_SUCCESS) return 1;
  must(status != LPGEMM_INTERNAL_ERROR && status != LPGEMM_OUT_OF_MEMORY && status != LPGEMM_INVALID_HANDLE);
  must(status != LPGEMM_INVALID_STRUCT && status != LPGEMM_NULL_POINTER);
  must(*lpgemm_last_error() && strncmp(lpgemm_last_error(), spent, strlen(spent)) != 0);
  for (const char *c = lpgemm_last_error(); *c; c++) must((uint8_t)*c >= ' ' && *c != 0x7f);
  /* leaves a sentence that no later refusal may have */
  must(lpgemm_dtype_parse("?", &type) != LPGEMM_SUCCESS && strncmp(lpgemm_last_error(), spent, strlen(spent)) == 0);
  return 0;
}

#endif
