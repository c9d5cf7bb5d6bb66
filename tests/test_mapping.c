/* Which of all kernels there are, on GPUs that need not be there: what is chosen is written down in
 * tests/golden/mapping.txt, with which plan in tests/golden/plans.txt, and every kernel is chosen for something.
 * Planners are plain C, and the devices made up.
 *
 * LPGEMM_TEST_GOLDEN=write in the environment (`make golden`) writes the files instead of comparing with them. */
#include "cpu/cpu.h"
#include "kernels/plan/fan.h"
#include "kernels/plan/rates.h"
#include "made_up.h"

/* ---- problems in words ---- */

/* What is not named is none. */
typedef struct kind {
  const char *words;
  lpgemm_dtype_t type, scale, zero_type, super_scale, super_zero, x;
  int64_t group, super;
  lpgemm_zero_t zero;
  float zero_constant;
  int invariant;
} kind;

static void make_kind(problem *q, const kind *k, int64_t n, int64_t columns, int64_t m) {
  lpgemm_weight_desc_t d = {.size = sizeof d};
  d.n = n;
  d.k = columns;
  d.type = k->type;
  d.group_k = k->group;
  d.scale_type = k->scale;
  d.zero = k->zero;
  d.zero_type = k->zero_type;
  d.zero_constant = k->zero_constant;
  d.super_k = k->super;
  d.super_scale_type = k->super_scale;
  d.super_zero_type = k->super_zero;
  for (int i = 0; LPGEMM_DTYPE_KIND(d.type) == LPGEMM_KIND_CODEBOOK && i < 1 << lpgemm_dtype_bits(d.type); i++) {
    d.codebook[i] = 2.0f * (float)i / (float)((1 << lpgemm_dtype_bits(d.type)) - 1) - 1.0f;
  }
  make(q, &d, k->x, m);
  q->p.scale_span = 3; /* as of trained weights */
  q->p.batch_invariant = k->invariant;
  if (lpg_bits(k->x) <= 8) q->p.x_scale_mode = LPGEMM_X_SCALE_ROW;
}

static lpg_choice choice(const problem *q, const lpg_device *device) {
  static const lpg_kernel none = {.name = "none"};
  lpg_choice chosen = {.kernel = NULL};
  lpgemm_status_t status =
      lpgemm_i_select(test_every_kernel, test_every_kernel_count, &q->p, device, NULL, NULL, &chosen);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (!chosen.kernel) chosen.kernel = &none;
  return chosen;
}

/* ---- the golden files ---- */

#define OFFSET(value) .zero = LPGEMM_ZERO_CONSTANT, .zero_constant = value
static const kind kinds[] = {
    {"u1 g128 f16", LPGEMM_UINT(1), LPGEMM_F16, .group = 128, OFFSET(0.5f), .x = LPGEMM_F16},
    {"u2 g128 f16", LPGEMM_UINT(2), LPGEMM_F16, .group = 128, OFFSET(2), .x = LPGEMM_F16},
    {"u3 g128 f16", LPGEMM_UINT(3), LPGEMM_F16, .group = 128, OFFSET(4), .x = LPGEMM_F16},
    {"u4 g128 f16", LPGEMM_UINT(4), LPGEMM_F16, .group = 128, OFFSET(8), .x = LPGEMM_F16},
    {"u4 g128 f16", LPGEMM_UINT(4), LPGEMM_F16, .group = 128, OFFSET(8), .x = LPGEMM_BF16},
    {"u4 g128 f16", LPGEMM_UINT(4), LPGEMM_F16, .group = 128, OFFSET(8), .x = LPGEMM_F32},
    {"u4 g48 f16", LPGEMM_UINT(4), LPGEMM_F16, .group = 48, OFFSET(8), .x = LPGEMM_F16},
    {"u4 g32 f16 zu4", LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_U8, .group = 32, .zero = LPGEMM_ZERO_PER_GROUP,
     .x = LPGEMM_F16},
    {"u4 g128 f16 invariant", LPGEMM_UINT(4), LPGEMM_F16, .group = 128, OFFSET(8), .x = LPGEMM_F16, .invariant = 1},
    {"u4 g32 u6 minima (Q4_K)", LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_UINT(6), LPGEMM_F16, LPGEMM_F16, .group = 32,
     .super = 256, .zero = LPGEMM_ZERO_MINIMUM, .x = LPGEMM_F16},
    {"i4 row f32", LPGEMM_INT(4), LPGEMM_F32, .x = LPGEMM_I8},
    {"i8 row f32", LPGEMM_INT(8), LPGEMM_F32, .x = LPGEMM_I8},
    {"u8 g128 f16", LPGEMM_UINT(8), LPGEMM_F16, .group = 128, OFFSET(128), .x = LPGEMM_F16},
    {"e2m1 g16 e4m3 (NVFP4)", LPGEMM_FLOAT(2, 1), LPGEMM_E4M3, .group = 16, .x = LPGEMM_F16},
    {"e2m1 g32 e8m0 (MXFP4)", LPGEMM_FLOAT(2, 1), LPGEMM_E8M0, .group = 32, .x = LPGEMM_BF16},
    {"e2m1 g128 f16", LPGEMM_FLOAT(2, 1), LPGEMM_F16, .group = 128, .x = LPGEMM_E4M3},
    {"e4m3 row f32", LPGEMM_FLOAT(4, 3), LPGEMM_F32, .x = LPGEMM_F16},
    {"nf4 g64 f16", LPGEMM_CODEBOOK(4), LPGEMM_F16, .group = 64, .x = LPGEMM_F16},
    {"u1 row f16", LPGEMM_UINT(1), LPGEMM_F16, .x = LPGEMM_UINT(1)},
    {"u2 row f16", LPGEMM_UINT(2), LPGEMM_F16, .x = LPGEMM_UINT(4)},
    {"u4 row f16", LPGEMM_UINT(4), LPGEMM_F16, .x = LPGEMM_UINT(8)},
    {"u2 g32 f16", LPGEMM_UINT(2), LPGEMM_F16, .group = 32, OFFSET(2), .x = LPGEMM_BIPOLAR(2)},
    {"u4 g128 f16", LPGEMM_UINT(4), LPGEMM_F16, .group = 128, OFFSET(8), .x = LPGEMM_INT(4)},
};
static const lpg_device *const gpus[] = {&sm80, &sm86, &sm89, &h100, &sm90, &sm100};
static const int64_t shapes[][2] = {{4096, 4096}, {28672, 8192}};
static const int64_t rows[] = {1, 2, 4, 8, 9, 16, 17, 24, 32, 33, 48, 64, 65, 96, 128, 256, 512, 1024, 2048, 8192};

/* "NVIDIA H200: u4 g128 f16 by f16, 4096 x 4096: 1 gemv.u4.f16.16x8.sm80, 17 gemm.u4.f16.256x128.sm90a": from so many
 * rows on, this kernel. */
static void write_line(FILE *file, const lpg_device *device, const kind *k, const int64_t *shape) {
  const char *last = "";
  lpg_device paced = *device;
  lpgemm_i_set_rates(&paced);
  fprintf(file, "%s: %s by %s, %lld x %lld:", device->name, k->words, lpgemm_dtype_name(k->x), (long long)shape[0],
          (long long)shape[1]);
  for (int i = 0; i < COUNT(rows); i++) {
    problem q;
    make_kind(&q, k, shape[0], shape[1], rows[i]);
    const char *name = choice(&q, &paced).kernel->name;
    if (strcmp(name, last) == 0) continue;
    fprintf(file, "%s %lld %s", *last ? "," : "", (long long)rows[i], name);
    last = name;
  }
  fprintf(file, "\n");
}

static void write_mapping(FILE *file) {
  fprintf(file,
          "# Which kernel from how many rows on: tests/test_mapping.c writes and compares this; `make golden`.\n");
  for (int d = 0; d < COUNT(gpus); d++) {
    for (int i = 0; i < COUNT(kinds) * COUNT(shapes); i++) {
      write_line(file, gpus[d], &kinds[i / COUNT(shapes)], shapes[i % COUNT(shapes)]);
    }
  }
}

/* "u4 g128 f16 by f16, 4096 x 4096, 64 rows: gemm.u4.f16.256x128.sm90a, work tile 128 x 32, ..." */
static void write_plan(FILE *file, const lpg_device *device, const kind *k, const int64_t *shape, int64_t m) {
  problem q;
  char text[256];
  make_kind(&q, k, shape[0], shape[1], m);
  const lpg_choice chosen = choice(&q, device);
  if (chosen.kernel->planner) {
    lpgemm_i_describe_plan(chosen.kernel->planner, &chosen.planned.launch, text, sizeof text);
    fprintf(file, "%s by %s, %lld x %lld, %lld rows: %s, %s\n", k->words, lpgemm_dtype_name(k->x), (long long)shape[0],
            (long long)shape[1], (long long)m, chosen.kernel->name, text);
  }
}

static void write_plans(FILE *file) {
  static const lpg_device *const devices[] = {&sm90, &sm80, &sm89};
  static const int64_t some_rows[] = {1, 16, 48, 128, 512, 2048};
  fprintf(file, "# How what is chosen is launched: tests/test_mapping.c writes and compares this; `make golden`.\n");
  for (int d = 0; d < COUNT(devices); d++) {
    lpg_device device = *devices[d];
    lpgemm_i_set_rates(&device);
    fprintf(file, "\n%s\n", device.name);
    for (int i = 0; i < COUNT(kinds) * COUNT(shapes) * COUNT(some_rows); i++) {
      const int64_t *shape = shapes[i / COUNT(some_rows) % COUNT(shapes)];
      write_plan(file, &device, &kinds[i / COUNT(some_rows) / COUNT(shapes)], shape, some_rows[i % COUNT(some_rows)]);
    }
  }
}

/* Compares up to the first line that differs. */
static void compare_golden(const char *path, FILE *golden, FILE *now) {
  char want[1024], got[1024];
  for (int line = 1;; line++) {
    const char *w = fgets(want, sizeof want, golden), *g = fgets(got, sizeof got, now);
    if (!w && !g) return;
    if (w && g && strcmp(w, g) == 0) continue;
    test_fail(__FILE__, __LINE__, "%s, line %d: now it is\n  %snot\n  %s(`make golden` writes it anew)", path, line,
              g ? g : "its end\n", w ? w : "its end\n");
    return;
  }
}

static void test_golden(const char *what, const char *path, void (*write)(FILE *)) {
  const char *mode = getenv("LPGEMM_TEST_GOLDEN");
  if (!test_case("dispatch/mapping/golden/%s", what)) return;
  int writes = mode && strcmp(mode, "write") == 0;
  FILE *golden = fopen(path, writes ? "w" : "r");
  if (!golden) {
    test_skip("tests/golden/ is not here: run the tests in the root of the repository");
    return;
  }
  if (writes) {
    write(golden);
  } else {
    FILE *now = tmpfile();
    CHECK(now != NULL);
    if (now) {
      write(now);
      rewind(now);
      compare_golden(path, golden, now);
      fclose(now);
    }
  }
  fclose(golden);
}

/* ---- the table of GPUs ---- */

static lpg_device gpu(const char *name, int32_t arch) {
  lpg_device device = {.backend = LPGEMM_BACKEND_CUDA, .arch = arch};
  snprintf(device.name, sizeof device.name, "%s", name);
  lpgemm_i_set_rates(&device);
  return device;
}

static double dram(const char *name, int32_t arch) {
  const lpg_device device = gpu(name, arch);
  return lpg_dram_rate(lpgemm_i_rates_of(&device));
}

static double mma(const char *name, int32_t arch) {
  const lpg_device device = gpu(name, arch);
  return lpgemm_i_mma_speed(&device);
}

static void test_rates(void) {
  if (!test_case("dispatch/mapping/rates")) return;
  const double h200 = dram("NVIDIA H200", 90), a100 = dram("NVIDIA A100-SXM4-80GB", 80);
  CHECK(h200 > 34.9 && h200 < 35.0); /* bytes that an SM reads in a nanosecond */
  CHECK(dram("NVIDIA H100 80GB HBM3", 90) < h200 && dram("NVIDIA H100 PCIe", 90) < dram("NVIDIA H100 80GB HBM3", 90));
  CHECK(a100 > 18.8 && a100 < 18.9 && dram("NVIDIA A100-SXM4-40GB", 80) < a100);
  CHECK(dram("NVIDIA A10", 86) < a100 && mma("NVIDIA A10", 86) < mma("NVIDIA A100-SXM4-80GB", 80)); /* it is no A100 */
  CHECK(mma("NVIDIA GeForce RTX 4090", 89) < mma("NVIDIA L40S", 89));
  CHECK(dram("NVIDIA RTX A6000", 86) == dram("NVIDIA A10", 86)); /* the first of the architecture */
  CHECK(dram("NVIDIA GeForce RTX 5090", 120) > 10.0 && dram("NVIDIA GeForce RTX 5090", 120) < 11.0);
  CHECK(gpu("NVIDIA of tomorrow", 130).rates == NULL && dram("NVIDIA of tomorrow", 130) == h200);
}

/* ---- every kernel is chosen for something ---- */

/* But these, and what may only be forced: one in twenty at most. */
static const struct {
  const char *kernel, *because;
} never[] = {{"reference.any.any.1x1.cpu", "the oracle: blocked.any.any.16x16.base takes the same, and is faster"},
             {"lut.u1.any.4.base", "in plain C blocked takes less for one row, by its costs"},
             {"lut.u2.any.4.base", "in plain C blocked takes less for one row, by its costs"},
             {"lut.u3.any.4.base", "in plain C blocked takes less for one row, by its costs"},
             {"lut.u4.any.4.base", "in plain C blocked takes less for one row, by its costs"},
             {"lut.u2.any.4.avx2", "dot takes less by AVX2; it refuses integers by integers without scales"},
             {"lut.u3.any.4.avx2", "dot takes less by AVX2; it refuses integers by integers without scales"},
             {"lut.u4.any.4.avx2", "dot takes less by AVX2; it refuses integers by integers without scales"}};

static char chosen_once[512];

/* What is chosen for a problem with all the workspace there may be and with none. */
static void sweep_problem(problem *q, const lpg_device *device) {
  for (int i = 0; i < 2; i++) {
    lpg_choice chosen = {.kernel = NULL};
    q->p.workspace = i == 0 ? SIZE_MAX : 0;
    CHECK_STATUS(lpgemm_i_select(test_every_kernel, test_every_kernel_count, &q->p, device, NULL, NULL, &chosen),
                 LPGEMM_SUCCESS);
    if (chosen.kernel) chosen_once[chosen.kernel - test_every_kernel] = 1;
  }
}

/* Weights in groups of that many columns (0: of the row), on every device. */
static void sweep_weights(lpgemm_dtype_t type, lpgemm_dtype_t x, int64_t group) {
  static const lpg_device *const devices[] = {&sm80,     &sm89,        &sm90,       &sm100,    &cpu_base,
                                              &cpu_avx2, &cpu_avxvnni, &cpu_avx512, &cpu_vbmi, &cpu_amx};
  static const int64_t some_rows[] = {1, 5, 16, 40, 64, 200, 512, 4096};
  const kind k = {"", type, LPGEMM_F16, .group = group, .x = x};
  for (int i = 0; i < COUNT(devices) * COUNT(some_rows) * COUNT(shapes); i++) {
    problem q;
    const int64_t *shape = shapes[i % COUNT(shapes)];
    make_kind(&q, &k, shape[0], shape[1], some_rows[i / COUNT(shapes) % COUNT(some_rows)]);
    sweep_problem(&q, devices[i / COUNT(shapes) / COUNT(some_rows)]);
  }
}

/* Both products of a layer of few tokens, in the token form, and a product whose experts have a row or two. */
static void sweep_experts(lpgemm_dtype_t type) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16, LPGEMM_BF16};
  for (int i = 0; i < 6; i++) {
    const kind k = {"", type, LPGEMM_F16, .group = 128, .x = x_types[i / 3]};
    problem q;
    make_kind(&q, &k, 4096, 4096, 16);
    q.p.experts = 16;
    q.p.slots = q.p.m;
    if (i % 3 < 2) lpg_set_fan(&q.p, i % 3 ? LPG_FAN_IN : LPG_FAN_OUT, 4, 2);
    sweep_problem(&q, &sm90);
  }
}

static void test_every(void) {
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16,  LPGEMM_BF16, LPGEMM_F32,    LPGEMM_I8,
                                           LPGEMM_E4M3, LPGEMM_E5M2, LPGEMM_UINT(2)};
  static const int64_t groups[] = {0, 48, 128};
  if (!test_case("dispatch/mapping/every-kernel")) return;
  CHECK(test_every_kernel_count <= COUNT(chosen_once));
  for (int i = 0; i < COUNT(x_types) * COUNT(groups); i++) {
    lpgemm_dtype_t x = x_types[i / COUNT(groups)];
    int64_t group = groups[i % COUNT(groups)];
    for (lpgemm_dtype_t bits = 1; bits <= 8; bits++) sweep_weights(LPGEMM_UINT(bits), x, group);
    for (lpgemm_dtype_t bits = 1; bits <= 4; bits++) sweep_weights(LPGEMM_CODEBOOK(bits), x, group);
    for (lpgemm_dtype_t bits = 3; bits <= 8; bits++) sweep_weights(LPGEMM_FLOAT(2, bits - 3), x, group);
    sweep_weights(LPGEMM_E4M3, x, group);
  }
  sweep_weights(LPGEMM_E5M2, LPGEMM_F16, 128);
  for (lpgemm_dtype_t bits = 2; bits <= 8; bits *= 2) sweep_experts(LPGEMM_UINT(bits));
  sweep_experts(LPGEMM_FLOAT(2, 1));
  sweep_experts(LPGEMM_E4M3);
  int left = 0;
  for (int i = 0; i < test_every_kernel_count; i++) {
    const lpg_kernel *kernel = &test_every_kernel[i];
    const char *because = kernel->flags & LPG_K_FORCE_ONLY ? "it may only be forced" : NULL;
    for (int j = 0; j < COUNT(never); j++) {
      if (strcmp(kernel->name, never[j].kernel) == 0) because = never[j].because;
    }
    left += because != NULL;
    if (chosen_once[i] && because) test_fail(__FILE__, __LINE__, "%s is chosen, though %s", kernel->name, because);
    if (!chosen_once[i] && !because) test_fail(__FILE__, __LINE__, "%s is never chosen", kernel->name);
  }
  CHECK(left * 20 <= test_every_kernel_count);
}

/* A batch invariant call has one kernel, wherever X lies: more rows than 16 are copied to aligned places, fewer not. */
static void test_anywhere(void) {
  static const int64_t sizes[][2] = {{4096, 4096}, {4096, 1024}, {64, 8192}, {28672, 8192}};
  if (!test_case("dispatch/mapping/invariant-anywhere")) return;
  for (int i = 0; i < COUNT(kinds) * COUNT(sizes); i++) {
    const int64_t *size = sizes[i % COUNT(sizes)];
    kind invariant = kinds[i / COUNT(sizes)];
    problem few, many;
    invariant.invariant = 1;
    make_kind(&few, &invariant, size[0], size[1], 16);
    make_kind(&many, &invariant, size[0], size[1], 17);
    few.p.x_unaligned = 1;
    const lpg_kernel *kernel = choice(&many, &sm90).kernel;
    CHECK(choice(&few, &sm90).kernel == kernel);
    CHECK(lpgemm_i_estimate(kernel, &few.p, &sm90) == lpgemm_i_estimate(kernel, &many.p, &sm90));
  }
}

/* ---- instruction sets of the CPU ---- */

static int runs(const char *name, const lpg_device *device) {
  for (int i = 0; i < test_every_kernel_count; i++) {
    if (strcmp(test_every_kernel[i].name, name) == 0) return lpgemm_i_runs_on(&test_every_kernel[i], device);
  }
  return -1; /* not of this architecture, or of a compiler that knows it */
}

/* Sets are not in one order: a processor may have either of two. */
static void test_sets(void) {
  static const struct {
    const char *kernel;
    const lpg_device *without, *with;
  } rows[] = {{"dot.any.any.16x8.avxvnni", &cpu_vbmi, &cpu_avxvnni},
              {"dot.any.any.16x8.vbmi", &cpu_avxvnni, &cpu_vbmi},
              {"dot.any.any.16x8.avxvnni", &cpu_avx2, &cpu_amx},
              {"tiles.any.any.32x32.amx", &cpu_vbmi, &cpu_amx},
              {"blocked.any.any.16x16.avx512", &cpu_avxvnni, &cpu_avx512}};
  if (!test_case("dispatch/mapping/instruction-sets")) return;
  for (int i = 0; i < COUNT(rows); i++) {
    if (runs(rows[i].kernel, rows[i].with) < 0) continue;
    CHECK_INT(runs(rows[i].kernel, rows[i].without), 0);
    CHECK_INT(runs(rows[i].kernel, rows[i].with), 1);
  }
}

/* LPGEMM_CPU leaves of the machine's sets those of a processor with that word. */
static void test_variable(void) {
  if (!test_case("dispatch/mapping/LPGEMM_CPU")) return;
  const char *found = getenv("LPGEMM_CPU");
  char *before = found ? strdup(found) : NULL;
  lpg_device device;
  unsetenv("LPGEMM_CPU");
  CHECK_STATUS(lpgemm_i_cpu_device(1, &device), LPGEMM_SUCCESS);
  const int32_t all = device.isa;
#if defined(__aarch64__)
  static const char *const words[] = {"base", "neon", "dotprod"};
  static const int32_t sets[] = {LPG_ISA_BASE, LPG_ISA_NEON, LPG_ISA_NEON | LPG_ISA_DOTPROD};
#elif defined(__x86_64__)
  static const char *const words[] = {"base", "avx2", "avxvnni", "avx512"};
  static const int32_t sets[] = {LPG_ISA_BASE, LPG_ISA_AVX2, LPG_ISA_AVX2 | LPG_ISA_AVXVNNI,
                                 LPG_ISA_AVX2 | LPG_ISA_AVX512};
#else
  static const char *const words[] = {"base"};
  static const int32_t sets[] = {LPG_ISA_BASE};
#endif
  for (int i = 0; i < COUNT(words); i++) {
    CHECK_INT(setenv("LPGEMM_CPU", words[i], 1), 0);
    CHECK_STATUS(lpgemm_i_cpu_device(1, &device), LPGEMM_SUCCESS);
    CHECK_INT(device.isa, all & sets[i]);
  }
  CHECK_INT(setenv("LPGEMM_CPU", "pentium", 1), 0);
  CHECK_STATUS(lpgemm_i_cpu_device(1, &device), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "pentium") && strstr(lpgemm_last_error(), "LPGEMM_CPU"));
  CHECK_INT(before ? setenv("LPGEMM_CPU", before, 1) : unsetenv("LPGEMM_CPU"), 0);
  free(before);
}

void dispatch_mapping(void) {
  test_golden("kernels", "tests/golden/mapping.txt", write_mapping);
  test_golden("plans", "tests/golden/plans.txt", write_plans);
  test_rates();
  test_every();
  test_anywhere();
  test_sets();
  test_variable();
}
