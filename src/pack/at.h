/* Codes and numbers where a source has them: functions that give 16 codes of a row, one code, or one number, from the
 * arrangement of the source. Plain C that CUDA compiles too, so that tests run on the host what kernels do. Here: what
 * all arrangements share, and the two of lpgemm_pack_weights(); src/import/at.h has those of checkpoints. */
#ifndef LPG_PACK_AT_H
#define LPG_PACK_AT_H

#include "../layouts/number.h"

/* Numbers in an array: that of row n and group g is number n / rows_a_line * line + g * group. */
typedef struct lpg_array_at {
  const uint8_t *data; /* NULL: there are none */
  int64_t rows_a_line, line, group;
  int bytes;     /* of a number */
  uint32_t flip; /* XORed with each */
} lpg_array_at;

/* A matrix of a source. What a field means depends on the arrangement; those that it does not read are 0. Pointers are
 * aligned to what its loads take; on the host any alignment does. */
typedef struct lpg_at {
  int arrangement; /* LPG_AT_ */
  int bits;
  int64_t n, k;
  const uint8_t *codes;
  uint64_t code_bytes;         /* nothing is read beyond */
  uint32_t flip;               /* XORed with each code, but not by these functions */
  int64_t line;                /* from one line of codes to the next: bits, bytes or words */
  int64_t group;               /* columns of a group, or numbers of a block */
  int64_t lines;               /* of the array of codes */
  lpg_array_at scales, zeros;  /* plain arrays, or of others the data */
  int scales_are, zeros_are;   /* LPG_SCALES_, LPG_ZEROS_ */
  int zeros_less_one;          /* GPTQ: added again */
  const uint8_t *nested, *map; /* bitsandbytes: fp32 of blocks of blocks, and 256 fp32 entries; map NULL: plain */
  int64_t nested_group;
  float nested_offset;
  const uint16_t *grid; /* of GGUF's IQ types */
} lpg_at;

/* 16 codes, one a byte. */
typedef struct lpg_codes16 {
  uint32_t word[4];
} lpg_codes16;

/* ---- loads: little-endian ---- */

#ifdef __CUDA_ARCH__
#define LPG_LOAD(type, from) __ldg((const type *)(from))
#endif

LPG_BITS_FN uint32_t lpg_load8(const uint8_t *from) {
#ifdef __CUDA_ARCH__
  return LPG_LOAD(uint8_t, from);
#else
  return *from;
#endif
}

/* An address that is a multiple of 2; of 4. */
LPG_BITS_FN uint32_t lpg_load16(const uint8_t *from) {
#ifdef __CUDA_ARCH__
  return LPG_LOAD(uint16_t, from);
#else
  uint16_t word;
  memcpy(&word, from, sizeof word);
  return word;
#endif
}

LPG_BITS_FN uint32_t lpg_load32(const uint8_t *from) {
#ifdef __CUDA_ARCH__
  return LPG_LOAD(uint32_t, from);
#else
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word;
#endif
}

/* `bytes` bytes, an even number or a multiple of `align`, from an address that is a multiple of `align`: constants, the
 * second one 1, 2, 4, 8 or 16. */
LPG_BITS_FN void lpg_load_words(const uint8_t *from, int bytes, int align, uint32_t *word) {
#ifdef __CUDA_ARCH__
  if (align == 16) {
    for (int i = 0; i < bytes / 16; i++) {
      const uint4 v = LPG_LOAD(uint4, from + 16 * i);
      word[4 * i] = v.x, word[4 * i + 1] = v.y, word[4 * i + 2] = v.z, word[4 * i + 3] = v.w;
    }
    return;
  }
  if (align == 8) {
    for (int i = 0; i < bytes / 8; i++) {
      const uint2 v = LPG_LOAD(uint2, from + 8 * i);
      word[2 * i] = v.x, word[2 * i + 1] = v.y;
    }
    return;
  }
#endif
  for (int i = 0; i < bytes; i += 4) {
    const uint8_t *at = from + i;
    word[i / 4] = align > 2 ? lpg_load32(at)
                  : align == 2
                      ? lpg_load16(at) | (i + 2 < bytes ? lpg_load16(at + 2) << 16 : 0u)
                      : lpg_load8(at) | lpg_load8(at + 1) << 8 | lpg_load8(at + 2) << 16 | lpg_load8(at + 3) << 24;
  }
}

LPG_BITS_FN lpg_codes16 lpg_load16_bytes(const uint8_t *from, int align) {
  lpg_codes16 c;
  lpg_load_words(from, 16, align, c.word);
  return c;
}

/* From anywhere. */
LPG_BITS_FN lpg_codes16 lpg_load16_anywhere(const uint8_t *from) {
  const uintptr_t at = (uintptr_t)from;
  return at % 16 == 0  ? lpg_load16_bytes(from, 16)
         : at % 4 == 0 ? lpg_load16_bytes(from, 4)
                       : lpg_load16_bytes(from, 1);
}

/* A number of 1, 2 or 4 bytes, aligned to them. */
LPG_BITS_FN uint32_t lpg_load_number(const uint8_t *data, int64_t index, int bytes) {
  return bytes == 1   ? lpg_load8(data + index)
         : bytes == 2 ? lpg_load16(data + 2 * index)
                      : lpg_load32(data + 4 * index);
}

LPG_BITS_FN uint32_t lpg_array_number(const lpg_array_at *a, int64_t n, int64_t group) {
  const int64_t line = a->rows_a_line == 1 ? n : n / a->rows_a_line;
  return lpg_load_number(a->data, line * a->line + group * a->group, a->bytes) ^ a->flip;
}

/* ---- fields to bytes ---- */

/* The lowest four fields of `bits` bits, one a byte. */
LPG_FN uint32_t lpg_four_fields(uint32_t x, int bits) {
  if (bits == 8) return x;
  const uint32_t two = (1u << 2 * bits) - 1u, one = ((1u << bits) - 1u) * 0x00010001u;
  x = (x & two) | (x >> 2 * bits & two) << 16;
  return (x & one) | (x >> bits & one) << 8;
}

/* The 32 bits of a stream of words from bit `at` on; the word behind them may be read. */
LPG_FN uint32_t lpg_window(const uint32_t *word, int at) {
  const uint32_t low = word[at / 32] >> at % 32;
  return at % 32 ? low | word[at / 32 + 1] << (32 - at % 32) : low;
}

/* 16 fields from bit 0 of the words on; word [bits / 2 rounded up] exists if bits is odd, or may be anything. */
LPG_FN lpg_codes16 lpg_sixteen_fields(const uint32_t *word, int bits) {
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 4; i++) {
    const int at = 4 * i * bits, in_two = at % 32 + 4 * bits > 32;
    c.word[i] = lpg_four_fields(in_two ? lpg_window(word, at) : word[at / 32] >> at % 32, bits);
  }
  return c;
}

/* `bits` bits from `shift` on of every byte. */
LPG_FN lpg_codes16 lpg_byte_fields(lpg_codes16 bytes, int shift, int bits) {
  const uint32_t mask = ((1u << bits) - 1u) * 0x01010101u;
  for (int i = 0; i < 4; i++) bytes.word[i] = bytes.word[i] >> shift & mask;
  return bytes;
}

/* Bit i of four becomes byte i, 0 or 1. */
LPG_FN uint32_t lpg_four_bits(uint32_t four) { return (four & 15u) * 0x00204081u & 0x01010101u; }

/* Code i of 16. */
LPG_FN uint32_t lpg_code_of(const lpg_codes16 *c, int i) { return c->word[i / 4] >> i % 4 * 8 & 255u; }

/* ---- one code a byte: row n begins at byte n * line ---- */

LPG_BITS_FN uint32_t lpg_at_bytes_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  (void)bits;
  return lpg_load8(a->codes + n * a->line + k);
}

LPG_BITS_FN lpg_codes16 lpg_at_bytes_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  (void)bits;
  return lpg_load16_anywhere(a->codes + n * a->line + k);
}

/* ---- a dense stream: row n begins at bit n * line ---- */

LPG_BITS_FN uint32_t lpg_stream_field(const uint8_t *stream, uint64_t at, int bits) {
  const int shift = (int)(at % 8);
  uint32_t code = lpg_load8(stream + at / 8) >> shift;
  if (shift + bits > 8) code |= lpg_load8(stream + at / 8 + 1) << (8 - shift);
  return code & ((1u << bits) - 1u);
}

LPG_BITS_FN uint32_t lpg_at_stream_code(const lpg_at *a, int bits, int64_t n, int64_t k) {
  return lpg_stream_field(a->codes, (uint64_t)(n * a->line + k * bits), bits);
}

/* 16 codes fill 2 * bits bytes; the largest power of two that divides them. */
LPG_FN int lpg_stream_align(int bits) { return 2 * bits & -(2 * bits); }

/* 1 if all rows begin at such an address. */
LPG_FN int lpg_is_stream_wide(const lpg_at *a, int bits) {
  const int align = lpg_stream_align(bits);
  return (uintptr_t)a->codes % (uintptr_t)align == 0 && a->line % (8 * align) == 0;
}

LPG_BITS_FN lpg_codes16 lpg_wide_stream_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  uint32_t word[5] = LPG_ZERO;
  lpg_load_words(a->codes + n * (a->line / 8) + k / 16 * 2 * bits, 2 * bits, lpg_stream_align(bits), word);
  return lpg_sixteen_fields(word, bits);
}

/* Whole words where they lie in the stream, wherever it begins; at its ends code by code. */
LPG_BITS_FN lpg_codes16 lpg_at_stream_codes(const lpg_at *a, int bits, int64_t n, int64_t k) {
  const int words = (bits + 1) / 2; /* that 16 codes fill */
  const uint64_t at = (uint64_t)(n * a->line + k * bits), before = (uintptr_t)a->codes % 4;
  const uint64_t bit = at + 8 * before; /* counted from the word in which the stream begins */
  const int shift = (int)(bit % 32), more = shift + 16 * bits > 32 * words;
  const int64_t from = (int64_t)(bit / 32 * 4) - (int64_t)before;
  if (from >= 0 && (uint64_t)from + 4 * (uint64_t)(words + more) <= a->code_bytes) {
    uint32_t word[10] = LPG_ZERO, moved[9] = LPG_ZERO;
    for (int i = 0; i < words; i++) word[i] = lpg_load32(a->codes + from + 4 * i);
    if (more) word[words] = lpg_load32(a->codes + from + 4 * words);
    for (int i = 0; i < words; i++) moved[i] = shift ? word[i] >> shift | word[i + 1] << (32 - shift) : word[i];
    return lpg_sixteen_fields(moved, bits);
  }
  lpg_codes16 c = LPG_ZERO;
  for (int i = 0; i < 16; i++)
    c.word[i / 4] |= lpg_stream_field(a->codes, at + (uint64_t)(i * bits), bits) << i % 4 * 8;
  return c;
}

#endif
