/* What kernels read of a checkpoint, here on the host: the functions of one row and 16 columns, of one code and of one
 * number give what the readers give for whole rows, in every arrangement. */
#include "import/at.h"

#include "checkpoint.h"
#include "import/device.h"
#include "import/gguf.h"
#include "sample.h"
#include "test.h"

/* ---- the functions by arrangement, as kernels take them ---- */

static lpg_codes16 codes_at(const lpg_at *at, int64_t n, int64_t k) {
  switch (at->arrangement) {
#define ONE(NAME, name) \
  case LPG_AT_##NAME: return lpg_at_##name##_codes(at, at->bits, n, k);
    LPG_ARRANGEMENTS(ONE)
#undef ONE
    default: return lpg_gguf_codes(at, at->arrangement - LPG_AT_GGML, 0, n, k);
  }
}

static uint32_t code_at(const lpg_at *at, int64_t n, int64_t k) {
  switch (at->arrangement) {
#define ONE(NAME, name) \
  case LPG_AT_##NAME: return lpg_at_##name##_code(at, at->bits, n, k);
    LPG_ARRANGEMENTS(ONE)
#undef ONE
    default: return lpg_gguf_code(at, at->arrangement - LPG_AT_GGML, n, k);
  }
}

static uint32_t number_at(const lpg_at *at, lpg_section_id id, int64_t n, int64_t group) {
  if (at->arrangement < LPG_AT_GGML) return lpg_at_number(at, id, n, group);
  return lpg_gguf_number(at, at->arrangement - LPG_AT_GGML, id, n, group);
}

/* ---- against the readers ---- */

static void check_codes(const lpg_part *part, const lpg_at *at) {
  const int64_t n = part->desc.n, k = part->desc.k;
  uint8_t *want = malloc((size_t)k);
  if (!want) abort();
  for (int64_t row = 0; row < n; row++) {
    part->reader->codes(part, row, 1, want);
    for (int64_t c = 0; c < k; c++) {
      const uint32_t one = code_at(at, row, c) ^ at->flip;
      uint32_t of_16 = one;
      if (c / 16 * 16 + 16 <= k) {
        const lpg_codes16 codes = codes_at(at, row, c / 16 * 16);
        of_16 = lpg_code_of(&codes, (int)(c % 16)) ^ at->flip;
      }
      if (one == want[c] && of_16 == want[c]) continue;
      test_fail(__FILE__, __LINE__, "code (%lld, %lld) is %u alone and %u of 16, not %u", (long long)row, (long long)c,
                (unsigned)one, (unsigned)of_16, (unsigned)want[c]);
      free(want);
      return;
    }
  }
  free(want);
}

static void check_numbers(const lpg_part *part, const lpg_at *at, lpg_section_id id) {
  const lpgemm_weight_desc_t *d = &part->desc;
  const int is_super = id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS;
  const int64_t group = is_super ? d->super_k : d->group_k, count = group ? lpg_ceil_div(d->k, group) : 1;
  const int bytes = lpg_bytes(lpg_section_type(d, id));
  if (bytes == 0) return;
  uint8_t *want = malloc((size_t)(count * bytes));
  if (!want) abort();
  for (int64_t row = 0; row < d->n; row++) {
    part->reader->numbers(part, id, row, 1, want);
    for (int64_t g = 0; g < count; g++) {
      const uint32_t number = number_at(at, id, row, g), expected = lpg_load_number(want, g, bytes);
      if (number == expected) continue;
      test_fail(__FILE__, __LINE__, "number (%lld, %lld) of section %d is 0x%x, not 0x%x", (long long)row, (long long)g,
                (int)id, (unsigned)number, (unsigned)expected);
      free(want);
      return;
    }
  }
  free(want);
}

static void check_part(const lpgemm_import_t *import) {
  lpg_joined joined;
  lpg_at at;
  const lpgemm_status_t status = lpgemm_i_open_parts(import, 1, &joined);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (status == LPGEMM_SUCCESS) {
    const lpg_part *part = &joined.part[0];
    CHECK(lpgemm_i_find_at(part, &at));
    check_codes(part, &at);
    for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) check_numbers(part, &at, (lpg_section_id)id);
  }
  lpgemm_i_close_parts(&joined);
}

static void formats(void) {
  for (int i = 0; i < checkpoint_spec_count; i++) {
    if (!test_case("import_at/%s", checkpoint_specs[i].name)) continue;
    checkpoint c;
    checkpoint_make(&c, &checkpoint_specs[i]);
    check_part(&c.import);
    checkpoint_free(&c);
  }
}

/* Blocks of random bytes; experts, so that a matrix does not begin where its tensor does. */
static void ggml(int number, const char *name, int block, int bytes) {
  const lpg_ggml *type = lpgemm_i_ggml(number);
  if (!type || !type->ops || !test_case("import_at/gguf/%s", name)) return;
  CHECK_INT(type->block, block);
  CHECK_INT(type->bytes, bytes);
  CHECK_INT(lpg_ggml_group(number), type->desc.group_k);
  const int64_t experts = 3, n = 19, k = 3 * (int64_t)block;
  const size_t size = (size_t)(experts * n * 3 * bytes);
  uint8_t *data = test_alloc(size);
  for (size_t i = 0; i < size; i++) data[i] = (uint8_t)test_random();
  const lpgemm_tensor_t tensor = {"weight", LPGEMM_GGML(number), 3, {experts, n, k}, data, size};
  lpgemm_import_t import = {.size = sizeof import, .format = LPGEMM_FORMAT_GGUF, .tensors = &tensor, .count = 1};
  for (import.expert = 0; import.expert < experts; import.expert++) check_part(&import);
  test_free(data);
}

static void gguf(void) {
#define ONE(number, name, block, bytes) ggml(number, name, block, bytes);
  LPG_GGML_TYPES(ONE)
#undef ONE
}

/* ---- the sources of lpgemm_pack_weights() ---- */

/* Streams and bytes that begin anywhere, in memory that ends where they do. */
static void streams(void) {
  for (int bits = 1; bits <= 8; bits++) {
    if (!test_case("import_at/stream/u%d", bits)) continue;
    for (int round = 0; round < 20; round++) {
      const int64_t n = test_between(1, 5), k = test_between(16, 130), ld = k + test_between(0, 20);
      const size_t bytes = (size_t)(((n - 1) * ld + k) * bits + 7) / 8, offset = (size_t)test_between(0, 15);
      uint8_t *data = malloc(offset + bytes);
      if (!data) abort();
      for (size_t i = 0; i < offset + bytes; i++) data[i] = (uint8_t)test_random();
      const lpg_at at = {
          .arrangement = LPG_AT_STREAM, .bits = bits, .codes = data + offset, .code_bytes = bytes, .line = ld * bits};
      for (int64_t i = 0; i < n * k; i++) {
        uint32_t want = 0;
        for (int b = 0; b < bits; b++) {
          const int64_t bit = (i / k * ld + i % k) * bits + b;
          want |= (uint32_t)(data[offset + (size_t)bit / 8] >> bit % 8 & 1) << b;
        }
        CHECK_INT(code_at(&at, i / k, i % k), want);
        if (i % k + 16 > k) continue;
        const lpg_codes16 codes = codes_at(&at, i / k, i % k);
        CHECK_INT(lpg_code_of(&codes, 0), want);
        CHECK_INT(lpg_code_of(&codes, 15), code_at(&at, i / k, i % k + 15));
      }
      free(data);
    }
  }
}

void suite_import_at(void) {
  formats();
  gguf();
  streams();
}
