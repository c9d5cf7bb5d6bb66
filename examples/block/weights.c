/* Weights as a checkpoint holds them: one code a byte and one fp16 scale for 128 weights of a row, here at random. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"

static uint64_t next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void random_numbers(float *out, int64_t count, float least, float most, uint64_t seed) {
  for (int64_t i = 0; i < count; i++) out[i] = least + (most - least) * (float)(next(&seed) >> 40) * 0x1p-24f;
}

/* fp16 numbers from a power of two to nearly twice as much: the exponent is that of `about`, the mantissa any. */
static void random_scales(uint16_t *scales, int64_t count, double about, uint64_t seed) {
  uint64_t exponent = (uint64_t)(15 + ilogb(about));
  for (int64_t i = 0; i < count; i++) scales[i] = (uint16_t)(exponent << 10 | next(&seed) >> 54);
}

void random_layer(lpgemm_handle_t handle, linear *layer, int64_t n, int64_t k, int bits, uint64_t seed) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = n, .k = k};
  desc.type = LPGEMM_UINT((lpgemm_dtype_t)bits);
  desc.group_k = GROUP;
  desc.scale_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = (float)(1 << (bits - 1)); /* GPTQ's 8 and 2 */

  lpgemm_weight_source_t source = {.size = sizeof source};
  source.codes_bytes = (size_t)(n * k);
  source.scales_bytes = (size_t)(n * (k / GROUP)) * sizeof(uint16_t);
  uint8_t *codes = get_memory(source.codes_bytes);
  uint16_t *scales = get_memory(source.scales_bytes);
  for (int64_t i = 0; i < n * k; i += 8) {
    uint64_t eight = next(&seed) & 0x0101010101010101u * ((1u << bits) - 1);
    memcpy(codes + i, &eight, sizeof eight);
  }
  /* Codes spread like sqrt((4^bits - 1) / 12); outputs shall be about as large as inputs. */
  random_scales(scales, n * (k / GROUP), sqrt(12.0 / ((double)(1 << 2 * bits) - 1.0) / (double)k), seed);
  source.codes = codes;
  source.scales = scales;

  *layer = (linear){.n = n, .k = k};
  TRY(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &layer->weights)); /* copies: the source may go */
  free(codes);
  free(scales);
}
