/* Times the CPU backend beside OpenBLAS sgemm on the same weights, dequantised.
 *
 * usage: bench_cpu [--json] [--types u4,e4m3,...] [--group G] [--m 1,16,...] [--n N] [--k K] [--threads 1,4,...]
 *
 * X, Y and scales are fp16. Times are medians; ratio is OpenBLAS's time by ours, difference the largest between the two
 * results, relative to the largest element. OpenBLAS is loaded at run time, where it is installed. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lpgemm.h"

enum { MAX_LIST = 32, MIN_RUNS = 5, MAX_RUNS = 101 };
static const double seconds_a_case = 0.5;

static void fail(const char *what) {
  fprintf(stderr, "bench_cpu: %s\n", what);
  exit(1);
}

static void check(lpgemm_status_t status) {
  if (status != LPGEMM_SUCCESS) fail(lpgemm_last_error());
}

static void *allocate(int64_t bytes) {
  void *memory = malloc((size_t)bytes);
  if (!memory) fail("out of memory");
  return memory;
}

/* ---- OpenBLAS ---- */

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void set_threads_function(int threads);

static sgemm_function *sgemm;
static set_threads_function *set_threads;

static void load_openblas(void) {
  void *library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (!library) return;
  void *found[] = {dlsym(library, "cblas_sgemm"), dlsym(library, "openblas_set_num_threads")};
  if (!found[0] || !found[1]) return;
  memcpy(&sgemm, &found[0], sizeof sgemm);
  memcpy(&set_threads, &found[1], sizeof set_threads);
}

/* ---- options ---- */

typedef struct options {
  int json;
  int64_t n, k, group;
  int type_count, m_count, thread_count;
  lpgemm_dtype_t type[MAX_LIST];
  int64_t m[MAX_LIST], threads[MAX_LIST];
} options;

static int64_t number(const char *text) {
  char *end;
  long long value = strtoll(text, &end, 10);
  if (*text == 0 || *end != 0 || value < 0 || value > 1 << 24) fail("an option has no number or too large a number");
  return value;
}

/* Splits "a,b,c" in place. */
static int split(char *text, char *items[MAX_LIST]) {
  int count = 0;
  for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
    if (count == MAX_LIST) fail("a list is too long");
    items[count++] = item;
  }
  if (count == 0) fail("a list is empty");
  return count;
}

static int numbers(char *text, int64_t *list) {
  char *items[MAX_LIST];
  int count = split(text, items);
  for (int i = 0; i < count; i++) list[i] = number(items[i]);
  return count;
}

static int types(char *text, lpgemm_dtype_t *list) {
  char *items[MAX_LIST];
  int count = split(text, items);
  for (int i = 0; i < count; i++) check(lpgemm_dtype_parse(items[i], &list[i]));
  return count;
}

static options read_options(int argc, char **argv) {
  options o = {0, 4096, 4096, 128, 1, 6, 1, {LPGEMM_UINT(4)}, {1, 4, 16, 64, 256, 1024}, {1}};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (cores > 1) o.threads[o.thread_count++] = cores;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      o.json = 1;
      continue;
    }
    if (i + 1 == argc) fail("an option is unknown or lacks its value");
    char *value = argv[i + 1];
    if (strcmp(argv[i], "--types") == 0) {
      o.type_count = types(value, o.type);
    } else if (strcmp(argv[i], "--group") == 0) {
      o.group = number(value);
    } else if (strcmp(argv[i], "--m") == 0) {
      o.m_count = numbers(value, o.m);
    } else if (strcmp(argv[i], "--n") == 0) {
      o.n = number(value);
    } else if (strcmp(argv[i], "--k") == 0) {
      o.k = number(value);
    } else if (strcmp(argv[i], "--threads") == 0) {
      o.thread_count = numbers(value, o.threads);
    } else {
      fail("an option is unknown");
    }
    i++;
  }
  return o;
}

/* ---- data ---- */

static float next_random(void) { /* in [-1, 1) */
  static uint64_t state = 1;
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (float)(int32_t)(state >> 32) * 4.656612873077392578125e-10f;
}

/* The numbers themselves are multiples of 2^-10 in [-1, 1), which fp16 holds. */
static void fill_x(int64_t count, uint16_t *half, float *single) {
  for (int64_t i = 0; i < count; i++) {
    float x = floorf(next_random() * 1024.0f) / 1024.0f;
    int exponent = 0;
    float fraction = frexpf(fabsf(x), &exponent); /* in [1/2, 1) */
    half[i] = x == 0.0f ? 0 : (uint16_t)((x < 0.0f) << 15 | (exponent + 14) << 10 | ((int)(fraction * 2048.0f) - 1024));
    single[i] = x;
  }
}

static float half_value(uint16_t h) {
  int exponent = h >> 10 & 31;
  float magnitude = exponent == 31  ? INFINITY
                    : exponent == 0 ? ldexpf((float)(h & 1023), -24)
                                    : ldexpf((float)(h & 1023) + 1024.0f, exponent - 25);
  return h >> 15 ? -magnitude : magnitude;
}

static lpgemm_weights_t make_weights(lpgemm_handle_t handle, const options *o, lpgemm_dtype_t type) {
  lpgemm_weight_desc_t desc = {sizeof desc};
  desc.n = o->n;
  desc.k = o->k;
  desc.type = type;
  desc.group_k = o->group;
  desc.scale_type = LPGEMM_F16;
  int codes = 1 << lpgemm_dtype_bits(type);
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_UINT) {
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = (float)codes / 2.0f;
  }
  if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_CODEBOOK) {
    for (int i = 0; i < codes; i++) desc.codebook[i] = 2.0f * (float)i / (float)(codes - 1) - 1.0f;
  }
  float *w = allocate(o->n * o->k * (int64_t)sizeof *w);
  for (int64_t i = 0; i < o->n * o->k; i++) w[i] = next_random();
  lpgemm_weights_t weights;
  check(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights));
  free(w);
  return weights;
}

/* ---- time ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct bench {
  lpgemm_handle_t handle;
  lpgemm_weights_t weights;
  int64_t m, n, k;
  const uint16_t *x_half;
  const float *x, *w;
  uint16_t *y_half;
  float *y;
} bench;

static void run_lpgemm(const bench *b) {
  check(lpgemm_matmul(b->handle, b->weights, b->m, b->x_half, 0, b->y_half, 0));
}

static void run_openblas(const bench *b) {
  int m = (int)b->m, n = (int)b->n, k = (int)b->k;
  sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, m, n, k, 1.0f, b->x, k, b->w, k, 0.0f, b->y, n);
}

/* Microseconds: the median of some runs after one that is not counted. */
static double time_of(void (*run)(const bench *), const bench *b) {
  double times[MAX_RUNS], start = now();
  int runs = 0;
  run(b);
  while (runs < MIN_RUNS || (runs < MAX_RUNS && now() - start < seconds_a_case)) {
    double before = now();
    run(b);
    times[runs++] = now() - before;
  }
  qsort(times, (size_t)runs, sizeof times[0], compare);
  return 1e6 * times[runs / 2];
}

static double difference(const bench *b) {
  double most = 0.0, largest = 0.0;
  for (int64_t i = 0; i < b->m * b->n; i++) {
    double d = fabs((double)half_value(b->y_half[i]) - (double)b->y[i]);
    if (!(d <= most)) most = d;
    if (fabs((double)b->y[i]) > largest) largest = fabs((double)b->y[i]);
  }
  return largest > 0.0 ? most / largest : most;
}

/* ---- output ---- */

static void print_case(const options *o, const bench *b, lpgemm_dtype_t type, int64_t threads, int first) {
  double us = time_of(run_lpgemm, b), blas = sgemm ? time_of(run_openblas, b) : 0.0;
  double gflops = 2e-3 * (double)b->m * (double)b->n * (double)b->k / us;
  const char *name = lpgemm_dtype_name(type);
  if (!o->json) {
    printf("%6lld %6lld %6lld %6s %8lld %11.1f %9.1f", (long long)b->m, (long long)b->n, (long long)b->k, name,
           (long long)threads, us, gflops);
    if (sgemm) printf(" %12.1f %7.2f %12.1e", blas, blas / us, difference(b));
    printf("\n");
  } else {
    printf("%s\n    {\"m\": %lld, \"n\": %lld, \"k\": %lld, \"type\": \"%s\", \"group_k\": %lld, \"threads\": %lld, ",
           first ? "" : ",", (long long)b->m, (long long)b->n, (long long)b->k, name, (long long)o->group,
           (long long)threads);
    printf("\"us\": %.2f, \"gflops\": %.2f", us, gflops);
    if (sgemm) printf(", \"openblas_us\": %.2f, \"ratio\": %.3f, \"difference\": %.2e", blas, blas / us, difference(b));
    printf("}");
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  options o = read_options(argc, argv);
  load_openblas();
  int64_t m_max = 0;
  for (int i = 0; i < o.m_count; i++) m_max = o.m[i] > m_max ? o.m[i] : m_max;
  uint16_t *x_half = allocate(m_max * o.k * 2), *y_half = allocate(m_max * o.n * 2);
  float *x = allocate(m_max * o.k * 4), *y = allocate(m_max * o.n * 4), *w = allocate(o.n * o.k * 4);
  fill_x(m_max * o.k, x_half, x);
  if (o.json) {
    printf("{\n  \"build\": \"%s\",\n  \"cases\": [", lpgemm_build_info());
  } else {
    printf("%s\n%6s %6s %6s %6s %8s %11s %9s%s\n", lpgemm_build_info(), "M", "N", "K", "type", "threads", "us",
           "GFLOP/s", sgemm ? "  OpenBLAS us   ratio   difference" : "   (no OpenBLAS here)");
  }
  for (int thread = 0; thread < o.thread_count; thread++) {
    lpgemm_config_t config = {sizeof config};
    config.backend = LPGEMM_BACKEND_CPU;
    config.num_threads = (int32_t)o.threads[thread];
    lpgemm_handle_t handle;
    check(lpgemm_create(&handle, &config));
    if (sgemm) set_threads((int)o.threads[thread]);
    for (int type = 0; type < o.type_count; type++) {
      lpgemm_weights_t weights = make_weights(handle, &o, o.type[type]);
      check(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, w, 0));
      for (int i = 0; i < o.m_count; i++) {
        bench b = {handle, weights, o.m[i], o.n, o.k, x_half, x, w, y_half, y};
        print_case(&o, &b, o.type[type], o.threads[thread], thread + type + i == 0);
      }
      check(lpgemm_weights_destroy(weights));
    }
    check(lpgemm_destroy(handle));
  }
  if (o.json) printf("\n  ]\n}\n");
  free(w);
  free(y);
  free(x);
  free(y_half);
  free(x_half);
  return 0;
}
