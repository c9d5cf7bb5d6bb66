/* The lookup kernels of the GPU (src/kernels/lookup/): as far as they are arithmetic, tables, what byte permutations
 * find in them and what the tensor cores make of it, against the model of the instruction; plans; on a GPU matrices of
 * several super tiles and slices of K. test_gemm.c runs the kernels over the whole matrix of types and shapes. */
#include <string.h>

#include "kernels/lookup/lookup_plan.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "ref/lmma.h"
#include "test.h"

static const int widths[] = {1, 2, 4};

/* ---- entries ---- */

static void check_entries(int bits, const int32_t *q) {
  for (int e = 0; e < LPG_TABLE_ENTRIES; e++) {
    const int32_t entry = lpg_table_entry(bits, q, e);
    const uint32_t digits = lpg_table_digits(entry);
    CHECK_INT(lpg_table_entry(bits, q, 15 - e), -entry);
    int64_t value = (int64_t)(digits >> 24) - LPG_TOP_DIGIT;
    CHECK(value >= -LPG_TOP_DIGIT && value <= LPG_TOP_DIGIT);
    for (int d = 2; d >= 0; d--) {
      const uint32_t digit = digits >> 8 * d & 0xffu;
      CHECK(digit < 1u << LPG_DIGIT_BITS);
      value = value * (1 << LPG_DIGIT_BITS) + digit;
    }
    CHECK_INT(value, entry);
  }
}

static int32_t draw_activation(int bits) {
  const int32_t limit = 1 << (lpg_table_precision(bits) - 1);
  return test_between(0, 3) ? (int32_t)test_between(-limit, limit) : test_between(0, 1) ? limit : -limit;
}

static void test_entries(void) {
  for (int i = 0; i < 3; i++) {
    if (!test_case("lookup/entries/u%d", widths[i])) continue;
    for (int n = 0; n < 1000; n++) {
      const int32_t q[4] = {draw_activation(widths[i]), draw_activation(widths[i]), draw_activation(widths[i]),
                            draw_activation(widths[i])};
      check_entries(widths[i], q);
    }
  }
}

/* ---- products ---- */

/* PTX prmt: bytes of high:low by the selector's nibbles; with bit 3, bit 7 of the byte eight times. */
static uint32_t permute(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = (uint64_t)high << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t nibble = selector >> 4 * i & 15u, byte = (uint32_t)(bytes >> 8 * (nibble & 7u)) & 0xffu;
    result |= (nibble & 8u ? (byte & 0x80u ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}

enum { ROWS = 4 };

/* What a table is to a lane: its eight registers. */
static void make_table(int bits, const int32_t *q, uint32_t word[8]) {
  memset(word, 0, 8 * sizeof *word);
  for (int e = 0; e < LPG_TABLE_ENTRIES; e++) {
    const uint32_t digits = lpg_table_digits(lpg_table_entry(bits, q, e));
    for (int d = 0; d < 4; d++) word[2 * d + e / 4] |= (digits >> 8 * d & 0xffu) << 8 * (e % 4);
  }
}

/* Adds what one selector finds in a table to the sums of its four rows. */
static void look_up(const uint32_t word[8], uint32_t selector, int64_t sum[ROWS]) {
  static const int64_t counts[] = {1, 1 << LPG_DIGIT_BITS, 1 << 2 * LPG_DIGIT_BITS, 1 << 3 * LPG_DIGIT_BITS};
  for (int d = 0; d < 4; d++) {
    const uint32_t more = d == 3 ? LPG_TOP_TO_FIRST * 0x01010101u : 0u;
    const uint32_t clear = permute(word[2 * d] + more, word[2 * d + 1] + more, selector);
    const uint32_t set = permute(word[2 * d], word[2 * d + 1], ~selector);
    for (int r = 0; r < ROWS; r++) sum[r] += counts[d] * ((int8_t)(clear >> 8 * r) - (int8_t)(set >> 8 * r));
  }
  for (int r = 0; r < ROWS; r++) sum[r] += 64 * counts[3]; /* the constant that either half leaves */
}

/* A chunk of four rows, packed, as one quad of lanes multiplies it. */
static void check_product(int bits) {
  uint8_t codes[ROWS][LPG_CHUNK_K];
  uint32_t packed[ROWS][4][4] = {{{0}}}; /* [row][t][unit] */
  int32_t q[LPG_CHUNK_K];
  double x[LPG_CHUNK_K], want[ROWS];
  int64_t sum[ROWS] = {0}, sum_x = 0;
  for (int c = 0; c < LPG_CHUNK_K; c++) {
    const int unit_k = LPG_CHUNK_K / bits, in_unit = c % unit_k, t = c % 8 / 2, pair = 2 * (in_unit / 16) + c % 16 / 8;
    const lpg_field field = lpg_field_of(bits, pair);
    CHECK(lpg_unit_codes(bits) * 4 == unit_k && field.word == 0);
    q[c] = draw_activation(bits);
    x[c] = q[c];
    sum_x += q[c];
    for (int r = 0; r < ROWS; r++) {
      codes[r][c] = (uint8_t)test_between(0, (1 << bits) - 1);
      packed[r][t][c / unit_k] |= (uint32_t)codes[r][c] << (field.shift + 16 * (c % 2));
    }
  }
  for (int unit = 0; unit < bits; unit++) {
    for (int table = 0; table < LPG_TABLE_LANES; table++) {
      const int nibble = table / 4, t = table % 4, byte = nibble / 2;
      uint32_t word[8];
      int32_t of_table[4] = {0};
      for (int i = 0; i < 4 / bits; i++) {
        of_table[i] = q[unit * (LPG_CHUNK_K / bits) + lpg_table_column(bits, table, i)];
      }
      make_table(bits, of_table, word);
      const uint32_t a = packed[0][t][unit], b = packed[1][t][unit], c = packed[2][t][unit], d = packed[3][t][unit];
      const uint32_t first = nibble % 2 ? lpg_odd_nibbles(a, b) : lpg_even_nibbles(a, b);
      const uint32_t second = nibble % 2 ? lpg_odd_nibbles(c, d) : lpg_even_nibbles(c, d);
      look_up(word, (first >> 8 * byte & 0xffu) | (second >> 8 * byte & 0xffu) << 8, sum);
    }
  }
  ref_lmma_gemm(bits, 1, ROWS, LPG_CHUNK_K, x, &codes[0][0], want);
  for (int r = 0; r < ROWS; r++) CHECK_INT((sum[r] + ((1 << bits) - 1) * sum_x) / 2, (int64_t)want[r]);
}

static void test_products(void) {
  for (int i = 0; i < 3; i++) {
    if (!test_case("lookup/product/u%d", widths[i])) continue;
    for (int n = 0; n < 200; n++) check_product(widths[i]);
  }
}

/* ---- plans ---- */

static void check_plan(const lpg_lookup_plan *p, const lpg_plan *w, int64_t m, const lpg_device *device) {
  const int tiles = p->group.each + (p->group.more > 0), blocks = p->slice.each + (p->slice.more > 0);
  const int chunks = blocks * lpg_lookup_block_k(w->bits) / LPG_CHUNK_K;
  CHECK(p->slices == 1 || p->slices == 2 || p->slices == 4 || p->slices == 8);
  CHECK(p->groups <= (p->slices == 1 ? device->units : device->clusters[p->slices == 2 ? 1 : p->slices == 4 ? 2 : 3]));
  CHECK(p->slice.each * p->slices + p->slice.more == p->blocks && p->slice.more < p->slices);
  CHECK(p->group.each * p->groups + p->group.more == p->super_tiles && p->group.more < p->groups);
  CHECK((int64_t)p->blocks * lpg_lookup_block_k(w->bits) >= w->k_padded);
  CHECK((int64_t)p->super_tiles * LPG_LOOKUP_ROW_TILES >= w->row_tiles && p->group.each >= 1);
  CHECK(p->columns == (m == 1 ? 1 : LPG_LOOKUP_MOST_X));
  CHECK(p->x_stride == chunks * lpg_lookup_chunk_bytes(w->bits) && p->x_stride % 16 == 0);
  CHECK(p->slots == p->columns * p->x_stride);
  CHECK(p->inbox == p->slots + (tiles + LPG_LOOKUP_WARPS - 1) * p->slot_bytes && p->inbox % 16 == 0);
  CHECK(p->slices == 1 || (int64_t)p->inbox_slice * p->slices >= (int64_t)tiles * p->slot_bytes);
  CHECK(p->shared_bytes == p->inbox + p->slices * p->inbox_slice && p->shared_bytes <= device->shared_memory);
}

static void test_plans(void) {
  static const lpg_device devices[] = {
      {.backend = LPGEMM_BACKEND_CUDA,
       .arch = 90,
       .units = 132,
       .shared_memory = 232448,
       .clusters = {132, 66, 30, 15}},
      {.backend = LPGEMM_BACKEND_CUDA, .arch = 90, .units = 114, .shared_memory = 232448, .clusters = {114, 57, 26, 0}},
  };
  for (int d = 0; d < 2; d++) {
    if (!test_case("lookup/plan/%d", d)) continue;
    int found = 0;
    for (int i = 0; i < 1000; i++) {
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .scale_type = LPGEMM_F16, .group_k = i % 2 ? 128 : 0};
      desc.type = LPGEMM_UINT((uint32_t)widths[i % 3]);
      desc.n = test_between(1, test_between(0, 1) ? 300 : 60000);
      desc.k = test_between(1, test_between(0, 1) ? 3000 : 30000);
      lpg_plan w;
      lpg_lookup_plan p = {0};
      double cost;
      const int64_t m = test_between(1, 16);
      CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
      if (!lpg_lookup_make_plan(&w, m, &devices[d], &p, &cost)) continue;
      check_plan(&p, &w, m, &devices[d]);
      CHECK(cost > 0);
      found++;
    }
    CHECK(found > 500);
  }
}

/* ---- on a GPU ---- */

/* Some large activations, and weights beside them that are zero: they leave nothing behind. */
static void put_outliers(problem *p, lpgemm_handle_t handle) {
  const int64_t k = p->spec.desc.k;
  uint8_t *codes = (uint8_t *)(uintptr_t)p->source.codes;
  for (int64_t c = 0; c < k; c++) {
    if (test_between(0, 499)) continue;
    for (int64_t m = 0; m < p->spec.m; m++) ref_store(p->spec.x_type, p->x, m * k + c, test_uniform(100, 400));
    for (int64_t n = 0; n < p->spec.desc.n; n++) codes[n * k + c] = 1;
  }
  problem_repack(p, handle);
}

/* zero: an lpgemm_zero_t. exact: the result is the oracle's to the bit; else X has outliers. */
static void check_large(lpgemm_dtype_t type, lpgemm_dtype_t x_type, int zero, int64_t m, int64_t n, int64_t k,
                        int exact) {
  if (!test_case("lookup/large/%s/%s/zero%d/%dx%dx%d/%s", lpgemm_dtype_name(type), lpgemm_dtype_name(x_type), zero,
                 (int)m, (int)n, (int)k, exact ? "exact" : "outliers")) {
    return;
  }
  lpgemm_handle_t handle = problem_handle(1);
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = type, .n = n, .k = k, .group_k = 128}, .m = m, .alpha = 1};
  s.desc.scale_type = LPGEMM_F16;
  s.desc.zero = (lpgemm_zero_t)zero;
  if (zero == LPGEMM_ZERO_PER_GROUP) s.desc.zero_type = LPGEMM_U8;
  if (zero == LPGEMM_ZERO_MINIMUM) s.desc.zero_type = LPGEMM_F16;
  if (zero == LPGEMM_ZERO_CONSTANT) s.desc.zero_constant = 1;
  s.x_type = x_type;
  s.y_type = LPGEMM_F32;
  s.exact = exact;
  problem p;
  if (problem_make(&p, handle, &s)) {
    if (!exact) put_outliers(&p, handle);
    problem_expect(&p);
    const char *names[PROBLEM_KERNELS];
    const int count = problem_kernels(names);
    int runs = 0;
    for (int i = 0; i < count; i++) {
      if (strncmp(names[i], "lookup.", 7) != 0 || problem_run(&p, handle, names[i]) != LPGEMM_SUCCESS) continue;
      problem_check(&p, names[i]);
      problem_check_again(&p, handle, names[i]);
      runs++;
    }
    CHECK_INT(runs, 1);
  }
  problem_free(&p);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void test_large(void) {
  static const struct { int64_t n, k; } sizes[] = {{1000, 4096}, {3000, 1000}, {130, 30000}, {9000, 512}};
  const lpgemm_dtype_t types[] = {LPGEMM_UINT(1),    LPGEMM_UINT(2),    LPGEMM_UINT(4),
                                  LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_INT(4)};
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_E4M3, LPGEMM_F16, LPGEMM_E5M2};
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  for (int i = 0; i < 48; i++) {
    const lpgemm_dtype_t type = types[i % 6];
    const int is_unsigned = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT, zero = is_unsigned ? i / 6 % 4 : 0;
    check_large(type, x_types[i % 5], zero, 1 + i / 3 % 3, sizes[i % 4].n + i, sizes[i % 4].k + i % 7, i / 24);
  }
}

void suite_lookup(void) {
  test_entries();
  test_products();
  test_plans();
  test_large();
}
