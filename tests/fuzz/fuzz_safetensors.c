/* libFuzzer: hostile safetensors files. The length of the header would stop nearly every mutation at the door, so most
 * inputs get it right again. */
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

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 8 == 0 || size < LENGTH || header_bytes(data) > size - LENGTH || max_size < size) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  const size_t header = (size_t)header_bytes(data), rest = size - LENGTH - header;
  uint8_t *tail = malloc(rest + 1);
  if (!tail) abort();
  memcpy(tail, data + LENGTH + header, rest);
  const size_t longer = LLVMFuzzerMutate(data + LENGTH, header, max_size - LENGTH - rest);
  memcpy(data + LENGTH + longer, tail, rest);
  free(tail);
  for (int i = 0; i < LENGTH; i++) data[i] = (uint8_t)((uint64_t)longer >> 8 * i);
  return LENGTH + longer + rest;
}
