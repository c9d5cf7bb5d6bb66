/* Memory of an open file: small pieces and arrays, all from one budget. */
#include <stdlib.h>

#include "files.h"

enum { CHUNK = 64 << 10 };

struct lpg_chunk {
  lpg_chunk *next;
  size_t used, size;
};

static lpgemm_status_t take(lpg_memory *memory, size_t bytes) {
  LPG_CHECK(bytes <= memory->left, LPGEMM_SIZE_OVERFLOW,
            "%.300s: its index would need more memory than the file has bytes, and 64 MiB; no writer makes such a file",
            memory->owner);
  memory->left -= bytes;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_keep(lpg_memory *memory, size_t bytes, void **piece) {
  bytes = (bytes + 7) / 8 * 8;
  lpg_chunk *chunk = memory->chunks;
  if (!chunk || chunk->size - chunk->used < bytes) {
    const size_t size = bytes > CHUNK ? bytes : CHUNK;
    LPG_TRY(take(memory, size + sizeof *chunk));
    chunk = malloc(sizeof *chunk + size);
    LPG_CHECK(chunk, LPGEMM_OUT_OF_MEMORY, "no memory for the index of %.300s", memory->owner);
    *chunk = (lpg_chunk){memory->chunks, 0, size};
    memory->chunks = chunk;
  }
  *piece = (uint8_t *)(chunk + 1) + chunk->used;
  chunk->used += bytes;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_keep_text(lpg_memory *memory, const char *text, size_t length, const char **copy) {
  void *piece;
  LPG_TRY(lpgemm_i_keep(memory, length + 1, &piece));
  memcpy(piece, text, length);
  ((char *)piece)[length] = 0;
  *copy = piece;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_grow(lpg_memory *memory, void **array, size_t had, size_t count, size_t element) {
  LPG_TRY(take(memory, (count - had) * element));
  void *larger = realloc(*array, count * element + 1);
  LPG_CHECK(larger, LPGEMM_OUT_OF_MEMORY, "no memory for the index of %.300s", memory->owner);
  memset((uint8_t *)larger + had * element, 0, (count - had) * element);
  *array = larger;
  return LPGEMM_SUCCESS;
}

void lpgemm_i_forget(lpg_memory *memory) {
  while (memory->chunks) {
    lpg_chunk *next = memory->chunks->next;
    free(memory->chunks);
    memory->chunks = next;
  }
}
