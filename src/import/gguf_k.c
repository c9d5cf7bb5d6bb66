/* GGUF's types with blocks of 256 columns and scales on two levels, but for those with grids (iq.c). */
#include "gguf.h"
#include "gguf_bits.h"

enum { Q2_K = 84, Q3_K = 110, Q4_K = 144, Q5_K = 176, Q6_K = 210, IQ4_XS = 136 };

/* Four fields of a word, one a byte. */
#define EACH(byte) ((byte)*0x01010101u)

/* Six bits x of every byte become x - 32 as i8, and back. */
static uint32_t minus_32(uint32_t word) {
  uint32_t x = word ^ EACH(0x20u), sign = x & EACH(0x20u);
  return x | sign << 1 | sign << 2;
}

static int from_i8(const uint8_t *numbers, int count, uint8_t *six) {
  int fits = 1;
  for (int i = 0; i < count; i++) {
    unsigned x = (numbers[i] + 32u) & 255u;
    fits &= x < 64;
    six[i] = (uint8_t)x;
  }
  return fits;
}

/* ---- Q2_K ---- */

static void q2_k_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q2_K, codes += 256) lpg_planes2(blocks + 16, codes);
}

static void q2_k_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  int shift = id == LPG_SECTION_ZEROS ? 4 : 0;
  for (; count > 0; count--, blocks += Q2_K, numbers += 16) {
    for (int i = 0; i < 16; i++) numbers[i] = (uint8_t)(blocks[i] >> shift & 15);
  }
}

static int q2_k_write(const lpg_block *from, uint8_t *block) {
  const uint8_t *scales = from->numbers[LPG_SECTION_SCALES], *minima = from->numbers[LPG_SECTION_ZEROS];
  for (int i = 0; i < 16; i++) block[i] = (uint8_t)(scales[i] | minima[i] << 4);
  lpg_join_planes2(from->codes, block + 16);
  return 1;
}

/* ---- Q3_K ---- */

static void q3_k_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q3_K, codes += 256) {
    const uint8_t *restrict high = blocks;
    uint8_t *restrict to = codes;
    lpg_planes2(blocks + 32, codes);
    for (int plane = 0; plane < 8; plane++) {
      for (int j = 0; j < 32; j++) to[32 * plane + j] = (uint8_t)(to[32 * plane + j] | (high[j] >> plane & 1) << 2);
    }
  }
}

static void q3_k_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += Q3_K, numbers += 16) {
    uint32_t high = lpg_get32(blocks + 104);
    for (int i = 0; i < 4; i++) {
      uint32_t low = lpg_get32(blocks + 96 + 4 * (i % 2)) >> 4 * (i / 2) & EACH(15u);
      lpg_put32(numbers + 4 * i, minus_32(low | (high >> 2 * i & EACH(3u)) << 4));
    }
  }
}

static int q3_k_write(const lpg_block *from, uint8_t *block) {
  uint8_t six[16];
  if (!from_i8(from->numbers[LPG_SECTION_SCALES], 16, six)) return 0;
  for (int i = 0; i < 8; i++) block[96 + i] = (uint8_t)((six[i] & 15) | (six[8 + i] & 15) << 4);
  for (int i = 0; i < 4; i++) {
    block[104 + i] = (uint8_t)(six[i] >> 4 | six[4 + i] >> 4 << 2 | six[8 + i] >> 4 << 4 | six[12 + i] >> 4 << 6);
  }
  for (int j = 0; j < 32; j++) {
    unsigned high = 0;
    for (int plane = 0; plane < 8; plane++) high |= (from->codes[32 * plane + j] >> 2 & 1u) << plane;
    block[j] = (uint8_t)high;
  }
  lpg_join_planes2(from->codes, block + 32);
  return 1;
}

/* ---- Q4_K and Q5_K ---- */

static void sixes(const uint8_t *blocks, int64_t count, int bytes, lpg_section_id id, uint8_t *numbers) {
  int minima = id == LPG_SECTION_ZEROS;
  for (; count > 0; count--, blocks += bytes, numbers += 8) {
    uint32_t own = lpg_get32(blocks + (minima ? 8 : 4)), shared = lpg_get32(blocks + 12) >> (minima ? 4 : 0);
    lpg_put32(numbers, own & EACH(63u));
    lpg_put32(numbers + 4, (shared & EACH(15u)) | (own >> 2 & EACH(48u)));
  }
}

static void join_sixes(const lpg_block *from, uint8_t *block) {
  const uint8_t *scales = from->numbers[LPG_SECTION_SCALES], *minima = from->numbers[LPG_SECTION_ZEROS];
  for (int i = 0; i < 4; i++) {
    block[4 + i] = (uint8_t)(scales[i] | scales[4 + i] >> 4 << 6);
    block[8 + i] = (uint8_t)(minima[i] | minima[4 + i] >> 4 << 6);
    block[12 + i] = (uint8_t)((scales[4 + i] & 15) | (minima[4 + i] & 15) << 4);
  }
}

static void q4_k_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q4_K, codes += 256) {
    for (int i = 0; i < 4; i++) lpg_nibbles(blocks + 16 + 32 * i, 32, codes + 64 * i);
  }
}

static void q4_k_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  sixes(blocks, count, Q4_K, id, numbers);
}

static int q4_k_write(const lpg_block *from, uint8_t *block) {
  join_sixes(from, block);
  for (int i = 0; i < 4; i++) lpg_join_nibbles(from->codes + 64 * i, 32, block + 16 + 32 * i);
  return 1;
}

static void q5_k_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q5_K, codes += 256) {
    const uint8_t *restrict high = blocks + 16, *restrict low = blocks + 48;
    uint8_t *restrict to = codes;
    for (int i = 0; i < 4; i++, low += 32, to += 64) {
      for (int j = 0; j < 32; j++) to[j] = (uint8_t)((low[j] & 15) | (high[j] >> 2 * i & 1) << 4);
      for (int j = 0; j < 32; j++) to[32 + j] = (uint8_t)(low[j] >> 4 | (high[j] >> (2 * i + 1) & 1) << 4);
    }
  }
}

static void q5_k_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  sixes(blocks, count, Q5_K, id, numbers);
}

static int q5_k_write(const lpg_block *from, uint8_t *block) {
  join_sixes(from, block);
  for (int j = 0; j < 32; j++) {
    unsigned high = 0;
    for (int i = 0; i < 8; i++) high |= (from->codes[32 * i + j] >> 4 & 1u) << i;
    block[16 + j] = (uint8_t)high;
  }
  for (int i = 0; i < 4; i++) {
    const uint8_t *c = from->codes + 64 * i;
    for (int j = 0; j < 32; j++) block[48 + 32 * i + j] = (uint8_t)((c[j] & 15) | c[32 + j] << 4);
  }
  return 1;
}

/* ---- Q6_K ---- */

static void q6_k_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q6_K, codes += 256) {
    const uint8_t *restrict low = blocks, *restrict high = blocks + 128;
    uint8_t *restrict to = codes;
    for (int half = 0; half < 2; half++, low += 64, high += 32, to += 128) {
      for (int j = 0; j < 32; j++) to[j] = (uint8_t)((low[j] & 15) | (high[j] & 3) << 4);
      for (int j = 0; j < 32; j++) to[32 + j] = (uint8_t)((low[32 + j] & 15) | (high[j] & 12) << 2);
      for (int j = 0; j < 32; j++) to[64 + j] = (uint8_t)(low[j] >> 4 | (high[j] & 48));
      for (int j = 0; j < 32; j++) to[96 + j] = (uint8_t)(low[32 + j] >> 4 | (high[j] & 192) >> 2);
    }
  }
}

static void q6_k_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (int64_t i = 0; i < count; i++) memcpy(numbers + 16 * i, blocks + Q6_K * i + 192, 16);
}

static int q6_k_write(const lpg_block *from, uint8_t *block) {
  for (int half = 0; half < 2; half++) {
    const uint8_t *c = from->codes + 128 * half;
    for (int j = 0; j < 64; j++) block[64 * half + j] = (uint8_t)((c[j] & 15) | c[64 + j] << 4);
    for (int j = 0; j < 32; j++) {
      block[128 + 32 * half + j] =
          (uint8_t)(c[j] >> 4 | c[32 + j] >> 4 << 2 | c[64 + j] >> 4 << 4 | c[96 + j] >> 4 << 6);
    }
  }
  memcpy(block + 192, from->numbers[LPG_SECTION_SCALES], 16);
  return 1;
}

/* ---- IQ4_XS ---- */

static void iq4_xs_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ4_XS, codes += 256) {
    for (int i = 0; i < 8; i++) lpg_nibbles(blocks + 8 + 16 * i, 16, codes + 32 * i);
  }
}

static void iq4_xs_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ4_XS, numbers += 8) {
    uint32_t high = lpg_get16(blocks + 2);
    for (int i = 0; i < 8; i++) {
      uint32_t six = ((uint32_t)blocks[4 + i / 2] >> 4 * (i % 2) & 15u) | (high >> 2 * i & 3u) << 4;
      numbers[i] = (uint8_t)(six - 32);
    }
  }
}

static int iq4_xs_write(const lpg_block *from, uint8_t *block) {
  uint8_t six[8];
  if (!from_i8(from->numbers[LPG_SECTION_SCALES], 8, six)) return 0;
  uint32_t high = 0;
  for (int i = 0; i < 8; i++) high |= (uint32_t)six[i] >> 4 << 2 * i;
  lpg_put16(block + 2, high);
  for (int i = 0; i < 4; i++) block[4 + i] = (uint8_t)((six[2 * i] & 15) | six[2 * i + 1] << 4);
  for (int i = 0; i < 8; i++) lpg_join_nibbles(from->codes + 32 * i, 16, block + 8 + 16 * i);
  return 1;
}

const lpg_block_ops lpgemm_i_q2_k = {q2_k_codes, q2_k_numbers, q2_k_write};
const lpg_block_ops lpgemm_i_q3_k = {q3_k_codes, q3_k_numbers, q3_k_write};
const lpg_block_ops lpgemm_i_q4_k = {q4_k_codes, q4_k_numbers, q4_k_write};
const lpg_block_ops lpgemm_i_q5_k = {q5_k_codes, q5_k_numbers, q5_k_write};
const lpg_block_ops lpgemm_i_q6_k = {q6_k_codes, q6_k_numbers, q6_k_write};
const lpg_block_ops lpgemm_i_iq4_xs = {iq4_xs_codes, iq4_xs_numbers, iq4_xs_write};
