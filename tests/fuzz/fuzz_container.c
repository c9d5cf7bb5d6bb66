/* libFuzzer: hostile containers. Hashes would stop every mutation at the door, so most inputs get theirs right again.
 */
#include "files/container.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  look(data, size);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 8 == 0 || size < LPG_CONTAINER_HEADER) return LLVMFuzzerMutate(data, size, max_size);
  uint64_t index = lpg_get(data + LPG_CONTAINER_AT_INDEX, 8);
  if (seed % 8 == 2 && index > LPG_CONTAINER_HEADER && index <= size) { /* matrices and tensors alone */
    const size_t bytes = (size_t)index - LPG_CONTAINER_HEADER;
    LLVMFuzzerMutate(data + LPG_CONTAINER_HEADER, bytes, bytes);
    return size;
  }
  if (seed % 8 == 1 || index > size) {
    LLVMFuzzerMutate(data, LPG_CONTAINER_HEADER, LPG_CONTAINER_HEADER);
    index = lpg_get(data + LPG_CONTAINER_AT_INDEX, 8);
  } else {
    const size_t most = max_size - (size_t)index, bytes = size - (size_t)index;
    size = (size_t)index + LLVMFuzzerMutate(data + index, bytes, most < bytes ? bytes : most);
  }
  if (index <= size) {
    const size_t bytes = (size - (size_t)index) / 8 * 8;
    size = (size_t)index + bytes;
    lpg_put(data + LPG_CONTAINER_AT_INDEX_BYTES, 8, bytes);
    lpg_put(data + LPG_CONTAINER_AT_INDEX_HASH, 8, lpgemm_i_hash(data + index, bytes));
  }
  lpg_put(data + LPG_CONTAINER_AT_BYTES, 8, size);
  lpg_put(data + LPG_CONTAINER_AT_HASH, 8, lpgemm_i_hash(data, LPG_CONTAINER_AT_HASH));
  return size;
}
