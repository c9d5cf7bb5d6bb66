/* GGUF's types with blocks of 32, 64 and 128 columns. */
#include "gguf.h"
#include "gguf_bits.h"

enum { Q4_0 = 18, Q4_1 = 20, Q5_0 = 22, Q5_1 = 24, Q8_0 = 34, Q1_0 = 18, Q2_0 = 18, MXFP4 = 17, NVFP4 = 36 };

/* ---- nibbles ---- */

static void q4_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q4_0, codes += 32) lpg_nibbles(blocks + 2, 16, codes);
}

static int q4_0_write(const lpg_block *from, uint8_t *block) {
  lpg_join_nibbles(from->codes, 16, block + 2);
  return 1;
}

static void q4_1_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q4_1, codes += 32) lpg_nibbles(blocks + 4, 16, codes);
}

static int q4_1_write(const lpg_block *from, uint8_t *block) {
  lpg_join_nibbles(from->codes, 16, block + 4);
  return 1;
}

static void mxfp4_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += MXFP4, codes += 32) lpg_nibbles(blocks + 1, 16, codes);
}

static void mxfp4_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (int64_t i = 0; i < count; i++) numbers[i] = blocks[i * MXFP4];
}

static int mxfp4_write(const lpg_block *from, uint8_t *block) {
  block[0] = from->numbers[LPG_SECTION_SCALES][0];
  lpg_join_nibbles(from->codes, 16, block + 1);
  return 1;
}

static void nvfp4_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += NVFP4, codes += 64) {
    for (int i = 0; i < 4; i++) lpg_nibbles(blocks + 4 + 8 * i, 8, codes + 16 * i);
  }
}

/* ggml reads 0x7f, e4m3's NaN, as 0. It becomes e4m3's other zero, so that it can be told apart on the way back. */
static void nvfp4_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += NVFP4, numbers += 4) {
    for (int i = 0; i < 4; i++) {
      uint32_t scale = blocks[i] & 0x7fu;
      numbers[i] = (uint8_t)(scale == 0x7f ? 0x80 : scale);
    }
  }
}

static int nvfp4_write(const lpg_block *from, uint8_t *block) {
  for (int i = 0; i < 4; i++) {
    uint8_t scale = from->numbers[LPG_SECTION_SCALES][i];
    if (scale == 0x7f || scale > 0x80) return 0;
    block[i] = scale == 0x80 ? 0x7f : scale;
    lpg_join_nibbles(from->codes + 16 * i, 8, block + 4 + 8 * i);
  }
  return 1;
}

/* ---- nibbles and fifth bits ---- */

static void fifth_bits(const uint8_t *restrict from, uint8_t *restrict codes) {
  for (int i = 0; i < 4; i++) lpg_put64(codes + 8 * i, lpg_get64(codes + 8 * i) | lpg_spread1(from[i]) << 4);
}

static void join_five(const uint8_t *codes, uint8_t *fifth, uint8_t *nibbles) {
  for (int i = 0; i < 4; i++) {
    fifth[i] = (uint8_t)lpg_gather1(lpg_get64(codes + 8 * i) >> 4 & UINT64_C(0x0101010101010101));
  }
  for (int j = 0; j < 16; j++) nibbles[j] = (uint8_t)((codes[j] & 15) | codes[16 + j] << 4);
}

static void q5_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q5_0, codes += 32) {
    lpg_nibbles(blocks + 6, 16, codes);
    fifth_bits(blocks + 2, codes);
  }
}

static int q5_0_write(const lpg_block *from, uint8_t *block) {
  join_five(from->codes, block + 2, block + 6);
  return 1;
}

static void q5_1_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q5_1, codes += 32) {
    lpg_nibbles(blocks + 8, 16, codes);
    fifth_bits(blocks + 4, codes);
  }
}

static int q5_1_write(const lpg_block *from, uint8_t *block) {
  join_five(from->codes, block + 4, block + 8);
  return 1;
}

/* ---- the others, in the order of the columns ---- */

static void q8_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q8_0, codes += 32) memcpy(codes, blocks + 2, 32);
}

static int q8_0_write(const lpg_block *from, uint8_t *block) {
  memcpy(block + 2, from->codes, 32);
  return 1;
}

static void q1_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q1_0, codes += 128) {
    for (int i = 0; i < 16; i++) lpg_put64(codes + 8 * i, lpg_spread1(blocks[2 + i]));
  }
}

static int q1_0_write(const lpg_block *from, uint8_t *block) {
  for (int i = 0; i < 16; i++) block[2 + i] = (uint8_t)lpg_gather1(lpg_get64(from->codes + 8 * i));
  return 1;
}

static void q2_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += Q2_0, codes += 64) {
    for (int i = 0; i < 8; i++) lpg_put64(codes + 8 * i, lpg_spread(lpg_get16(blocks + 2 + 2 * i), 2));
  }
}

static int q2_0_write(const lpg_block *from, uint8_t *block) {
  for (int i = 0; i < 16; i++) {
    const uint8_t *c = from->codes + 4 * i;
    block[2 + i] = (uint8_t)(c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6);
  }
  return 1;
}

const lpg_block_ops lpgemm_i_q4_0 = {q4_0_codes, NULL, q4_0_write};
const lpg_block_ops lpgemm_i_q4_1 = {q4_1_codes, NULL, q4_1_write};
const lpg_block_ops lpgemm_i_q5_0 = {q5_0_codes, NULL, q5_0_write};
const lpg_block_ops lpgemm_i_q5_1 = {q5_1_codes, NULL, q5_1_write};
const lpg_block_ops lpgemm_i_q8_0 = {q8_0_codes, NULL, q8_0_write};
const lpg_block_ops lpgemm_i_q1_0 = {q1_0_codes, NULL, q1_0_write};
const lpg_block_ops lpgemm_i_q2_0 = {q2_0_codes, NULL, q2_0_write};
const lpg_block_ops lpgemm_i_mxfp4 = {mxfp4_codes, mxfp4_numbers, mxfp4_write};
const lpg_block_ops lpgemm_i_nvfp4 = {nvfp4_codes, nvfp4_numbers, nvfp4_write};
