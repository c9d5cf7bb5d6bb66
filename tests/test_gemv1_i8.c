/* gemv1 with int8 X (src/bitserial/gemv1_i8.cuh): bytes as planes of bits beside packed words, how problems are cut
 * into pieces, and on a GPU that what has no scales is exact. */
#include <math.h>

#include "bitserial/gemv1_i8_plan.h"
#include "plans.h"
#include "problem.h"
#include "test.h"

/* ---- planes ---- */

/* A byte times a code's bit is the sum of its planes' weights. */
static void check_planes(int bits, int32_t a) {
  for (int i = 0; i < bits; i++) {
    int64_t sum = 0;
    for (int q = 0; q < lpg_gemv1_i8_planes(bits); q++) {
      sum += (int64_t)lpg_gemv1_i8_weight(bits, q) * lpg_gemv1_i8_bit(a, i, q);
    }
    CHECK_INT(sum, (int64_t)a * ((int64_t)1 << i));
  }
}

static void test_gemm1(void) {
  for (int bits = 1; bits <= 2; bits++) {
    if (!test_case("gemv1_i8/planes/u%d", bits)) continue;
    for (int a = -128; a < 128; a++) check_planes(bits, a);
  }
}

/* ---- plans ---- */

static void check_plan(const lpg_gemv1_plan *p, const lpg_packed *w, int64_t m) {
  const int tiles = p->n_part.each + (p->n_part.more > 0), blocks = p->k_part.each + (p->k_part.more > 0);
  const int chunks = blocks * LPG_GEMV1_I8_CHUNKS;
  CHECK(p->tile_m >= m && p->tile_m <= LPG_GEMV1_I8_MOST_X && (p->tile_m == 1 || p->tile_m < 2 * m));
  CHECK(p->super_tiles == w->row_tiles);
  CHECK((int64_t)p->blocks * LPG_GEMV1_I8_CHUNKS * LPG_CHUNK_K >= w->k_padded);
  CHECK(p->slots == blocks * 2 * w->bits * (p->tile_m + w->bits - 1) * 256); /* a block: 8 columns of 256 bits */
  CHECK(p->slot_bytes == LPG_TILE_ROWS * p->tile_m * 4);
  CHECK(p->peers == p->slots + (tiles + LPG_GEMV1_WARPS - 1) * p->slot_bytes);
  CHECK(p->rows == p->peers + p->split_k * p->peer_bytes && p->rows % 16 == 0);
  CHECK(p->row_chunks == p->rows + tiles * LPG_TILE_ROWS * LPG_GEMV1_I8_ROW_BYTES);
  CHECK(p->row_slices == p->row_chunks + chunks * p->tile_m * 4);
  CHECK(p->shared_bytes == p->row_slices + p->split_k * p->tile_m * 4);
}

/* ---- on a GPU ---- */

static const struct {
  int64_t m, n, k;
  lpgemm_dtype_t type, x, scale, zero_type;
  lpgemm_zero_t zero;
} products[] = {
    {1, 200, 8192, LPGEMM_UINT(2), LPGEMM_I8, 0, 0, LPGEMM_ZERO_CONSTANT},
    {2, 3000, 512, LPGEMM_UINT(1), LPGEMM_I8, 0, 0, LPGEMM_ZERO_NONE},
    {3, 100, 90000, LPGEMM_UINT(2), LPGEMM_I8, 0, 0, LPGEMM_ZERO_NONE}, /* sums beyond 2^24, in slices */
    {4, 47, 100003, LPGEMM_BIPOLAR(2), LPGEMM_I8, 0, 0, LPGEMM_ZERO_NONE},
    {4, 70, 20001, LPGEMM_BIPOLAR(1), LPGEMM_INT(4), 0, 0, LPGEMM_ZERO_NONE},
    {1, 9, 777, LPGEMM_INT(2), LPGEMM_UINT(7), 0, LPGEMM_U8, LPGEMM_ZERO_PER_GROUP},
    {2, 5000, 4096, LPGEMM_UINT(2), LPGEMM_I8, LPGEMM_F16, LPGEMM_U8, LPGEMM_ZERO_PER_GROUP},
    {4, 2100, 3001, LPGEMM_UINT(1), LPGEMM_I8, LPGEMM_BF16, LPGEMM_F16, LPGEMM_ZERO_PER_GROUP},
    {3, 300, 14336, LPGEMM_UINT(2), LPGEMM_I8, LPGEMM_E4M3, LPGEMM_F32, LPGEMM_ZERO_MINIMUM},
    {4, 70000, 300, LPGEMM_UINT(2), LPGEMM_I8, LPGEMM_F16, 0, LPGEMM_ZERO_CONSTANT}, /* many outputs a block */
    {4, 70000, 1100, LPGEMM_UINT(1), LPGEMM_I8, 0, 0, LPGEMM_ZERO_NONE},
    {1, 40000, 1024, LPGEMM_INT(2), LPGEMM_INT(8), LPGEMM_F32, 0, LPGEMM_ZERO_NONE},
};

/* Without scales every output is the integer sum, rounded once; with them it is as close as EXACT asks. */
static void check_product(lpgemm_handle_t handle, int i) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = products[i].type, .n = products[i].n, .k = products[i].k}};
  s.desc.scale_type = products[i].scale;
  s.desc.zero = products[i].zero;
  s.desc.zero_type = products[i].zero_type;
  s.desc.zero_constant = s.desc.zero == LPGEMM_ZERO_CONSTANT ? 1 : 0;
  s.m = products[i].m;
  s.x_type = products[i].x;
  s.y_type = LPGEMM_F32;
  s.alpha = 1;
  s.pad_x = i;
  if (s.desc.scale_type) {
    s.x_scale_mode = i % 2 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_TENSOR;
    s.beta = 0.5f;
    s.bias_type = LPGEMM_F32;
  }
  problem p;
  if (problem_make(&p, handle, &s)) {
    const char *names[PROBLEM_KERNELS];
    const int count = problem_kernels(names);
    int runs = 0;
    problem_expect(&p);
    for (int j = 0; j < count; j++) {
      if (strncmp(names[j], "gemv1.", 6) != 0 || problem_run(&p, handle, names[j]) != LPGEMM_SUCCESS) continue;
      problem_check(&p, names[j]);
      for (int64_t at = 0; at < s.m * s.desc.n && !s.desc.scale_type; at++) {
        if (((float *)p.y)[at] == (float)p.want[at]) continue;
        test_fail(__FILE__, __LINE__, "%s: output %lld is %.9g, not %.17g", problem_title(&p, names[j]), (long long)at,
                  (double)((float *)p.y)[at], p.want[at]);
        break;
      }
      problem_check_again(&p, handle, names[j]);
      runs++;
    }
    CHECK_INT(runs, 1);
  }
  problem_free(&p);
}

void suite_gemv1_i8(void) {
  test_gemm1();
  check_gemv1_plans("gemv1_i8", &lpgemm_i_gemv1_i8_planner, LPGEMM_I8, LPG_GEMV1_I8_MOST_X, check_plan);
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  lpgemm_handle_t handle = problem_handle(1);
  for (int i = 0; i < (int)(sizeof products / sizeof products[0]); i++) {
    if (test_case("gemv1_i8/product/%d", i)) check_product(handle, i);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
