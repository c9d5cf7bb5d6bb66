/* Every reason why a kernel cannot do a problem, of a kernel and a problem that it holds for. */
#include <glob.h>

#include "kernels/plan/fan.h"
#include "made_up.h"

/* ---- problems ---- */

/* Of u4 in groups of 128 by fp16, 64 rows, 1024 x 1024 weights, what is not said here. */
typedef struct row {
  const char *kernel; /* of all there are, else of the made-up ones */
  const char *reason;
  const lpg_device *device; /* H200 */
  lpgemm_weight_desc_t d;
  lpgemm_dtype_t x, y;
  int64_t m;
  uint32_t span;
  int invariant, experts;
  lpg_fan fan;          /* of tokens with two experts each */
  lpgemm_level_t level; /* EXACT */
  lpgemm_activation_t activation;
} row;

static lpg_device cramped; /* little shared memory */

#define WIDE "gemm.u4.f16.256x128.sm90a"
#define DECODE "gemv.u4.f16.16x8.sm80"
#define STRIPES "stripe.u4.f16.128x64.sm80"
#define DENSE "dequant.any.f16.128x256.sm90a"
#define DENSE_256 "dequant.any.f16.256x128.sm90a"
#define DENSE_80 "dequant.any.f16.256x128.sm80"
#define DENSE_I8 "dequant.any.i8.256x128.sm90a"
#define OCTETS "gemm8.u4.i8.256x128.sm90a"
#define OCTETS_E4M3 "gemm8.f6.e4m3.256x128.sm90a"
#define PLANES "gemm1.int.codes.256x128.sm90a"
#define FEW "skinny8.u4.codes.64x8.sm90a"
#define BITS "gemv1.u2.f16.32x2.sm90a"
#define COUNTS "gemv1.u2.i8.16x4.sm90a"
#define LOOKUP "lut.u2.f16.64x1.sm90a"
#define FAN_OUT "fanout.u4.f16.16x8.sm80"
#define FAN_IN "fanin.u4.f16.16x8.sm80"
#define SEGMENT "segment.u4.f16.16x8.sm80"
#define TILES "tilesim.any.any.32x32.base"
#define BYTES "dotsim.any.any.16x8.base"
#define CODEBOOK(...)                                       \
  {                                                         \
    .type = LPGEMM_CODEBOOK(4), .codebook = { __VA_ARGS__ } \
  }
#define INTEGERS(bits, columns) \
  { .type = LPGEMM_UINT(bits), .k = columns, .group_k = -1, .scale_type = 1 }

static const row rows[] = {
    /* feasible.c */
    {"blocked.any.any.16x16.base", "it is for another backend"},
    {WIDE, "it runs only on another GPU architecture", &sm100},
    {WIDE, "it runs only on another GPU architecture", &sm80},
    {"fp8.u4.e4m3.64x64.sm89", "it needs a newer GPU architecture", &sm86},
    {"blocked.any.any.16x16.avx512", "it needs an instruction set that this processor lacks", &cpu_avx2},
    {WIDE, "it does not take this kind of weights", .d.type = LPGEMM_FLOAT(2, 1)},
    {WIDE, "it does not take weights of this many bits", .d.type = LPGEMM_UINT(3)},
    {BITS, "it does not take scales of this type",
     .d = {.type = LPGEMM_UINT(2), .scale_type = LPGEMM_UINT(6), .super_scale_type = LPGEMM_F16, .super_k = 256},
     .m = 1},
    {PLANES, "it does not take this kind of zeros", .d = {.zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_F16},
     .x = LPGEMM_UINT(4)},
    {STRIPES, "it does not take groups of this size", .d.group_k = 48},
    {OCTETS, "it does not take scales that rows share", .d.group_n = 128, .x = LPGEMM_I8},
    {DENSE, "it does not take stacks of experts", .experts = 8},
    {FAN_OUT, "it is for the token form of a layer", .experts = 8},
    {FAN_IN, "it is not for the token form of a layer", .experts = 8, .fan = LPG_FAN_OUT},
    {WIDE, "it is not for the token form of a layer", .experts = 8, .fan = LPG_FAN_IN},
    {DENSE, "it does not take pairs of rows", .d.rows = LPGEMM_ROWS_PAIRED},
    {WIDE, "it does not take activations of this type", .x = LPGEMM_F32},
    {WIDE, "it does not write outputs of this type", .y = LPGEMM_I32},
    {DENSE_I8, "int32 output needs integer weights, integer activations, integer zeros and no scales", .x = LPGEMM_I8,
     .y = LPGEMM_I32},
    {"table.u4.f16.4.sm80", "it holds only the level FAST"},
    {DECODE, "its results may depend on the number of rows, and the call asks for batch invariance", .invariant = 1},
    {BITS, "it does not take this many rows", .d.type = LPGEMM_UINT(2), .m = 3},
    {"probe.any.any.1x1.sm80", "it is for tests"},
    {"table.u4.f16.4.sm80", "it would build its tables in a workspace", .level = LPGEMM_LEVEL_FAST},

    /* operand/limits.c, gemv_plan.c */
    {"gemv.f8.f16.16x8.sm80", "the weights' type has values beyond fp16", .d.type = LPGEMM_FLOAT(6, 1)},
    {"gemm.f8.f16.256x128.sm90a", "the weights' type has values beyond fp16", .d.type = LPGEMM_FLOAT(6, 1)},
    {"gemv.c4.f16.16x8.sm80", "the codebook's values are too far apart or too far from 1", .d = CODEBOOK(1e-9f, 1.0f)},
    {"gemv.c4.f16.16x8.sm80", "the codebook's values are too far apart or too far from 1", .d = CODEBOOK(1e9f)},
    {"gemv.f4.f16.16x8.sm80", "it takes zeros of integer weights only",
     .d = {.type = LPGEMM_FLOAT(2, 1), .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1}},
    {DECODE, "it takes super-groups of multiples of 256 columns only",
     .d = {.scale_type = LPGEMM_UINT(6), .super_scale_type = LPGEMM_F16, .super_k = 384}},
    {DECODE, "the number of rows that share scales is no power of two", .d.group_n = 48},
    {DECODE, "it takes no matrix as large as this", .d = {.n = INT64_C(1) << 30, .k = 256}},
    {DECODE, "the GPU has too little shared memory for it", &cramped},

    /* gemm_mode.c, gemm_plan.c */
    {WIDE, "it takes no zeros of groups of bipolar weights",
     .d = {.type = LPGEMM_BIPOLAR(4), .zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_F16}},
    {WIDE, "its scales and zeros have too many digits for fp32",
     .d = {.scale_type = LPGEMM_F32, .zero = LPGEMM_ZERO_PER_GROUP, .zero_type = LPGEMM_F16}},
    {WIDE, "so short rows need all digits of their scales",
     .d = {.scale_type = LPGEMM_F32, .zero = LPGEMM_ZERO_PER_GROUP, .zero_type = LPGEMM_U8, .k = 200}},
    {WIDE, "its scales and zeros take too much workspace",
     .d = {.scale_type = LPGEMM_BF16, .zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_BF16, .k = 4200000}},
    {WIDE, "the scales of a row are too far apart to be multiplied in the type of X", .span = 255},
    {"gemm.f4.bf16.256x128.sm90a", "the scales of a row are too far apart to be multiplied in the type of X",
     .x = LPGEMM_BF16, .d = {.type = LPGEMM_FLOAT(2, 1), .scale_type = LPGEMM_F32, .group_k = 64}, .span = 112},
    {"gemm.f7.f16.256x128.sm90a", "the weights' values are too far apart to be scaled in the type of X",
     .d.type = LPGEMM_FLOAT(5, 1)},
    {WIDE, "it takes no matrix as large as this", .m = INT64_C(1) << 30},
    {WIDE, "it takes no experts and no pairs of rows with such weights and scales", .d.group_n = 128, .experts = 8},
    {"gemm.u3.f16.256x128.sm90a", "it takes no experts and no pairs of rows with such weights and scales",
     .d = {.type = LPGEMM_UINT(3), .rows = LPGEMM_ROWS_PAIRED}},
    {WIDE, "it takes at most 1024 experts", .experts = 1025},
    {WIDE, "it takes pairs of rows with SILU and GELU_TANH only", .d.rows = LPGEMM_ROWS_PAIRED,
     .activation = LPGEMM_ACTIVATION_RELU},
    {WIDE, "the GPU has too little shared memory for it", &cramped},

    /* generic_plan.c */
    {"generic.w4.any.64x64.sm80", "shared memory has no room for so many experts", &cramped, .experts = 8},

    /* dequant_plan.c, dequant_expand.c */
    {DENSE, "it expands the weights, which takes 33 rows to pay", .m = 32},
    {DENSE, "its sums are no integers", .d = INTEGERS(4, 1024), .x = LPGEMM_I8, .y = LPGEMM_I32},
    {DENSE, "there is nothing to expand", .d.k = -1},
    {DENSE, "it puts no scales of groups on sums", .d.type = LPGEMM_E5M2},
    {DENSE, "the weights' values are too far apart for the type of X", .d.type = LPGEMM_FLOAT(6, 1)},
    {DENSE_256, "it expands the weights, which takes 33 rows to pay", .d.type = LPGEMM_UINT(3), .m = 32},
    {DENSE_256, "its sums are no integers", .d = INTEGERS(4, 1024), .x = LPGEMM_I8, .y = LPGEMM_I32},
    {DENSE_256, "there is nothing to expand", .d.k = -1},
    {DENSE_256, "the form with the work tiles of gemm takes it"},
    {"dequant.any.i8.256x128.sm80", "it puts no scales of groups on sums", &sm80, .x = LPGEMM_I8},
    {DENSE, "the rows are too long for its workspace", .d.k = 200000},
    {DENSE_256, "the rows are too long for its workspace", .d = {.type = LPGEMM_E5M2, .k = 200000}},
    {DENSE_I8, "it takes no minima with activations of 8 bits",
     .d = {.zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_F16}, .x = LPGEMM_I8},
    {DENSE_I8, "the weights less their zeros are not exact in the 8 bits of the activations",
     .d = {.zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 7.5f}, .x = LPGEMM_I8},
    {"dequant.any.e4m3.256x128.sm90a", "the weights less their zeros are not exact in the 8 bits of the activations",
     .d.type = LPGEMM_UINT(8), .x = LPGEMM_E4M3},
    {DENSE_I8, "with activations of 8 bits it takes groups of multiples of 128 columns only", .d.group_k = 64,
     .x = LPGEMM_I8},
    {DENSE_I8, "the activations' codes are not the numbers as int8", .x = LPGEMM_UINT(8)},
    {DENSE_I8, "the activations' codes are not the numbers as int8", .x = LPGEMM_BIPOLAR(4)},
    {DENSE_I8, "sums of so many columns may not be int32", .d = INTEGERS(4, 140000), .x = LPGEMM_I8},
    {DENSE, "it takes no matrix as large as this", .m = INT64_C(1) << 30},
    {DENSE_80, "the weights' values are too far apart for the type of X", &sm80, .d = CODEBOOK(1e-9f, 1.0f)},
    {DENSE_80, "the scales of a row are too far apart to be multiplied in the type of X", &sm80, .span = 255,
     .d.group_k = 32},

    {DENSE_80, "the form for sm_90a is faster on this GPU"},

    /* stripe_plan.c */
    {STRIPES, "it is for 17 rows of X and more", &sm80, .m = 16},
    {STRIPES, "there is nothing to multiply", &sm80, .d.k = -1},
    {STRIPES, "it takes no matrix as large as this", &sm80, .m = INT64_C(1) << 30},
    {STRIPES, "its scales and zeros take too much workspace", &sm80, .m = 100000,
     .d = {.zero = LPGEMM_ZERO_MINIMUM, .zero_type = LPGEMM_F16, .k = 16384}},
    {"stripe.u2.f16.128x64.sm80", "its groups of 16 have too many bits of scale and zero a row", &sm80,
     .d = {.type = LPGEMM_UINT(2),
           .group_k = 16,
           .scale_type = LPGEMM_F32,
           .zero = LPGEMM_ZERO_MINIMUM,
           .zero_type = LPGEMM_F32}},
    {STRIPES, "the GPU has too little shared memory for it", &cramped},
    {STRIPES, "the form for sm_90a is faster on this GPU"},

    /* gemm8_plan.c, gemm8_skinny_plan.c */
    {OCTETS, "there is nothing to multiply", .d.k = -1, .x = LPGEMM_I8},
    {OCTETS, "the activations' codes are not the numbers as int8", .d = INTEGERS(4, 1024), .x = LPGEMM_BIPOLAR(4)},
    {OCTETS, "it takes no bipolar weights", .d = {.type = LPGEMM_BIPOLAR(4), .group_k = -1}, .x = LPGEMM_I8},
    {OCTETS, "its sums may depend on the number of rows", .x = LPGEMM_I8, .invariant = 1},
    {OCTETS, "it takes scales of groups as fp16 and bf16 only", .d.scale_type = LPGEMM_F32, .x = LPGEMM_I8},
    {OCTETS, "it takes groups of 128, 256, 512 ... columns and whole rows only", .d.group_k = 384, .x = LPGEMM_I8},
    {OCTETS, "the weights of groups less their zeros are no signed bytes", .x = LPGEMM_I8,
     .d = {.zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 200.0f}},
    {OCTETS, "the weights of groups less their zeros are no signed bytes", .x = LPGEMM_I8,
     .d = {.zero = LPGEMM_ZERO_PER_GROUP, .zero_type = LPGEMM_U16}},
    {"gemm8.u8.i8.256x128.sm90a", "the weights of groups less their zeros are no signed bytes", .x = LPGEMM_I8,
     .d.type = LPGEMM_UINT(8)},
    {OCTETS, "the weights' zeros are no integers", .x = LPGEMM_I8,
     .d = {.group_k = -1, .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1.5f}},
    {OCTETS_E4M3, "the weights' values are not exact in e4m3", .d = {.type = LPGEMM_FLOAT(1, 4)}, .x = LPGEMM_E4M3},
    {OCTETS_E4M3, "it takes zeros of integer weights only", .x = LPGEMM_E4M3,
     .d = {.type = LPGEMM_FLOAT(2, 3), .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1}},
    {"gemm8.u4.e4m3.256x128.sm90a", "with e4m3 it takes zeros of unsigned weights from 0 to 16 only",
     .d = {.zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 17}, .x = LPGEMM_E4M3},
    {OCTETS, "it takes no matrix as large as this", .d = INTEGERS(4, 1024), .x = LPGEMM_I8, .m = INT64_C(1) << 30},
    {OCTETS, "sums of so many columns may not be int32", .d = INTEGERS(4, 1200000), .x = LPGEMM_I8},
    {OCTETS, "it does not fit shared memory", &cramped, .d = INTEGERS(4, 1024), .x = LPGEMM_I8},

    /* gemv1_plan.c */
    {BITS, "it takes X of 16 bits only", .d.type = LPGEMM_UINT(2), .x = LPGEMM_I8, .m = 1},
    {BITS, "it takes groups of 128, 256, 512 ... columns and whole rows only",
     .d = {.type = LPGEMM_UINT(2), .group_k = 384}, .m = 1},
    {BITS, "the zero is too large", .m = 1,
     .d = {.type = LPGEMM_UINT(2), .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1e31f}},
    {BITS, "it takes no matrix as large as this", .d = {.type = LPGEMM_UINT(2), .n = INT64_C(1) << 30, .k = 256},
     .m = 1},
    {BITS, "the GPU has too little shared memory for it", &cramped, .d.type = LPGEMM_UINT(2), .m = 1},

    {BITS, "it was measured on larger matrices only: from 2048 x 2048 on by one row of X, from 5120 x 640 on by two",
     .d.type = LPGEMM_UINT(2), .m = 1},

    /* gemv1_i8_plan.c */
    {COUNTS, "the activations' codes are not the numbers as int8", .d = INTEGERS(2, 1024), .x = LPGEMM_BIPOLAR(4),
     .m = 4},
    {COUNTS, "the zero is too large", .x = LPGEMM_I8, .m = 1,
     .d = {.type = LPGEMM_UINT(2), .group_k = -1, .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1e31f}},
    {COUNTS, "it takes no matrix as large as this", .d = INTEGERS(2, 1 << 21), .x = LPGEMM_I8, .m = 1},
    {COUNTS, "the GPU has too little shared memory for it", &cramped, .d = INTEGERS(2, 1 << 18), .x = LPGEMM_I8,
     .m = 1},

    /* lut_plan.c: in experimental builds */
    {LOOKUP, "it takes X of fp16, bf16, int8 and fp8 only", .d.type = LPGEMM_UINT(2), .x = LPGEMM_UINT(4), .m = 1},
    {LOOKUP, "it takes groups of 128, 256, 512 ... columns and whole rows only",
     .d = {.type = LPGEMM_UINT(2), .group_k = 384}, .m = 1},
    {LOOKUP, "the zero is too large", .m = 1,
     .d = {.type = LPGEMM_UINT(2), .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1e31f}},
    {LOOKUP, "it takes no matrix as large as this", .d = {.type = LPGEMM_UINT(2), .n = INT64_C(1) << 30, .k = 256},
     .m = 1},
    {LOOKUP, "the tables of a row do not fit the shared memory of a cluster", .d = {.type = LPGEMM_UINT(2), .k = 28672},
     .m = 1},

    {LOOKUP, "it is an experiment: gemv and gemv1 were faster wherever both were measured", .d.type = LPGEMM_UINT(2),
     .m = 1},

    /* cpu/limits.c */
    {TILES, "it takes groups of 32, 64, 96 ... columns and whole rows only", &cpu_base, .d.group_k = 48},
    {TILES, "it does not add up integers without scales exactly", &cpu_base, .d = INTEGERS(4, 1024), .x = LPGEMM_I8},
    {TILES, "bf16 does not hold the codebook", &cpu_base, .d = CODEBOOK(0.1f, 1.0f)},
    {TILES, "it takes zeros of u1-u8 and i2-i8 only", &cpu_base,
     .d = {.type = LPGEMM_FLOAT(2, 1), .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1}},
    {TILES, "of two levels it takes fp16 as the upper one only", &cpu_base,
     .d = {.scale_type = LPGEMM_UINT(6), .super_scale_type = LPGEMM_F32, .super_k = 256}},
    {TILES, "fp32 may hold the scales together with global or row scales only", &cpu_base,
     .d = {.scale_type = LPGEMM_F32, .global_scale = 0.5f}},
    {BYTES, "it takes no more than 2^18 columns by digits of X", &cpu_base, .d.k = (1 << 18) + 1},
    {BYTES, "it takes floats and codebooks of up to 16 values that three bytes hold only", &cpu_base,
     .d = CODEBOOK(1e-9f, 1.0f), .x = LPGEMM_I8},
    {BYTES, "it takes no more than 2^20 columns", &cpu_base, .d.k = (1 << 20) + 1, .x = LPGEMM_I8},

    /* gemv_fan_plan.c, gemv_stack_plan.c */
    {FAN_OUT, "it does not take this many slots", .experts = 8, .fan = LPG_FAN_OUT, .m = 129},
    {FAN_OUT, "it does not take activations of this type", .experts = 8, .fan = LPG_FAN_OUT, .m = 4, .x = LPGEMM_I8},
    {FAN_IN, "it does not take an order of columns", .experts = 8, .fan = LPG_FAN_IN, .m = 4,
     .d.columns = LPGEMM_COLUMNS_ORDERED},
    {FAN_OUT, "it does not take zeros that are no code", .experts = 8, .fan = LPG_FAN_OUT, .m = 4,
     .d = {.zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 7.5f}},
    {FAN_OUT, "it does not take scales of this type in groups of this size", .experts = 8, .fan = LPG_FAN_OUT, .m = 4,
     .d = {.scale_type = LPGEMM_F32, .group_k = 32}},
    {FAN_IN, "it takes no scales of rows", .experts = 8, .fan = LPG_FAN_IN, .m = 4, .d.row_scales = LPGEMM_F32},
    {FAN_OUT, "there is nothing to multiply", .experts = 8, .fan = LPG_FAN_OUT, .m = 4, .d.k = -1},
    {FAN_IN, "the GPU has too little shared memory for it", &cramped, .experts = 8, .fan = LPG_FAN_IN, .m = 4},

    /* gemv_segment_plan.c */
    {SEGMENT, "it takes stacks of experts alone", .m = 4},
    {SEGMENT, "it does not take zeros that are no code", .experts = 8, .m = 4,
     .d = {.zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 7.5f}},
    {SEGMENT, "its results may depend on the number of rows, and the call asks for batch invariance", .experts = 8,
     .m = 4, .invariant = 1},
    {SEGMENT, "the GPU has too little shared memory for it", &cramped, .experts = 8, .m = 4},

    /* operand/limits.c, gemm1_plan.c */
    {PLANES, "there is nothing to multiply", .d.k = -1, .x = LPGEMM_UINT(4)},
    {PLANES, "it takes one scale and one zero a row only", .x = LPGEMM_UINT(4)},
    {PLANES, "the weights' zeros are no integers", .x = LPGEMM_UINT(4),
     .d = {.group_k = -1, .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = 1.5f}},
    {PLANES, "it takes no matrix as large as this", .d = INTEGERS(4, 1024), .x = LPGEMM_UINT(4), .m = INT64_C(1) << 30},
    {PLANES, "sums of so many columns may not be int32", .d = INTEGERS(8, 40000), .x = LPGEMM_UINT(8)},
    {PLANES, "it makes images of the operands, which takes 33 rows to pay", .d = INTEGERS(4, 1024), .x = LPGEMM_UINT(4),
     .m = 32},
    {PLANES, "the rows are too long for its workspace", .d = INTEGERS(1, 4000000), .x = LPGEMM_UINT(1)},
    {FEW, "the rows are too long for shared memory", &cramped, .d = INTEGERS(4, 1024), .x = LPGEMM_UINT(4)},
};

/* ---- each of them ---- */

/* A description cannot say 0 here, which is what is not said: -1 is no columns, a group of the row, and with that 1 no
 * scales. */
static void make_row(problem *q, const row *r) {
  lpgemm_weight_desc_t d = r->d;
  d.size = sizeof d;
  if (d.n == 0) d.n = 1024;
  d.k = d.k == 0 ? 1024 : d.k < 0 ? 0 : d.k;
  if (d.type == 0) d.type = LPGEMM_UINT(4);
  d.group_k = d.group_k == 0 ? 128 : d.group_k < 0 ? 0 : d.group_k;
  d.scale_type = d.scale_type == 0 ? LPGEMM_F16 : d.scale_type == 1 ? 0 : d.scale_type;
  make(q, &d, r->x ? r->x : LPGEMM_F16, r->m ? r->m : 64);
  q->p.y_type = r->y ? r->y : LPGEMM_F16;
  q->p.scale_span = r->span;
  q->p.batch_invariant = r->invariant;
  q->p.level = r->level;
  q->p.experts = r->experts;
  q->p.slots = r->experts ? q->p.m : 0;
  if (r->fan) lpg_set_fan(&q->p, r->fan, q->p.m, 2);
  q->p.paired = d.rows == LPGEMM_ROWS_PAIRED;
  q->p.activation = r->activation;
}

/* Why it cannot do the problem, else why only its name or a tuning file makes it do so. */
static const char *reason_of(const lpg_kernel *kernel, const lpg_problem *p, const lpg_device *device) {
  const char *reason = lpgemm_i_infeasible(kernel, p, device);
  if (!reason) reason = lpgemm_i_not_automatic(kernel, p, device);
  return reason ? reason : "none";
}

static void test_each(void) {
  cramped = sm90;
  cramped.shared_memory = 4096;
  for (int i = 0; i < COUNT(rows); i++) {
    const row *r = &rows[i];
    if (!test_case("dispatch/refusal/%d/%s", i, r->kernel)) continue;
    problem q;
    make_row(&q, r);
    const lpg_kernel *kernel = lpgemm_i_find_kernel(test_every_kernel, test_every_kernel_count, r->kernel);
    if (!kernel) kernel = lpgemm_i_find_kernel(made_up, COUNT(made_up), r->kernel);
    if (!kernel && strcmp(r->kernel, LOOKUP) == 0) {
      test_skip("%s is not in this build", LOOKUP);
      continue;
    }
    CHECK(kernel != NULL);
    if (kernel) CHECK_TEXT(reason_of(kernel, &q.p, r->device ? r->device : &sm90), r->reason);
  }
}

/* ---- and no other: every text that a function of these sources returns, and every no_plan, is a reason ---- */

static int check_line(const char *file, int number, char *line) {
  int texts = 0;
  char *end = line;
  for (char *text; (text = strchr(end, '"')) && (end = strchr(text + 1, '"')); *end++ = '"') {
    *end = 0;
    if (!text[1]) continue;
    int found = 0;
    for (int i = 0; i < COUNT(rows) && !found; i++) found = strcmp(rows[i].reason, text + 1) == 0;
    if (!found) test_fail(__FILE__, __LINE__, "%s:%d: no case reaches \"%s\"", file, number, text + 1);
    texts++;
  }
  return texts;
}

static int starts(const char *line, const char *text) { return strncmp(line, text, strlen(text)) == 0; }

static int check_source(const char *name) {
  FILE *file = fopen(name, "r");
  char line[512];
  int texts = 0, returns_text = 0;
  CHECK(file != NULL);
  for (int number = 1; file && fgets(line, sizeof line, file); number++) {
    if (starts(line, "const char *") || starts(line, "static const char *")) returns_text = strchr(line, '(') != NULL;
    if (returns_text || strstr(line, "no_plan")) texts += check_line(name, number, line);
    if (line[0] == '}') returns_text = 0;
  }
  if (file) fclose(file);
  return texts;
}

static void test_complete(void) {
  static const char *const patterns[] = {"src/dispatch/feasible.c", "src/cpu/limits.c", "src/kernels/*/*.c",
                                         "src/bitserial/*.c", "src/lut/gpu/*.c"};
  if (!test_case("dispatch/refusal/all")) return;
  for (int i = 0; i < COUNT(patterns); i++) {
    glob_t found;
    if (glob(patterns[i], 0, NULL, &found) != 0) {
      test_skip("%s is not here: run the tests in the root of the repository", patterns[i]);
      return;
    }
    int texts = 0;
    for (size_t j = 0; j < found.gl_pathc; j++) texts += check_source(found.gl_pathv[j]);
    CHECK(texts > 5); /* else the sources are not where this test looks for them */
    globfree(&found);
  }
}

void dispatch_refusals(void) {
  test_each();
  test_complete();
}
