/* Every code of every type through the dequantisers that gemv calls, on the host: at every place of a unit
 * of packed words, with other codes around it, for fp16 and bf16 X, and for every zero of integers; e4m3, and
 * floats of 4 and 6 bits by bf16, through those of gemm as well. */
#include <math.h>

#include "../problem.h"
#include "../test.h"
#include "dequantisers.h"
#include "kernels/operand/limits.h"
#include "layouts/unit.h"

/* d = value of the stored code - zero; exact but for codebooks of 4 values and more, which are rounded to X's type. */
static void check_value(const lpg_packed *packed, lpgemm_dtype_t x_type, uint32_t code, double got) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  double want = lpg_is_integer_kind(d->type) /* whose stored form is offset binary */
                    ? (double)lpg_integer_step(d->type) * code + (double)lpg_integer_offset(d->type)
                    : (double)lpg_code_value(d->type, code, d->codebook);
  int is_codebook = LPGEMM_DTYPE_KIND(d->type) == LPGEMM_KIND_CODEBOOK;
  if (d->zero == LPGEMM_ZERO_CONSTANT) want -= (double)d->zero_constant;
  double allowed = 0;
  if (is_codebook) allowed = fabs(want) * (packed->bits == 1 ? 0x1p-22 : x_type == LPGEMM_F16 ? 0x1p-11 : 0x1p-8);
  CHECK(isnan(want) ? isnan(got) : got == want || fabs(got - want) <= allowed);
}

/* All codes at all places of a unit. */
static void check_codes(const lpg_packed *packed, lpgemm_dtype_t x_type) {
  int bits = packed->bits, pairs = lpg_unit_codes(bits) / 2;
  for (int pair = 0; pair < pairs; pair++) {
    for (uint32_t code = 0; code < 1u << bits; code++) {
      uint32_t unit[2 * LPG_MAX_UNIT_WORDS] = {0}, mine = code;
      for (int other = 0; other < pairs; other++) {
        uint32_t two = (uint32_t)test_random() & lpg_half_masks(bits);
        if (other == pair) {
          two = (two & 0xffff0000u) | code;
          mine = two;
        }
        lpg_unit_put_pair(bits, unit, 2, other, two);
      }
      const int fields = x_type == LPGEMM_BF16 && lpg_kind(packed->desc.type) == LPGEMM_KIND_FLOAT && bits % 2 == 0;
      for (int wide = 0; wide <= (packed->desc.type == LPGEMM_E4M3 || (fields && bits < 8)); wide++) {
        double value[2];
        decoded_pair(packed, x_type, wide, unit, pair, value);
        check_value(packed, x_type, mine & 0xffffu, value[0]);
        check_value(packed, x_type, mine >> 16, value[1]);
      }
    }
  }
}

static void check_type(lpgemm_dtype_t type, lpgemm_dtype_t x_type) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = type, .n = 16, .k = 256, .scale_type = LPGEMM_F16};
  int is_integer = LPGEMM_DTYPE_KIND(type) <= LPGEMM_KIND_BIPOLAR;
  int entries = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK ? 1 << lpgemm_dtype_bits(type) : 0;
  for (int i = 0; i < entries; i++) desc.codebook[i] = (float)((i * 7 % 16) - 6) * 0.37f;
  for (int zero = -1; zero <= (is_integer ? 3 << (int)lpgemm_dtype_bits(type) : -1); zero++) {
    desc.zero = zero < 0 ? LPGEMM_ZERO_NONE : LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = zero < 0 ? 0.0f : (float)zero * 0.5f;
    lpg_packed packed;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &packed), LPGEMM_SUCCESS);
    lpg_problem problem = {.weights = &packed, .m = 1, .x_type = x_type, .y_type = LPGEMM_F32};
    if (lpgemm_i_dequantisers_refuse(&problem)) return;
    check_codes(&packed, x_type);
  }
}

/* (code - center) times a scale of 2^10 and more, times 2^-24, rounded once: for every code at every place. */
static void check_scaled(int bits) {
  for (int center = 0; center <= 1 << bits; center = center ? 2 * center : 1) {
    for (uint32_t code = 0; code < 1u << bits; code++) {
      for (int pair = 0; pair < lpg_unit_codes(bits) / 2; pair++) {
        uint32_t unit[2 * LPG_MAX_UNIT_WORDS] = {0};
        const uint32_t other = (uint32_t)test_random() & ((1u << bits) - 1u);
        for (int i = 0; i < lpg_unit_codes(bits) / 2; i++) {
          const uint32_t drawn = (uint32_t)test_random() & lpg_half_masks(bits);
          lpg_unit_put_pair(bits, unit, 2, i, i == pair ? code | other << 16 : drawn);
        }
        const uint16_t scale = (uint16_t)(test_between(25 << 10, (31 << 10) - 1) | (test_between(0, 1) ? 0x8000 : 0));
        const double unscaled = (double)lpg_load(LPGEMM_F16, &scale, 0) * 0x1p-24;
        uint16_t value[2];
        scaled_pair(bits, center, scale, unit, pair, value);
        CHECK(lpg_load(LPGEMM_F16, value, 0) == lpg_f16_to_f32(lpg_f64_to_f16(unscaled * ((int)code - center))));
        CHECK(lpg_load(LPGEMM_F16, value, 1) == lpg_f16_to_f32(lpg_f64_to_f16(unscaled * ((int)other - center))));
      }
    }
  }
}

void suite_dequantisers(void) {
  static const int scaled[] = {2, 3, 4, 8};
  for (int i = 0; i < 4; i++) {
    if (test_case("dequantisers/scaled/%d", scaled[i])) check_scaled(scaled[i]);
  }
  for (int t = 0; t < PROBLEM_TYPES; t++) {
    lpgemm_dtype_t type = problem_types()[t];
    if (test_case("dequantisers/%s/f16", lpgemm_dtype_name(type))) check_type(type, LPGEMM_F16);
    if (test_case("dequantisers/%s/bf16", lpgemm_dtype_name(type))) check_type(type, LPGEMM_BF16);
  }
}
