/* Where a checkpoint has the codes and numbers of a matrix, for kernels: the readers of this folder a second time, as
 * functions of one row and 16 columns, or of one number. With a constant arrangement and width everything but loads,
 * shifts and masks folds away. */
#ifndef LPG_IMPORT_AT_H
#define LPG_IMPORT_AT_H

#include "../layouts/ggml.h"
#include "at_bytes.h"
#include "at_iq.h"
#include "at_words.h"

/* What has functions lpg_at_NAME_codes and lpg_at_NAME_code. */
#define LPG_ARRANGEMENTS(X) \
  X(BYTES, bytes)           \
  X(STREAM, stream)         \
  X(GPTQ, gptq)             \
  X(AWQ, awq)               \
  X(AWQ_FAST, awq_fast)     \
  X(WORDS, words)           \
  X(NF4, nf4)               \
  X(HQQ, hqq)               \
  X(BITNET, bitnet)

#define LPG_AT_MEMBER(NAME, name) LPG_AT_##NAME,
enum { LPG_AT_NONE, LPG_ARRANGEMENTS(LPG_AT_MEMBER) LPG_AT_GGML = 256 /* plus the number of the type */ };
#undef LPG_AT_MEMBER

enum { LPG_SCALES_ARRAY, LPG_SCALES_BLOCKS /* of the flattened matrix, which `group` divides */ };

enum {
  LPG_ZEROS_ARRAY,
  LPG_ZEROS_GPTQ,  /* streams along N, a line of words a group */
  LPG_ZEROS_AWQ,   /* as AWQ's codes, a line of words a group */
  LPG_ZEROS_ROWS,  /* streams along the groups, a line of words a row */
  LPG_ZEROS_DENSE, /* streams down N, a column a group */
  LPG_ZEROS_WORDS  /* the same in whole fields */
};

/* ---- numbers, but of GGUF ---- */

/* Of 2, 4 and 8 bits whole words were decremented, so a borrow has run through the fields: whole words go up again. */
LPG_BITS_FN uint32_t lpg_gptq_zero(const lpg_at *a, int64_t n, int64_t group) {
  const uint8_t *line = a->zeros.data + group * a->zeros.line * 4;
  const int bits = a->bits;
  if (bits == 3) return (lpg_word_field(line, 1, n, 3) + (uint32_t)a->zeros_less_one) & 7u;
  const uint32_t one_each = bits == 2 ? 0x55555555u : bits == 4 ? 0x11111111u : 0x01010101u;
  const uint32_t word = lpg_load32(line + n * bits / 32 * 4) + (a->zeros_less_one ? one_each : 0u);
  return word >> (int)(n * bits % 32) & ((1u << bits) - 1u);
}

LPG_BITS_FN uint32_t lpg_at_zero(const lpg_at *a, int64_t n, int64_t group) {
  const lpg_array_at *z = &a->zeros;
  switch (a->zeros_are) {
    case LPG_ZEROS_GPTQ: return lpg_gptq_zero(a, n, group);
    case LPG_ZEROS_AWQ: return lpg_load32(z->data + (group * z->line + n / 8) * 4) >> lpg_awq_shift(n) & 15u;
    case LPG_ZEROS_ROWS: return lpg_word_field(z->data + n * z->line * 4, 1, group, a->bits);
    case LPG_ZEROS_DENSE: return lpg_word_field(z->data + group * 4, z->line, n, a->bits);
    case LPG_ZEROS_WORDS: return lpg_whole_field(z->data + group * 4, z->line, (uint32_t)n, a->bits);
    default: return lpg_array_number(z, n, group);
  }
}

/* Each step is rounded to fp32, as the library does it. */
LPG_BITS_FN uint32_t lpg_block_scale(const lpg_at *a, int64_t n, int64_t group) {
  const int64_t block = (n * a->k + group * a->group) / a->scales.group;
  if (!a->map) return lpg_load32(a->scales.data + block * 4);
  const float entry = lpg_bits_f32(lpg_load32(a->map + lpg_load8(a->scales.data + block) * 4));
  const float product = entry * lpg_bits_f32(lpg_load32(a->nested + block / a->nested_group * 4));
  return lpg_f32_bits(product + a->nested_offset);
}

LPG_BITS_FN uint32_t lpg_at_number(const lpg_at *a, lpg_section_id id, int64_t n, int64_t group) {
  if (id == LPG_SECTION_ZEROS) return lpg_at_zero(a, n, group);
  return a->scales_are == LPG_SCALES_BLOCKS ? lpg_block_scale(a, n, group) : lpg_array_number(&a->scales, n, group);
}

/* ---- GGUF ---- */

/* Columns and bytes of a block, and columns of a group. */
#define LPG_COLUMNS(number, name, columns, bytes) type == (number) ? (columns):
#define LPG_BYTES(number, name, columns, bytes) type == (number) ? (bytes):
/* clang-format off */
LPG_FN int lpg_ggml_block(int type) { return LPG_GGML_TYPES(LPG_COLUMNS) 256; }
LPG_FN int lpg_ggml_bytes(int type) { return LPG_GGML_TYPES(LPG_BYTES) 1; }
/* clang-format on */
#undef LPG_COLUMNS
#undef LPG_BYTES

LPG_FN int lpg_ggml_group(int type) {
  switch (type) {
    case 10:
    case 11:
    case 14:
    case 17:
    case 22:
    case 29:
    case 40: return 16;
    case 34:
    case 35: return 256;
    case 41: return 128;
    case 42: return 64;
    default: return 32;
  }
}

/* 1 if 16 bytes of nibbles can be loaded at once. */
LPG_FN int lpg_is_gguf_wide(const lpg_at *a, int type) {
  return lpg_ggml_bytes(type) % 16 == 0 && (uintptr_t)a->codes % 16 == 0;
}

LPG_BITS_FN lpg_codes16 lpg_gguf_codes(const lpg_at *a, int type, int is_wide, int64_t n, int64_t k) {
  const int align = is_wide ? 16 : 4;
  const uint32_t block = (uint32_t)lpg_ggml_block(type), column = (uint32_t)k;
  const int j = (int)(column % block), second = j / 16;
  const uint8_t *b = a->codes + n * a->line + (int64_t)(column / block) * lpg_ggml_bytes(type);
  switch (type) {
    case 2:
    case 20: return lpg_half_nibbles(b + 2, 2, second);                                         /* Q4_0, IQ4_NL */
    case 3: return lpg_half_nibbles(b + 4, 4, second);                                          /* Q4_1 */
    case 6: return lpg_half_fives(b + 6, 2, lpg_load32_by_16(b + 2), second);                   /* Q5_0 */
    case 7: return lpg_half_fives(b + 8, 4, lpg_load32(b + 4), second);                         /* Q5_1 */
    case 8: return lpg_load16_bytes(b + 2 + j, 2);                                              /* Q8_0 */
    case 10: return lpg_plane2(b + 16, 4, j);                                                   /* Q2_K */
    case 11: return lpg_merge16(lpg_plane2(b + 32, 2, j), lpg_plane1(b, 2, j), 2);              /* Q3_K */
    case 12: return lpg_plane4(b + 16, align, j);                                               /* Q4_K */
    case 13: return lpg_merge16(lpg_plane4(b + 48, align, j), lpg_plane1(b + 16, align, j), 4); /* Q5_K */
    case 14: return lpg_q6_k_codes(b, j);
    case 16: return lpg_iq2_xxs_codes(a, b, j);
    case 17: return lpg_iq2_xs_codes(a, b, j);
    case 18: return lpg_iq3_xxs_codes(a, b, j);
    case 19: return lpg_iq1_s_codes(a, b, j);
    case 21: return lpg_iq3_s_codes(a, b, j);
    case 22: return lpg_iq2_s_codes(a, b, j);
    case 23: return lpg_half_nibbles(b + 8 + j / 32 * 16, 4, second % 2); /* IQ4_XS */
    case 29: return lpg_iq1_m_codes(a, b, j);
    case 34: return lpg_tq1_0_codes(b, j);
    case 35: return lpg_plane2(b, 2, j);                /* TQ2_0 */
    case 39: return lpg_half_nibbles(b + 1, 1, second); /* MXFP4 */
    case 40: return lpg_nvfp4_codes(b, j);
    case 41: return lpg_q1_0_codes(b, j);
    default: return lpg_q2_0_codes(b, j);
  }
}

LPG_BITS_FN uint32_t lpg_gguf_code(const lpg_at *a, int type, int64_t n, int64_t k) {
  const lpg_codes16 c = lpg_gguf_codes(a, type, 0, n, k / 16 * 16);
  return lpg_code_of(&c, (int)(k % 16));
}

/* The f16 that multiplies a whole block. */
LPG_BITS_FN uint32_t lpg_gguf_super(int type, const uint8_t *b) {
  switch (type) {
    case 10: return lpg_load16(b + 80);
    case 11: return lpg_load16(b + 108);
    case 14: return lpg_load16(b + 208);
    case 29: return lpg_iq1_m_super(b);
    default: return lpg_load16(b);
  }
}

LPG_BITS_FN uint32_t lpg_gguf_scale(int type, const uint8_t *b, int i) {
  switch (type) {
    case 10: return lpg_load8(b + i) & 15u;
    case 11: return lpg_q3_k_scale(b, i);
    case 12:
    case 13: return lpg_k_six(b + 4, 0, i);
    case 14: return lpg_load8(b + 192 + i);
    case 16: return 2u * (lpg_load8(b + 2 + 8 * i + 7) >> 4) + 1u;
    case 17: return lpg_nibble_scale(b + 66, i);
    case 18: return 2u * (lpg_load8(b + 66 + 4 * i + 3) >> 4) + 1u;
    case 19: return 2u * (lpg_load8(b + 34 + 2 * i + 1) >> 4 & 7u) + 1u;
    case 21: return lpg_nibble_scale(b + 106, i);
    case 22: return lpg_nibble_scale(b + 74, i);
    case 23: return lpg_iq4_xs_scale(b, i);
    case 29: return lpg_iq1_m_scale(b, i);
    case 34: return lpg_load16(b + 52);
    case 35: return lpg_load16(b + 64);
    case 39: return lpg_load8(b);
    case 40: return lpg_nvfp4_scale(b, i);
    default: return lpg_load16(b); /* d of the types of one level */
  }
}

/* K-quants subtract their minima: the sign of dmin is turned. */
LPG_BITS_FN uint32_t lpg_gguf_zero(int type, const uint8_t *b, int i) {
  switch (type) {
    case 10: return lpg_load8(b + i) >> 4;
    case 12:
    case 13: return lpg_k_six(b + 4, 1, i);
    default: return lpg_load16(b + 2); /* m of Q4_1 and Q5_1 */
  }
}

LPG_BITS_FN uint32_t lpg_gguf_number(const lpg_at *a, int type, lpg_section_id id, int64_t n, int64_t group) {
  const int is_super = id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS;
  const uint32_t groups = is_super ? 1u : (uint32_t)(lpg_ggml_block(type) / lpg_ggml_group(type));
  const int i = (int)((uint32_t)group % groups);
  const uint8_t *b = a->codes + n * a->line + (int64_t)((uint32_t)group / groups) * lpg_ggml_bytes(type);
  switch (id) {
    case LPG_SECTION_SCALES: return lpg_gguf_scale(type, b, i);
    case LPG_SECTION_ZEROS: return lpg_gguf_zero(type, b, i);
    case LPG_SECTION_SUPER_SCALES: return lpg_gguf_super(type, b);
    default: return lpg_load16(b + (type == 10 ? 82 : 2)) ^ 0x8000u;
  }
}

#endif
