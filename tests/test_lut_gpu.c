/* Table lookup on the GPU (src/lut/gpu/): what is plain arithmetic, planes of packed words, tables
 * and their sums against the model of the instruction; plans; on a GPU matrices of several super tiles and parts of K.
 * test_gemm.c runs the kernels over the whole matrix of types and shapes. */
#include <math.h>
#include <string.h>

#include "devices.h"
#include "layouts/unit.h"
#include "lut/gpu/lut_plan.h"
#include "plans.h"
#include "problem.h"
#include "ref/gemm_ref.h"
#include "ref/lmma.h"
#include "test.h"

/* ---- products ---- */

/* Activations of a chunk as a kernel takes them: integers, whose unit depends on what their magnitudes add up to. */
typedef struct chunk {
  float x[LPG_CHUNK_K];
  int unit; /* its exponent */
  int32_t q[LPG_CHUNK_K];
} chunk;

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Near each other, of many sizes, or all as large as they can be. */
static void draw_chunk(chunk *c, int bits, int kind) {
  const int spread = kind == 0 ? 1 : kind == 1 ? 40 : 0, size = (int)test_between(-90, 90);
  double most = 0, sum = 0;
  for (int i = 0; i < LPG_CHUNK_K; i++) {
    const double x = spread ? test_uniform(-1, 1) : test_between(0, 1) ? 1 - 0x1p-11 : -1 + 0x1p-11;
    c->x[i] = (float)ldexp(x, size - (spread ? (int)test_between(0, spread) : 0));
    most = fmax(most, fabs((double)c->x[i]));
    sum += fabs((double)c->x[i]);
  }
  const int exponent = lpg_fixed_exponent(bits_of((float)most));
  uint32_t magnitudes = 0;
  for (int i = 0; i < LPG_CHUNK_K; i++) {
    magnitudes += (uint32_t)ceil(ldexp(fabs((double)c->x[i]), LPG_TABLE_COARSE - exponent));
  }
  c->unit = lpg_table_unit(bits, exponent, bits_of((float)magnitudes));
  double units = 0;
  for (int i = 0; i < LPG_CHUNK_K; i++) {
    c->q[i] = (int32_t)nearbyint(ldexp((double)c->x[i], -c->unit));
    units += fabs((double)c->q[i]);
  }
  CHECK(units <= ldexp(1, lpg_table_digits(bits)) + 0.5 * LPG_CHUNK_K);
  CHECK(ldexp(1, c->unit - 1) <= ldexp(sum * (1 + 0x1p-12), -lpg_table_digits(bits))); /* docs/numerics.md */
}

/* A chunk of a row, packed, as the four lanes of a quad multiply it: in 32 bits, the middle of the codes and any zero
 * among them included. */
static void check_product(int bits, int kind) {
  enum { WORDS = 4 };
  uint8_t codes[LPG_CHUNK_K];
  uint32_t packed[4][WORDS] = {{0}};
  chunk of_x;
  double x[LPG_CHUNK_K], want;
  const int unit_k = 4 * lpg_unit_codes(bits), center = (int)test_between(-((1 << bits) - 1), (1 << bits) - 1);
  int64_t sum = 0, sum_x = 0;
  draw_chunk(&of_x, bits, kind);
  for (int c = 0; c < LPG_CHUNK_K; c++) {
    const int in_unit = c % unit_k;
    x[c] = of_x.q[c];
    sum_x += of_x.q[c];
    codes[c] = (uint8_t)test_between(0, (1 << bits) - 1);
    lpg_unit_put_pair(bits, packed[c % 8 / 2] + c / unit_k * lpg_unit_words(bits), 1, 2 * (in_unit / 16) + c % 16 / 8,
                      (uint32_t)codes[c] << 16 * (c % 2));
  }
  for (int t = 0; t < 4; t++) {
    int64_t found = 0;
    lpg_words_to_planes(bits, packed[t]);
    for (int bit = bits - 1; bit >= 0; bit--) {
      found *= 2;
      for (int nibble = 0; nibble < LPG_TABLES; nibble++) {
        int32_t of_table[4];
        for (int i = 0; i < 4; i++) of_table[i] = of_x.q[lpg_table_column(bits, nibble, t, i)];
        found += lpg_table_entry(of_table, (int)(packed[t][bit] >> 4 * nibble & 15u));
      }
    }
    sum += found;
  }
  CHECK(sum >= INT32_MIN && sum <= INT32_MAX && center * sum_x >= INT32_MIN && center * sum_x <= INT32_MAX);
  CHECK(sum - center * sum_x >= INT32_MIN && sum - center * sum_x <= INT32_MAX);
  ref_lmma_gemm(bits, 1, 1, LPG_CHUNK_K, x, codes, &want);
  CHECK_INT((sum + ((1 << bits) - 1) * sum_x) / 2, (int64_t)want);
}

static void test_products(void) {
  for (int bits = 1; bits <= 4; bits++) {
    if (test_case("lut_gpu/entries/u%d", bits)) {
      chunk c;
      draw_chunk(&c, bits, 0);
      for (int n = 0; n < LPG_CHUNK_K; n += 4) {
        for (int e = 0; e < LPG_TABLE_ENTRIES; e++) {
          CHECK_INT(lpg_table_entry(c.q + n, 15 - e), -lpg_table_entry(c.q + n, e));
        }
      }
    }
    if (!test_case("lut_gpu/product/u%d", bits)) continue;
    for (int n = 0; n < 600; n++) check_product(bits, n % 3);
  }
}

/* ---- plans ---- */

static void check_plan(const lpg_lut_gpu_plan *p, const lpg_packed *w, const lpg_device *device) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int chunks = blocks * lpg_lut_gpu_chunks(w->bits), row_tiles = lpg_lut_gpu_row_tiles(w->bits);
  const int64_t vectors = w->k_tiles * lpg_tile_bytes(w->bits) / 512, block_vectors = lpg_lut_gpu_vectors(w->bits);
  CHECK(p->split_k == 1 || p->split_k == 2 || p->split_k == 4 || p->split_k == 8);
  CHECK(p->clusters <= (p->split_k == 1 ? device->sms : device->clusters[p->split_k]));
  CHECK(p->k_part.each * p->split_k + p->k_part.more == p->blocks && p->k_part.more < p->split_k);
  CHECK(p->n_part.each * p->clusters + p->n_part.more == p->super_tiles && p->n_part.more < p->clusters);
  CHECK(p->blocks * block_vectors >= vectors && (p->blocks - 1) * block_vectors < vectors);
  CHECK(w->bits == 4 || p->blocks * block_vectors == vectors);
  CHECK((int64_t)p->super_tiles * row_tiles >= w->row_tiles && p->n_part.each >= 1);
  CHECK(p->scale_data == chunks * LPG_LUT_GPU_TABLES && p->slots == p->scale_data + chunks * LPG_LUT_GPU_SCALES);
  CHECK(p->peers == p->slots + (tiles + lpg_lut_gpu_warps(w->bits) - 1) * p->slot_bytes && p->peers % 16 == 0);
  CHECK(p->split_k == 1 || (int64_t)p->peer_bytes * p->split_k >= (int64_t)tiles * p->slot_bytes);
  CHECK(p->shared_bytes == p->peers + p->split_k * p->peer_bytes && p->shared_bytes <= device->shared_memory);
}

static void test_plans(void) {
  static const lpg_device *const devices[] = {&sm90, &h100_pcie};
  for (int d = 0; d < 2; d++) {
    if (!test_case("lut_gpu/plan/%d", d)) continue;
    int found = 0;
    for (int i = 0; i < 1000; i++) {
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .scale_type = LPGEMM_F16, .group_k = i % 2 ? 128 : 0};
      desc.type = LPGEMM_UINT((uint32_t)(1 + i / 2 % 4));
      desc.n = test_between(1, test_between(0, 1) ? 300 : 60000);
      desc.k = test_between(1, test_between(0, 1) ? 3000 : 15000);
      lpg_packed w;
      lpg_lut_gpu_plan p;
      CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
      const lpg_problem problem = plan_problem(&w, LPGEMM_F16, 1);
      if (!plan_of(&lpgemm_i_lut_gpu_planner, &problem, devices[d], &p)) continue;
      check_plan(&p, &w, devices[d]);
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
  if (!test_case("lut_gpu/large/%s/%s/zero%d/%dx%dx%d/%s", lpgemm_dtype_name(type), lpgemm_dtype_name(x_type), zero,
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
      if (strncmp(names[i], "lut.", 4) != 0 || problem_run(&p, handle, names[i]) != LPGEMM_SUCCESS) continue;
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
  static const struct { int64_t n, k; } sizes[] = {{1000, 4096}, {3000, 1000}, {130, 9000}, {9000, 512}};
  const lpgemm_dtype_t types[] = {LPGEMM_UINT(1), LPGEMM_UINT(2), LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2),
                                  LPGEMM_UINT(3), LPGEMM_UINT(4), LPGEMM_INT(3),     LPGEMM_BIPOLAR(4),
                                  LPGEMM_INT(2),  LPGEMM_INT(4),  LPGEMM_BIPOLAR(3)};
  const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_E4M3, LPGEMM_F16, LPGEMM_E5M2};
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  for (int i = 0; i < 132; i++) {
    const lpgemm_dtype_t type = types[i % 11];
    const int is_unsigned = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT, zero = is_unsigned ? i / 11 % 4 : 0,
              s = i / 2 % 4;
    check_large(type, x_types[i % 5], zero, 1 + i / 3 % 3, sizes[s].n + i, sizes[s].k + i % 7, i / 66);
  }
}

void suite_lut_gpu(void) {
  test_products();
  test_plans();
  test_large();
}
