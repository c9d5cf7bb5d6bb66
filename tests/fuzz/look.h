/* What the fuzzers of checkpoint files do with one that was taken: look at everything, and believe nothing. */
#ifndef FUZZ_LOOK_H
#define FUZZ_LOOK_H

#include "take.h"

/* The tensor lies in the file, and its shape makes its bytes where a number has whole ones. */
static inline void look_at(const lpgemm_tensor_t *t, const uint8_t *data, size_t size) {
  static volatile uint8_t sink;
  const uint8_t *at = t->data;
  must(t->name && at >= data && t->bytes <= size && (size_t)(at - data) <= size - t->bytes);
  must(t->dims >= 0 && t->dims <= 4);
  for (int i = 0; i < t->dims; i++) must(t->shape[i] >= 0);
  if (t->bytes) sink = (uint8_t)(at[0] ^ at[t->bytes - 1]);
  (void)sink;
}

/* Parses a copy that is exactly as large as the data, looks at all of it, and imports what it offers. */
static inline void look(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size + (size == 0));
  must(copy != NULL);
  if (size) memcpy(copy, data, size);
  lpgemm_file_t file = NULL;
  size_t tensors = 0, layers = 0, work = MOST_WORK;
  if (!is_taken(lpgemm_file_parse(copy, size, &file))) {
    must(!file);
    free(copy);
    return;
  }
  must(lpgemm_file_counts(file, &tensors, &layers) == LPGEMM_SUCCESS);
  for (size_t i = 0; i < tensors; i++) {
    lpgemm_tensor_t t, found;
    must(lpgemm_file_tensor(file, i, &t) == LPGEMM_SUCCESS);
    look_at(&t, copy, size);
    must(lpgemm_file_find(file, t.name, &found) == LPGEMM_SUCCESS && found.data == t.data);
    (void)is_taken(lpgemm_file_check(file, i));
    take_blob(&t, &work);
  }
  for (size_t i = 0; i < layers; i++) {
    const char *name;
    lpgemm_import_t import = {.size = sizeof import};
    must(lpgemm_file_layer_name(file, i, &name) == LPGEMM_SUCCESS);
    if (!is_taken(lpgemm_file_layer(file, name, &import))) {
      take_guesses(file, name, &work);
      continue;
    }
    must(import.format != 0 && import.count > 0);
    for (size_t t = 0; t < import.count; t++) look_at(&import.tensors[t], copy, size);
    take(&import, &work);
  }
  must(lpgemm_file_close(file) == LPGEMM_SUCCESS);
  free(copy);
}

#endif
