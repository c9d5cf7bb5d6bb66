/* Packing and unpacking: what goes in comes out, whatever the source looks like, and what is wrong is refused with
 * nothing written. */
#include <math.h>

#include "sample.h"
#include "test.h"

static lpgemm_handle_t handle;

/* ---- what comes out ---- */

static void check_codes(const sample *s, lpgemm_weights_t weights, int64_t ldo) {
  const lpgemm_weight_desc_t *d = &s->desc;
  const int64_t x_k = sample_x_k(d);
  int64_t ld = ldo ? ldo : x_k, rows = d->n ? d->n : 1;
  uint8_t *out = test_alloc((size_t)(rows * ld)), *has = test_alloc((size_t)x_k);
  memset(has, 0, (size_t)x_k); /* a part of a matrix has some columns only */
  for (int64_t k = 0; k < d->k; k++) has[sample_column(s, k)] = 1;
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_U8, out, ldo), LPGEMM_SUCCESS);
  test_wait();
  for (int64_t n = 0; n < d->n; n++) {
    for (int64_t k = 0; k < x_k; k++) {
      const uint8_t want = has[k] ? s->codes[n * x_k + k] : 0;
      if (out[n * ld + k] == want) continue;
      test_fail(__FILE__, __LINE__, "code (%lld, %lld) came out as %u, not %u", (long long)n, (long long)k,
                out[n * ld + k], want);
      n = d->n - 1;
      break;
    }
    for (int64_t k = x_k; k < ld; k++) CHECK_INT(out[n * ld + k], 0xCD); /* test_alloc()'s fill */
  }
  test_free(has);
  test_free(out);
}

static void check_parts(const sample *s, lpgemm_weights_t weights) {
  for (int part = LPGEMM_PART_SCALES; part < SAMPLE_PARTS; part++) {
    if (!sample_part_type(&s->desc, (lpgemm_part_t)part)) continue;
    uint8_t *out = test_alloc(s->part_bytes[part]);
    CHECK_STATUS(lpgemm_unpack_part(handle, weights, (lpgemm_part_t)part, out, s->part_bytes[part]), LPGEMM_SUCCESS);
    CHECK(memcmp(out, s->part[part], s->part_bytes[part]) == 0);
    test_free(out);
  }
}

static int is_zero(uint32_t bits, int width) { return (bits & ~(1u << (width - 1))) == 0; }
static int is_nan(uint32_t bits, int e, int m) { return (bits & ((1u << (e + m)) - 1)) > ((1u << e) - 1) << m; }

static int right_value(const sample_value *v, uint32_t got, lpgemm_dtype_t type) {
  int e = type == LPGEMM_F16 ? 5 : 8, m = (int)(type & 255);
  if (v->finite) {
    uint32_t want = exact_round(v->value, e, m);
    return got == want || (is_zero(got, 1 + e + m) && is_zero(want, 1 + e + m));
  }
  if (isnan(v->other)) return is_nan(got, e, m);
  return got == (((1u << e) - 1) << m | (uint32_t)(v->other < 0) << (e + m));
}

/* The exact value of every weight, rounded once to each of the three types. */
static void check_values(const sample *s, lpgemm_weights_t weights) {
  static const lpgemm_dtype_t types[3] = {LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16};
  const lpgemm_weight_desc_t *d = &s->desc;
  int64_t ld = sample_x_k(d) + 3;
  uint8_t *out[3];
  for (int i = 0; i < 3; i++) {
    out[i] = test_alloc((size_t)(d->n * ld) * (i ? 2 : 4));
    CHECK_STATUS(lpgemm_unpack_weights(handle, weights, types[i], out[i], ld), LPGEMM_SUCCESS);
  }
  test_wait();
  for (int64_t n = 0; n < d->n; n++) {
    for (int64_t k = 0; k < d->k; k++) {
      sample_value v = sample_weight(s, n, k);
      for (int i = 0; i < 3; i++) {
        size_t bytes = i ? 2 : 4;
        uint32_t got = 0;
        memcpy(&got, out[i] + (size_t)(n * ld + sample_column(s, k)) * bytes, bytes);
        if (right_value(&v, got, types[i])) continue;
        test_fail(__FILE__, __LINE__, "weight (%lld, %lld) as %s is 0x%x, not the nearest to %g", (long long)n,
                  (long long)k, lpgemm_dtype_name(types[i]), got, v.finite ? exact_double(v.value) : v.other);
      }
    }
  }
  for (int i = 0; i < 3; i++) test_free(out[i]);
}

/* Everything comes out of a row-major source of bytes; the same packed bytes come of a column-major bit stream. */
static void check_sample(sample *s) {
  lpgemm_weights_t weights = sample_pack(handle, s);
  if (weights == NULL) return;
  check_codes(s, weights, 0);
  check_parts(s, weights);
  check_values(s, weights);
  sample_lay_out(s, LPGEMM_CODES_BITS, 0, LPGEMM_COLUMN_MAJOR);
  lpgemm_weights_t again = sample_pack(handle, s);
  if (again) {
    size_t a_size = 0, b_size = 0;
    uint8_t *a = sample_blob(handle, weights, &a_size), *b = sample_blob(handle, again, &b_size);
    CHECK(a && b && a_size == b_size && memcmp(a, b, a_size) == 0);
    test_free(a);
    test_free(b);
  }
  CHECK_STATUS(lpgemm_weights_destroy(again), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

/* ---- sources ---- */

static void round_trip(lpgemm_dtype_t type) {
  if (!test_case("pack/codes/%s", lpgemm_dtype_name(type))) return;
  static const int64_t shapes[][2] = {{1, 1},    {1, 16},   {2, 15},   {15, 17},  {16, 256},
                                      {17, 257}, {33, 300}, {64, 512}, {100, 31}, {257, 1000}};
  static const int64_t gaps[] = {0, 1, 3, 24};
  for (int i = 0; i < 10; i++) {
    lpgemm_weight_desc_t desc = sample_desc(shapes[i][0], shapes[i][1], type, 0, 0);
    sample s;
    sample_make(&s, &desc);
    for (int layout = LPGEMM_CODES_BYTES; layout <= LPGEMM_CODES_BITS; layout++) {
      int64_t gap = gaps[(i + 2 * layout) % 4]; /* odd offsets of the rows in the bit stream */
      sample_lay_out(&s, (lpgemm_code_layout_t)layout, gap ? desc.k + gap : 0, LPGEMM_ROW_MAJOR);
      lpgemm_weights_t weights = sample_pack(handle, &s);
      if (weights) check_codes(&s, weights, i % 2 ? desc.k + 5 : 0);
      CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    }
    sample_free(&s);
  }
}

/* Every source of the same matrix gives the same bytes, and so does memory of the caller. */
static void same_bytes(lpgemm_dtype_t type) {
  if (!test_case("pack/same_bytes/%s", lpgemm_dtype_name(type))) return;
  lpgemm_weight_desc_t desc = sample_desc_zeros(35, 290, type, 32, LPGEMM_F16, LPGEMM_BF16);
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(&desc, &bytes), LPGEMM_SUCCESS);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t first = sample_pack(handle, &s);
  lpgemm_weights_info_t own = {.size = sizeof own}, theirs = {.size = sizeof theirs};
  CHECK_STATUS(lpgemm_weights_info(first, &own), LPGEMM_SUCCESS);
  CHECK_INT(own.packed_bytes, bytes);
  CHECK((uintptr_t)own.memory % 256 == 0);
  size_t size = 0;
  uint8_t *packed = sample_blob(handle, first, &size);
  for (int i = 0; i < 4 && packed; i++) {
    sample_lay_out(&s, i & 1 ? LPGEMM_CODES_BITS : LPGEMM_CODES_BYTES, 293,
                   i & 2 ? LPGEMM_COLUMN_MAJOR : LPGEMM_ROW_MAJOR);
    uint8_t *memory = test_alloc(bytes);
    lpgemm_weights_t weights = NULL;
    CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &s.source, memory, bytes, &weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_info(weights, &theirs), LPGEMM_SUCCESS);
    CHECK(theirs.memory == memory);
    CHECK(theirs.payload_hash == own.payload_hash);
    CHECK(memcmp(memory, packed, bytes) == 0);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    CHECK(memcmp(memory, packed, bytes) == 0); /* the caller's memory stays the caller's */
    test_free(memory);
  }
  test_free(packed);
  CHECK_STATUS(lpgemm_weights_destroy(first), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* ---- scales and zeros of every kind, in both orders ---- */

static void check_matrix(const lpgemm_weight_desc_t *desc) {
  sample s;
  sample_make(&s, desc);
  check_sample(&s);
  sample_free(&s);
}

static void values(lpgemm_dtype_t type) {
  if (!test_case("pack/values/%s", lpgemm_dtype_name(type))) return;
  lpgemm_weight_desc_t desc = sample_desc(19, 200, type, 0, 0);
  check_matrix(&desc);
  desc = sample_desc_zeros(19, 200, type, 48, LPGEMM_F32, LPGEMM_F32);
  desc.global_scale = -0.7f;
  check_matrix(&desc);
  desc.zero = LPGEMM_ZERO_MINIMUM;
  check_matrix(&desc);
  desc = sample_desc(19, 200, type, 32, LPGEMM_E8M0);
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 1.5f;
  check_matrix(&desc);
}

static void scales_and_zeros(void) {
  static const lpgemm_dtype_t zeros[] = {LPGEMM_U8, LPGEMM_U16, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  static const int64_t groups[] = {16, 32, 80, 128, 0};
  for (int i = 0; i < SAMPLE_SCALES; i++) {
    for (int j = 0; j < 5; j++) {
      if (!test_case("pack/parts/%s/%s", lpgemm_dtype_name(sample_scale[i]), lpgemm_dtype_name(zeros[j]))) continue;
      lpgemm_dtype_t type = sample_type((int)test_between(0, SAMPLE_TYPES - 1));
      lpgemm_weight_desc_t desc = sample_desc_zeros(33, 300, type, groups[(i + j) % 5], sample_scale[i], zeros[j]);
      check_matrix(&desc);
      desc.type = LPGEMM_UINT(8);
      memset(desc.codebook, 0, sizeof desc.codebook);
      check_matrix(&desc);
      if (j < 2) continue;
      desc.zero = LPGEMM_ZERO_MINIMUM;
      desc.global_scale = 3.1f;
      check_matrix(&desc);
    }
  }
}

static void two_levels(void) {
  static const lpgemm_dtype_t codes[] = {LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_E4M3};
  static const lpgemm_dtype_t supers[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 3; j++) {
      if (!test_case("pack/two_levels/%s/%s", lpgemm_dtype_name(codes[i]), lpgemm_dtype_name(supers[j]))) continue;
      lpgemm_weight_desc_t desc = sample_desc_q4k(37, 600);
      desc.scale_type = codes[i];
      desc.zero_type = codes[3 - i];
      desc.super_scale_type = supers[j];
      desc.super_zero_type = supers[2 - j];
      check_matrix(&desc);
      desc.super_k = 0;
      desc.global_scale = 0.9f;
      check_matrix(&desc);
      desc.super_k = 96;
      desc.super_zero_type = 0; /* two-level scales with minima of one level */
      desc.zero_type = supers[j];
      check_matrix(&desc);
      desc.zero = LPGEMM_ZERO_PER_GROUP;
      check_matrix(&desc);
      desc.zero = LPGEMM_ZERO_NONE; /* NVFP4 */
      desc.zero_type = 0;
      desc.type = LPGEMM_FLOAT(2, 1);
      desc.group_k = 16;
      check_matrix(&desc);
    }
  }
}

/* Scales that are no ordinary numbers go in and out unchanged, and weights take the values they must. */
static void unusual_scales(void) {
  if (!test_case("pack/unusual_scales")) return;
  static const uint16_t half[] = {0, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
  static const uint8_t power[] = {0, 1, 126, 127, 128, 253, 254, 255};
  for (int i = 0; i < 2; i++) {
    lpgemm_weight_desc_t desc = sample_desc(8, 16, LPGEMM_INT(4), 0, i ? LPGEMM_E8M0 : LPGEMM_F16);
    sample s;
    sample_make(&s, &desc);
    memcpy(s.part[LPGEMM_PART_SCALES], i ? (const void *)power : (const void *)half, s.part_bytes[LPGEMM_PART_SCALES]);
    sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
    check_sample(&s);
    sample_free(&s);
  }
}

/* Values a hair beside the middle between two numbers of an output type, where rounding twice goes wrong: 1 -+ 2^-60 or
 * 1 -+ 2^-70 times a scale (and the global scale). */
static void double_rounding(void) {
  static const float scales[] = {0x1.004p0f, 0x1.002p0f, 0x1.01p0f, 0x1.001p0f}; /* 1 + 2^-10, -11, -8, -12 */
  for (int zero = LPGEMM_ZERO_PER_GROUP; zero <= LPGEMM_ZERO_MINIMUM; zero++) {
    if (!test_case("pack/double_rounding/%d", zero)) continue;
    lpgemm_weight_desc_t desc = sample_desc_zeros(12, 16, LPGEMM_INT(2), 0, LPGEMM_F32, LPGEMM_F32);
    desc.zero = (lpgemm_zero_t)zero;
    for (int global = 0; global < 2; global++) {
      desc.global_scale = global ? 0x1.001p0f : 1.0f;
      sample s;
      sample_make(&s, &desc);
      for (int n = 0; n < 12; n++) {
        ((float *)s.part[LPGEMM_PART_SCALES])[n] = scales[n % 4];
        ((float *)s.part[LPGEMM_PART_ZEROS])[n] = (float)(n / 4 - 1) * (global ? 0x1p-60f : 0x1p-70f);
      }
      sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
      check_sample(&s);
      sample_free(&s);
    }
  }
}

static void version_2(void) {
  static const int64_t shared[] = {0, 16, 48, 128};
  for (int features = 0; features < 8; features++) {
    for (int i = 0; i < 4; i++) {
      if (!test_case("pack/version_2/%d/%d", features, (int)shared[i])) continue;
      for (int t = 0; t < SAMPLE_TYPES; t += 11 + features + i) {
        lpgemm_weight_desc_t descs[] = {sample_desc_zeros(53, 200, sample_type(t), 32, LPGEMM_F16, LPGEMM_BF16),
                                        sample_desc_q4k(53, 600),
                                        sample_desc(53, 290, sample_type(t), 128, LPGEMM_F32)};
        for (int j = 0; j < 3; j++) {
          if (features & 1) descs[j].columns = LPGEMM_COLUMNS_ORDERED;
          if (features & 2) descs[j].row_scales = LPGEMM_F32;
          if ((features & 5) == 5) descs[j].x_k = descs[j].k + 1 + t;
          descs[j].group_n = shared[i];
          check_matrix(&descs[j]);
        }
      }
    }
  }
}

/* The part of a rank that has no columns: all of the source's come out as 0. */
static void no_columns(void) {
  if (!test_case("pack/no_columns")) return;
  enum { N = 20, X_K = 40 };
  lpgemm_weight_desc_t desc = sample_desc(N, 0, LPGEMM_UINT(4), 32, LPGEMM_F16);
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  desc.x_k = X_K;
  lpgemm_weight_source_t source = {.size = sizeof source};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights), LPGEMM_SUCCESS);
  float *out = test_alloc(sizeof *out * N * X_K);
  uint8_t *codes = test_alloc(N * X_K);
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, out, 0), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_U8, codes, 0), LPGEMM_SUCCESS);
  test_wait();
  for (int i = 0; i < N * X_K; i++) CHECK(out[i] == 0.0f && codes[i] == 0);
  test_free(codes);
  test_free(out);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

static void empty(void) {
  if (!test_case("pack/empty")) return;
  static const int64_t shapes[][2] = {{0, 0}, {0, 100}, {20, 0}};
  for (int i = 0; i < 3; i++) {
    for (int group = 0; group <= 32; group += 32) {
      lpgemm_weight_desc_t desc = sample_desc(shapes[i][0], shapes[i][1], LPGEMM_UINT(4), group, LPGEMM_F16);
      sample s;
      sample_make(&s, &desc);
      lpgemm_weights_t weights = sample_pack(handle, &s);
      if (weights) {
        check_codes(&s, weights, 0);
        check_parts(&s, weights);
        CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, NULL, 0), LPGEMM_SUCCESS);
      }
      CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
      s.source.codes = NULL; /* nothing to read: no array is needed */
      s.source.codes_bytes = 0;
      weights = sample_pack(handle, &s);
      CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
      sample_free(&s);
    }
  }
}

/* ---- refusals ---- */

static int all_fill(const uint8_t *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    if (memory[i] != 0xCD) return 0;
  }
  return 1;
}

/* What memory holds after a refusal: what it held before, or after a bad code, which packing finds on the way, no
 * header. */
static int is_refused(const uint8_t *memory, size_t bytes, lpgemm_status_t status) {
  if (status != LPGEMM_INVALID_CODE) return all_fill(memory, bytes);
  for (size_t i = 0; i < 512; i++) {
    if (memory[i] != 0) return all_fill(memory, bytes);
  }
  return 1;
}

/* Packs into fresh memory: `want`, a sentence with both words, and no weights. */
static void check_refused(const sample *s, lpgemm_status_t want, const char *word, const char *other) {
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(&s->desc, &bytes), LPGEMM_SUCCESS);
  uint8_t *memory = test_alloc(bytes);
  lpgemm_weights_t weights = (lpgemm_weights_t)(uintptr_t)0xCDCD;
  CHECK_STATUS(lpgemm_pack_weights(handle, &s->desc, &s->source, memory, bytes, &weights), want);
  CHECK(weights == (lpgemm_weights_t)(uintptr_t)0xCDCD);
  if (!strstr(lpgemm_last_error(), word) || !strstr(lpgemm_last_error(), other)) {
    test_fail(__FILE__, __LINE__, "\"%s\" does not name %s and %s", lpgemm_last_error(), word, other);
  }
  CHECK(is_refused(memory, bytes, want));
  test_free(memory);
}

static void wide_codes(void) {
  for (uint32_t bits = 1; bits < 8; bits++) {
    if (!test_case("pack/wide_code/%u", (unsigned)bits)) continue;
    lpgemm_weight_desc_t desc = sample_desc(40, 300, LPGEMM_UINT(bits), 0, 0);
    sample s;
    sample_make(&s, &desc);
    static const int64_t places[][2] = {{0, 0}, {39, 299}, {17, 255}, {17, 256}, {5, 63}, {39, 31}};
    for (int i = 0; i < 6; i++) {
      int64_t at = places[i][0] * 300 + places[i][1];
      uint8_t good = s.source_codes[at];
      char row[24], column[24];
      snprintf(row, sizeof row, "%d", (int)places[i][0]);
      snprintf(column, sizeof column, "%d", (int)places[i][1]);
      for (uint32_t bit = bits; bit < 8; bit++) {
        s.source_codes[at] = (uint8_t)(good | 1u << bit);
        check_refused(&s, LPGEMM_INVALID_CODE, row, column);
      }
      s.source_codes[at] = good;
    }
    lpgemm_weights_t weights = sample_pack(handle, &s);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    /* what lies between the rows is not read as codes */
    sample_lay_out(&s, LPGEMM_CODES_BYTES, 311, LPGEMM_ROW_MAJOR);
    weights = sample_pack(handle, &s);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    sample_free(&s);
  }
}

/* Sign-extended codes of two's complement types are too wide as well: a code is the number's bits, upper bits zero. */
static void sign_extended(void) {
  if (!test_case("pack/sign_extended")) return;
  lpgemm_weight_desc_t desc = sample_desc(16, 64, LPGEMM_INT(4), 0, 0);
  sample s;
  sample_make(&s, &desc);
  s.source_codes[100] = 0xff;
  check_refused(&s, LPGEMM_INVALID_CODE, "codes", "1");
  sample_free(&s);
}

static void bad_parts(void) {
  if (!test_case("pack/bad_parts")) return;
  lpgemm_weight_desc_t desc = sample_desc_zeros(20, 128, LPGEMM_UINT(3), 32, LPGEMM_F16, LPGEMM_U8);
  sample s;
  sample_make(&s, &desc);
  uint8_t *zeros = s.source_part[LPGEMM_PART_ZEROS];
  zeros[20 * 4 - 1] = 8; /* 2^bits is the largest */
  lpgemm_weights_t weights = sample_pack(handle, &s);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  zeros[20 * 4 - 1] = 9;
  check_refused(&s, LPGEMM_INVALID_CODE, "zeros", "9");
  sample_free(&s);

  desc.zero_type = LPGEMM_U16;
  sample_make(&s, &desc);
  ((uint16_t *)s.source_part[LPGEMM_PART_ZEROS])[7] = 0x0108;
  check_refused(&s, LPGEMM_INVALID_CODE, "zeros", "264");
  sample_free(&s);

  desc = sample_desc_q4k(20, 512);
  for (int i = 0; i < 2; i++) {
    lpgemm_part_t part = i ? LPGEMM_PART_ZEROS : LPGEMM_PART_SCALES;
    sample_make(&s, &desc);
    ((uint8_t *)s.source_part[part])[100] = 64;
    check_refused(&s, LPGEMM_INVALID_CODE, i ? "zeros" : "scales", "64");
    sample_free(&s);
  }
}

/* Every array one byte short, missing, given though not asked for, or out of line. */
static void bad_arrays(void) {
  if (!test_case("pack/bad_arrays")) return;
  lpgemm_weight_desc_t desc = sample_desc_q4k(20, 512);
  sample s;
  sample_make(&s, &desc);
  const lpgemm_weight_source_t good = s.source;
  static const struct {
    const char *name;
    size_t pointer, bytes; /* offsets in the source */
    int aligned;
  } arrays[] = {
#define ARRAY(name, aligned) \
  {#name, offsetof(lpgemm_weight_source_t, name), offsetof(lpgemm_weight_source_t, name##_bytes), aligned}
      ARRAY(codes, 0), ARRAY(scales, 0), ARRAY(zeros, 0), ARRAY(super_scales, 1), ARRAY(super_zeros, 1),
#undef ARRAY
  };
  for (int i = 0; i < 5; i++) {
    char *base = (char *)&s.source;
    size_t bytes;
    const char *array;
    memcpy(&bytes, base + arrays[i].bytes, sizeof bytes);
    memcpy(&array, base + arrays[i].pointer, sizeof array);
    bytes--;
    memcpy(base + arrays[i].bytes, &bytes, sizeof bytes);
    check_refused(&s, LPGEMM_BUFFER_TOO_SMALL, arrays[i].name, "bytes");
    s.source = good;
    memset(base + arrays[i].pointer, 0, sizeof(void *));
    check_refused(&s, LPGEMM_NULL_POINTER, arrays[i].name, "NULL");
    s.source = good;
    if (!arrays[i].aligned) continue;
    array++;
    memcpy(base + arrays[i].pointer, &array, sizeof array);
    check_refused(&s, LPGEMM_MISALIGNED, arrays[i].name, "align");
    s.source = good;
  }
  s.desc = sample_desc(20, 512, LPGEMM_UINT(4), 0, 0);
  for (int i = 1; i < 5; i++) { /* an array that the description does not ask for */
    s.source.scales = s.source.zeros = s.source.super_scales = s.source.super_zeros = NULL;
    s.source.scales_bytes = s.source.zeros_bytes = s.source.super_scales_bytes = s.source.super_zeros_bytes = 0;
    const void *array = s.part[i];
    memcpy((char *)&s.source + arrays[i].pointer, &array, sizeof array);
    memcpy((char *)&s.source + arrays[i].bytes, &s.part_bytes[i], sizeof(size_t));
    check_refused(&s, LPGEMM_INVALID_ARGUMENT, arrays[i].name, "");
  }
  s.desc = desc;
  sample_free(&s);
}

static void bad_layouts(void) {
  if (!test_case("pack/bad_layouts")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 100, LPGEMM_UINT(4), 0, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  const lpgemm_weight_source_t good = s.source;
  s.source.codes_ld = 99;
  check_refused(&s, LPGEMM_INVALID_SIZE, "codes_ld", "100");
  s.source.codes_ld = -1;
  check_refused(&s, LPGEMM_INVALID_SIZE, "codes_ld", "-1");
  s.source.codes_ld = INT64_MAX / 4;
  s.source.codes_bytes = SIZE_MAX;
  check_refused(&s, LPGEMM_SIZE_OVERFLOW, "codes_ld", "");
  s.source = good;
  s.source.code_layout = (lpgemm_code_layout_t)2;
  check_refused(&s, LPGEMM_INVALID_ARGUMENT, "code_layout", "2");
  s.source = good;
  s.source.order = (lpgemm_order_t)7;
  check_refused(&s, LPGEMM_INVALID_ARGUMENT, "order", "7");
  s.source = good;
  s.source.reserved[3] = 1;
  check_refused(&s, LPGEMM_INVALID_STRUCT, "reserved", "3");
  sample_free(&s);
}

void suite_pack(void) {
  handle = sample_handle();
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    round_trip(sample_type(i));
    same_bytes(sample_type(i));
    values(sample_type(i));
  }
  scales_and_zeros();
  two_levels();
  unusual_scales();
  double_rounding();
  version_2();
  empty();
  no_columns();
  wide_codes();
  sign_extended();
  bad_parts();
  bad_arrays();
  bad_layouts();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
