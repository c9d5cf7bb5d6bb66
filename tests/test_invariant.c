/* batch_invariant as a server sees it: the library chooses kernels itself, batches have many sizes, and a row of X is
 * now here and now there. Its bits must not notice. */
#include <string.h>

#include "problem.h"
#include "ref/gemm_ref.h"
#include "test.h"

enum { ROWS = 1000 };

static const int64_t batches[] = {1, 4, 16, 17, 64, 257, ROWS};

/* Row i of a batch is row (start + i * 377) % ROWS of all: 377 and 1000 have no common divisor. */
static int64_t row_of(int64_t start, int64_t i) { return (start + i * 377) % ROWS; }

static void check_type(lpgemm_handle_t handle, lpgemm_dtype_t type, lpgemm_dtype_t x_type, int64_t n, int64_t k) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = type;
  s.desc.n = n;
  s.desc.k = k;
  s.desc.group_k = test_between(0, 1) ? 32 : 128;
  s.desc.scale_type = test_between(0, 1) ? LPGEMM_F16 : LPGEMM_BF16;
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT && test_between(0, 1)) {
    s.desc.zero = LPGEMM_ZERO_PER_GROUP;
    s.desc.zero_type = LPGEMM_U8;
  }
  for (int i = 0; LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK && i < 1 << lpgemm_dtype_bits(type); i++) {
    s.desc.codebook[i] = (float)test_between(-1000, 1000) / 1000;
  }
  s.m = ROWS;
  s.x_type = s.y_type = x_type;
  s.alpha = 1;
  problem p;
  if (problem_make(&p, handle, &s)) {
    const int64_t x_bytes = k * ref_bytes(x_type), y_bytes = n * ref_bytes(x_type);
    char *const all = test_alloc((size_t)(ROWS * y_bytes)), *const rows = test_alloc((size_t)(ROWS * x_bytes));
    const char *const x = p.x;
    p.args.batch_invariant = 1;
    CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
    memcpy(all, p.y, (size_t)(ROWS * y_bytes));
    p.args.x = rows;
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
      const int64_t start = test_between(0, ROWS - 1);
      p.args.m = batches[b];
      for (int64_t i = 0; i < batches[b]; i++) {
        memcpy(rows + i * x_bytes, x + row_of(start, i) * x_bytes, (size_t)x_bytes);
      }
      CHECK_STATUS(problem_run(&p, handle, NULL), LPGEMM_SUCCESS);
      for (int64_t i = 0; i < batches[b]; i++) {
        if (memcmp((char *)p.y + i * y_bytes, all + row_of(start, i) * y_bytes, (size_t)y_bytes) == 0) continue;
        test_fail(__FILE__, __LINE__, "%s: row %lld of %lld has other bits than as row %lld of %d",
                  problem_title(&p, "chosen"), (long long)i, (long long)batches[b], (long long)row_of(start, i), ROWS);
        break;
      }
    }
    p.args.m = ROWS;
    test_free(all);
    test_free(rows);
  }
  problem_free(&p);
}

void suite_invariant(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  lpgemm_handle_t handle = problem_handle(2);
  for (int t = 0; t < PROBLEM_TYPES; t++) {
    for (int x = 0; x < 2; x++) {
      const lpgemm_dtype_t type = problem_types()[t];
      if (test_case("invariant/%s/%s", lpgemm_dtype_name(type), lpgemm_dtype_name(x_types[x]))) {
        check_type(handle, type, x_types[x], 72, 320);
      }
    }
  }
  /* On the H200, K is cut into four parts here (plan/invariant/parts): each with a team of warps, or two or all of one
   * after the other. */
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(2),     LPGEMM_UINT(3), LPGEMM_UINT(4),
                                         LPGEMM_FLOAT(2, 1), LPGEMM_UINT(8), LPGEMM_E4M3};
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    if (!test_case("invariant/parts/%s", lpgemm_dtype_name(types[t]))) continue;
    check_type(handle, types[t], LPGEMM_F16, 2436, 4400);
    check_type(handle, types[t], LPGEMM_F16, 2440, 4400); /* whole vectors of outputs: teams exchange their sums */
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
