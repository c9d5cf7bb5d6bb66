/* Containers of lpgemm-convert: packed matrices and plain tensors under their names, for one map. All numbers are
 * little-endian. docs/formats.md has the same in words.
 *
 *     header    64 bytes: "LPGMODEL", version, 0, entries, where the index lies, its bytes and hash, the file's bytes,
 *               hash of the 56 bytes before
 *     data      of entry after entry, each at the next multiple of 4096, the first at 4096; zeros between
 *     index     at the next multiple of 4096, to the end of the file: entry after entry, each 72 bytes and the name,
 *               filled with zeros to a multiple of 8
 *
 * Offsets follow from the bytes of what lies before, so a reader compares them and believes none. */
#ifndef LPG_FILES_CONTAINER_H
#define LPG_FILES_CONTAINER_H

#include "files.h"

#define LPG_CONTAINER_MAGIC "LPGMODEL"

enum {
  LPG_CONTAINER_VERSION = 1,
  LPG_CONTAINER_HEADER = 64,
  LPG_CONTAINER_ENTRY = 72,
  /* in the header */
  LPG_CONTAINER_AT_VERSION = 8,
  LPG_CONTAINER_AT_ENTRIES = 16,
  LPG_CONTAINER_AT_INDEX = 24,
  LPG_CONTAINER_AT_INDEX_BYTES = 32,
  LPG_CONTAINER_AT_INDEX_HASH = 40,
  LPG_CONTAINER_AT_BYTES = 48,
  LPG_CONTAINER_AT_HASH = 56,
  /* in an entry */
  LPG_ENTRY_AT_OFFSET = 0,
  LPG_ENTRY_AT_BYTES = 8,
  LPG_ENTRY_AT_HASH = 16,
  LPG_ENTRY_AT_TYPE = 24,
  LPG_ENTRY_AT_DIMS = 28,
  LPG_ENTRY_AT_SHAPE = 32,
  LPG_ENTRY_AT_NAME_BYTES = 64 /* and 4 bytes of 0 */
};

static inline void lpg_put(uint8_t *at, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t lpg_get(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* The hash of a tensor: of its bytes, filled with zeros to a multiple of 8. */
static inline uint64_t lpg_container_hash(const uint8_t *data, uint64_t bytes) {
  uint8_t rest[8] = {0};
  const uint64_t whole = bytes / 8 * 8;
  if (bytes == whole) return lpgemm_i_hash(data, whole);
  memcpy(rest, data + whole, (size_t)(bytes - whole));
  return lpgemm_i_hash(data, whole) + lpgemm_i_hash_part(rest, whole, sizeof rest);
}

#endif
