/* Kernels that dequantise the weights first (src/kernels/dequant/).
 *
 *   dequant/scaling   how the scales meet the weights, or why not
 *   dequant/takes     weights of every kind by fp16 and bf16 X: on Hopper no kind is left to the generic kernel
 *   dequant/plan      few rows of X are multiplied with split-K, which leaves no half of the GPU idle
 *   dequant/slices    parts of K, by every kernel of the family that takes the problem
 *   dequant/spread    weights whose values or scales are too far apart to be scaled in fp16
 *   dequant/tiles     more work tiles than the GPU has clusters for
 *   dequant/halves    zeros between the codes, whose differences fp8 holds
 *   dequant/chunks    rows so long that the workspace has not room for all of them at once
 *   dequant/nothing   alpha = 0: Y is C, whatever the workspace holds
 *   dequant/turns     the same with split-K: a work tile that was done twice would add C in place twice */
#include <string.h>

#include "devices.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/operand/expand.h"
#include "layouts/number.h"
#include "plans.h"
#include "problem.h"
#include "sample.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static struct {
  lpgemm_handle_t handle;
  const char *kernel[PROBLEM_KERNELS];
  int kernels;
} all;

/* How the scales meet expanded weights: on the row's sums, on the weights, on the sums of stages, or not at all. */
static void check_scaling(void) {
  enum { ON_ROWS, ON_WEIGHTS, FOUND, IN_TABLE, REFUSED };
  static const struct {
    lpgemm_weight_desc_t d;
    uint32_t span;
    int expected;
  } cases[] = {
      {{.type = LPGEMM_E5M2, .group_k = 128, .scale_type = LPGEMM_F16}, 0, IN_TABLE},
      {{.type = LPGEMM_E5M2, .group_k = 64, .scale_type = LPGEMM_F16}, 0, IN_TABLE},
      {{.type = LPGEMM_E5M2, .group_k = 1024, .scale_type = LPGEMM_F16}, 0, ON_ROWS}, /* one group, and exact */
      {{.type = LPGEMM_E5M2, .group_k = 32, .scale_type = LPGEMM_F16}, 0, REFUSED},
      {{.type = LPGEMM_E5M2, .scale_type = LPGEMM_F16}, 0, ON_ROWS},
      {{.type = LPGEMM_FLOAT(5, 1), .group_k = 64, .scale_type = LPGEMM_F16}, 0, IN_TABLE}, /* as halves */
      {{.type = LPGEMM_FLOAT(5, 0), .scale_type = LPGEMM_F16}, 0, ON_ROWS},
      {{.type = LPGEMM_FLOAT(5, 0), .group_k = 32, .scale_type = LPGEMM_F16}, 0, REFUSED},
      {{.type = LPGEMM_FLOAT(6, 1), .group_k = 128, .scale_type = LPGEMM_F16}, 0, REFUSED},
      {{.type = LPGEMM_FLOAT(6, 1), .scale_type = LPGEMM_F16}, 0, REFUSED},
      {{.type = LPGEMM_UINT(4), .group_k = 128, .scale_type = LPGEMM_F16}, 24, ON_WEIGHTS},
      {{.type = LPGEMM_UINT(4), .group_k = 128, .scale_type = LPGEMM_F16}, 25, IN_TABLE},
      {{.type = LPGEMM_UINT(8), .group_k = 192, .scale_type = LPGEMM_F16}, 255, IN_TABLE},
      {{.type = LPGEMM_UINT(8), .group_k = 96, .scale_type = LPGEMM_F16}, 255, REFUSED},
      {{.type = LPGEMM_UINT(8),
        .group_k = 128,
        .scale_type = LPGEMM_F16,
        .zero = LPGEMM_ZERO_PER_GROUP,
        .zero_type = LPGEMM_U8},
       0,
       FOUND},
      {{.type = LPGEMM_UINT(8),
        .group_k = 128,
        .scale_type = LPGEMM_F16,
        .zero = LPGEMM_ZERO_PER_GROUP,
        .zero_type = LPGEMM_U8},
       255,
       IN_TABLE},
      {{.type = LPGEMM_UINT(8),
        .group_k = 128,
        .scale_type = LPGEMM_F16,
        .zero = LPGEMM_ZERO_PER_GROUP,
        .zero_type = LPGEMM_F16},
       255,
       REFUSED},
      {{.type = LPGEMM_UINT(8),
        .group_k = 128,
        .scale_type = LPGEMM_F16,
        .zero = LPGEMM_ZERO_MINIMUM,
        .zero_type = LPGEMM_F16},
       255,
       REFUSED},
      {{.type = LPGEMM_UINT(4),
        .group_k = 128,
        .scale_type = LPGEMM_F16,
        .zero = LPGEMM_ZERO_CONSTANT,
        .zero_constant = 7.001f},
       255,
       REFUSED}, /* not exact in fp16 */
      {{.type = LPGEMM_CODEBOOK(1), .group_k = 64, .scale_type = LPGEMM_F16, .codebook = {0x1p-24f, 32768.0f}},
       0,
       IN_TABLE},
      {{.type = LPGEMM_CODEBOOK(1), .group_k = 64, .scale_type = LPGEMM_F16, .codebook = {0x1p-25f, 32768.0f}},
       0,
       REFUSED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lpgemm_weight_desc_t desc = cases[i].d;
    desc.size = sizeof desc;
    desc.n = desc.k = 1024;
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
    const lpg_problem problem = {
        .weights = &w, .m = 64, .x_type = LPGEMM_F16, .y_type = LPGEMM_F16, .scale_span = cases[i].span};
    const lpg_expand_scaling s = lpgemm_i_expand_scaling(&problem, LPGEMM_F16);
    const int is = lpgemm_i_expand_refuses(&problem, LPGEMM_F16) ? REFUSED
                   : s.on_rows                                   ? ON_ROWS
                   : s.in_table                                  ? IN_TABLE
                   : s.finds                                     ? FOUND
                                                                 : ON_WEIGHTS;
    const lpgemm_dtype_t image = lpgemm_i_expand_image(&problem, LPGEMM_F16, 1);
    CHECK(image == (is == REFUSED ? LPGEMM_F32 : LPGEMM_F16) && !lpgemm_i_expand_refuses(&problem, image));
    CHECK(s.halved == (desc.type != LPGEMM_E5M2 && LPGEMM_DTYPE_KIND(desc.type) == LPGEMM_KIND_FLOAT &&
                       (is == IN_TABLE || is == ON_ROWS)));
    if (is != cases[i].expected) test_fail(__FILE__, __LINE__, "case %d: %d, not %d", (int)i, is, cases[i].expected);
    CHECK(s.on_rows + s.in_table + s.finds <= 1);
  }
}

/* Any type with any groups, scales and zeros, from 33 rows on; and with fewer what gemv refuses. */
static void check_takes(void) {
  static const int64_t groups[] = {16, 32, 48, 64, 128, 0}, rows[] = {1, 17, 33, 173};
  static const lpgemm_dtype_t scales[] = {0, LPGEMM_F16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_E4M3};
  static const lpgemm_zero_t zeros[] = {LPGEMM_ZERO_NONE, LPGEMM_ZERO_CONSTANT, LPGEMM_ZERO_MINIMUM};
  for (int i = 0; i < PROBLEM_TYPES * COUNT(groups) * COUNT(scales) * COUNT(zeros); i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = 1024, .k = 1536};
    desc.type = problem_types()[i % PROBLEM_TYPES];
    desc.scale_type = scales[i / PROBLEM_TYPES % COUNT(scales)];
    desc.zero = zeros[i / PROBLEM_TYPES / COUNT(scales) % COUNT(zeros)];
    desc.group_k = groups[i / PROBLEM_TYPES / COUNT(scales) / COUNT(zeros)];
    if (desc.zero == LPGEMM_ZERO_MINIMUM) desc.zero_type = LPGEMM_F16;
    if (desc.zero == LPGEMM_ZERO_CONSTANT) desc.zero_constant = 1.5f;
    const int entries = lpg_kind(desc.type) == LPGEMM_KIND_CODEBOOK ? 1 << lpg_bits(desc.type) : 0;
    for (int j = 0; j < entries; j++) desc.codebook[j] = j ? (float)j : 0x1p-40f; /* too far apart for fp16 */
    lpg_packed w;
    if (lpgemm_i_make_packed(&desc, &w) != LPGEMM_SUCCESS) continue; /* minima without scales */
    for (int r = 0; r < COUNT(rows) * 2; r++) {
      const int bf16 = r % 2;
      lpg_problem problem = plan_problem(&w, bf16 ? LPGEMM_BF16 : LPGEMM_F16, rows[r / 2]);
      problem.scale_span = 255;
      const lpg_planner *image = bf16 ? &lpgemm_i_dequant_image_bf16_planner : &lpgemm_i_dequant_image_f16_planner;
      const lpg_planner *other = bf16 ? image : &lpgemm_i_dequant_f16_sm90a_planner;
      const int by_image = !image->refuses(image, &problem, &sm90);
      const int by_gemv = !lpgemm_i_gemv_8_planner.refuses(&lpgemm_i_gemv_8_planner, &problem, &sm90);
      lpg_planned planned;
      if (problem.m < 33 && by_gemv) continue;
      CHECK(by_image + !other->refuses(other, &problem, &sm90) == (bf16 ? 2 : 1)); /* one form for each */
      CHECK(lpgemm_i_plan(by_image ? image : other, &problem, &sm90, &planned) == NULL);
    }
  }
}

/* What the H200 shall do with 8192 columns. */
static void check_plan(void) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .n = 8192, .k = 8192};
  desc.scale_type = desc.zero_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_PER_GROUP;
  desc.group_k = 128;
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
  for (int64_t m = 33; m <= 8192; m += m / 8) {
    lpg_gemm_planned planned;
    lpg_problem problem = plan_problem(&w, LPGEMM_F16, m);
    problem.scale_span = 0;
    CHECK(lpgemm_i_expand_scaling(&problem, LPGEMM_F16).finds);
    CHECK(plan_of(&lpgemm_i_dequant_image_f16_planner, &problem, &sm90, &planned));
    CHECK(lpg_gemm_chunk_rows(&w, LPG_GEMM_SCALES_IMAGE) == 2048); /* four chunks alike */
    const lpg_gemm_plan p = planned.plan;
    const int ctas = p.split_k * p.multicast, tiles = p.n_tiles * p.m_tiles;
    CHECK(m > 256 || p.split_k > 1);
    /* at least half of the units work at once, but where twice as large clusters would not all run at once */
    CHECK(p.clusters * ctas * 2 >= sm90.sms || (m <= 128 && p.split_k == 4 && sm90.clusters[8] < tiles));
  }
}

/* ---- on a GPU ---- */

/* How many kernels of the family took it. */
static int check_spec(const problem_spec *spec) {
  int took = 0;
  problem p;
  if (problem_make(&p, all.handle, spec)) {
    problem_expect(&p);
    for (int i = 0; i < all.kernels; i++) {
      if (strncmp(all.kernel[i], "dequant.", 8) != 0) continue;
      const lpgemm_status_t status = problem_run(&p, all.handle, all.kernel[i]);
      if (status == LPGEMM_NOT_SUPPORTED) continue;
      CHECK_STATUS(status, LPGEMM_SUCCESS);
      problem_check(&p, all.kernel[i]);
      problem_check_again(&p, all.handle, all.kernel[i]);
      took++;
    }
  }
  problem_free(&p);
  return took;
}

/* With the codebook of the type, or none. */
static void set_type(lpgemm_weight_desc_t *d, lpgemm_dtype_t type) {
  const int values = lpg_kind(type) == LPGEMM_KIND_CODEBOOK ? 1 << lpgemm_dtype_bits(type) : 0;
  memset(d->codebook, 0, sizeof d->codebook);
  for (int i = 0; i < values; i++) d->codebook[i] = (float)i / 4 - 1.5f;
  d->type = type;
}

static problem_spec draw(void) {
  static const int64_t groups[] = {16, 32, 48, 64, 112, 128, 192, 0};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_I8, LPGEMM_E4M3};
  problem_spec s = {.desc = {.size = sizeof s.desc}, .y_type = LPGEMM_F32, .alpha = 1};
  set_type(&s.desc, problem_types()[test_between(0, PROBLEM_TYPES - 1)]);
  s.desc.group_k = groups[test_between(0, COUNT(groups) - 1)];
  s.desc.scale_type = sample_scale[test_between(1, SAMPLE_SCALES - 1)];
  s.x_type = x_types[test_between(0, 3)];
  if (s.x_type == LPGEMM_I8 || s.x_type == LPGEMM_E4M3) s.desc.group_k = 128 * test_between(0, 2);
  return s;
}

/* Rows so long, and rows of X so few, that K is cut; zeros and minima, on two levels too. */
static void check_slices(void) {
  problem_spec s = draw();
  const int integer = lpg_is_integer_kind(s.desc.type);
  switch (test_between(0, 4)) {
    case 0:
      s.desc = (lpgemm_weight_desc_t){.size = sizeof s.desc, .type = LPGEMM_UINT(4), .group_k = 32};
      s.desc.scale_type = s.desc.zero_type = LPGEMM_UINT(6);
      s.desc.super_scale_type = s.desc.super_zero_type = LPGEMM_F16;
      s.desc.super_k = 256;
      s.desc.zero = LPGEMM_ZERO_MINIMUM;
      break;
    case 1:
      s.desc.zero = LPGEMM_ZERO_MINIMUM;
      s.desc.zero_type = test_between(0, 1) ? LPGEMM_F16 : LPGEMM_F32;
      break;
    case 2:
      if (!integer) break;
      s.desc.zero = LPGEMM_ZERO_PER_GROUP;
      s.desc.zero_type = test_between(0, 1) ? LPGEMM_U8 : LPGEMM_F16;
      break;
    default: break;
  }
  s.m = test_between(33, 200);
  s.desc.n = test_between(1, 60);
  s.desc.k = test_between(600, 5000);
  check_spec(&s);
}

/* From 5 exponent bits on; any type with scales of any exponent; and the 8-bit X that is multiplied as fp16. */
static void check_spread(int i) {
  static const lpgemm_dtype_t types[] = {LPGEMM_E5M2,        LPGEMM_FLOAT(5, 1), LPGEMM_FLOAT(5, 0), LPGEMM_FLOAT(6, 0),
                                         LPGEMM_FLOAT(6, 1), LPGEMM_FLOAT(7, 0), LPGEMM_INT(8),      LPGEMM_BIPOLAR(8)};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_F16, LPGEMM_I8, LPGEMM_E4M3, LPGEMM_BIPOLAR(4)};
  problem_spec s = draw();
  set_type(&s.desc, types[i % COUNT(types)]);
  s.x_type = x_types[test_between(0, COUNT(x_types) - 1)];
  s.desc.scale_type = lpg_is_integer_kind(s.desc.type) ? LPGEMM_E8M0 : LPGEMM_F16;
  s.desc.group_k = test_between(0, 1) ? 64 * test_between(0, 3) : 16 * test_between(1, 6);
  if (s.desc.group_k && test_between(0, 3) == 0) {
    s.desc.zero = LPGEMM_ZERO_MINIMUM;
    s.desc.zero_type = LPGEMM_F16;
  }
  s.m = test_between(33, test_between(0, 3) ? 150 : 400);
  s.desc.n = test_between(1, 400);
  s.desc.k = test_between(1, test_between(0, 1) ? 500 : 2500);
  check_spec(&s);
}

/* Clusters take several work tiles in turn. */
static void check_tiles(void) {
  problem_spec s = draw();
  s.m = test_between(1000, 1200);
  s.desc.n = test_between(4700, 5200);
  s.desc.k = test_between(1, 40);
  check_spec(&s);
}

static void check_halves(void) {
  static const float zeros[] = {0.5f, 1.5f, 7.5f};
  static const int bits[] = {1, 2, 4};
  for (int i = 0; i < 12; i++) {
    problem_spec s = {.desc = {.size = sizeof s.desc, .n = 70, .k = 400, .zero = LPGEMM_ZERO_CONSTANT},
                      .m = 64,
                      .y_type = LPGEMM_F32,
                      .alpha = 1};
    s.desc.type = LPGEMM_UINT(bits[i % 3]);
    s.desc.zero_constant = zeros[i % 3];
    s.desc.scale_type = LPGEMM_F16;
    s.desc.group_k = i / 3 % 2 ? 128 : 0;
    s.x_type = i < 6 ? LPGEMM_E4M3 : LPGEMM_E5M2;
    CHECK(check_spec(&s) > 0);
  }
}

/* Two chunks, of 256 rows and of 4, each with factors of its own. */
static void check_chunks(lpgemm_dtype_t x_type) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = LPGEMM_UINT(4), .n = 260, .k = 73000, .group_k = 128},
                    .m = 33,
                    .x_type = x_type,
                    .y_type = LPGEMM_F32,
                    .alpha = 1};
  s.desc.scale_type = s.desc.zero_type = LPGEMM_F16;
  s.desc.zero = LPGEMM_ZERO_PER_GROUP;
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&s.desc, &w), LPGEMM_SUCCESS);
  CHECK(lpg_gemm_chunk_rows(&w, LPG_GEMM_SCALES_IMAGE) == 256);
  CHECK(check_spec(&s) > 0);
}

static void check_nothing(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_E4M3};
  for (int i = 0; i < 2 * COUNT(x_types); i++) {
    problem_spec s = {.desc = {.size = sizeof s.desc, .type = LPGEMM_UINT(4), .n = 200, .k = 300, .group_k = 128},
                      .m = 40,
                      .x_type = x_types[i / 2],
                      .y_type = LPGEMM_F32,
                      .beta = 1};
    s.desc.scale_type = LPGEMM_F16;
    s.in_place = i % 2;
    CHECK(check_spec(&s) > 0);
  }
}

/* 80 work tiles with split-K 2, 30 clusters at once on the H200. All sums are exact, so any two kernels agree to the
 * bit. */
static void check_turns(lpgemm_dtype_t x_type) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .type = LPGEMM_UINT(4), .n = 4096, .k = 2048},
                    .m = 1088,
                    .x_type = x_type,
                    .y_type = LPGEMM_F32,
                    .alpha = 1,
                    .beta = 1,
                    .exact = 1};
  problem p;
  if (problem_make(&p, all.handle, &s)) {
    const size_t bytes = problem_y_bytes(&p);
    void *want = test_alloc(bytes);
    CHECK_STATUS(problem_run(&p, all.handle, "generic.w4.any.64x64.sm80"), LPGEMM_SUCCESS);
    memcpy(want, p.y, bytes);
    int took = 0;
    for (int i = 0; i < all.kernels; i++) {
      for (p.spec.in_place = 0; p.spec.in_place < 2; p.spec.in_place++) {
        if (strncmp(all.kernel[i], "dequant.", 8) != 0) continue;
        const lpgemm_status_t status = problem_run(&p, all.handle, all.kernel[i]);
        if (status == LPGEMM_NOT_SUPPORTED) continue;
        CHECK_STATUS(status, LPGEMM_SUCCESS);
        if (memcmp(p.y, want, bytes) != 0) {
          test_fail(__FILE__, __LINE__, "%s%s differs from generic", all.kernel[i],
                    p.spec.in_place ? ", in place," : "");
        }
        took++;
      }
    }
    CHECK(took > 0);
    test_free(want);
  }
  problem_free(&p);
}

void suite_dequant(void) {
  if (test_case("dequant/scaling")) check_scaling();
  if (test_case("dequant/takes")) check_takes();
  if (test_case("dequant/plan")) check_plan();
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  all.handle = problem_handle(1);
  all.kernels = problem_kernels(all.kernel);
  for (int i = 0; i < 150; i++) {
    if (test_case("dequant/slices/%03d", i)) check_slices();
  }
  for (int i = 0; i < 60; i++) {
    if (test_case("dequant/spread/%03d", i)) check_spread(i);
  }
  for (int i = 0; i < 3; i++) {
    if (test_case("dequant/tiles/%03d", i)) check_tiles();
  }
  if (test_case("dequant/halves")) check_halves();
  if (test_case("dequant/chunks/f16")) check_chunks(LPGEMM_F16);
  if (test_case("dequant/chunks/bf16")) check_chunks(LPGEMM_BF16);
  if (test_case("dequant/nothing")) check_nothing();
  if (test_case("dequant/turns/f16")) check_turns(LPGEMM_F16);
  if (test_case("dequant/turns/bf16")) check_turns(LPGEMM_BF16);
  CHECK_STATUS(lpgemm_destroy(all.handle), LPGEMM_SUCCESS);
}
