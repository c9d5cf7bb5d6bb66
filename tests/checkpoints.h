/* Checkpoint files for tests: read from disk, or made up in memory, right or wrong. */
#ifndef CHECKPOINTS_H
#define CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#define FORMATS "tests/golden/formats/"

/* Bytes that grow. */
typedef struct buffer {
  uint8_t *bytes;
  size_t size, room;
} buffer;

void buffer_add(buffer *b, const void *bytes, size_t size);
void buffer_text(buffer *b, const char *text);
void buffer_number(buffer *b, int bytes, uint64_t value); /* little-endian */
void buffer_pad(buffer *b, size_t alignment);             /* with zeros */
void buffer_format(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_free(buffer *b);

/* A whole file; fails the case and gives an empty one if there is none. */
buffer read_file(const char *path);

/* ---- a folder that goes away ---- */

typedef struct folder {
  char path[64];
} folder;

folder folder_make(void);
void folder_write(const folder *f, const char *name, const void *bytes, size_t size);
void folder_text(const folder *f, const char *name, const char *text);
const char *folder_path(const folder *f, const char *name); /* valid until the next call */
int folder_count(const folder *f);                          /* files in it */
void folder_remove(folder *f);

/* ---- safetensors: the data of tensor i are bytes of i + 1 ---- */

typedef struct safetensors {
  buffer header, data;
  int count;
} safetensors;

/* shape is "[16,4]"; bytes what it makes. */
void safetensors_add(safetensors *s, const char *name, const char *dtype, const char *shape, size_t bytes);
buffer safetensors_end(safetensors *s); /* frees *s */
/* A file with just this header. */
buffer safetensors_raw(const char *header, size_t data_bytes);

/* ---- GGUF ---- */

typedef struct gguf {
  buffer pairs, infos, data;
  uint64_t pair_count, tensor_count;
  size_t alignment; /* 32 where it is 0 */
  uint32_t version; /* 3 where it is 0 */
} gguf;

void gguf_string(buffer *b, const char *text);
void gguf_pair(gguf *g, const char *key, uint32_t type, int bytes, uint64_t value);
/* ne has the columns first; bytes are those of the data, which are the tensor's number plus 1. */
void gguf_add(gguf *g, const char *name, int dims, const uint64_t *ne, uint32_t type, size_t bytes);
buffer gguf_end(gguf *g); /* frees *g */

#endif
