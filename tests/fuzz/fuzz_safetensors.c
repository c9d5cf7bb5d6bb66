/* libFuzzer: hostile safetensors files. The length of the header would stop nearly every mutation at the door, so most
 * inputs get it right again. */
#include <stdio.h>

#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum { LENGTH = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  look(data, size);
  return 0;
}

static uint64_t header_bytes(const uint8_t *data) {
  uint64_t length = 0;
  for (int i = 0; i < LENGTH; i++) length |= (uint64_t)data[i] << 8 * i;
  return length;
}

/* Writes the header anew, of which `longer` bytes lie in `header`, in front of the tensors' bytes. */
static size_t put_header(uint8_t *data, size_t size, const uint8_t *header, size_t longer) {
  const size_t rest = size - LENGTH - (size_t)header_bytes(data);
  memmove(data + LENGTH + longer, data + size - rest, rest);
  memcpy(data + LENGTH, header, longer);
  for (int i = 0; i < LENGTH; i++) data[i] = (uint8_t)((uint64_t)longer >> 8 * i);
  return LENGTH + longer + rest;
}

/* Two sides with the same product: wider, longer, or one row. */
static void other_sides(unsigned long long side[2], unsigned seed) {
  static const unsigned factors[] = {2, 3, 4, 8, 16, 64};
  const int from = (int)(seed & 1);
  const unsigned factor = factors[(seed >> 1) % 6];
  if (seed >> 4 & 1) {
    side[1] *= side[0], side[0] = 1;
  } else if (side[from] % factor == 0) {
    side[from] /= factor, side[!from] *= factor;
  }
}

/* Another shape of as many numbers, which the fuzzer would not find: most others do not make the tensor's bytes. */
static size_t reshape(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  static const char key[] = "\"shape\":[";
  static const char *const formats[] = {"%s%llu,%llu%s", "%s%llu,%llu%s", "%s%llu,%llu,1%s", "%s1,%llu,%llu%s"};
  const size_t length = (size_t)header_bytes(data);
  unsigned long long side[2] = {0, 1};
  char *header = calloc(1, length + 1), *text = malloc(length + 64);
  int end = 0;
  must(header && text);
  memcpy(header, data + LENGTH, length);
  char *at = strstr(header + (seed >> 8) % (length + 1), key);
  if (at) at += sizeof key - 1;
  if (at &&
      (sscanf(at, "%9llu,%9llu%n", &side[0], &side[1], &end) == 2 || sscanf(at, "%9llu%n", &side[0], &end) == 1)) {
    const char *rest = at + end;
    other_sides(side, seed);
    *at = 0;
    const size_t longer = (size_t)snprintf(text, length + 64, formats[seed >> 5 & 3], header, side[0], side[1], rest);
    if (size - length + longer <= max_size) size = put_header(data, size, (const uint8_t *)text, longer);
  }
  free(text);
  free(header);
  return size;
}

/* Nearly every change of a header is a refusal, and several mutations come together: most must leave it readable. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 32 == 0 || size < LENGTH || header_bytes(data) > size - LENGTH || max_size < size) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  const size_t length = (size_t)header_bytes(data), rest = size - LENGTH - length;
  if (seed % 32 < 4) return reshape(data, size, max_size, seed >> 5);
  if (seed % 32 < 28 && rest > 0) { /* shapes and orders of columns that tensors hold, blocks, numbers */
    LLVMFuzzerMutate(data + size - rest, rest, rest);
    return size;
  }
  uint8_t *header = malloc(max_size - rest);
  must(header != NULL);
  memcpy(header, data + LENGTH, length);
  size = put_header(data, size, header, LLVMFuzzerMutate(header, length, max_size - LENGTH - rest));
  free(header);
  return size;
}
