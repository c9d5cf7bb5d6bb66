#include "codebook.h"

#include <math.h>

/* Divides a codebook by a factor and rounds it to X's type. Returns the largest relative error of a value. */
static double divide(const float *value, int entries, int bf16, float factor, uint16_t *rounded) {
  double worst = 0.0;
  for (int i = 0; i < entries; i++) {
    const double exact = (double)value[i] / (double)factor;
    rounded[i] = bf16 ? lpg_f64_to_bf16(exact) : lpg_f64_to_f16(exact);
    const double held = (double)(bf16 ? lpg_bf16_to_f32(rounded[i]) : lpg_f16_to_f32(rounded[i]));
    if (exact != 0.0) worst = fmax(worst, fabs(held - exact) / fabs(exact));
  }
  return worst;
}

/* Chooses the factor, which goes on the sums. With fp16 the largest value becomes one in [2^14, 2^15), so that the
 * others keep all their bits; bf16 has room. gemm rounds these values and their products with scales, so a few factors
 * are tried and the one with the least error of rounding is taken. */
static lpg_rounded_codebook best(const float *value, int entries, int bf16) {
  lpg_rounded_codebook found = {.factor = 1.0f}, tried = found;
  float most = 0.0f;
  for (int i = 0; i < entries; i++) most = fmaxf(most, fabsf(value[i]));
  int exponent = 0;
  const float mantissa = most > 0.0f ? frexpf(most, &exponent) : 1.0f, base = ldexpf(1.0f, exponent - (bf16 ? 0 : 15));
  const int factors = 128 / entries;
  double least = INFINITY;
  for (int i = 0; i < factors && least > 0.0; i++) {
    tried.factor = base * (1.0f - (1.0f - mantissa) * (float)i / (float)factors);
    const double worst = divide(value, entries, bf16, tried.factor, tried.rounded);
    if (worst >= least) continue;
    least = worst;
    found = tried;
  }
  return found;
}

lpg_rounded_codebook lpgemm_i_round_codebook(const float *value, int bits, int bf16) {
  static _Thread_local struct {
    float value[LPG_CODEBOOK_ENTRIES];
    int bits, bf16; /* bits: 0 before the first */
    lpg_rounded_codebook found;
  } last;
  const size_t bytes = sizeof *value << bits;
  const uint8_t *from = (const uint8_t *)value, *to = (const uint8_t *)last.value;
  if (last.bits != bits || last.bf16 != bf16 || memcmp(from, to, bytes) != 0) { /* bit by bit: NaN is itself */
    last.found = best(value, 1 << bits, bf16);
    last.bits = bits;
    last.bf16 = bf16;
    memcpy(last.value, value, bytes);
  }
  return last.found;
}
