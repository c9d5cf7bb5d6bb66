/* GGUF's ternary types, blocks of 256 columns. */
#include "gguf.h"
#include "gguf_bits.h"

enum { TQ1_0 = 54, TQ2_0 = 66 };

static void tq2_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += TQ2_0, codes += 256) lpg_planes2(blocks, codes);
}

static int tq2_0_write(const lpg_block *from, uint8_t *block) {
  lpg_join_planes2(from->codes, block);
  return 1;
}

/* A byte is 256 / 243 of a number of five trits, rounded up: multiplied by 3^place modulo 256 it begins with the trit
 * of that place, which times 3 makes it the upper byte. */
static inline void trits(const uint8_t *restrict from, int count, int places, uint8_t *restrict to) {
  unsigned power = 1;
  for (int place = 0; place < places; place++, power *= 3) {
    for (int j = 0; j < count; j++) to[place * count + j] = (uint8_t)((from[j] * power & 255u) * 3u >> 8);
  }
}

static void tq1_0_codes(const uint8_t *blocks, int64_t count, uint8_t *codes) {
  for (; count > 0; count--, blocks += TQ1_0, codes += 256) {
    trits(blocks, 32, 5, codes);
    trits(blocks + 32, 16, 5, codes + 160);
    trits(blocks + 48, 4, 4, codes + 240);
  }
}

const lpg_block_ops lpgemm_i_tq1_0 = {tq1_0_codes, NULL, NULL};
const lpg_block_ops lpgemm_i_tq2_0 = {tq2_0_codes, NULL, tq2_0_write};
