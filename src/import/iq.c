/* GGUF's IQ1, IQ2 and IQ3: indices into grids become codes of codebooks (of odd numbers in IQ3_S). The digits of the
 * grids are codes already; signs are a bit above them. docs/formats.md has the index rules. */
#include "iq.h"

#include "gguf.h"
#include "gguf_bits.h"

enum { IQ1_S = 50, IQ1_M = 56, IQ2_XXS = 66, IQ2_XS = 74, IQ2_S = 82, IQ3_XXS = 98, IQ3_S = 110 };

/* Eight signs of which seven are stored. */
static uint32_t with_parity(uint32_t seven) {
  uint32_t x = seven ^ seven >> 4;
  x ^= x >> 2;
  return seven | ((x ^ x >> 1) & 1u) << 7;
}

/* Eight codes of 3 bits: c3 has the negatives of its first four entries in the last four. */
static void put_signed(uint8_t *codes, uint32_t vector, uint32_t signs) {
  lpg_put64(codes, lpg_spread(vector, 2) | lpg_spread1(signs) << 2);
}

/* Eight magnitudes of 3 bits from two vectors of four. */
static uint64_t two_fours(uint32_t low, uint32_t high) { return lpg_spread(low | high << 12, 3); }

/* The odd scales 2 s + 1 of groups of 16 or 32, s in nibbles, the low one first. */
static void nibble_scales(const uint8_t *from, int count, uint8_t *numbers) {
  for (int i = 0; i < count; i++) numbers[i] = (uint8_t)(2 * (from[i / 2] >> 4 * (i % 2) & 15) + 1);
}

/* ---- IQ2 ---- */

static void iq2_xxs_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ2_XXS) {
    for (int i = 0; i < 8; i++) {
      const uint8_t *group = blocks + 2 + 8 * i;
      uint32_t signs = lpg_get32(group + 4);
      for (int l = 0; l < 4; l++, codes += 8, signs >>= 7) {
        put_signed(codes, lpgemm_i_grid_iq2_xxs[group[l]], with_parity(signs & 127));
      }
    }
  }
}

static void iq2_xxs_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ2_XXS, numbers += 8) {
    for (int i = 0; i < 8; i++) numbers[i] = (uint8_t)(2 * (blocks[2 + 8 * i + 7] >> 4) + 1);
  }
}

static void iq2_xs_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ2_XS) {
    for (int v = 0; v < 32; v++, codes += 8) {
      uint32_t q = lpg_get16(blocks + 2 + 2 * v);
      put_signed(codes, lpgemm_i_grid_iq2_xs[q & 511], with_parity(q >> 9));
    }
  }
}

static void iq2_xs_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ2_XS, numbers += 16) nibble_scales(blocks + 66, 16, numbers);
}

static void iq2_s_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ2_S) {
    for (int v = 0; v < 32; v++, codes += 8) {
      uint32_t index = blocks[2 + v] | (blocks[66 + v / 4] >> 2 * (v % 4) & 3u) << 8;
      put_signed(codes, lpgemm_i_grid_iq2_s[index], blocks[34 + v]);
    }
  }
}

static void iq2_s_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ2_S, numbers += 16) nibble_scales(blocks + 74, 16, numbers);
}

/* ---- IQ3 ---- */

static void iq3_xxs_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ3_XXS) {
    const uint8_t *index = blocks + 2;
    for (int i = 0; i < 8; i++) {
      uint32_t signs = lpg_get32(blocks + 66 + 4 * i);
      for (int l = 0; l < 4; l++, codes += 8, index += 2, signs >>= 7) {
        uint64_t magnitudes = two_fours(lpgemm_i_grid_iq3_xxs[index[0]], lpgemm_i_grid_iq3_xxs[index[1]]);
        lpg_put64(codes, magnitudes | lpg_spread1(with_parity(signs & 127)) << 3);
      }
    }
  }
}

static void iq3_xxs_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ3_XXS, numbers += 8) {
    for (int i = 0; i < 8; i++) numbers[i] = (uint8_t)(2 * (blocks[66 + 4 * i + 3] >> 4) + 1);
  }
}

/* The odd number 2 m + 1 is code 8 + m of b4, and its negative that code with all bits inverted. */
static void iq3_s_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ3_S) {
    for (int i = 0; i < 32; i++, codes += 8) {
      const uint8_t *index = blocks + 2 + 2 * i;
      uint32_t high = (uint32_t)blocks[66 + i / 4] >> 2 * (i % 4);
      uint64_t magnitudes = two_fours(lpgemm_i_grid_iq3_s[index[0] | (high & 1) << 8],
                                      lpgemm_i_grid_iq3_s[index[1] | (high >> 1 & 1) << 8]);
      lpg_put64(codes, (magnitudes | UINT64_C(0x0808080808080808)) ^ lpg_spread1(blocks[74 + i]) * 15);
    }
  }
}

static void iq3_s_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ3_S, numbers += 8) nibble_scales(blocks + 106, 8, numbers);
}

/* ---- IQ1: trits 0, 1, 2; a vector that is moved down takes the codebook's second half ---- */

static void iq1_s_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ1_S) {
    for (int v = 0; v < 32; v++, codes += 8) {
      uint32_t h = lpg_get16(blocks + 34 + 2 * (v / 4));
      uint64_t trits = lpg_spread(lpgemm_i_grid_iq1[blocks[2 + v] | (h >> 3 * (v % 4) & 7) << 8], 2);
      lpg_put64(codes, trits | (h >> 15) * UINT64_C(0x0404040404040404));
    }
  }
}

static void iq1_s_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  (void)id;
  for (; count > 0; count--, blocks += IQ1_S, numbers += 8) {
    for (int i = 0; i < 8; i++) numbers[i] = (uint8_t)(2 * (blocks[34 + 2 * i + 1] >> 4 & 7) + 1);
  }
}

static void iq1_m_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += IQ1_M) {
    for (int v = 0; v < 32; v++, codes += 8) {
      uint32_t h = (uint32_t)blocks[32 + v / 2] >> 4 * (v % 2);
      uint64_t trits = lpg_spread(lpgemm_i_grid_iq1[blocks[v] | (h & 7) << 8], 2);
      lpg_put64(codes, trits | (h >> 3 & 1) * UINT64_C(0x0404040404040404));
    }
  }
}

/* IQ1_M has its f16 in pieces, too. */
static void iq1_m_numbers(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers) {
  for (; count > 0; count--, blocks += IQ1_M) {
    uint64_t a = lpg_get64(blocks + 48);
    if (id == LPG_SECTION_SUPER_SCALES) {
      lpg_put16(numbers, (uint32_t)((a >> 12 & 0xf) | (a >> 24 & 0xf0) | (a >> 36 & 0xf00) | (a >> 48 & 0xf000)));
      numbers += 2;
      continue;
    }
    for (int i = 0; i < 16; i++) *numbers++ = (uint8_t)(2 * (a >> (16 * (i / 4) + 3 * (i % 4)) & 7) + 1);
  }
}

const lpg_block_ops lpgemm_i_iq1_s = {iq1_s_codes, iq1_s_numbers, NULL};
const lpg_block_ops lpgemm_i_iq1_m = {iq1_m_codes, iq1_m_numbers, NULL};
const lpg_block_ops lpgemm_i_iq2_xxs = {iq2_xxs_codes, iq2_xxs_numbers, NULL};
const lpg_block_ops lpgemm_i_iq2_xs = {iq2_xs_codes, iq2_xs_numbers, NULL};
const lpg_block_ops lpgemm_i_iq2_s = {iq2_s_codes, iq2_s_numbers, NULL};
const lpg_block_ops lpgemm_i_iq3_xxs = {iq3_xxs_codes, iq3_xxs_numbers, NULL};
const lpg_block_ops lpgemm_i_iq3_s = {iq3_s_codes, iq3_s_numbers, NULL};
