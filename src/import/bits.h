/* Codes out of words: loads that need no alignment, and the spreading of packed fields to bytes, several at a time.
 * `bits` is a constant wherever these are called, so that shifts and masks are. */
#ifndef LPG_IMPORT_BITS_H
#define LPG_IMPORT_BITS_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define LPG_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define LPG_ALWAYS_INLINE static inline
#endif

static inline uint16_t lpg_get16(const uint8_t *from) {
  uint16_t word;
  memcpy(&word, from, 2);
  return word;
}

static inline uint32_t lpg_get32(const uint8_t *from) {
  uint32_t word;
  memcpy(&word, from, 4);
  return word;
}

/* Eight fields of `bits` bits, the first lowest, to eight bytes: halves, quarters, then fields move apart. */
LPG_ALWAYS_INLINE uint64_t lpg_spread(uint64_t x, int bits) {
  const uint64_t one = 1, four = (one << 4 * bits) - 1, two = ((one << 2 * bits) - 1) * 0x0000000100000001U,
                 each = ((one << bits) - 1) * 0x0001000100010001U;
  x = (x & four) | (x >> 4 * bits & four) << 32;
  x = (x & two) | (x >> 2 * bits & two) << 16;
  return (x & each) | (x >> bits & each) << 8;
}

/* `count` codes of a dense stream that begins at a byte. Reads (count * bits + 7) / 8 bytes. */
LPG_ALWAYS_INLINE void lpg_expand(const uint8_t *stream, int64_t count, int bits, uint8_t *codes) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 8) { /* whole words: what they have too much are bits of the eight codes behind */
    uint64_t eight = 0;
    memcpy(&eight, stream + i / 8 * bits, bits <= 2 ? 2 : bits <= 4 ? 4 : 8);
    eight = lpg_spread(eight, bits);
    memcpy(codes + i, &eight, 8);
  }
  for (; i < count; i += 8) {
    const int64_t left = count - i < 8 ? count - i : 8;
    uint64_t last = 0;
    memcpy(&last, stream + i / 8 * bits, (size_t)(left * bits + 7) / 8);
    last = lpg_spread(last, bits);
    memcpy(codes + i, &last, (size_t)left);
  }
}

/* The same for a width that is known only when it runs. */
static inline void lpg_expand_any(const uint8_t *stream, int64_t count, int bits, uint8_t *codes) {
  switch (bits) {
    case 1: lpg_expand(stream, count, 1, codes); break;
    case 2: lpg_expand(stream, count, 2, codes); break;
    case 3: lpg_expand(stream, count, 3, codes); break;
    case 4: lpg_expand(stream, count, 4, codes); break;
    case 5: lpg_expand(stream, count, 5, codes); break;
    case 6: lpg_expand(stream, count, 6, codes); break;
    case 7: lpg_expand(stream, count, 7, codes); break;
    default: memcpy(codes, stream, (size_t)count); break;
  }
}

/* Field `index` of a stream of words, which may straddle two of them; `next` is how far they lie apart, in bytes. */
static inline uint32_t lpg_field_at(const uint8_t *words, int64_t next, int64_t index, int bits) {
  int64_t bit = index * bits;
  const uint8_t *at = words + bit / 32 * next;
  int shift = (int)(bit % 32);
  uint64_t both = lpg_get32(at);
  if (shift + bits > 32) both |= (uint64_t)lpg_get32(at + next) << 32;
  return (uint32_t)(both >> shift) & ((1u << bits) - 1u);
}

#endif
