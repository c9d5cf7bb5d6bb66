/* What is chosen today for problems that were timed once, on a GPU that is not there: tools/regret.py asks it.
 *
 *     replay "NVIDIA H200" <problems
 *
 * The first line that it prints has the names of all kernels. Then comes a line for each problem: the kernel that is
 * chosen, and each kernel that can do it with its estimate in microseconds. A problem is N, K, M, the types of X and Y,
 * 1 if each row of X has a scale, and the weights as records describe them:
 *
 *     7296 18304 4 f16 f16 0 u4 g128 f16 z8 */
#include <stdarg.h>

#include "made_up.h"

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("replay: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

/* ---- the problem ---- */

static lpgemm_dtype_t read_type(const char *text) {
  lpgemm_dtype_t type;
  if (lpgemm_dtype_parse(text, &type) != LPGEMM_SUCCESS) fail("'%s' is no type", text);
  return type;
}

static void read_codes(const char *text, lpgemm_weight_desc_t *d) {
  if (lpgemm_codebook_preset(text, d->codebook) == LPGEMM_SUCCESS) {
    d->type = LPGEMM_CODEBOOK(4);
    return;
  }
  d->type = read_type(text);
  const int entries = 1 << lpg_bits(d->type);
  for (int i = 0; lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK && i < entries; i++) {
    d->codebook[i] = 2.0f * (float)i / (float)(entries - 1) - 1.0f; /* as bench/suite.c */
  }
}

/* "z8", "zf16" */
static void read_zero(const char *text, lpgemm_weight_desc_t *d) {
  char *end;
  const float number = strtof(text, &end);
  d->zero = *end ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_CONSTANT;
  if (*end) {
    d->zero_type = read_type(text);
  } else {
    d->zero_constant = number;
  }
}

static lpgemm_weight_desc_t read_weights(char *text, int64_t n, int64_t k) {
  lpgemm_weight_desc_t d = {.size = sizeof d, .n = n, .k = k};
  const char *word = strtok(text, " \n");
  if (!word) fail("a problem without weights");
  read_codes(word, &d);
  while ((word = strtok(NULL, " \n"))) {
    if (*word == 'g') {
      d.group_k = strtoll(word + 1, NULL, 10);
    } else if (strncmp(word, "min", 3) == 0) {
      d.zero = LPGEMM_ZERO_MINIMUM;
      d.zero_type = read_type(word + 3);
    } else if (*word == 'z') {
      read_zero(word + 1, &d);
    } else {
      d.scale_type = read_type(word);
    }
  }
  return d;
}

static void read_problem(char *line, problem *q) {
  long long n, k, m;
  char x[16], y[16];
  int is_scaled, at;
  if (sscanf(line, "%lld %lld %lld %15s %15s %d %n", &n, &k, &m, x, y, &is_scaled, &at) != 6) {
    fail("'%s' is no problem", line);
  }
  const lpgemm_weight_desc_t d = read_weights(line + at, n, k);
  memset(q, 0, sizeof *q);
  if (lpgemm_i_make_packed(&d, &q->weights) != LPGEMM_SUCCESS) fail("%s", lpgemm_last_error());
  q->p.weights = &q->weights;
  q->p.scale_span = 1; /* of the scales that the benchmark draws */
  q->p.m = m;
  q->p.x_type = read_type(x);
  q->p.y_type = read_type(y);
  q->p.x_scale_mode = is_scaled ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_NONE;
  q->p.x_unaligned = k * lpg_bytes(q->p.x_type) % 16 != 0;
  q->p.workspace = SIZE_MAX;
}

/* ---- the answer ---- */

static lpg_device find_device(const char *name) {
  static const lpg_device *const gpus[] = {&sm80, &sm86, &sm89, &h100_pcie, &h100, &sm90, &sm100, &sm120};
  for (int i = 0; i < COUNT(gpus); i++) {
    lpg_device device = *gpus[i];
    lpgemm_i_set_rates(&device);
    if (strcmp(device.name, name) == 0) return device;
  }
  fail("%s is not in tests/devices.c", name);
}

static void print_kernels(lpgemm_backend_t backend) {
  for (int i = 0; i < test_every_kernel_count; i++) {
    if (test_every_kernel[i].backend == backend) printf("%s ", test_every_kernel[i].name);
  }
  putchar('\n');
}

static void answer(const lpg_problem *problem, const lpg_device *device) {
  lpg_choice choice;
  const lpgemm_status_t status =
      lpgemm_i_choose(test_every_kernel, test_every_kernel_count, problem, device, NULL, NULL, &choice);
  fputs(status == LPGEMM_SUCCESS ? choice.kernel->name : "none", stdout);
  for (int i = 0; i < test_every_kernel_count; i++) {
    lpg_planned planned;
    if (lpgemm_i_plan_kernel(&test_every_kernel[i], problem, device, &planned)) continue;
    printf(" %s %.1f", test_every_kernel[i].name, planned.launch.us);
  }
  putchar('\n');
}

int main(int argc, char **argv) {
  char line[256];
  problem q;
  if (argc != 2) fail("one argument: the GPU's name");
  const lpg_device device = find_device(argv[1]);
  print_kernels(device.backend);
  while (fgets(line, sizeof line, stdin)) {
    read_problem(line, &q);
    answer(&q.p, &device);
  }
  return 0;
}
