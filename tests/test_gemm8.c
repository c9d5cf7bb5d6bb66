/* X of 8 bits by weights that become bytes (src/kernels/gemm8/): products so large that every work tile is taken, with
 * split-K and without, which the drawn problems of test_gemm.c are too small for.
 *
 *   gemm8/tiles    the shapes below reach every work tile, and halves of some, by the plan for an H200
 *   gemm8/direct   X read directly: with C and a bias, alpha = 0; and X at odd places, which is not
 *   gemm8/image    the image of many short rows of X
 *   gemm8/shape    each of them, for a few types of weights and outputs, by the kernel of the weights' width
 *   gemm8/groups   the same with scales of groups, and zeros
 *   gemm8/e4m3     by e4m3: integers and floats, a scale a row or of groups, zeros, NaN in X */
#include <string.h>

#include "devices.h"
#include "kernels/gemm8/gemm8_plan.h"
#include "plans.h"
#include "problem.h"
#include "test.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
  int64_t m, n, k;
} shapes[] = {{20, 200, 100},
              {20, 200, 900},
              {33, 8615, 300},
              {33, 2049, 3000},
              {100, 8615, 300},
              {40, 17526, 300},
              {24, 17526, 300},
              {200, 8704, 300},
              {100, 8300, 2000},
              {100, 17526, 300},
              {500, 8704, 140},
              /* X is read directly: its rows are aligned, and a CTA has one work tile */
              {20, 200, 1040},
              {50, 600, 3088},
              {120, 904, 1552},
              {250, 296, 4112},
              {120, 4000, 528},
              {250, 8000, 272},
              {30, 20000, 656},
              {60, 9000, 400}};

/* Of shape i three from the i-th on. */
static const lpgemm_dtype_t types[] = {LPGEMM_UINT(4), LPGEMM_INT(2),  LPGEMM_UINT(3), LPGEMM_INT(4), LPGEMM_UINT(1),
                                       LPGEMM_UINT(7), LPGEMM_UINT(2), LPGEMM_UINT(6), LPGEMM_INT(8), LPGEMM_INT(5)};

static const lpgemm_dtype_t e4m3_types[] = {LPGEMM_UINT(4), LPGEMM_FLOAT(2, 1), LPGEMM_INT(2), LPGEMM_E4M3,
                                            LPGEMM_UINT(1), LPGEMM_FLOAT(3, 2), LPGEMM_INT(4), LPGEMM_UINT(2)};

static const lpg_gemm8_tile tiles[] = {
#define TILE(tile_m, row_tiles) {tile_m, row_tiles},
    LPG_GEMM8_TILES(TILE)
#undef TILE
};

/* Every work tile that there is, and at least two (int8: three) with split-K; group_k: 0 or that of all weights. */
static void check_tiles(lpgemm_dtype_t x_type, int64_t group_k) {
  int whole[COUNT(tiles)] = {0}, sliced[COUNT(tiles)] = {0}, direct[COUNT(tiles)] = {0};
  int several = 0, halves = 0, directly = 0, exchanged = 0;
  for (int i = 0; i < COUNT(shapes) * 3; i++) {
    const int shape = i / 3;
    lpgemm_weight_desc_t d = {.size = sizeof d, .n = shapes[shape].n, .k = shapes[shape].k};
    lpg_packed weights;
    lpg_gemm8_planned p = {0};
    d.type = x_type == LPGEMM_I8 ? types[(shape + i % 3) % COUNT(types)] : e4m3_types[i % COUNT(e4m3_types)];
    d.group_k = group_k;
    d.scale_type = group_k ? LPGEMM_F16 : 0;
    CHECK_STATUS(lpgemm_i_make_packed(&d, &weights), LPGEMM_SUCCESS);
    const lpg_problem problem = plan_problem(&weights, x_type, shapes[shape].m);
    CHECK(plan_of(&lpgemm_i_gemm8_planner, &problem, &sm90, &p));
    *(p.plan.split_k > 1 ? &sliced[p.tile] : &whole[p.tile]) = 1;
    direct[p.tile] |= p.plan.direct;
    exchanged += p.plan.direct && p.plan.exchanges;
    halves += p.plan.whole < p.plan.n_tiles * p.plan.m_tiles;
  }
  const int promotes = x_type == LPGEMM_E4M3 || group_k > 0;
  for (int i = 0; i < COUNT(tiles); i++) {
    if (!whole[i] && lpg_gemm8_has_tile(promotes, 4, tiles[i].tile_m, tiles[i].row_tiles))
      test_fail(__FILE__, __LINE__, "no shape takes %d rows of X by %d row tiles", tiles[i].tile_m, tiles[i].row_tiles);
    several += sliced[i];
    directly += direct[i];
  }
  CHECK(several >= (x_type == LPGEMM_I8 ? 3 : 2));
  CHECK(halves > 0);
  CHECK(directly >= 4 && exchanged >= 4);
}

/* By the kernel of the weights' width. */
static void check_spec(lpgemm_handle_t handle, const problem_spec *s) {
  char kernel[64];
  snprintf(kernel, sizeof kernel, "gemm8.%c%d.%s.256x128.sm90a",
           LPGEMM_DTYPE_KIND(s->desc.type) == LPGEMM_KIND_FLOAT ? 'f' : 'u', (int)lpgemm_dtype_bits(s->desc.type),
           lpgemm_dtype_name(s->x_type));
  problem p;
  if (problem_make(&p, handle, s)) {
    problem_expect(&p);
    if (!problem_has_kernel(kernel)) {
      test_skip("%s is not in this build, or not for this GPU", kernel);
    } else {
      CHECK_STATUS(problem_run(&p, handle, kernel), LPGEMM_SUCCESS);
      problem_check(&p, kernel);
      problem_check_again(&p, handle, kernel);
    }
  }
  problem_free(&p);
}

/* A shape, with outputs that are only scaled, in whole pieces (which = 0), or not (1). */
static problem_spec spec_of(int shape, int which) {
  problem_spec s = {.desc = {.size = sizeof s.desc}};
  s.desc.type = types[(shape + which) % COUNT(types)];
  s.desc.n = shapes[shape].n;
  s.desc.k = shapes[shape].k;
  s.m = shapes[shape].m;
  s.x_type = LPGEMM_I8;
  s.alpha = 1;
  if (which == 0) s.pad_y = (int)((8 - s.desc.n % 8) % 8);
  if (which == 1) {
    s.beta = 0.5f;
    s.bias_type = LPGEMM_F32;
    s.pad_y = s.pad_c = 3;
    s.pad_x = s.desc.k % 16 ? 3 : 16;
  }
  return s;
}

/* The three ways of outputs: 16 bits that are only scaled, in whole pieces; all else that is real; integers. */
static void check_shape(lpgemm_handle_t handle, int shape, int which) {
  problem_spec s = spec_of(shape, which);
  s.y_type = which == 0 ? LPGEMM_F16 : which == 1 ? LPGEMM_BF16 : LPGEMM_I32;
  if (which < 2) {
    s.desc.scale_type = LPGEMM_F16;
    s.x_scale_mode = LPGEMM_X_SCALE_ROW;
  }
  if (LPGEMM_DTYPE_KIND(s.desc.type) == LPGEMM_KIND_UINT) {
    s.desc.zero = shape % 2 ? LPGEMM_ZERO_CONSTANT : LPGEMM_ZERO_PER_GROUP;
    s.desc.zero_type = shape % 2 ? 0 : LPGEMM_U8;
    s.desc.zero_constant = shape % 2 ? 3.0f : 0.0f;
  }
  check_spec(handle, &s);
}

/* By the plan for an H200 X is read directly if it is aligned, of the last shape only with parts of K that are
 * exchanged. */
static void check_direct_plan(const problem_spec *s, int is_last) {
  lpg_packed weights;
  lpg_gemm8_planned p;
  CHECK_STATUS(lpgemm_i_make_packed(&s->desc, &weights), LPGEMM_SUCCESS);
  lpg_problem problem = plan_problem(&weights, s->x_type, s->m);
  problem.x_unaligned = s->pad_x % 16 != 0;
  CHECK(plan_of(&lpgemm_i_gemm8_planner, &problem, &sm90, &p));
  CHECK(p.plan.direct == !problem.x_unaligned);
  CHECK(problem.x_unaligned || p.plan.exchanges == is_last);
}

/* Ways to read X directly, or not to, that the shapes above do not meet. */
static void check_direct(lpgemm_handle_t handle, int way) {
  static const int64_t of[][3] = {{13, 200, 240}, {120, 904, 240}, {45, 1000, 3088}};
  for (int i = 0; i < COUNT(of); i++) {
    problem_spec s = {.desc = {.size = sizeof s.desc, .n = of[i][1], .k = of[i][2]}, .m = of[i][0], .alpha = 1};
    s.desc.type = LPGEMM_UINT(i % 2 ? 8 : 4);
    s.desc.scale_type = LPGEMM_F32;
    s.desc.zero = LPGEMM_ZERO_PER_GROUP;
    s.desc.zero_type = LPGEMM_U8;
    s.x_type = LPGEMM_I8;
    s.y_type = LPGEMM_F16;
    s.x_scale_mode = LPGEMM_X_SCALE_ROW;
    switch (way) {
      case 0: /* C and a bias are added, to sums that are exchanged too */
        s.beta = 0.5f;
        s.bias_type = LPGEMM_F32;
        s.pad_y = s.pad_c = 8;
        break;
      case 1: s.pad_x = 3; break; /* rows begin anywhere; up to 16 of them are not copied first */
      default: s.alpha = 0, s.beta = 1; break;
    }
    check_direct_plan(&s, i + 1 == COUNT(of));
    check_spec(handle, &s);
  }
}

/* So many and so short rows of X that each has a warp of the kernel that makes the image. */
static void check_image(lpgemm_handle_t handle, lpgemm_dtype_t x_type) {
  problem_spec s = {.desc = {.size = sizeof s.desc, .n = 136, .k = 200}, .m = 2051, .alpha = 1};
  s.desc.type = x_type == LPGEMM_I8 ? LPGEMM_UINT(8) : LPGEMM_E4M3;
  s.desc.scale_type = LPGEMM_F32;
  s.x_type = x_type;
  s.y_type = LPGEMM_F16;
  s.x_scale_mode = LPGEMM_X_SCALE_ROW;
  check_spec(handle, &s);
}

/* Scales of groups, and zeros: the middle of the codes, another one, one a group. */
static void check_groups(lpgemm_handle_t handle, int shape, int which) {
  problem_spec s = spec_of(shape, which);
  s.desc.group_k = shapes[shape].k > 1000 && which == 1 ? 256 : 128;
  s.desc.scale_type = which == 1 ? LPGEMM_BF16 : LPGEMM_F16;
  s.y_type = which == 0 ? LPGEMM_F16 : which == 1 ? LPGEMM_F32 : LPGEMM_BF16;
  s.x_scale_mode = which == 0 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_TENSOR;
  if (LPGEMM_DTYPE_KIND(s.desc.type) == LPGEMM_KIND_UINT) {
    s.desc.zero = which == 2 ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_CONSTANT;
    s.desc.zero_type = which == 2 ? LPGEMM_U8 : 0;
    s.desc.zero_constant = which == 2 ? 0.0f : shape % 2 ? (float)(1 << (lpgemm_dtype_bits(s.desc.type) - 1)) : 1.0f;
  }
  check_spec(handle, &s);
}

/* e4m3: whole rows, in which NaN may be; groups; whole rows with zeros, or groups with zeros. */
static void check_e4m3(lpgemm_handle_t handle, int shape, int which) {
  problem_spec s = spec_of(shape, which);
  s.x_type = LPGEMM_E4M3;
  s.desc.type = e4m3_types[(shape * 3 + which) % COUNT(e4m3_types)];
  s.desc.scale_type = which == 1 ? LPGEMM_BF16 : LPGEMM_F16;
  s.desc.group_k = which == 0 || (which == 2 && shape % 2) ? 0 : shapes[shape].k > 1000 ? 256 : 128;
  s.y_type = which == 0 ? LPGEMM_F16 : which == 1 ? LPGEMM_F32 : LPGEMM_BF16;
  s.x_scale_mode = which == 2 ? LPGEMM_X_SCALE_NONE : LPGEMM_X_SCALE_ROW;
  s.not_finite = which == 0 && shape % 3 == 1;
  if (LPGEMM_DTYPE_KIND(s.desc.type) == LPGEMM_KIND_UINT) {
    s.desc.zero = which == 2 ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_CONSTANT;
    s.desc.zero_type = which == 2 ? LPGEMM_U8 : 0;
    s.desc.zero_constant = which == 2 ? 0.0f : shape % 2 ? (float)(1 << (lpgemm_dtype_bits(s.desc.type) - 1)) : 1.0f;
  }
  check_spec(handle, &s);
}

void suite_gemm8(void) {
  if (test_case("gemm8/tiles/row")) check_tiles(LPGEMM_I8, 0);
  if (test_case("gemm8/tiles/128")) check_tiles(LPGEMM_I8, 128);
  if (test_case("gemm8/tiles/e4m3")) check_tiles(LPGEMM_E4M3, 0);
  if (test_backend() != LPGEMM_BACKEND_CUDA) return;
  lpgemm_handle_t handle = problem_handle(0);
  static const char *const ways[] = {"added", "odd", "nothing"};
  for (int i = 0; i < COUNT(ways); i++) {
    if (test_case("gemm8/direct/%s", ways[i])) check_direct(handle, i);
  }
  if (test_case("gemm8/image/i8")) check_image(handle, LPGEMM_I8);
  if (test_case("gemm8/image/e4m3")) check_image(handle, LPGEMM_E4M3);
  for (int i = 0; i < COUNT(shapes) * 3; i++) {
    if (test_case("gemm8/shape/%d/%d", i / 3, i % 3)) check_shape(handle, i / 3, i % 3);
    if (test_case("gemm8/groups/%d/%d", i / 3, i % 3)) check_groups(handle, i / 3, i % 3);
    if (test_case("gemm8/e4m3/%d/%d", i / 3, i % 3)) check_e4m3(handle, i / 3, i % 3);
  }
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
