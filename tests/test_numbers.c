/* Number formats: every code of every type, rounding, names, codebooks. The expected values come from ldexp formulas
 * (sample.c) and from exact arithmetic (ref/exact.c). */
#include "layouts/number.h"

#include <math.h>

#include "layouts/packed.h"
#include "sample.h"
#include "test.h"

/* Equal, or both NaN; zeros of either sign are equal. */
static int same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* ---- values ---- */

static void code_values(lpgemm_dtype_t type) {
  if (!test_case("numbers/codes/%s", lpgemm_dtype_name(type))) return;
  float codebook[16];
  for (int i = 0; i < 16; i++) codebook[i] = (float)test_uniform(-2.0, 2.0);
  uint8_t all_codes[256];
  for (int i = 0; i < 256; i++) all_codes[i] = (uint8_t)i;
  int bits = lpgemm_dtype_bits(type);
  CHECK(bits >= 1 && bits <= 8);
  CHECK_INT(lpg_bits(type), bits);
  CHECK_INT(lpg_bytes(type), 1);
  CHECK(lpg_is_weight_type(type));
  double most = 0.0;
  for (uint32_t code = 0; code < 1u << bits; code++) {
    float got = lpg_code_value(type, code, codebook);
    double want = sample_code_value(type, code, codebook);
    if (!same((double)got, want)) test_fail(__FILE__, __LINE__, "code %u is %g, not %g", code, (double)got, want);
    if (isfinite(want)) CHECK((double)(float)want == want); /* fp32 holds every value */
    if (isfinite(want) && fabs(want) > most) most = fabs(want);
    if (lpg_is_integer_kind(type)) {
      int stored = (int)(code ^ lpg_stored_flip(type));
      CHECK(stored >= 0 && stored < 1 << bits);
      CHECK_INT(lpg_integer_step(type) * stored + lpg_integer_offset(type), (int)want);
    } else {
      CHECK_INT(lpg_stored_flip(type), 0);
    }
    if (LPGEMM_DTYPE_KIND(type) != LPGEMM_KIND_CODEBOOK) {
      CHECK(same((double)lpg_load(type, all_codes, code), want));
    }
  }
  CHECK(lpgemm_i_largest_value(type, codebook) == most);
}

/* Whether one of the type's own values is that one. */
static int is_one_of(lpgemm_dtype_t type, double value) {
  for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(type); code++) {
    if (same(sample_code_value(type, code, NULL), value)) return 1;
  }
  return 0;
}

/* What a description says of its values, against a look at each of them. */
static void values_of(lpgemm_dtype_t type) {
  if (!test_case("numbers/values/%s", lpgemm_dtype_name(type))) return;
  static const float zeros[] = {0.0f,  1.0f, 8.0f,    16.0f,   17.0f,    128.0f,
                                -3.0f, 2.5f, 1900.0f, 5000.0f, 0x1p-11f, 0x1p-30f};
  lpgemm_weight_desc_t d = {.size = sizeof d, .type = type};
  for (int i = 0; i < 16; i++) d.codebook[i] = (float)test_uniform(-2.0, 2.0);
  for (int z = 0; z < (int)(sizeof zeros / sizeof zeros[0]); z++) {
    lpg_values want = {0.0, INFINITY, 1, 1, 1};
    d.zero = zeros[z] == 0.0f ? LPGEMM_ZERO_NONE : LPGEMM_ZERO_CONSTANT;
    d.zero_constant = zeros[z];
    for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(type); code++) {
      const double value = sample_code_value(type, code, d.codebook) - (double)zeros[z], magnitude = fabs(value);
      if (isfinite(value)) want.in_f16 &= (double)lpg_f16_to_f32(lpg_f64_to_f16(value)) == value;
      want.in_i8 &= is_one_of(LPGEMM_I8, value);
      want.in_e4m3 &= is_one_of(LPGEMM_E4M3, value);
      if (!isfinite(value) || value == 0.0) continue;
      want.most = fmax(want.most, magnitude);
      want.least = fmin(want.least, magnitude);
    }
    const lpg_values got = lpgemm_i_values_of(&d);
    CHECK(got.most == want.most && got.least == (want.least == INFINITY ? 0.0 : want.least));
    CHECK_INT(got.in_f16, want.in_f16);
    CHECK_INT(got.in_i8, want.in_i8);
    CHECK_INT(got.in_e4m3, want.in_e4m3);
  }
}

static void code_types(void) {
  if (!test_case("numbers/types")) return;
  int floats = 0;
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    floats += LPGEMM_DTYPE_KIND(sample_type(i)) == LPGEMM_KIND_FLOAT;
    for (int j = 0; j < i; j++) CHECK(sample_type(i) != sample_type(j));
  }
  CHECK_INT(floats, 27);
}

static void special_codes(void) {
  if (!test_case("numbers/special")) return;
  CHECK(isnan(lpg_code_value(LPGEMM_E4M3, 0x7f, NULL)) && isnan(lpg_code_value(LPGEMM_E4M3, 0xff, NULL)));
  CHECK(lpg_code_value(LPGEMM_E4M3, 0x7e, NULL) == 448.0f);
  CHECK(lpg_code_value(LPGEMM_E5M2, 0x7c, NULL) == INFINITY);
  CHECK(lpg_code_value(LPGEMM_E5M2, 0xfc, NULL) == -INFINITY);
  for (uint32_t m = 1; m <= 3; m++) {
    CHECK(isnan(lpg_code_value(LPGEMM_E5M2, 0x7c + m, NULL)) && isnan(lpg_code_value(LPGEMM_E5M2, 0xfc + m, NULL)));
  }
  CHECK(lpg_code_value(LPGEMM_E5M2, 0x7b, NULL) == 57344.0f);
  CHECK(lpg_code_value(LPGEMM_FLOAT(2, 1), 7, NULL) == 6.0f); /* mxfp4 */
  CHECK(lpg_code_value(LPGEMM_FLOAT(5, 0), 31, NULL) == 65536.0f);
  CHECK(lpg_code_value(LPGEMM_FLOAT(7, 0), 127, NULL) == 18446744073709551616.0f);
  for (uint32_t code = 0; code < 256; code++) {
    double want = code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
    CHECK(same((double)lpg_e8m0_to_f32((uint8_t)code), want));
    CHECK(same((double)lpg_code_value(LPGEMM_E8M0, code, NULL), want));
  }
  CHECK(lpg_e8m0_to_f32(0) == ldexpf(1.0f, -127)); /* a subnormal of fp32 */
  CHECK(lpg_exp2i(-126) == ldexpf(1.0f, -126) && lpg_exp2i(127) == ldexpf(1.0f, 127));
}

/* ---- 16 bits ---- */

static void sixteen_bits(lpgemm_dtype_t type) {
  if (!test_case("numbers/all/%s", lpgemm_dtype_name(type))) return;
  int half = type == LPGEMM_F16;
  for (uint32_t code = 0; code < 65536; code++) {
    uint16_t h = (uint16_t)code;
    float value = half ? lpg_f16_to_f32(h) : lpg_bf16_to_f32(h);
    double want = sample_code_value(type, code, NULL);
    if (!same((double)value, want)) test_fail(__FILE__, __LINE__, "0x%04x is %g, not %g", code, (double)value, want);
    CHECK(same((double)lpg_load(type, &h, 0), want));
    uint16_t back = half ? lpg_f64_to_f16((double)value) : lpg_f64_to_bf16((double)value);
    if (isnan(value)) {
      CHECK(isnan(half ? lpg_f16_to_f32(back) : lpg_bf16_to_f32(back)));
      if (!half) CHECK(isnan(lpg_bf16_to_f32(lpg_f32_to_bf16(value))));
    } else { /* the sign of zero included */
      CHECK_INT(back, code);
      if (!half) CHECK_INT(lpg_f32_to_bf16(value), code);
    }
  }
}

/* Between each two neighbours: the tie goes to the even one, and the least doubt decides it otherwise. The last step,
 * to infinity, is where the next power of two would be. */
static void ties(lpgemm_dtype_t type) {
  if (!test_case("numbers/ties/%s", lpgemm_dtype_name(type))) return;
  int half = type == LPGEMM_F16;
  uint16_t infinity = half ? 0x7c00 : 0x7f80;
  double past = half ? 65536.0 : ldexp(1.0, 128);
  for (uint16_t low = 0; low < infinity; low++) {
    double a = sample_code_value(type, low, NULL),
           b = low + 1 < infinity ? sample_code_value(type, low + 1u, NULL) : past;
    double middle = (a + b) / 2; /* exact in fp64 */
    uint16_t even = (uint16_t)(low + (low & 1));
    for (int sign = 0; sign < 2; sign++) {
      double s = sign ? -1.0 : 1.0;
      uint16_t top = sign ? 0x8000 : 0;
      double x[3] = {nextafter(middle, 0.0) * s, middle * s, nextafter(middle, INFINITY) * s};
      uint16_t want[3] = {(uint16_t)(low | top), (uint16_t)(even | top), (uint16_t)((low + 1) | top)};
      for (int i = 0; i < 3; i++) {
        uint16_t got = half ? lpg_f64_to_f16(x[i]) : lpg_f64_to_bf16(x[i]);
        if (got != want[i]) test_fail(__FILE__, __LINE__, "%.17g gives 0x%04x, not 0x%04x", x[i], got, want[i]);
        uint16_t stored[1];
        lpg_store_f64(type, stored, 0, x[i]);
        CHECK_INT(stored[0], want[i]);
      }
      if (half) continue;
      float f[3] = {nextafterf((float)middle, 0.0f) * (float)s, (float)middle * (float)s,
                    nextafterf((float)middle, INFINITY) * (float)s};
      for (int i = 0; i < 3; i++) CHECK_INT(lpg_f32_to_bf16(f[i]), want[i]);
    }
  }
  double huge[3] = {1e300, (double)INFINITY, ldexp(1.0, 128)};
  for (int i = 0; i < 3; i++) {
    CHECK_INT(half ? lpg_f64_to_f16(huge[i]) : lpg_f64_to_bf16(huge[i]), infinity);
    CHECK_INT(half ? lpg_f64_to_f16(-huge[i]) : lpg_f64_to_bf16(-huge[i]), infinity | 0x8000);
  }
  CHECK_INT(half ? lpg_f64_to_f16(1e-300) : lpg_f64_to_bf16(1e-300), 0);
  CHECK_INT(half ? lpg_f64_to_f16(-5e-324) : lpg_f64_to_bf16(-5e-324), 0x8000);
}

/* Rounding of random fp64 against exact arithmetic, in formats of other shapes too. */
static void round_float(void) {
  if (!test_case("numbers/round")) return;
  static const int shapes[][2] = {{5, 10}, {8, 7}, {5, 2}, {4, 3}, {8, 23}, {3, 4}, {2, 1}};
  for (int i = 0; i < 200000; i++) {
    const int *shape = shapes[i % 7];
    int bias = (1 << (shape[0] - 1)) - 1;
    float x = (float)ldexp(test_uniform(-2.0, 2.0), (int)test_between(-bias - shape[1] - 3, bias + 2));
    if (i & 1) { /* few bits: many exact values and ties */
      int exponent;
      double fraction = frexp((double)x, &exponent);
      x = (float)ldexp(nearbyint(ldexp(fraction, shape[1] + 2)), exponent - shape[1] - 2);
    }
    if (!isfinite(x)) continue;
    uint32_t got = lpg_round_float((double)x, shape[0], shape[1]), want = exact_round(exact_of(x), shape[0], shape[1]);
    if (got != want)
      test_fail(__FILE__, __LINE__, "%a in e%dm%d: 0x%x, not 0x%x", (double)x, shape[0], shape[1], got, want);
  }
}

/* ---- sums and products that are rounded once ---- */

static uint32_t rounded(double to_odd, lpgemm_dtype_t type) {
  uint32_t code = 0;
  if (type == LPGEMM_F32) {
    float f;
    lpg_store_f64(type, &f, 0, to_odd);
    return lpg_f32_bits(f);
  }
  uint16_t h;
  lpg_store_f64(type, &h, 0, to_odd);
  code = h;
  return code;
}

static void check_wide(lpg_wide got, exact want) {
  static const lpgemm_dtype_t types[3] = {LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16};
  for (int i = 0; i < 3; i++) {
    lpgemm_dtype_t t = types[i];
    uint32_t a = rounded(lpg_wide_to_odd(got), t), b = exact_round(want, t == LPGEMM_F16 ? 5 : 8, (int)(t & 255));
    if (a != b && ((a | b) & 0x7fffffffu) != 0) {
      test_fail(__FILE__, __LINE__, "%.17g + %.17g in %s: 0x%x, not 0x%x", got.hi, got.lo, lpgemm_dtype_name(t), a, b);
    }
  }
}

/* A middle between two numbers of the target, with a remainder too small for fp64 to see beside it. */
static void double_rounding(void) {
  if (!test_case("numbers/double_rounding")) return;
  static const int mantissa[3] = {10, 7, 23};
  for (int i = 0; i < 3; i++) {
    for (int odd = 0; odd < 2; odd++) {
      for (int sign = -1; sign <= 1; sign += 2) {
        for (int below = -1; below <= 1; below++) {
          /* (1 + odd ulp + half an ulp) + below * 2^-80 */
          float unit = ldexpf(1.0f, -mantissa[i]), tiny = (float)below * ldexpf(1.0f, -80);
          exact x = exact_add(exact_of((float)sign * (1.0f + (float)odd * unit)), exact_of((float)sign * unit / 2));
          lpg_wide w = lpg_wide_add((double)sign * (1.0 + odd * (double)unit + (double)unit / 2), (double)tiny);
          check_wide(w, exact_add(x, exact_of(tiny)));
        }
      }
    }
  }
  /* (1 - zero) * scale * global = (1 + 2^-60) * (1 + 2^-12)^2: above the middle 1 + 2^-11 + 2^-24 of two fp32 */
  float s = 1.0f + ldexpf(1.0f, -12);
  for (int below = -1; below <= 1; below++) {
    float zero = (float)-below * ldexpf(1.0f, -60);
    lpg_wide w = lpg_wide_times(lpg_wide_times(lpg_wide_add(1.0, -(double)zero), s), s);
    exact x = exact_times(exact_times(exact_add(exact_of(1.0f), exact_of(-zero)), s), s);
    check_wide(w, x);
    float naive = (1.0f - zero) * s * s;
    if (below > 0) CHECK(exact_round(x, 8, 23) != lpg_f32_bits(naive));
  }
  /* value * scale + minimum */
  for (int below = -1; below <= 1; below++) {
    float minimum = (float)below * ldexpf(1.0f, -70);
    lpg_wide w = lpg_wide_plus(lpg_wide_times(lpg_wide_add((double)s, 0.0), s), lpg_wide_add((double)minimum, 0.0));
    check_wide(w, exact_add(exact_times(exact_of(s), s), exact_of(minimum)));
  }
}

static float random_float(int low, int high) {
  float x = (float)ldexp(test_uniform(1.0, 2.0), (int)test_between(low, high));
  return test_random() & 1 ? x : -x;
}

static void random_wide(void) {
  if (!test_case("numbers/wide")) return;
  for (int i = 0; i < 50000; i++) {
    float code = (float)test_between(-255, 255), zero = random_float(-12, 8), scale = random_float(-20, 6);
    float super = random_float(-10, 4), global = random_float(-8, 2), minimum = random_float(-20, 8);
    lpg_wide w = lpg_wide_times(lpg_wide_times(lpg_wide_add((double)code, -(double)zero), scale), global);
    check_wide(w, exact_times(exact_times(exact_add(exact_of(code), exact_of(-zero)), scale), global));
    lpg_wide v = lpg_wide_times(lpg_wide_add((double)code * (double)scale, 0.0), super);
    v = lpg_wide_times(lpg_wide_plus(v, lpg_wide_add((double)minimum * (double)super, 0.0)), global);
    exact x = exact_times(exact_times(exact_of(code), scale), super);
    check_wide(v, exact_times(exact_add(x, exact_times(exact_of(minimum), super)), global));
  }
}

static void wide_not_finite(void) {
  if (!test_case("numbers/wide_not_finite")) return;
  lpg_wide infinite = lpg_wide_add((double)INFINITY, -1.0), one = lpg_wide_add(1.0, 0.0);
  CHECK(lpg_wide_to_odd(infinite) == (double)INFINITY);
  CHECK(lpg_wide_to_odd(lpg_wide_times(infinite, -2.0f)) == (double)-INFINITY);
  CHECK(isnan(lpg_wide_to_odd(lpg_wide_times(infinite, 0.0f))));
  CHECK(lpg_wide_to_odd(lpg_wide_plus(infinite, one)) == (double)INFINITY);
  CHECK(lpg_wide_to_odd(lpg_wide_times(lpg_wide_plus(one, infinite), 0.5f)) == (double)INFINITY);
  CHECK(isnan(lpg_wide_to_odd(lpg_wide_plus(infinite, lpg_wide_times(infinite, -1.0f)))));
  CHECK(isnan(lpg_wide_to_odd(lpg_wide_plus(one, lpg_wide_add((double)NAN, 0.0)))));
}

/* ---- names ---- */

static void names(void) {
  if (!test_case("numbers/names")) return;
  static const struct {
    const char *text;
    lpgemm_dtype_t type;
  } known[] = {
      {"u1", LPGEMM_UINT(1)},       {"u4", LPGEMM_UINT(4)},       {"i8", LPGEMM_INT(8)},
      {"b2", LPGEMM_BIPOLAR(2)},    {"c4", LPGEMM_CODEBOOK(4)},   {"e3m2", LPGEMM_FLOAT(3, 2)},
      {"e1m1", LPGEMM_FLOAT(1, 1)}, {"e7m0", LPGEMM_FLOAT(7, 0)}, {"e4m3", LPGEMM_E4M3},
      {"e5m2", LPGEMM_E5M2},        {"f16", LPGEMM_F16},          {"bf16", LPGEMM_BF16},
      {"f32", LPGEMM_F32},          {"e8m0", LPGEMM_E8M0},        {"i32", LPGEMM_I32},
      {"u16", LPGEMM_U16},          {"fp16", LPGEMM_F16},         {"fp32", LPGEMM_F32},
      {"int8", LPGEMM_I8},          {"uint4", LPGEMM_UINT(4)},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    lpgemm_dtype_t type = 0;
    CHECK_STATUS(lpgemm_dtype_parse(known[i].text, &type), LPGEMM_SUCCESS);
    CHECK_INT(type, known[i].type);
  }
  CHECK(strcmp(lpgemm_dtype_name(0), "none") == 0);
  CHECK(strcmp(lpgemm_dtype_name(LPGEMM_FLOAT(3, 2)), "e3m2") == 0);
  CHECK(strcmp(lpgemm_dtype_name(LPGEMM_I8), "i8") == 0);
  CHECK_INT(lpgemm_dtype_bits(0), 0);
  CHECK_INT(lpgemm_dtype_bits(LPGEMM_F16), 16);
  CHECK_INT(lpgemm_dtype_bits(LPGEMM_F32), 32);
  CHECK_INT(lpgemm_dtype_bits(LPGEMM_I32), 32);
  /* every number whose three fields are small: a type with a name that reads back, or no type at all */
  int types = 0, only_stored = 0;
  for (uint32_t kind = 0; kind < 10; kind++) {
    for (uint32_t low = 0; low < 65536; low++) {
      lpgemm_dtype_t t = kind << 16 | low, back = 1;
      const char *name = lpgemm_dtype_name(t);
      if (t == 0) continue;
      if (lpgemm_dtype_bits(t) == 0) {
        only_stored += strcmp(name, "invalid") != 0;
        if (strcmp(name, "invalid") != 0) CHECK_STATUS(lpgemm_dtype_parse(name, &back), LPGEMM_INVALID_TYPE);
        continue;
      }
      types++;
      CHECK_STATUS(lpgemm_dtype_parse(name, &back), LPGEMM_SUCCESS);
      CHECK_INT(back, t);
    }
  }
  CHECK_INT(types, SAMPLE_TYPES + 6); /* f16, bf16, f32, e8m0, u16, i32 */
  CHECK_INT(only_stored, 10 + 27);    /* the plain ones of files and the block types of GGUF: named, never taken */
  CHECK_INT(lpgemm_dtype_bits(0xffffffffu), 0);
}

static void refused_names(void) {
  if (!test_case("numbers/refused_names")) return;
  static const char *const texts[] = {
      "",    "u",           "u0",  "u9",    "u-1",  "u4 ", " u4",   "4",    "i1",   "i9",     "b0",   "b9",
      "c0",  "c5",          "e",   "e3",    "e3m",  "m2",  "e0m3",  "e1m0", "e4m4", "e8m1",   "f8",   "f64",
      "u17", "u4294967300", "i31", "e3m2x", "u4u4", "em",  "e3m-2", "int",  "uint", "e259m2", "u260", "e5m2e5m2"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    lpgemm_dtype_t type = 0xdeadbeefu;
    CHECK_STATUS(lpgemm_dtype_parse(texts[i], &type), LPGEMM_INVALID_TYPE);
    CHECK_INT(type, 0xdeadbeefu);
    CHECK(strstr(lpgemm_last_error(), "text") != NULL);
  }
  lpgemm_dtype_t type = 0xdeadbeefu;
  CHECK_STATUS(lpgemm_dtype_parse(NULL, &type), LPGEMM_NULL_POINTER);
  CHECK_INT(type, 0xdeadbeefu);
  CHECK_STATUS(lpgemm_dtype_parse("u4", NULL), LPGEMM_NULL_POINTER);
}

/* ---- codebooks ---- */

/* The x below which a standard normal variable falls with probability p. */
static double normal_quantile(double p) {
  double low = -10.0, high = 10.0;
  for (int i = 0; i < 200; i++) {
    double x = (low + high) / 2;
    if (0.5 * erfc(-x / sqrt(2.0)) < p) {
      low = x;
    } else {
      high = x;
    }
  }
  return (low + high) / 2;
}

/* QLoRA's construction: quantiles at evenly spaced probabilities from `offset` to 1/2, 7 steps above and 8 below zero,
 * over the largest. */
static void nf4(void) {
  if (!test_case("numbers/codebook/nf4")) return;
  static const float published[16] = {-1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f};
  float table[16];
  CHECK_STATUS(lpgemm_codebook_preset("nf4", table), LPGEMM_SUCCESS);
  CHECK(table[0] == -1.0f && table[7] == 0.0f && table[15] == 1.0f);
  const double offset = 0.9677083, largest = normal_quantile(offset);
  for (int i = 0; i < 16; i++) {
    CHECK(table[i] == published[i]);
    if (i > 0) CHECK(table[i] > table[i - 1]);
    double p = i < 7 ? offset + (0.5 - offset) * i / 7 : offset + (0.5 - offset) * (15 - i) / 8;
    double want = normal_quantile(p) / largest * (i < 7 ? -1.0 : 1.0);
    CHECK(fabs((double)table[i] - want) < 1e-6); /* the published table was computed in fp32 */
  }
}

static void presets(void) {
  if (!test_case("numbers/codebook/others")) return;
  static const float iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static const double fp4[8] = {0, 0.0625, 8, 12, 4, 6, 2, 3}; /* twelfths; bit 3 is the sign */
  float table[17];
  table[16] = 77.0f;
  CHECK_STATUS(lpgemm_codebook_preset("iq4_nl", table), LPGEMM_SUCCESS);
  for (int i = 0; i < 16; i++) CHECK(table[i] == iq4[i]);
  CHECK_STATUS(lpgemm_codebook_preset("fp4", table), LPGEMM_SUCCESS);
  for (int i = 0; i < 16; i++) CHECK(table[i] == (float)((i < 8 ? 1.0 : -1.0) * fp4[i % 8] / 12.0));
  CHECK(table[16] == 77.0f);
  for (int i = 0; i < 16; i++) table[i] = 5.0f;
  CHECK_STATUS(lpgemm_codebook_preset("nf5", table), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "name") != NULL);
  CHECK_STATUS(lpgemm_codebook_preset(NULL, table), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_codebook_preset("nf4", NULL), LPGEMM_NULL_POINTER);
  for (int i = 0; i < 16; i++) CHECK(table[i] == 5.0f);
}

void suite_numbers(void) {
  code_types();
  for (int i = 0; i < SAMPLE_TYPES; i++) code_values(sample_type(i));
  for (int i = 0; i < SAMPLE_TYPES; i++) values_of(sample_type(i));
  special_codes();
  sixteen_bits(LPGEMM_F16);
  sixteen_bits(LPGEMM_BF16);
  ties(LPGEMM_F16);
  ties(LPGEMM_BF16);
  round_float();
  double_rounding();
  random_wide();
  wide_not_finite();
  names();
  refused_names();
  nf4();
  presets();
}
