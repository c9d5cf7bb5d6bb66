/* Integers by integers of few bits.
 *
 *   planes/columns  a lane's words of a plane, and of bytes, have the columns that they say, of W and of X alike
 *   planes/all      1 to 8 bits by 1 to 8 bits of every kind: int32, equal to the bit, by every kernel that can
 *   planes/large    sizes with several stages, items and clusters, with scales and the rest of the epilogue
 *   planes/groups   scales and zeros a group, which kernels that widen codes do, by every kernel that can
 *   planes/refused  what the kernels for planes leave to others */
#include <string.h>

#include "kernels/operand/bit_planes.h"
#include "problem.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static struct {
  lpgemm_handle_t handle;
  const char *kernel[PROBLEM_KERNELS];
  int kernels;
} all;

/* ---- where bits lie ---- */

/* The codes of 16 rows by 256 columns go into tiles by the layout, and out of a lane's words by what kernels call. */
static void check_weights(int bits) {
  static uint8_t tiles[16 * 256];
  uint8_t code[16][256];
  const int tile_k = lpg_tile_k(bits);
  memset(tiles, 0, sizeof tiles);
  for (int row = 0; row < 16; row++) {
    for (int k = 0; k < 256; k++) {
      code[row][k] = (uint8_t)(test_random() & ((1u << bits) - 1));
      for (int bit = 0; bit < bits; bit++) {
        const int at = k / tile_k * lpg_tile_bytes(bits) * 8 + lpg_tile_bit(bits, row, k % tile_k, bit);
        tiles[at / 8] = (uint8_t)(tiles[at / 8] | (code[row][k] >> bit & 1) << at % 8);
      }
    }
  }
  for (int i = 0; i < 16 * 8; i++) { /* row, half, lane of a quad */
    const int row = i / 8, half = i / 4 % 2, t = i % 4, lane = row % 8 * 4 + t;
    uint32_t word[32];
    for (int w = 0; w < 4 * bits; w++) {
      memcpy(word + w, tiles + (w / 4 * 32 + lane) * 16 + w % 4 * 4, 4);
    }
    const uint32_t *own = word + half * bits * 2 + row / 8;
    for (int bit = 0; bit < 32; bit++) {
      const int column = half * 128 + lpg_bit_planes_column(t, bit);
      for (int plane = 0; plane < bits; plane++) {
        CHECK_INT(lpg_bit_planes_of_weights(bits, own, 2, plane) >> bit & 1, code[row][column] >> plane & 1);
      }
      CHECK_INT(lpg_bit_planes_weight_bytes(bits, own, 2, bit % 8) >> bit / 8 * 8 & 0xff, code[row][column]);
    }
  }
}

/* The columns of a half that are there, whether few of it are, all or none. */
static void check_columns_left(void) {
  for (int left = -3; left <= 131; left++) {
    for (int t = 0; t < 4; t++) {
      uint32_t there = 0;
      for (int bit = 0; bit < 32; bit++) there |= (uint32_t)(lpg_bit_planes_column(t, bit) < left) << bit;
      CHECK_INT(lpg_bit_planes_columns_left(t, left), there);
    }
  }
}

static void check_x(void) {
  uint8_t code[128];
  for (int k = 0; k < 128; k++) code[k] = (uint8_t)test_random();
  for (int t = 0; t < 4; t++) {
    uint32_t word[8];
    for (int step = 0; step < 8; step++) {
      uint32_t sixteen[4];
      memcpy(sixteen, code + step * 16, 16);
      word[step] = lpg_bit_planes_x_bytes(sixteen, t);
    }
    for (int bit = 0; bit < 32; bit++) {
      CHECK_INT(word[bit % 8] >> bit / 8 * 8 & 0xff, code[lpg_bit_planes_column(t, bit)]);
      for (int plane = 0; plane < 8; plane++) {
        CHECK_INT(lpg_bit_planes_of_x(word, plane) >> bit & 1, code[lpg_bit_planes_column(t, bit)] >> plane & 1);
      }
    }
  }
}

/* ---- products ---- */

/* The families whose kernels must take a problem that has the problem's form. */
static int is_planes(const char *kernel) { return !strncmp(kernel, "gemm1.", 6) || !strncmp(kernel, "skinny8.", 8); }

/* Those for one width are named for it, the others want many rows; int8 and groups are for other kernels. */
static int must_take(const char *kernel, const problem_spec *spec) {
  const int few = !strncmp(kernel, "skinny8.u", 5);
  return is_planes(kernel) && spec->x_type != LPGEMM_I8 && spec->desc.group_k == 0 &&
         (few ? kernel[5] - '0' == lpgemm_dtype_bits(spec->desc.type) : spec->m >= 33);
}

static void check_spec(const problem_spec *spec, int only_planes) {
  problem p;
  if (problem_make(&p, all.handle, spec)) {
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, all.handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, NULL);
    for (int i = 0; i < all.kernels; i++) {
      if (only_planes && !is_planes(all.kernel[i])) continue;
      const lpgemm_status_t status = problem_run(&p, all.handle, all.kernel[i]);
      if (status == LPGEMM_NOT_SUPPORTED && !must_take(all.kernel[i], spec)) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, all.kernel[i]);
      problem_check_again(&p, all.handle, all.kernel[i]);
    }
  }
  problem_free(&p);
}

static lpgemm_dtype_t integer(int kind, int bits) {
  return kind == 0 ? LPGEMM_UINT(bits) : kind == 1 && bits > 1 ? LPGEMM_INT(bits) : LPGEMM_BIPOLAR(bits);
}

static problem_spec make_spec(lpgemm_dtype_t w, lpgemm_dtype_t x, int64_t m, int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = w;
  s.desc.n = n;
  s.desc.k = k;
  s.m = m;
  s.x_type = x;
  s.y_type = LPGEMM_I32;
  s.alpha = 1;
  return s;
}

static void set_zero(problem_spec *s, int which) {
  if (which == 1) s->desc.zero = LPGEMM_ZERO_CONSTANT, s->desc.zero_constant = (float)test_between(-9, 9);
  if (which == 2) s->desc.zero = LPGEMM_ZERO_PER_GROUP, s->desc.zero_type = LPGEMM_U8;
  if (which == 3) s->desc.zero = LPGEMM_ZERO_PER_GROUP, s->desc.zero_type = LPGEMM_U16;
}

static void check_pair(int p, int q) {
  for (int i = 0; i < 9; i++) {
    const int64_t m = i % 2 ? test_between(1, 32) : test_between(33, 80);
    problem_spec s = make_spec(integer(i / 3, p), integer(i % 3, q), m, test_between(1, 70), test_between(1, 1300));
    set_zero(&s, (int)(test_random() % 4));
    s.pad_x = (int)test_between(0, 20);
    s.pad_y = (int)test_between(0, 9);
    s.beta = (float)(i % 2);
    s.misaligned = i % 3 == 0;
    check_spec(&s, 0);
  }
}

static const struct {
  int64_t m, n, k;
  lpgemm_dtype_t w, x, y, scale;
  int zero, rest;
} large[] = {
    {300, 600, 3000, LPGEMM_UINT(1), LPGEMM_UINT(1), LPGEMM_I32, 0, 0, 0},
    {129, 257, 5000, LPGEMM_BIPOLAR(1), LPGEMM_BIPOLAR(2), LPGEMM_I32, 0, 0, 0},
    {260, 512, 2048, LPGEMM_UINT(2), LPGEMM_INT(2), LPGEMM_F16, LPGEMM_F16, 1, 0},
    {257, 513, 1025, LPGEMM_INT(3), LPGEMM_UINT(4), LPGEMM_BF16, LPGEMM_F32, 0, 1},
    {128, 256, 4096, LPGEMM_UINT(2), LPGEMM_UINT(8), LPGEMM_BF16, LPGEMM_BF16, 2, 0},
    {64, 1024, 2048, LPGEMM_UINT(3), LPGEMM_BIPOLAR(4), LPGEMM_F16, LPGEMM_F16, 2, 0},
    {1, 1024, 4096, LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(2), LPGEMM_F32, LPGEMM_F16, 0, 1},
    {64, 300, 14336, LPGEMM_UINT(2), LPGEMM_UINT(1), LPGEMM_F32, LPGEMM_E8M0, 3, 0},
    {400, 3100, 700, LPGEMM_INT(2), LPGEMM_BIPOLAR(3), LPGEMM_F16, 0, 1, 0},
    {17, 800, 9000, LPGEMM_UINT(8), LPGEMM_UINT(3), LPGEMM_F32, LPGEMM_E4M3, 1, 1},
};

/* The CPU's kernels have no stages and clusters: a sixteenth of the outputs will do. */
static void check_large(int i) {
  const int less = test_backend() == LPGEMM_BACKEND_CPU ? 4 : 1;
  problem_spec s =
      make_spec(large[i].w, large[i].x, (large[i].m + less - 1) / less, (large[i].n + less - 1) / less, large[i].k);
  s.y_type = large[i].y;
  s.desc.scale_type = large[i].scale;
  set_zero(&s, large[i].zero);
  if (s.y_type != LPGEMM_I32) s.x_scale_mode = i % 2 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_TENSOR;
  if (large[i].rest) {
    s.alpha = -0.5f;
    s.beta = 0.5f;
    s.bias_type = LPGEMM_F32;
    s.activation = LPGEMM_ACTIVATION_SILU;
    s.desc.global_scale = 0.37f;
  }
  check_spec(&s, test_backend() == LPGEMM_BACKEND_CUDA);
}

static const struct {
  int64_t m, group;
  lpgemm_dtype_t w, x, scale;
  int zero;
} groups[] = {
    {1, 128, LPGEMM_UINT(2), LPGEMM_UINT(2), LPGEMM_F16, 1},
    {3, 64, LPGEMM_UINT(1), LPGEMM_BIPOLAR(1), LPGEMM_F16, 0},
    {16, 32, LPGEMM_UINT(3), LPGEMM_INT(4), LPGEMM_BF16, 2},
    {40, 16, LPGEMM_INT(2), LPGEMM_UINT(8), LPGEMM_E4M3, 0},
    {64, 128, LPGEMM_UINT(4), LPGEMM_INT(4), LPGEMM_F16, 2},
    {70, 256, LPGEMM_BIPOLAR(2), LPGEMM_BIPOLAR(8), LPGEMM_F32, 0},
    {130, 128, LPGEMM_UINT(7), LPGEMM_UINT(7), LPGEMM_F16, 1},
    {200, 384, LPGEMM_INT(8), LPGEMM_INT(6), LPGEMM_F16, 0},
    {33, 48, LPGEMM_UINT(8), LPGEMM_BIPOLAR(3), LPGEMM_E8M0, 1},
};

static void check_groups(int i) {
  problem_spec s = make_spec(groups[i].w, groups[i].x, groups[i].m, test_between(200, 400), test_between(600, 1400));
  s.desc.group_k = groups[i].group;
  s.desc.scale_type = groups[i].scale;
  set_zero(&s, groups[i].zero);
  s.y_type = i % 2 ? LPGEMM_F16 : LPGEMM_F32;
  s.x_scale_mode = i % 3 == 0 ? LPGEMM_X_SCALE_NONE : i % 3 == 1 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_TENSOR;
  s.pad_x = (int)test_between(0, 20);
  s.misaligned = i % 2;
  check_spec(&s, 0);
}

/* Groups, minima, zeros that are no integers, and sums that int32 may not hold. */
static void check_refused(int which) {
  problem_spec s = make_spec(LPGEMM_UINT(2), LPGEMM_UINT(3), 40, 64, 512);
  s.y_type = LPGEMM_F32;
  s.desc.scale_type = LPGEMM_F16;
  if (which == 0) s.desc.group_k = 128;
  if (which == 1) s.desc.zero = LPGEMM_ZERO_MINIMUM, s.desc.zero_type = LPGEMM_F16;
  if (which == 2) s.desc.zero = LPGEMM_ZERO_CONSTANT, s.desc.zero_constant = 1.5f;
  if (which == 3) s.desc.type = LPGEMM_UINT(8), s.x_type = LPGEMM_UINT(8), s.desc.k = 33100;
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    problem_expect(&p);
    CHECK_STATUS(problem_run(&p, all.handle, NULL), LPGEMM_SUCCESS);
    problem_check(&p, NULL);
    for (int i = 0; i < all.kernels; i++) {
      if (is_planes(all.kernel[i])) CHECK_STATUS(problem_run(&p, all.handle, all.kernel[i]), LPGEMM_NOT_SUPPORTED);
    }
  }
  problem_free(&p);
}

void suite_gemm1(void) {
  for (int bits = 1; bits <= 8; bits++) {
    if (test_case("gemm1/columns/w%d", bits)) check_weights(bits);
  }
  if (test_case("gemm1/columns/x")) check_x();
  if (test_case("gemm1/columns/left")) check_columns_left();

  all.handle = problem_handle(0);
  all.kernels = problem_kernels(all.kernel);
  for (int i = 0; i < 64; i++) {
    if (test_case("gemm1/all/w%d/x%d", i / 8 + 1, i % 8 + 1)) check_pair(i / 8 + 1, i % 8 + 1);
  }
  for (int i = 0; i < COUNT(large); i++) {
    if (test_case("gemm1/large/%d", i)) check_large(i);
  }
  for (int i = 0; i < COUNT(groups); i++) {
    if (test_case("gemm1/groups/%d", i)) check_groups(i);
  }
  for (int i = 0; i < 4; i++) {
    if (test_case("gemm1/refused/%d", i)) check_refused(i);
  }
  CHECK_STATUS(lpgemm_destroy(all.handle), LPGEMM_SUCCESS);
}
