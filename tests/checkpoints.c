#include "checkpoints.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

void buffer_add(buffer *b, const void *bytes, size_t size) {
  if (b->size + size > b->room) {
    b->room = 2 * (b->size + size);
    b->bytes = realloc(b->bytes, b->room);
  }
  if (size) memcpy(b->bytes + b->size, bytes, size);
  b->size += size;
}

void buffer_text(buffer *b, const char *text) { buffer_add(b, text, strlen(text)); }

void buffer_number(buffer *b, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; i++) {
    const uint8_t byte = (uint8_t)(value >> 8 * i);
    buffer_add(b, &byte, 1);
  }
}

void buffer_pad(buffer *b, size_t alignment) {
  while (b->size % alignment) buffer_add(b, "", 1);
}

void buffer_format(buffer *b, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  buffer_text(b, text);
}

void buffer_free(buffer *b) {
  free(b->bytes);
  *b = (buffer){0};
}

buffer read_file(const char *path) {
  buffer b = {0};
  FILE *file = fopen(path, "rb");
  if (!file) {
    test_fail(__FILE__, __LINE__, "%s cannot be read", path);
    buffer_add(&b, "", 1);
    return b;
  }
  uint8_t piece[4096];
  for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;) buffer_add(&b, piece, got);
  fclose(file);
  return b;
}

/* ---- folders ---- */

folder folder_make(void) {
  folder f = {"/tmp/lpgemm-test-XXXXXX"};
  if (!mkdtemp(f.path)) test_fail(__FILE__, __LINE__, "no folder in /tmp");
  return f;
}

const char *folder_path(const folder *f, const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", f->path, name);
  return path;
}

void folder_write(const folder *f, const char *name, const void *bytes, size_t size) {
  FILE *file = fopen(folder_path(f, name), "wb");
  if (!file || (size && fwrite(bytes, 1, size, file) != size)) test_fail(__FILE__, __LINE__, "cannot write %s", name);
  if (file) fclose(file);
}

void folder_text(const folder *f, const char *name, const char *text) { folder_write(f, name, text, strlen(text)); }

static int each(const folder *f, int remove) {
  DIR *directory = opendir(f->path);
  int count = 0;
  if (!directory) return -1;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    count++;
    if (remove) unlink(folder_path(f, entry->d_name));
  }
  closedir(directory);
  return count;
}

int folder_count(const folder *f) { return each(f, 0); }

void folder_remove(folder *f) {
  each(f, 1);
  rmdir(f->path);
}

/* ---- safetensors ---- */

void safetensors_add(safetensors *s, const char *name, const char *dtype, const char *shape, size_t bytes) {
  buffer_format(&s->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", s->count ? "," : "{",
                name, dtype, shape, s->data.size, s->data.size + bytes);
  s->count++;
  const uint8_t byte = (uint8_t)s->count;
  for (size_t i = 0; i < bytes; i++) buffer_add(&s->data, &byte, 1);
}

buffer safetensors_end(safetensors *s) {
  buffer b = {0};
  buffer_text(&s->header, s->count ? "}" : "{}");
  buffer_number(&b, 8, s->header.size);
  buffer_add(&b, s->header.bytes, s->header.size);
  buffer_add(&b, s->data.bytes, s->data.size);
  buffer_free(&s->header);
  buffer_free(&s->data);
  *s = (safetensors){0};
  return b;
}

buffer safetensors_raw(const char *header, size_t data_bytes) {
  buffer b = {0};
  buffer_number(&b, 8, strlen(header));
  buffer_text(&b, header);
  for (size_t i = 0; i < data_bytes; i++) buffer_add(&b, "", 1);
  return b;
}

/* ---- GGUF ---- */

void gguf_string(buffer *b, const char *text) {
  buffer_number(b, 8, strlen(text));
  buffer_text(b, text);
}

void gguf_pair(gguf *g, const char *key, uint32_t type, int bytes, uint64_t value) {
  gguf_string(&g->pairs, key);
  buffer_number(&g->pairs, 4, type);
  buffer_number(&g->pairs, bytes, value);
  g->pair_count++;
}

void gguf_add(gguf *g, const char *name, int dims, const uint64_t *ne, uint32_t type, size_t bytes) {
  buffer_pad(&g->data, g->alignment ? g->alignment : 32);
  gguf_string(&g->infos, name);
  buffer_number(&g->infos, 4, (uint64_t)dims);
  for (int i = 0; i < dims; i++) buffer_number(&g->infos, 8, ne[i]);
  buffer_number(&g->infos, 4, type);
  buffer_number(&g->infos, 8, g->data.size);
  const uint8_t byte = (uint8_t)++g->tensor_count;
  for (size_t i = 0; i < bytes; i++) buffer_add(&g->data, &byte, 1);
}

buffer gguf_end(gguf *g) {
  buffer b = {0};
  buffer_text(&b, "GGUF");
  buffer_number(&b, 4, g->version ? g->version : 3);
  buffer_number(&b, 8, g->tensor_count);
  buffer_number(&b, 8, g->pair_count);
  buffer_add(&b, g->pairs.bytes, g->pairs.size);
  buffer_add(&b, g->infos.bytes, g->infos.size);
  buffer_pad(&b, g->alignment ? g->alignment : 32);
  buffer_add(&b, g->data.bytes, g->data.size);
  buffer_free(&g->pairs);
  buffer_free(&g->infos);
  buffer_free(&g->data);
  *g = (gguf){0};
  return b;
}
