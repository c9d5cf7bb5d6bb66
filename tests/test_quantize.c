/* Quantising: the codes are the nearest for the scales and zeros as they are stored, the range is covered, and what can
 * be held exactly is. Everything is read back from the blob by ref/format_reader.c. */
#include <math.h>

#include "ref/format_reader.h"
#include "sample.h"
#include "test.h"

enum { N = 7, K = 100, LD = 103 };

static lpgemm_handle_t handle;

/* ---- quantised matrices ---- */

typedef struct quantized {
  lpgemm_weights_t weights;
  uint8_t *blob;
  format_reader r; /* of the blob */
} quantized;

static void drop(quantized *q) {
  test_free(q->blob);
  CHECK_STATUS(lpgemm_weights_destroy(q->weights), LPGEMM_SUCCESS);
}

static quantized quantize(const lpgemm_weight_desc_t *desc, lpgemm_quantize_method_t method, const void *x,
                          lpgemm_dtype_t type) {
  quantized q = {.weights = NULL};
  CHECK_STATUS(lpgemm_quantize_weights(handle, desc, method, x, type, LD, NULL, 0, &q.weights), LPGEMM_SUCCESS);
  if (q.weights == NULL) return q;
  size_t size = 0;
  q.blob = sample_blob(handle, q.weights, &size);
  const char *wrong = q.blob ? format_open(&q.r, q.blob, size) : "there is none";
  if (wrong != NULL) {
    test_fail(__FILE__, __LINE__, "the reader refuses the blob: %s", wrong);
    drop(&q);
    q = (quantized){.weights = NULL};
  }
  return q;
}

/* What a code of the group of W[n, k] stands for: (value - zero) * scale + minimum. */
typedef struct fit {
  double scale, zero, minimum;
} fit;

static fit fit_of(const format_reader *r, int64_t n, int64_t k) {
  int64_t j = k / r->group.span, super = k / r->super.span;
  fit f = {(double)r->global_scale, r->zero == 1 ? (double)r->zero_constant : 0.0, 0.0};
  if (r->scale_type) f.scale *= format_value(r, FORMAT_SCALES, n, j);
  if (r->super_scale_type) f.scale *= format_value(r, FORMAT_SUPER_SCALES, n, super);
  if (r->zero == 2) f.zero = format_value(r, FORMAT_ZEROS, n, j);
  if (r->zero == 3) f.minimum = format_value(r, FORMAT_ZEROS, n, j) * (double)r->global_scale;
  if (r->super_zero_type) f.minimum *= format_value(r, FORMAT_SUPER_ZEROS, n, super);
  return f;
}

static double code_value(const format_reader *r, uint32_t code) {
  return sample_code_value(r->type, code, r->codebook);
}

static double weight_of(const format_reader *r, const fit *f, uint32_t code) {
  return (code_value(r, code) - f->zero) * f->scale + f->minimum;
}

/* No other code is nearer: an error is at most half the step of the stored scale. */
static void check_nearest(const format_reader *r, const float *x) {
  for (int64_t n = 0; n < r->n; n++) {
    for (int64_t k = 0; k < r->k; k++) {
      fit f = fit_of(r, n, k);
      double want = (double)x[n * LD + k], got = weight_of(r, &f, format_code(r, n, k)), best = (double)INFINITY;
      for (uint32_t code = 0; code < 1u << r->bits; code++) {
        double error = fabs(weight_of(r, &f, code) - want);
        if (error < best) best = error; /* false for codes that are NaN */
      }
      /* fp64 rounds a few times on the way to a code; that of an integer is at most 255 */
      double size = fabs(want) + fabs(got) + fabs(f.zero * f.scale) + fabs(f.minimum);
      if (r->type >> 16 <= LPGEMM_KIND_BIPOLAR) size += 255.0 * f.scale;
      double slack = 4.0 * ldexp(size, -53);
      if (fabs(got - want) <= best + slack) continue;
      test_fail(__FILE__, __LINE__, "weight (%lld, %lld) is %g for %g; another code is %g away", (long long)n,
                (long long)k, got, want, best);
      return;
    }
  }
}

/* What rounding takes away from a scale that is no subnormal, and from a subnormal one. */
static double scale_rounding(lpgemm_dtype_t scale_type) {
  switch (scale_type) {
    case LPGEMM_F16: return ldexp(1.0, -11);
    case LPGEMM_BF16: return ldexp(1.0, -8);
    case LPGEMM_F32: return ldexp(1.0, -24);
    default: return 0.0; /* E8M0: rounded up, so that nothing clips */
  }
}

static double subnormal_rounding(lpgemm_dtype_t scale_type) { return scale_type == LPGEMM_F16 ? ldexp(1.0, -25) : 0.0; }

/* The codes reach from the smallest to the largest weight of the group, but for what rounding takes away from the
 * scale, and from a zero or minimum: up to `steps` of the scale and `relative` of the numbers. */
static void check_covered(const format_reader *r, const float *x, double relative, double steps) {
  relative += 1.01 * scale_rounding(r->scale_type);
  for (int64_t n = 0; n < r->n; n++) {
    for (int64_t k = 0; k < r->k; k++) {
      fit f = fit_of(r, n, k);
      double low = (double)INFINITY, high = (double)-INFINITY, largest = 0.0, reach = 0.0;
      for (uint32_t code = 0; code < 1u << r->bits; code++) {
        double value = weight_of(r, &f, code);
        if (!isfinite(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
        reach = fmax(reach, fabs(code_value(r, code) - f.zero));
      }
      for (int64_t i = k / r->group.span * r->group.span; i < r->k && i / r->group.span == k / r->group.span; i++) {
        largest = fmax(largest, fabs((double)x[n * LD + i]));
      }
      double slack = relative * (largest + fabs(f.minimum)) + steps * f.scale, want = (double)x[n * LD + k];
      slack += subnormal_rounding(r->scale_type) * reach * fabs((double)r->global_scale);
      if (want >= low - slack && want <= high + slack) continue;
      test_fail(__FILE__, __LINE__, "weight (%lld, %lld) is %g; its group reaches from %g to %g", (long long)n,
                (long long)k, want, low, high);
      return;
    }
  }
}

static double squared_error(const format_reader *r, const float *x, int64_t n, int64_t first, int64_t end) {
  double sum = 0.0;
  for (int64_t k = first; k < end && k < r->k; k++) {
    double error = format_weight(r, n, k) - (double)x[n * LD + k];
    sum += error * error;
  }
  return sum;
}

/* Weights as models have them: near a bell curve, each row with a spread and an offset of its own. */
static float *draw_weights(double offset) {
  float *x = test_alloc(N * LD * sizeof *x);
  for (int n = 0; n < N; n++) {
    double spread = ldexp(1.0, (int)test_between(-8, 2)), middle = offset * spread * test_uniform(-1.0, 1.0);
    for (int k = 0; k < LD; k++) {
      double bell = test_uniform(-1.0, 1.0) + test_uniform(-1.0, 1.0) + test_uniform(-1.0, 1.0);
      x[n * LD + k] = k < K ? (float)(middle + spread * bell) : NAN; /* what lies between rows is not read */
    }
  }
  return x;
}

/* Any type with scales; unsigned codes get a constant zero in their middle, codebooks a table on both sides of zero. */
static lpgemm_weight_desc_t symmetric(lpgemm_dtype_t type, lpgemm_dtype_t scale_type) {
  static const float books[4][16] = {
      {-1.0f, 1.0f}, {-1.0f, -0.3f, 0.0f, 1.0f}, {1.0f, -1.0f, 0.5f, -0.5f, 0.2f, -0.2f, 0.0f, 0.7f}};
  lpgemm_weight_desc_t desc = sample_desc(N, K, type, 32, scale_type);
  int bits = lpgemm_dtype_bits(type);
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT) {
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = bits == 1 ? 0.5f : ldexpf(1.0f, bits - 1);
  } else if (type == LPGEMM_CODEBOOK(4)) {
    CHECK_STATUS(lpgemm_codebook_preset("nf4", desc.codebook), LPGEMM_SUCCESS);
  } else if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK) {
    memcpy(desc.codebook, books[bits - 1], sizeof desc.codebook);
  }
  return desc;
}

/* ---- nearest, and covered ---- */

static void absmax(lpgemm_dtype_t type) {
  if (!test_case("quantize/absmax/%s", lpgemm_dtype_name(type))) return;
  static const lpgemm_dtype_t scales[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0};
  for (int i = 0; i < 4; i++) {
    float *x = draw_weights(0.5);
    lpgemm_weight_desc_t desc = symmetric(type, scales[i]);
    if (i & 1) desc.global_scale = 0.3f;
    quantized q = quantize(&desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32);
    if (q.weights) {
      check_nearest(&q.r, x);
      check_covered(&q.r, x, 0.0, 0.0);
    }
    drop(&q);
    test_free(x);
  }
}

/* A zero or a minimum a group, from ABSMAX and MINMAX. */
static void shifted(lpgemm_dtype_t type) {
  if (!test_case("quantize/shifted/%s", lpgemm_dtype_name(type))) return;
  static const lpgemm_dtype_t zeros[] = {LPGEMM_U16, LPGEMM_F32, LPGEMM_F16, LPGEMM_F32};
  int is_unsigned = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT;
  for (int i = 0; i < 4; i++) {
    for (int method = LPGEMM_QUANTIZE_ABSMAX; method <= LPGEMM_QUANTIZE_MINMAX; method++) {
      float *x = draw_weights(i == 0 ? 0.5 : 2.0);
      lpgemm_weight_desc_t desc = symmetric(type, LPGEMM_F32);
      desc.zero = i < 2 ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_MINIMUM;
      desc.zero_constant = 0.0f;
      desc.zero_type = zeros[i];
      quantized q = quantize(&desc, (lpgemm_quantize_method_t)method, x, LPGEMM_F32);
      if (q.weights) check_nearest(&q.r, x);
      /* integer zeros are for unsigned codes, and one bit with an integer zero holds one sign only */
      if (q.weights && (i > 0 || (is_unsigned && lpgemm_dtype_bits(type) > 1))) {
        check_covered(&q.r, x, ldexp(1.0, zeros[i] == LPGEMM_F16 ? -10 : -20), i == 0 ? 0.51 : 1e-3);
      }
      drop(&q);
      test_free(x);
    }
  }
}

/* The searched clip is at least as good as no clip, in every group. */
static void mse(lpgemm_dtype_t type) {
  if (!test_case("quantize/mse/%s", lpgemm_dtype_name(type))) return;
  for (int zero = LPGEMM_ZERO_NONE; zero <= LPGEMM_ZERO_MINIMUM; zero++) {
    float *x = draw_weights(1.0);
    lpgemm_weight_desc_t desc = symmetric(type, LPGEMM_F16);
    if (zero >= LPGEMM_ZERO_PER_GROUP) {
      desc.zero = (lpgemm_zero_t)zero;
      desc.zero_constant = 0.0f;
      desc.zero_type = LPGEMM_F16;
    } else if (desc.zero != (lpgemm_zero_t)zero) {
      test_free(x);
      continue;
    }
    quantized best = quantize(&desc, LPGEMM_QUANTIZE_MSE, x, LPGEMM_F32);
    if (best.weights) check_nearest(&best.r, x);
    double total[3] = {0.0, 0.0, 0.0};
    for (int method = 0; method <= (zero >= LPGEMM_ZERO_PER_GROUP) && best.weights; method++) {
      quantized plain = quantize(&desc, (lpgemm_quantize_method_t)method, x, LPGEMM_F32);
      for (int64_t n = 0; n < N && plain.weights; n++) {
        for (int64_t k = 0; k < K; k += 32) {
          double a = squared_error(&best.r, x, n, k, k + 32), b = squared_error(&plain.r, x, n, k, k + 32);
          if (!(a <= b * (1 + 1e-9))) {
            test_fail(__FILE__, __LINE__, "row %lld, column %lld: %g after the search, %g before (method %d)",
                      (long long)n, (long long)k, a, b, method);
          }
          total[method] += b;
          if (method == 0) total[2] += a;
        }
      }
      drop(&plain);
    }
    if (lpgemm_dtype_bits(type) == 4) CHECK(total[2] < total[0]); /* and the search finds something */
    drop(&best);
    test_free(x);
  }
}

/* ---- exact where that is possible ---- */

/* Weights that the type holds with a power of two as scale, the largest magnitude among them, come back unchanged. */
static void representable(lpgemm_dtype_t type) {
  if (!test_case("quantize/representable/%s", lpgemm_dtype_name(type))) return;
  for (int i = 1; i < SAMPLE_SCALES; i++) {
    lpgemm_weight_desc_t desc = symmetric(type, sample_scale[i]);
    int bits = lpgemm_dtype_bits(type);
    double centre = (double)desc.zero_constant, top = (double)INFINITY, reach[2] = {0.0, 0.0};
    for (uint32_t code = 0; code < 1u << bits; code++) {
      double value = sample_code_value(type, code, desc.codebook) - centre;
      if (isfinite(value) && fabs(value) > reach[value > 0.0]) reach[value > 0.0] = fabs(value);
    }
    top = reach[0] < reach[1] ? reach[0] : reach[1]; /* the largest magnitude that both signs have */
    float *x = test_alloc(N * LD * sizeof *x), *out = test_alloc(N * K * sizeof *out);
    memset(x, 0, N * LD * sizeof *x);
    for (int n = 0; n < N; n++) {
      for (int k = 0; k < K; k++) {
        double scale = ldexp(1.0, (n + k / 32) % 7 - 3), value;
        do {
          value = sample_code_value(type, (uint32_t)test_between(0, (1 << bits) - 1), desc.codebook) - centre;
        } while (!isfinite(value) || fabs(value) > top);
        if (k % 32 == n % 4) value = n & 1 ? -top : top;
        x[n * LD + k] = (float)(value * scale);
      }
    }
    quantized q = quantize(&desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32);
    if (q.weights) CHECK_STATUS(lpgemm_unpack_weights(handle, q.weights, LPGEMM_F32, out, 0), LPGEMM_SUCCESS);
    test_wait();
    for (int at = 0; at < N * K && q.weights; at++) {
      float want = x[at / K * LD + at % K];
      if (out[at] == want) continue;
      test_fail(__FILE__, __LINE__, "%s scales, weight (%d, %d): %g became %g", lpgemm_dtype_name(sample_scale[i]),
                at / K, at % K, (double)want, (double)out[at]);
      break;
    }
    drop(&q);
    test_free(x);
    test_free(out);
  }
}

static void zeros(lpgemm_dtype_t type) {
  if (!test_case("quantize/zeros/%s", lpgemm_dtype_name(type))) return;
  float *x = draw_weights(0.5), *out = test_alloc(N * K * sizeof *out);
  for (int n = 0; n < N; n++) {
    for (int k = 32; k < 64; k++) x[n * LD + k] = 0.0f; /* group 1 of every row, and all of row 3 */
    for (int k = 0; k < K && n == 3; k++) x[n * LD + k] = 0.0f;
  }
  for (int method = LPGEMM_QUANTIZE_ABSMAX; method <= LPGEMM_QUANTIZE_MSE; method++) {
    for (int zero = LPGEMM_ZERO_NONE; zero <= LPGEMM_ZERO_MINIMUM; zero++) {
      lpgemm_weight_desc_t desc = symmetric(type, LPGEMM_F16);
      if (zero >= LPGEMM_ZERO_PER_GROUP) {
        desc.zero = (lpgemm_zero_t)zero;
        desc.zero_constant = 0.0f;
        desc.zero_type = LPGEMM_F16;
      } else if (method == LPGEMM_QUANTIZE_MINMAX) {
        continue;
      }
      quantized q = quantize(&desc, (lpgemm_quantize_method_t)method, x, LPGEMM_F32);
      if (q.weights) CHECK_STATUS(lpgemm_unpack_weights(handle, q.weights, LPGEMM_F32, out, 0), LPGEMM_SUCCESS);
      test_wait();
      for (int n = 0; n < N && q.weights; n++) {
        for (int k = 0; k < K; k++) {
          CHECK(isfinite(out[n * K + k]));
          if (x[n * LD + k] == 0.0f && ((k >= 32 && k < 64) || n == 3)) CHECK(out[n * K + k] == 0.0f);
        }
      }
      drop(&q);
    }
  }
  test_free(x);
  test_free(out);
}

/* ---- the kinds of weights that engines use ---- */

/* Unsigned codes without any zero hold what is not negative. */
static void without_zero(void) {
  if (!test_case("quantize/without_zero")) return;
  for (uint32_t bits = 1; bits <= 8; bits++) {
    float *x = draw_weights(0.0);
    for (int i = 0; i < N * LD; i++) x[i] = fabsf(x[i]);
    lpgemm_weight_desc_t desc = sample_desc(N, K, LPGEMM_UINT(bits), 32, LPGEMM_F16);
    quantized q = quantize(&desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32);
    if (q.weights) {
      check_nearest(&q.r, x);
      check_covered(&q.r, x, 0.0, 0.0);
    }
    drop(&q);
    test_free(x);
  }
}

/* A group far from zero beside its spread: the zero is beyond its type, or rounded by many steps, and the scale gives
 * way so that the codes still reach every weight. */
static void far_offset(void) {
  static const lpgemm_dtype_t zeros[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_U8, LPGEMM_U16};
  for (int i = 0; i < 5; i++) {
    if (!test_case("quantize/far_offset/%s", lpgemm_dtype_name(zeros[i]))) continue;
    for (uint32_t bits = 2; bits <= 8; bits++) {
      float *x = draw_weights(0.0);
      for (int at = 0; at < N * LD; at++) x[at] = (at / LD & 1 ? -1000.0f : 1000.0f) + 0.01f * x[at];
      lpgemm_weight_desc_t desc = sample_desc_zeros(N, K, LPGEMM_UINT(bits), 32, LPGEMM_F32, zeros[i]);
      quantized q = quantize(&desc, LPGEMM_QUANTIZE_MINMAX, x, LPGEMM_F32);
      if (q.weights) {
        check_nearest(&q.r, x);
        check_covered(&q.r, x, 0.0, 1.01);
      }
      drop(&q);
      test_free(x);
    }
  }
}

/* Two levels: the scale and the minimum of a group are multiples of the super-group's and so may be off by half a
 * multiple: 15 / 2 of the scale's unit at the far end, and 1 / 2 of the minimum's. */
static void two_levels(void) {
  for (int method = LPGEMM_QUANTIZE_ABSMAX; method <= LPGEMM_QUANTIZE_MSE; method++) {
    if (!test_case("quantize/two_levels/%d", method)) continue;
    float *x = draw_weights(0.5);
    lpgemm_weight_desc_t desc = sample_desc_q4k(N, K);
    desc.super_k = 64;
    desc.global_scale = 2.0f;
    quantized q = quantize(&desc, (lpgemm_quantize_method_t)method, x, LPGEMM_F32);
    if (q.weights) check_nearest(&q.r, x);
    for (int64_t n = 0; n < N && q.weights && method == LPGEMM_QUANTIZE_MINMAX; n++) {
      for (int64_t k = 0; k < K; k++) {
        double unit = format_value(&q.r, FORMAT_SUPER_SCALES, n, k / 64) * 2.0;
        double shift = fabs(format_value(&q.r, FORMAT_SUPER_ZEROS, n, k / 64)) * 2.0;
        double error = fabs(format_weight(&q.r, n, k) - (double)x[n * LD + k]);
        double bound = fit_of(&q.r, n, k).scale / 2.0 + 7.5 * unit + shift / 2.0 + fabs((double)x[n * LD + k]) / 1024.0;
        if (!(error <= bound)) test_fail(__FILE__, __LINE__, "error %g at (%d, %d)", error, (int)n, (int)k);
      }
    }
    drop(&q);

    desc = symmetric(LPGEMM_FLOAT(2, 1), LPGEMM_E4M3); /* NVFP4, with super scales in place of one global scale */
    desc.group_k = 16;
    desc.super_scale_type = LPGEMM_F32;
    if (method != LPGEMM_QUANTIZE_MINMAX) {
      q = quantize(&desc, (lpgemm_quantize_method_t)method, x, LPGEMM_F32);
      if (q.weights) check_nearest(&q.r, x);
      drop(&q);
    }
    test_free(x);
  }
}

/* One weight far beyond the others: kept by ABSMAX, and nothing else is harmed in other groups. */
static void outliers(void) {
  if (!test_case("quantize/outliers")) return;
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    float *x = draw_weights(0.5);
    x[2 * LD + 40] = 30000.0f;
    lpgemm_weight_desc_t desc = symmetric(sample_type(i), LPGEMM_F32);
    quantized q = quantize(&desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32);
    if (q.weights) {
      check_nearest(&q.r, x);
      check_covered(&q.r, x, 0.0, 0.0);
      CHECK(fabs(format_weight(&q.r, 2, 0)) < 100.0);
    }
    drop(&q);
    test_free(x);
  }
}

/* Weights at the ends of fp32, with scales that cannot follow: everything stays finite and the nearest is still taken.
 */
static void extremes(void) {
  if (!test_case("quantize/extremes")) return;
  static const double sizes[] = {3e38, 1e20, 1e-20, 1e-38, 1e-44};
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    for (int j = 0; j < 5 * (SAMPLE_SCALES - 1); j++) {
      lpgemm_weight_desc_t desc = symmetric(sample_type(i), sample_scale[1 + j / 5]);
      float *x = test_alloc(N * LD * sizeof *x), *out = test_alloc(N * K * sizeof *out);
      for (int at = 0; at < N * LD; at++) x[at] = (float)(test_uniform(-1.0, 1.0) * sizes[j % 5]);
      quantized q = quantize(&desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32);
      if (q.weights) {
        for (int64_t n = 0; n < N; n++) {
          for (int64_t g = 0; g < q.r.group.count; g++) {
            double scale = format_value(&q.r, FORMAT_SCALES, n, g);
            if (!isfinite(scale) || scale <= 0.0) test_fail(__FILE__, __LINE__, "the scale is %g", scale);
          }
        }
        check_nearest(&q.r, x);
      }
      drop(&q);
      test_free(x);
      test_free(out);
    }
  }
}

/* The same numbers in another type, in memory of the caller, and once more: the same bytes. */
static void same_bytes(void) {
  if (!test_case("quantize/same_bytes")) return;
  static const lpgemm_dtype_t sources[] = {LPGEMM_F16, LPGEMM_BF16};
  lpgemm_weight_desc_t desc = symmetric(LPGEMM_INT(4), LPGEMM_F16);
  for (int i = 0; i < 2; i++) {
    float *x = draw_weights(0.5);
    uint16_t *narrow = test_alloc(N * LD * sizeof *narrow);
    for (int at = 0; at < N * LD; at++) {
      float finite = isnan(x[at]) ? 0.0f : x[at];
      narrow[at] = (uint16_t)(i ? exact_round(exact_of(finite), 8, 7) : exact_round(exact_of(finite), 5, 10));
      if (!isnan(x[at])) x[at] = (float)sample_code_value(sources[i], narrow[at], NULL);
    }
    quantized wide = quantize(&desc, LPGEMM_QUANTIZE_MSE, x, LPGEMM_F32);
    quantized small = quantize(&desc, LPGEMM_QUANTIZE_MSE, narrow, sources[i]);
    if (wide.weights && small.weights) {
      CHECK(memcmp(wide.r.bytes, small.r.bytes, wide.r.size) == 0);
      uint8_t *memory = test_alloc(wide.r.size);
      lpgemm_weights_t weights = NULL;
      CHECK_STATUS(
          lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_MSE, x, LPGEMM_F32, LD, memory, wide.r.size, &weights),
          LPGEMM_SUCCESS);
      CHECK(memcmp(wide.r.bytes, memory, wide.r.size) == 0);
      CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
      test_free(memory);
    }
    drop(&wide);
    drop(&small);
    test_free(x);
    test_free(narrow);
  }
}

/* ---- refusals ---- */

static void not_finite(void) {
  if (!test_case("quantize/not_finite")) return;
  static const int places[][2] = {{0, 0}, {3, 57}, {6, 99}};
  static const float values[] = {NAN, INFINITY, -INFINITY};
  lpgemm_weight_desc_t desc = symmetric(LPGEMM_INT(4), LPGEMM_F16);
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(&desc, &bytes), LPGEMM_SUCCESS);
  for (int i = 0; i < 9; i++) {
    float *x = draw_weights(0.5);
    uint8_t *memory = test_alloc(bytes);
    const int *place = places[i % 3];
    x[place[0] * LD + place[1]] = values[i / 3];
    lpgemm_weights_t weights = NULL;
    CHECK_STATUS(
        lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, x, LPGEMM_F32, LD, memory, bytes, &weights),
        LPGEMM_INVALID_ARGUMENT);
    char words[2][24];
    snprintf(words[0], sizeof words[0], "row %d", place[0]);
    snprintf(words[1], sizeof words[1], "column %d", place[1]);
    CHECK(strstr(lpgemm_last_error(), words[0]) != NULL && strstr(lpgemm_last_error(), words[1]) != NULL);
    CHECK(weights == NULL);
    for (size_t at = 0; at < bytes; at++) CHECK_INT(memory[at], 0xCD);
    test_free(memory);
    test_free(x);
  }
}

static void empty(void) {
  if (!test_case("quantize/empty")) return;
  static const int64_t shapes[][2] = {{0, 0}, {0, 100}, {20, 0}};
  for (int i = 0; i < 3; i++) {
    for (int method = LPGEMM_QUANTIZE_ABSMAX; method <= LPGEMM_QUANTIZE_MSE; method += 2) {
      lpgemm_weight_desc_t desc = sample_desc(shapes[i][0], shapes[i][1], LPGEMM_INT(4), 0, LPGEMM_F16);
      quantized q = quantize(&desc, (lpgemm_quantize_method_t)method, NULL, LPGEMM_F32);
      drop(&q);
    }
  }
}

void suite_quantize(void) {
  handle = sample_handle();
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    absmax(sample_type(i));
    shifted(sample_type(i));
    mse(sample_type(i));
    representable(sample_type(i));
    zeros(sample_type(i));
  }
  without_zero();
  far_offset();
  two_levels();
  outliers();
  extremes();
  same_bytes();
  not_finite();
  empty();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
