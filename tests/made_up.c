#include "made_up.h"

/* ---- planners: made-up costs, fast and slow ---- */

static int cut(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
               double *ns) {
  (void)problem, (void)device, (void)least, (void)state, (void)plan;
  *ns = 0.0;
  return i > 0 ? LPG_NO_MORE : LPG_CANDIDATE;
}

static void finish(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                   double ns, lpg_launch *launch) {
  const double m = (double)problem->m, weights = (double)problem->weights->desc.n * (double)problem->weights->desc.k;
  const double *speed = self->cost; /* weights and products, a microsecond and SM or thread */
  (void)plan, (void)ns;
  launch->mode = -1;
  launch->us = 1.0 + weights * (1.0 / speed[0] + m / speed[1]) / (device->sms > 0 ? device->sms : device->threads);
}

static size_t workspace_of_rows(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)device;
  return (size_t)problem->m * 256;
}

static size_t workspace_fixed(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device) {
  (void)self, (void)problem;
  return (size_t)device->sms * 64;
}

#define PLANNER(name, dequantised, multiplied, bytes)             \
  static const double name##_speed[] = {dequantised, multiplied}; \
  static const lpg_planner name = {                               \
      .cut = cut, .finish = finish, .workspace = bytes, .no_plan = "", .cost = name##_speed};
PLANNER(fast, 6300.0, 107000.0, NULL)
PLANNER(fast_by_rows, 6300.0, 107000.0, workspace_of_rows)
PLANNER(fast_with_memory, 6300.0, 107000.0, workspace_fixed)
PLANNER(middle, 3100.0, 69000.0, NULL)
PLANNER(slow, 1900.0, 23000.0, NULL)
PLANNER(slowest, 67.0, 2300.0, NULL)

/* ---- kernels ---- */

#define REALS (LPG_Y_F16 | LPG_Y_BF16 | LPG_Y_F32)
#define INTEGERS (LPG_W_UINT | LPG_W_INT | LPG_W_BIPOLAR)
#define EVERYTHING                                                                                        \
  .weights = LPG_W_ANY, .widths = 0x1fe, .x_types = LPG_X_ANY, .y_types = LPG_Y_ANY, .scales = LPG_S_ANY, \
  .zeros = LPG_Z_ANY, .groups = LPG_G_ANY
#define FAST_U4(types)                                                                                        \
  .backend = LPGEMM_BACKEND_CUDA, .weights = INTEGERS, .widths = 1u << 4, .x_types = types, .y_types = REALS, \
  .scales = LPG_S_F16 | LPG_S_BF16 | LPG_S_NONE, .zeros = LPG_Z_NONE | LPG_Z_CONSTANT | LPG_Z_INTEGER,        \
  .groups = LPG_G_32 | LPG_G_64 | LPG_G_128 | LPG_G_ROW

const lpg_kernel made_up[MADE_UP] = {
    [DECODE] = {.name = "gemv.u4.f16.16x8.sm90a",
                .family = "gemv",
                .arch = 90,
                .arch_exact = 1,
                FAST_U4(LPG_X_F16),
                .m_max = 16,
                .flags = LPG_K_BATCH_INVARIANT,
                .planner = &fast_by_rows},
    [PREFILL] = {.name = "prefill.u4.f16.128x256.sm90a",
                 .family = "prefill",
                 .arch = 90,
                 .arch_exact = 1,
                 FAST_U4(LPG_X_F16),
                 .planner = &fast_with_memory},
    [MMA] = {.name = "mma.u4.f16.64x64.sm80",
             .family = "mma",
             .arch = 80,
             FAST_U4(LPG_X_F16),
             .flags = LPG_K_BATCH_INVARIANT,
             .planner = &middle},
    [FP8] = {.name = "fp8.u4.e4m3.64x64.sm89",
             .family = "fp8",
             .arch = 89,
             FAST_U4(LPG_X_E4M3),
             .flags = LPG_K_BATCH_INVARIANT,
             .planner = &middle},
    [LUT] = {.name = "table.u4.f16.4.sm80",
             .family = "table",
             .arch = 80,
             FAST_U4(LPG_X_F16),
             .flags = LPG_K_FAST | LPG_K_TABLES,
             .planner = &fast_with_memory},
    [PROBE] = {.name = "probe.any.any.1x1.sm80",
               .family = "probe",
               .backend = LPGEMM_BACKEND_CUDA,
               .arch = 80,
               EVERYTHING,
               .flags = LPG_K_FORCE_ONLY,
               .planner = &fast},
    [GENERIC] = {.name = "generic.any.any.1x1.sm80",
                 .family = "generic",
                 .backend = LPGEMM_BACKEND_CUDA,
                 .arch = 80,
                 EVERYTHING,
                 .flags = LPG_K_BATCH_INVARIANT,
                 .planner = &slowest},
    [AVX512] = {.name = "blocked.any.any.16x16.avx512",
                .family = "blocked",
                .backend = LPGEMM_BACKEND_CPU,
                .isa = LPG_ISA_AVX512,
                EVERYTHING,
                .flags = LPG_K_BATCH_INVARIANT,
                .planner = &fast},
    [AVX2] = {.name = "blocked.any.any.16x16.avx2",
              .family = "blocked",
              .backend = LPGEMM_BACKEND_CPU,
              .isa = LPG_ISA_AVX2,
              EVERYTHING,
              .flags = LPG_K_BATCH_INVARIANT,
              .planner = &middle},
    [BASE] = {.name = "blocked.any.any.16x16.base",
              .family = "blocked",
              .backend = LPGEMM_BACKEND_CPU,
              EVERYTHING,
              .flags = LPG_K_BATCH_INVARIANT,
              .planner = &slow},
    [REFERENCE] = {.name = "reference.any.any.1x1.cpu",
                   .family = "reference",
                   .backend = LPGEMM_BACKEND_CPU,
                   EVERYTHING,
                   .flags = LPG_K_BATCH_INVARIANT,
                   .planner = &slowest},
};

/* ---- problems ---- */

lpgemm_weight_desc_t desc_of(lpgemm_dtype_t type, int64_t n, int64_t k) {
  lpgemm_weight_desc_t d = {.size = sizeof d};
  d.n = n;
  d.k = k;
  d.type = type;
  d.group_k = 128;
  d.scale_type = LPGEMM_F16;
  return d;
}

void make(problem *q, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type, int64_t m) {
  memset(q, 0, sizeof *q);
  CHECK_STATUS(lpgemm_i_make_packed(desc, &q->weights), LPGEMM_SUCCESS);
  q->p.weights = &q->weights;
  q->p.scale_span = 255;
  q->p.m = m;
  q->p.x_type = x_type;
  q->p.y_type = LPGEMM_F16;
  q->p.workspace = SIZE_MAX;
}

void make_simple(problem *q, lpgemm_dtype_t type, lpgemm_dtype_t x_type, int64_t m) {
  lpgemm_weight_desc_t d = desc_of(type, 4096, 4096);
  make(q, &d, x_type, m);
}

const char *choose(const problem *q, const lpg_device *device, const lpg_tuning *tuning, const char *forced) {
  lpg_choice choice = {.kernel = NULL};
  lpgemm_status_t status = lpgemm_i_select(made_up, COUNT(made_up), &q->p, device, tuning, forced, &choice);
  CHECK((status == LPGEMM_SUCCESS) == (choice.kernel != NULL));
  return choice.kernel ? choice.kernel->name : "none";
}

void check_text(const char *file, int line, const char *got, const char *want) {
  if (strcmp(got ? got : "(null)", want) != 0)
    test_fail(file, line, "got \"%s\", not \"%s\"", got ? got : "NULL", want);
}

void check_has(const char *file, int line, const char *text, const char *part) {
  if (!strstr(text, part)) test_fail(file, line, "\"%s\" does not say \"%s\"", text, part);
}

void make_changed(problem *q, change what) {
  lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), 256, 1024);
  int integer = what == I32_SCALES || what == I32_X || what == I32_ZERO;
  d.type = what == WEIGHTS ? LPGEMM_FLOAT(2, 1) : what == WIDTH ? LPGEMM_UINT(3) : d.type;
  d.scale_type = what == SCALE ? LPGEMM_E8M0 : what == TWO_LEVELS ? LPGEMM_UINT(6) : d.scale_type;
  if (what == TWO_LEVELS) d.super_scale_type = LPGEMM_F16;
  if (integer && what != I32_SCALES) d.scale_type = 0;
  if (what == I32_ZERO) d.zero_constant = 1.5f;
  d.zero = what == ZERO       ? LPGEMM_ZERO_PER_GROUP
           : what == MINIMUM  ? LPGEMM_ZERO_MINIMUM
           : what == I32_ZERO ? LPGEMM_ZERO_CONSTANT
                              : d.zero;
  if (what == ZERO || what == MINIMUM) d.zero_type = LPGEMM_F16;
  if (what == GROUP) d.group_k = 48;
  make(q, &d, what == X ? LPGEMM_F32 : integer && what != I32_X ? LPGEMM_I8 : LPGEMM_F16, what == ROWS ? 17 : 16);
  if (what == Y || integer) q->p.y_type = LPGEMM_I32;
  q->p.level = what == LEVEL ? LPGEMM_LEVEL_EXACT : LPGEMM_LEVEL_FAST;
  q->p.batch_invariant = what == INVARIANT;
}
