/* The packed form against its specification: every matrix is read back by ref/format_reader.c, which was written from
 * FORMAT.md alone, and a few bytes are compared with literals that were computed from FORMAT.md by a third program. */
#include <math.h>

#include "ref/format_reader.h"
#include "sample.h"
#include "test.h"

static lpgemm_handle_t handle;

/* The reader finds in the blob what the sample put in. */
static void check_read(const sample *s, const uint8_t *blob, uint64_t size) {
  const lpgemm_weight_desc_t *d = &s->desc;
  format_reader r;
  const char *wrong = format_open(&r, blob, size);
  if (wrong != NULL) {
    test_fail(__FILE__, __LINE__, "the reader refuses the blob: %s", wrong);
    return;
  }
  CHECK(r.n == d->n && r.k == d->k && r.group_k == d->group_k && r.super_k == d->super_k);
  CHECK(r.type == d->type && r.scale_type == d->scale_type && r.super_scale_type == d->super_scale_type);
  CHECK(r.zero == (uint32_t)d->zero && r.zero_type == d->zero_type && r.super_zero_type == d->super_zero_type);
  CHECK(r.zero_constant == d->zero_constant);
  CHECK(r.global_scale == (d->global_scale == 0.0f ? 1.0f : d->global_scale));
  CHECK(memcmp(r.codebook, d->codebook, sizeof r.codebook) == 0);
  CHECK(r.columns == (uint32_t)d->columns && r.row_scales == d->row_scales && r.x_k == d->x_k);
  CHECK(r.group_n == (d->group_n == 1 ? 0 : d->group_n));
  for (int64_t k = 0; k < d->k; k++) CHECK_INT(format_column(&r, k), sample_column(s, k));
  for (int64_t n = 0; n < d->n && d->row_scales; n++) {
    CHECK(format_row_scale(&r, n) == (double)((const float *)s->part[LPGEMM_PART_ROW_SCALES])[n]);
  }
  for (int64_t n = 0; n < d->n; n++) {
    for (int64_t k = 0; k < d->k; k++) {
      uint32_t got = format_code(&r, n, k), want = s->codes[n * sample_x_k(d) + sample_column(s, k)];
      if (got == want) continue;
      test_fail(__FILE__, __LINE__, "code (%lld, %lld) is %u, not %u", (long long)n, (long long)k, got, want);
      return;
    }
  }
  for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_SUPER_ZEROS; part++) {
    int64_t columns = sample_part_columns(d, (lpgemm_part_t)part);
    size_t bytes = ((size_t)lpgemm_dtype_bits(sample_part_type(d, (lpgemm_part_t)part)) + 7) / 8;
    for (int64_t i = 0; i < d->n * columns; i++) { /* sections 1 to 4 are the parts 1 to 4 */
      const int64_t row = d->group_n > 1 ? i / columns / d->group_n : i / columns;
      uint32_t want = 0;
      memcpy(&want, (const uint8_t *)s->part[part] + (size_t)(row * columns + i % columns) * bytes, bytes);
      CHECK_INT(format_bits(&r, part, i / columns, i % columns), want);
    }
  }
}

static void check_sample(const sample *s) {
  lpgemm_weights_t weights = sample_pack(handle, s);
  if (!weights) return;
  size_t size = 0, promised = 0;
  uint8_t *blob = sample_blob(handle, weights, &size);
  CHECK_STATUS(lpgemm_packed_size(&s->desc, &promised), LPGEMM_SUCCESS);
  CHECK_INT(size, promised);
  if (blob) check_read(s, blob, size);
  test_free(blob);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

static void check_packed(const lpgemm_weight_desc_t *desc) {
  sample s;
  sample_make(&s, desc);
  check_sample(&s);
  sample_free(&s);
}

/* ---- what the reader reads ---- */

static void codes(void) {
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    if (!test_case("format/codes/%s", lpgemm_dtype_name(sample_type(i)))) continue;
    static const int64_t shapes[][2] = {{1, 1}, {16, 256}, {17, 255}, {35, 523}};
    for (int j = 0; j < 4; j++) {
      lpgemm_weight_desc_t desc = sample_desc(shapes[j][0], shapes[j][1], sample_type(i), 32, LPGEMM_F16);
      check_packed(&desc);
    }
  }
}

static void scales(void) {
  static const int64_t groups[] = {16, 32, 48, 64, 128, 512, 0};
  for (int i = 0; i < SAMPLE_SCALES; i++) {
    for (int j = 0; j < 7; j++) {
      if (!test_case("format/scales/%s/%d", lpgemm_dtype_name(sample_scale[i]), (int)groups[j])) continue;
      lpgemm_weight_desc_t desc = sample_desc(21, 300, LPGEMM_UINT(3), groups[j], sample_scale[i]);
      desc.global_scale = 0.3f;
      check_packed(&desc);
    }
  }
}

static void zeros(void) {
  static const lpgemm_dtype_t types[] = {LPGEMM_U8, LPGEMM_U16, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  for (int i = 0; i < 5; i++) {
    if (!test_case("format/zeros/%s", lpgemm_dtype_name(types[i]))) continue;
    lpgemm_weight_desc_t desc = sample_desc_zeros(33, 200, LPGEMM_UINT(4), 64, LPGEMM_F16, types[i]);
    check_packed(&desc);
    if (i < 2) continue;
    desc.zero = LPGEMM_ZERO_MINIMUM;
    check_packed(&desc);
  }
  if (test_case("format/zeros/constant")) {
    lpgemm_weight_desc_t desc = sample_desc(33, 200, LPGEMM_UINT(4), 64, LPGEMM_F16);
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = 1.5f;
    check_packed(&desc);
  }
}

static void two_levels(void) {
  static const lpgemm_dtype_t codes[] = {LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_E4M3};
  static const lpgemm_dtype_t supers[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 3; j++) {
      if (!test_case("format/two_levels/%s/%s", lpgemm_dtype_name(codes[i]), lpgemm_dtype_name(supers[j]))) continue;
      lpgemm_weight_desc_t desc = sample_desc_q4k(37, 600);
      desc.scale_type = codes[i];
      desc.zero_type = codes[3 - i];
      desc.super_scale_type = supers[j];
      desc.super_zero_type = supers[2 - j];
      check_packed(&desc);
      desc.super_k = 0;
      check_packed(&desc);
      desc.group_k = 48;
      desc.super_k = 144;
      check_packed(&desc);
    }
  }
}

/* What version 2 adds, alone and together, to one level and to two. */
static void version_2(void) {
  static const int64_t shared[] = {0, 1, 16, 32, 128};
  for (int features = 0; features < 8; features++) {
    for (int i = 0; i < 5; i++) {
      if (!test_case("format/version_2/%d/%d", features, (int)shared[i])) continue;
      lpgemm_weight_desc_t descs[] = {sample_desc_zeros(75, 300, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8),
                                      sample_desc_q4k(75, 600), sample_desc(75, 300, LPGEMM_E4M3, 128, LPGEMM_F32),
                                      sample_desc(75, 300, LPGEMM_INT(3), 0, 0)};
      for (int j = 0; j < 4; j++) {
        if (features & 1) descs[j].columns = LPGEMM_COLUMNS_ORDERED;
        if (features & 2) descs[j].row_scales = LPGEMM_F32;
        if (features & 4) descs[j].x_k = features & 1 ? descs[j].k + 40 : 0;
        descs[j].group_n = j < 3 ? shared[i] : 0;
        check_packed(&descs[j]);
      }
    }
  }
}

/* What shares nothing is plain: version 1, and the same bytes. */
static void plain_stays_plain(void) {
  if (!test_case("format/plain_stays_plain")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 100, LPGEMM_UINT(4), 0, 0);
  sample s;
  sample_make(&s, &desc);
  size_t size = 0;
  lpgemm_weights_t weights = sample_pack(handle, &s);
  uint8_t *plain = sample_blob(handle, weights, &size);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  static const int64_t nothing[] = {1, 16, 64};
  for (int i = 0; i < 3 && plain; i++) {
    s.desc.group_n = nothing[i];
    weights = sample_pack(handle, &s);
    uint8_t *blob = sample_blob(handle, weights, &size);
    CHECK(blob && blob[12] == 1 && memcmp(blob, plain, size) == 0);
    test_free(blob);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  }
  test_free(plain);
  sample_free(&s);
}

static void empty(void) {
  if (!test_case("format/empty")) return;
  static const int64_t shapes[][2] = {{0, 0}, {0, 256}, {17, 0}};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 2; j++) {
      lpgemm_weight_desc_t desc = sample_desc(shapes[i][0], shapes[i][1], LPGEMM_UINT(4), 32 * j, LPGEMM_F16);
      check_packed(&desc);
      desc.scale_type = 0;
      check_packed(&desc);
    }
  }
}

/* Scales that reach the ends of FORMAT.md section 8: zero, subnormal, infinite, far apart. */
static void row_exponents(void) {
  if (!test_case("format/row_exponents")) return;
  static const float rows[][3] = {{1.0f, 0.5f, 2.0f},    {0.0f, 0.0f, 0.0f},       {0.0f, -6.0f, 0.25f},
                                  {1e-38f, 1e-39f, 0},   {1e-45f, 1e-44f, 1e-43f}, {3e38f, 1e-38f, 1},
                                  {-1.9f, -1.9f, -1.9f}, {INFINITY, 1.0f, 4.0f},   {NAN, 0.0f, 0.0f}};
  enum { ROWS = sizeof rows / sizeof rows[0] };
  for (int first = 0; first < ROWS; first++) {
    for (int count = 1; first + count <= ROWS; count++) { /* rows together, because the span is the matrix's */
      lpgemm_weight_desc_t desc = sample_desc(count, 48, LPGEMM_UINT(4), 16, LPGEMM_F32);
      sample s;
      sample_make(&s, &desc);
      memcpy(s.part[LPGEMM_PART_SCALES], rows[first], s.part_bytes[LPGEMM_PART_SCALES]);
      sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
      check_sample(&s);
      sample_free(&s);
    }
  }
}

/* ---- literal bytes ---- */

static uint8_t golden_code(int bits, int row, int column) {
  return (uint8_t)((uint32_t)(row * 4099 + column * 257 + 12345) * 40503u >> 9 & ((1u << bits) - 1));
}

/* One tile: the words of lanes 0 and 30 and the hash of section 2 over all its bytes. */
static void golden_tiles(void) {
  static const struct {
    int bits;
    uint64_t hash;
    uint32_t lane0[28], lane30[28];
  } golden[] = {
      {1,
       0x59223da41c3565c0,
       {0x38870ff1, 0xe11c3c87, 0x1cc38770, 0x700e1cc3},
       {0x1ec3c778, 0x700f1ee3, 0x0ee1c33c, 0x38870fe1}},
      {2,
       0xf598fe8b2facaa4a,
       {0x4837dd89, 0x23d27837, 0x27e28877, 0xde8927e2},
       {0x74279d48, 0x22dd7427, 0x23d27837, 0x9d8823de}},
      {3,
       0xcd962e16a4831349,
       {0x3c67078d, 0xd13a3c67, 0x3c6087d5, 0xe33a3c67, 0x3ca899d5, 0x633a3ca8, 0x09d5e33a, 0x3c6009d5, 0x99d5e303,
        0x3ca899d5, 0x99d66543, 0x4ea899d6},
       {0x2a67878c, 0x50f12a67, 0x3c67078d, 0xd13a3c67, 0x3c6087d5, 0x633a3c67, 0x0795d33a, 0x3c67078d, 0x89d5e33a,
        0x3c6089d5, 0x99d56303, 0x3ca899d5}},
      {4,
       0x8f684de3f58b14cb,
       {0xe49f39e5, 0x8f4ae49f, 0x18c37d28, 0xc27d17c3},
       {0xd49f39e4, 0x8e39d49f, 0x17c26d18, 0xc27d17c2}},
      {5,
       0x827c75cb20dd5c92,
       {0x648f3b25, 0x91fa648f, 0x606eb703, 0x89b85c6e, 0x582caee2, 0x0597582c, 0xd40baaa0,
        0x7d56d40b, 0x4fcaa69f, 0xf9344fca, 0x1e5df0f2, 0x47881e5d, 0x961cecd1, 0x4366961c,
        0x91fa6490, 0x3b4591fa, 0x09d9e06e, 0x370309d9, 0x8597584d, 0x32e28597},
       {0x269ff934, 0x4fc9269f, 0x1e5d7513, 0xcba81e5d, 0x1a3cecd1, 0x43871a3c, 0x921be8b0,
        0x3f4591fb, 0x8dd9606f, 0x3b248dd9, 0x584db2e2, 0x0597582d, 0xd40baaa1, 0x0176d40b,
        0xd3ea269f, 0x7934d3ea, 0x4ba8a27e, 0x75134ba8, 0x47879a3c, 0xecd24787}},
      {6,
       0xc28c641d4af0c42f,
       {0x12fa645f, 0xbda412fa, 0xb99e0ee4, 0x6049b99e, 0x603eb587, 0x0ad95c3e, 0x06c35c29, 0xb17e06c3, 0xad6802be,
        0x5813ad68, 0x5409a95e, 0xfea75409},
       {0xd1f9274f, 0x7894d1f9, 0x749ecde3, 0x2339749e, 0x1f297482, 0xc9d41f29, 0xc5c31b18, 0x707ec5c3, 0x6c68c1bd,
        0x17026c68, 0x13046859, 0xbda212f4}},
      {7,
       0x65d6e2c4f5d5eb19,
       {0x08bf3315, 0x5f6a89bf, 0x5d6487ba, 0xb013dc64, 0xb00dda62, 0x04b72f0d, 0x02b02f0a,
        0x595f83b0, 0x575a81af, 0xac04d65a, 0xaa02d457, 0xfea92b02, 0xfca928fd, 0x53537daa,
        0xa5f5ce4a, 0xf8a024f5, 0xf89c22f1, 0x4d47799c, 0x4b42779b, 0xa1ecca42, 0x9feac843,
        0xf4941eea, 0xf2911ce6, 0x47387391, 0x453b718c, 0x9be2c43b, 0x99dec434, 0xee8918dd},
       {0x697f93d0, 0xbc26e87f, 0xba24e67a, 0x10cf3b24, 0x0ec83b21, 0x65768fc8, 0x63708dc5,
        0xb81ee270, 0xb61ae06f, 0x0ac0371a, 0x08c13516, 0x5f6889bd, 0x5d6687be, 0xb210dc65,
        0x04b52f0a, 0x595f83b5, 0x575883b1, 0xac06d658, 0xaa01d456, 0x00af2b01, 0xfeaa28ff,
        0x53507faa, 0x51517da6, 0xa7f8d051, 0xa5f6d04f, 0xfaa124f6, 0xf89d22f1, 0x4d4b799e}},
      {8,
       0xd85cb39241d8ab4d,
       {0x842f19c5, 0xaf5a44ef, 0x2ed9c36e, 0x5804ee99},
       {0xb45f49f4, 0xde89741f, 0x5d09f39e, 0x88331dc9}},
  };
  static const int tile_k[9] = {0, 256, 128, 256, 64, 256, 128, 256, 32};
  static const lpgemm_dtype_t types[9] = {0,
                                          LPGEMM_BIPOLAR(1),
                                          LPGEMM_UINT(2),
                                          LPGEMM_UINT(3),
                                          LPGEMM_UINT(4),
                                          LPGEMM_FLOAT(2, 2),
                                          LPGEMM_FLOAT(3, 2),
                                          LPGEMM_BIPOLAR(7),
                                          LPGEMM_E4M3};
  for (int i = 0; i < 8; i++) {
    int bits = golden[i].bits, columns = tile_k[bits], words = columns * bits / 64;
    if (!test_case("format/golden_tile/%s", lpgemm_dtype_name(types[bits]))) continue;
    lpgemm_weight_desc_t desc = sample_desc(16, columns, types[bits], 0, 0);
    sample s;
    sample_make(&s, &desc);
    for (int at = 0; at < 16 * columns; at++) s.codes[at] = golden_code(bits, at / columns, at % columns);
    sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
    lpgemm_weights_t weights = sample_pack(handle, &s);
    size_t size = 0;
    uint8_t *blob = weights ? sample_blob(handle, weights, &size) : NULL;
    if (blob) {
      const uint8_t *tile = blob + 512;
      CHECK_INT(size, 512 + 2 * columns * bits);
      CHECK_INT(format_hash(tile, size - 512), golden[i].hash);
      for (int w = 0; w < words; w++) {
        for (int lane = 0; lane <= 30; lane += 30) {
          const uint8_t *at = tile + (w / 4 * 32 + lane) * 16 + w % 4 * 4;
          uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
          CHECK_INT(word, lane ? golden[i].lane30[w] : golden[i].lane0[w]);
        }
      }
    }
    test_free(blob);
    lpgemm_weights_destroy(weights);
    sample_free(&s);
  }
}

/* The example of FORMAT.md section 5.1. */
static void documented_word(void) {
  if (!test_case("format/documented_word")) return;
  lpgemm_weight_desc_t desc = sample_desc(16, 64, LPGEMM_UINT(4), 0, 0);
  sample s;
  sample_make(&s, &desc);
  for (int at = 0; at < 16 * 64; at++) s.codes[at] = (uint8_t)(at % 16);
  sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
  lpgemm_weights_t weights = sample_pack(handle, &s);
  static const uint8_t word[4] = {0x00, 0x88, 0x11, 0x99};
  size_t size = 0;
  uint8_t *blob = weights ? sample_blob(handle, weights, &size) : NULL;
  if (blob) CHECK(memcmp(blob + 512, word, 4) == 0);
  test_free(blob);
  lpgemm_weights_destroy(weights);
  sample_free(&s);
}

/* u4, 16 x 64, constant zero 8, f16 scales 0.75 * 2^(n / 4 - j) for groups of 32: every byte of the header. */
static void golden_header(void) {
  if (!test_case("format/golden_header")) return;
  static const struct {
    int at;
    const char *hex;
  } golden[] = {
      {0, "4c50474d0d0a1a0a"},   {8, "0002000001000000"},   {16, "0100000000000000"},  {24, "0006000000000000"},
      {32, "1000000000000000"},  {40, "4000000000000000"},  {48, "2000000000000000"},  {64, "040001000a050600"},
      {72, "0000000001000000"},  {88, "000000410000803f"},  {160, "0100000000000000"}, {176, "0002000000000000"},
      {184, "0002000000000000"}, {192, "0004000000000000"}, {200, "4000000000000000"}, {256, "0005000000000000"},
      {264, "1000000000000000"}, {496, "5842a2326b0ea54f"}, {504, "785d911c9f894085"},
  };
  uint8_t want[512] = {0};
  for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
    for (int j = 0; j < 8; j++) {
      unsigned byte = 0;
      CHECK_INT(sscanf(golden[i].hex + 2 * j, "%2x", &byte), 1);
      want[golden[i].at + j] = (uint8_t)byte;
    }
  }
  lpgemm_weight_desc_t desc = sample_desc(16, 64, LPGEMM_UINT(4), 32, LPGEMM_F16);
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 8.0f;
  sample s;
  sample_make(&s, &desc);
  for (int at = 0; at < 16 * 64; at++) s.codes[at] = golden_code(4, at / 64, at % 64);
  for (int i = 0; i < 32; i++) { /* 0.75 in fp16 is 0x3a00; its exponent counts in steps of 0x400 */
    ((uint16_t *)s.part[LPGEMM_PART_SCALES])[i] = (uint16_t)(0x3a00 + 0x400 * (i / 2 / 4) - 0x400 * (i % 2));
  }
  sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
  lpgemm_weights_t weights = sample_pack(handle, &s);
  size_t size = 0;
  uint8_t *blob = weights ? sample_blob(handle, weights, &size) : NULL;
  if (blob) CHECK_INT(size, 1536);
  for (int i = 0; i < 512 && blob; i++) {
    if (blob[i] != want[i]) test_fail(__FILE__, __LINE__, "header byte %d is 0x%02x, not 0x%02x", i, blob[i], want[i]);
  }
  test_free(blob);
  lpgemm_weights_destroy(weights);
  sample_free(&s);
}

/* ---- sizes ---- */

/* Packed sizes against what the source's parts would take: codes without any padding, scales and zeros of n x groups
 * values. 2 %, or 8 % where a size is no multiple of 256. The header's 512 bytes and the sections' alignment of 256 are
 * left out of matrices below 64 KiB only, of which they are more than that. */
static void check_size(lpgemm_weight_desc_t desc) {
  int64_t bits = lpgemm_dtype_bits(desc.type);
  double ideal = ceil((double)desc.n * (double)desc.k * (double)bits / 8.0);
  int parts = 0;
  for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_SUPER_ZEROS; part++) {
    int part_bits = lpgemm_dtype_bits(sample_part_type(&desc, (lpgemm_part_t)part));
    ideal += (double)(desc.n * sample_part_columns(&desc, (lpgemm_part_t)part) * ((part_bits + 7) / 8));
    parts += part_bits > 0;
  }
  size_t packed = 0;
  CHECK_STATUS(lpgemm_packed_size(&desc, &packed), LPGEMM_SUCCESS);
  double got = (double)packed, limit = desc.n % 256 == 0 && desc.k % 256 == 0 ? 1.02 : 1.08;
  if (ideal < 65536) got -= 512 + 256.0 * (2 + parts);
  if (!(got <= limit * ideal)) {
    test_fail(__FILE__, __LINE__, "%s %lld x %lld, groups of %lld: %zu bytes are %.2f %% over the ideal %.0f",
              lpgemm_dtype_name(desc.type), (long long)desc.n, (long long)desc.k, (long long)desc.group_k, packed,
              (got / ideal - 1) * 100, ideal);
  }
}

static void sizes(void) {
  static const struct {
    const char *name;
    int64_t shapes[9][2]; /* n, k */
  } models[] = {
      {"llama3-8b", {{6144, 4096}, {4096, 4096}, {14336, 4096}, {28672, 4096}, {4096, 14336}, {128256, 4096}}},
      {"llama3-70b", {{10240, 8192}, {8192, 8192}, {28672, 8192}, {57344, 8192}, {8192, 28672}}},
      {"qwen2.5-32b", {{7168, 5120}, {5120, 5120}, {27648, 5120}, {55296, 5120}, {5120, 27648}}},
      {"gemma2-9b", {{8192, 3584}, {3584, 4096}, {14336, 3584}, {28672, 3584}, {3584, 14336}}},
      {"gpt-oss", {{5120, 2880}, {2880, 4096}, {5760, 2880}, {2880, 2880}}},
      {"tilelang-v",
       {{16384, 16384},
        {43008, 14336},
        {14336, 14336},
        {57344, 14336},
        {14336, 57344},
        {9216, 9216},
        {36864, 9216},
        {9216, 36864}}},
      {"tilelang-m", {{1024, 8192}, {8192, 8192}, {28672, 8192}, {8192, 28672}}},
      {"apt-llm", {{1024, 1024}, {2048, 2048}, {4096, 4096}, {1024, 4096}, {14336, 4096}, {4096, 14336}}},
      {"lut", {{27648, 5120}}},
      {"odd", {{4544, 7392}, {10944, 4544}, {32001, 2880}}},
  };
  static const int64_t groups[] = {16, 32, 64, 128, 0};
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    if (!test_case("format/sizes/%s", models[i].name)) continue;
    for (int j = 0; j < 9 && models[i].shapes[j][0]; j++) {
      int64_t n = models[i].shapes[j][0], k = models[i].shapes[j][1];
      for (uint32_t bits = 1; bits <= 8; bits++) {
        for (int g = 0; g < 5; g++) {
          check_size(sample_desc(n, k, LPGEMM_UINT(bits), groups[g], LPGEMM_F16));
          check_size(sample_desc(n, k, LPGEMM_UINT(bits), groups[g], LPGEMM_F32));
          check_size(sample_desc(n, k, LPGEMM_BIPOLAR(bits), groups[g], LPGEMM_E8M0));
          check_size(sample_desc_zeros(n, k, LPGEMM_UINT(bits), groups[g], LPGEMM_BF16, LPGEMM_U8));
        }
        check_size(sample_desc(n, k, LPGEMM_UINT(bits), 0, 0));
      }
      check_size(sample_desc_q4k(n, k));
    }
  }
}

void suite_format(void) {
  handle = sample_handle();
  codes();
  scales();
  zeros();
  two_levels();
  if (test_backend() == LPGEMM_BACKEND_CPU) version_2();
  plain_stays_plain();
  empty();
  row_exponents();
  golden_tiles();
  documented_word();
  golden_header();
  sizes();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
