/* What lpgemm_prepare_x() saves: the products of a Llama's q, k and v, and of its gate and up, with an X that each of
 * them makes ready for itself, and with one that was prepared for all.
 *
 *     shared-x [RECORD]
 *
 * One thread, CPU time of the process, both ways in turn, least of seven. Results must be the same bits. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* gmtime_r, clock_gettime */
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lpgemm.h"

enum { K = 4096, MOST_N = 14336, MATRICES = 3, MOST_ROWS = 64, TURNS = 7 };

static void check(lpgemm_status_t status) {
  if (status == LPGEMM_SUCCESS) return;
  fprintf(stderr, "shared-x: %s\n", lpgemm_last_error());
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (memory) return memory;
  fprintf(stderr, "shared-x: no memory\n");
  exit(1);
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 1;
static uint32_t draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* ---- weights ---- */

static const char *const types[] = {"q4_0", "q8_0", "q4_k", "u2"};
enum { TYPES = sizeof types / sizeof types[0] };

static lpgemm_weight_desc_t describe(int type, int64_t n) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .n = n, .k = K, .group_k = 32, .scale_type = LPGEMM_F16};
  d.type = type == 1 ? LPGEMM_INT(8) : type == 3 ? LPGEMM_UINT(2) : LPGEMM_UINT(4);
  if (type == 0) d.zero = LPGEMM_ZERO_CONSTANT, d.zero_constant = 8;
  if (type == 2) {
    d.super_k = 256;
    d.scale_type = d.zero_type = LPGEMM_UINT(6);
    d.super_scale_type = d.super_zero_type = LPGEMM_F16;
    d.zero = LPGEMM_ZERO_MINIMUM;
  }
  if (type == 3) d.group_k = 128, d.zero = LPGEMM_ZERO_CONSTANT, d.zero_constant = 1;
  return d;
}

static uint8_t *random_bytes(size_t count, uint32_t most) {
  uint8_t *bytes = allocate(count);
  for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(draw() % (most + 1));
  return bytes;
}

/* fp16 from 2^-7 to 2^-6. */
static uint8_t *random_scales(size_t count) {
  uint16_t *scales = allocate(2 * count);
  for (size_t i = 0; i < count; i++) scales[i] = (uint16_t)(8u << 10 | (draw() & 0x3ffu));
  return (uint8_t *)scales;
}

static lpgemm_weights_t make_weights(lpgemm_handle_t handle, int type, int64_t n) {
  const lpgemm_weight_desc_t d = describe(type, n);
  const size_t codes = (size_t)n * K, groups = codes / (size_t)d.group_k, supers = codes / 256;
  lpgemm_weight_source_t s = {.size = sizeof s, .codes_bytes = codes};
  uint8_t *parts[5] = {random_bytes(codes, type == 1 ? 255 : type == 3 ? 3 : 15)};
  s.codes = parts[0];
  s.scales = parts[1] = type == 2 ? random_bytes(groups, 63) : random_scales(groups);
  s.scales_bytes = type == 2 ? groups : 2 * groups;
  if (type == 2) {
    s.zeros = parts[2] = random_bytes(groups, 63);
    s.zeros_bytes = groups;
    s.super_scales = parts[3] = random_scales(supers);
    s.super_zeros = parts[4] = random_scales(supers);
    s.super_scales_bytes = s.super_zeros_bytes = 2 * supers;
  }
  lpgemm_weights_t weights = NULL;
  check(lpgemm_pack_weights(handle, &d, &s, NULL, 0, &weights));
  for (int i = 0; i < 5; i++) free(parts[i]);
  return weights;
}

/* ---- a group of products ---- */

typedef struct group {
  lpgemm_handle_t handle;
  int count;
  lpgemm_run_args_t args[MATRICES];
  void *prepared;
  size_t bytes;
} group;

static void prepare(const group *g) { check(lpgemm_prepare_x(g->handle, &g->args[0], g->prepared, g->bytes)); }

static void run_group(const group *g, int is_shared) {
  if (is_shared) prepare(g);
  for (int i = 0; i < g->count; i++) {
    lpgemm_run_args_t args = g->args[i];
    if (is_shared) {
      args.prepared_x = g->prepared;
      args.prepared_x_bytes = g->bytes;
    }
    check(lpgemm_run(g->handle, &args));
  }
}

/* Microseconds of a call, of as many as take 10 ms. way: alone, shared, or preparing only. */
enum { ALONE, SHARED, PREPARING, WAYS };
static double time_once(const group *g, int way, int calls) {
  const double start = cpu_seconds();
  for (int i = 0; i < calls; i++) {
    if (way == PREPARING) {
      prepare(g);
    } else {
      run_group(g, way == SHARED);
    }
  }
  return 1e6 * (cpu_seconds() - start) / calls;
}

static void measure(const group *g, double us[WAYS]) {
  int calls[WAYS];
  for (int way = 0; way < WAYS; way++) {
    const double first = time_once(g, way, 3);
    calls[way] = first > 1e4 ? 1 : (int)(1e4 / first) + 1;
    us[way] = INFINITY;
  }
  for (int turn = 0; turn < TURNS; turn++) {
    for (int way = 0; way < WAYS; way++) us[way] = fmin(us[way], time_once(g, way, calls[way]));
  }
}

static void check_bits(const group *g) {
  void *first[MATRICES];
  run_group(g, 0);
  for (int i = 0; i < g->count; i++) {
    const size_t bytes = (size_t)(g->args[i].m * g->args[i].ldy) * sizeof(float);
    first[i] = memcpy(allocate(bytes), g->args[i].y, bytes);
    memset(g->args[i].y, 0xff, bytes);
  }
  run_group(g, 1);
  for (int i = 0; i < g->count; i++) {
    if (memcmp(first[i], g->args[i].y, (size_t)(g->args[i].m * g->args[i].ldy) * sizeof(float)) != 0) {
      fprintf(stderr, "shared-x: product %d has other bits\n", i);
      exit(1);
    }
    free(first[i]);
  }
}

/* ---- all of them ---- */

static FILE *open_record(const char *path, lpgemm_handle_t handle) {
  FILE *file = path ? fopen(path, "w") : NULL;
  if (path && !file) {
    fprintf(stderr, "shared-x: cannot write %s\n", path);
    exit(1);
  }
  if (!file) return NULL;
  char date[32];
  const time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  fprintf(file,
          "{\n \"suite\": \"shared-x\",\n \"date\": \"%s\",\n \"build\": \"%s\",\n \"device\": \"%s\",\n \"threads\": "
          "1,\n \"time\": \"CPU time of the process, ways in turn, least of %d\",\n \"cases\": [",
          date, lpgemm_build_info(), lpgemm_device_name(handle), (int)TURNS);
  return file;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int count;
    int64_t n[MATRICES];
  } groups[] = {{"qkv", 3, {4096, 1024, 1024}}, {"gate_up", 2, {MOST_N, MOST_N, 0}}};
  static const int64_t rows[] = {1, 8, MOST_ROWS};
  const lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  lpgemm_handle_t handle;
  check(lpgemm_create(&handle, &config));
  float *x = allocate(MOST_ROWS * K * sizeof *x), *y[MATRICES];
  for (int i = 0; i < MOST_ROWS * K; i++) x[i] = (float)((int)(draw() % 20001) - 10000) * 1e-4f;
  for (int i = 0; i < MATRICES; i++) y[i] = allocate((size_t)MOST_ROWS * MOST_N * sizeof *y[i]);
  FILE *file = open_record(argc > 1 ? argv[1] : NULL, handle);
  printf("%-24s %10s %10s %10s %7s\n", "products", "alone us", "shared us", "prepare us", "ratio");
  int cases = 0;
  for (int type = 0; type < TYPES; type++) {
    for (int which = 0; which < 2; which++) {
      group g = {.handle = handle, .count = groups[which].count};
      lpgemm_weights_t weights[MATRICES] = {NULL};
      for (int i = 0; i < g.count; i++) weights[i] = make_weights(handle, type, groups[which].n[i]);
      for (int c = 0; c < 6; c++) {
        const int64_t m = rows[c / 2];
        const int is_fast = c % 2;
        char name[64], kernel[128];
        for (int i = 0; i < g.count; i++) {
          g.args[i] = (lpgemm_run_args_t){.size = sizeof g.args[i], .weights = weights[i], .m = m, .x = x, .ldx = K};
          g.args[i].x_type = g.args[i].y_type = LPGEMM_F32;
          g.args[i].y = y[i];
          g.args[i].ldy = groups[which].n[i];
          g.args[i].level = is_fast ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
        }
        check(lpgemm_explain(handle, &g.args[0], kernel, sizeof kernel));
        kernel[strcspn(kernel, ":")] = 0;
        check(lpgemm_prepared_x_size(handle, &g.args[0], &g.bytes));
        g.prepared = allocate(g.bytes);
        double us[WAYS];
        check_bits(&g);
        measure(&g, us);
        snprintf(name, sizeof name, "%s/%s/m%d/%s", types[type], groups[which].name, (int)m,
                 is_fast ? "fast" : "exact");
        printf("%-24s %10.1f %10.1f %10.2f %7.3f  %s\n", name, us[ALONE], us[SHARED], us[PREPARING],
               us[SHARED] / us[ALONE], kernel);
        fflush(stdout);
        if (file) {
          fprintf(file,
                  "%s\n  {\"name\": \"%s\", \"kernel\": \"%s\", \"alone_us\": %.6g, \"shared_us\": %.6g, "
                  "\"prepare_us\": %.4g, \"prepared_bytes\": %zu, \"ratio\": %.4g}",
                  cases++ ? "," : "", name, kernel, us[ALONE], us[SHARED], us[PREPARING], g.bytes,
                  us[SHARED] / us[ALONE]);
        }
        free(g.prepared);
      }
      for (int i = 0; i < g.count; i++) check(lpgemm_weights_destroy(weights[i]));
    }
  }
  if (file) fprintf(file, "\n ]\n}\n");
  free(x);
  for (int i = 0; i < MATRICES; i++) free(y[i]);
  check(lpgemm_destroy(handle));
  return file && fclose(file) != 0;
}
