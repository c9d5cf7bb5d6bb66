/* Fields of bytes into bytes, eight at a time: what the readers of GGUF's blocks have in common. Words are
 * little-endian, as the library takes the host to be. */
#ifndef LPG_IMPORT_GGUF_BITS_H
#define LPG_IMPORT_GGUF_BITS_H

#include "bits.h"

static inline uint64_t lpg_get64(const uint8_t *from) {
  uint64_t word;
  memcpy(&word, from, sizeof word);
  return word;
}

static inline void lpg_put16(uint8_t *to, uint32_t word) {
  uint16_t narrow = (uint16_t)word;
  memcpy(to, &narrow, sizeof narrow);
}

static inline void lpg_put32(uint8_t *to, uint32_t word) { memcpy(to, &word, sizeof word); }
static inline void lpg_put64(uint8_t *to, uint64_t word) { memcpy(to, &word, sizeof word); }

/* Bit i of a byte becomes byte i, 0 or 1. */
static inline uint64_t lpg_spread1(uint32_t byte) {
  uint64_t bits = byte * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
  return (bits + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

/* Back: bit 0 of byte i becomes bit i. The other bits of the bytes are 0. */
static inline uint32_t lpg_gather1(uint64_t bytes) { return (uint32_t)(bytes * UINT64_C(0x0102040810204080) >> 56); }

/* Nibbles of `count` bytes: the low ones, then the high ones. */
static inline void lpg_nibbles(const uint8_t *restrict from, int count, uint8_t *restrict to) {
  for (int j = 0; j < count; j++) to[j] = from[j] & 15;
  for (int j = 0; j < count; j++) to[count + j] = (uint8_t)(from[j] >> 4);
}

static inline void lpg_join_nibbles(const uint8_t *restrict from, int count, uint8_t *restrict to) {
  for (int j = 0; j < count; j++) to[j] = (uint8_t)(from[j] | from[count + j] << 4);
}

/* Codes of 2 bits of 256 columns, as several types have them: four planes of 32 columns in 32 bytes, twice. */
static inline void lpg_planes2(const uint8_t *restrict from, uint8_t *restrict to) {
  for (int half = 0; half < 2; half++, from += 32, to += 128) {
    for (int j = 0; j < 32; j++) to[j] = from[j] & 3;
    for (int j = 0; j < 32; j++) to[32 + j] = (uint8_t)(from[j] >> 2 & 3);
    for (int j = 0; j < 32; j++) to[64 + j] = (uint8_t)(from[j] >> 4 & 3);
    for (int j = 0; j < 32; j++) to[96 + j] = (uint8_t)(from[j] >> 6);
  }
}

/* Back; of wider codes the low 2 bits. */
static inline void lpg_join_planes2(const uint8_t *restrict from, uint8_t *restrict to) {
  for (int half = 0; half < 2; half++, from += 128, to += 32) {
    for (int j = 0; j < 32; j++) {
      to[j] = (uint8_t)((from[j] & 3) | (from[32 + j] & 3) << 2 | (from[64 + j] & 3) << 4 | (from[96 + j] & 3) << 6);
    }
  }
}

#endif
