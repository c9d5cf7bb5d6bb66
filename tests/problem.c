#include "problem.h"

#include <math.h>

#include "compare.h"
#include "ref/gemm_ref.h"
#include "test.h"

const lpgemm_dtype_t *problem_types(void) {
  static lpgemm_dtype_t types[PROBLEM_TYPES];
  int count = 0;
  for (int b = 1; b <= 8; b++) types[count++] = LPGEMM_UINT(b);
  for (int b = 2; b <= 8; b++) types[count++] = LPGEMM_INT(b);
  for (int b = 1; b <= 8; b++) types[count++] = LPGEMM_BIPOLAR(b);
  for (int b = 1; b <= 4; b++) types[count++] = LPGEMM_CODEBOOK(b);
  for (int e = 1; e <= 7; e++) {
    for (int m = 0; m <= 7 - e; m++) {
      if (1 + e + m >= 3) types[count++] = LPGEMM_FLOAT(e, m);
    }
  }
  if (count != PROBLEM_TYPES) abort();
  return types;
}

lpgemm_handle_t problem_handle(int threads) {
  lpgemm_config_t config = {.size = sizeof config};
  config.backend = test_backend();
  config.num_threads = threads;
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  return handle;
}

int problem_kernels(const char *names[PROBLEM_KERNELS]) {
  lpgemm_kernel_info_t list[PROBLEM_KERNELS];
  memset(list, 0, sizeof list);
  for (int i = 0; i < PROBLEM_KERNELS; i++) list[i].size = sizeof list[i];
  size_t total = 0;
  int count = 0;
  CHECK_STATUS(lpgemm_list_kernels(list, PROBLEM_KERNELS, &total), LPGEMM_SUCCESS);
  for (size_t i = 0; i < total && i < PROBLEM_KERNELS; i++) {
    const int stacks_only = strncmp(list[i].name, "fan", 3) == 0 || strncmp(list[i].name, "segment", 7) == 0;
    if (list[i].available && list[i].backend == test_backend() && !stacks_only) names[count++] = list[i].name;
  }
  CHECK(count > 0);
  return count;
}

int problem_has_kernel(const char *kernel) {
  static lpgemm_kernel_info_t list[PROBLEM_KERNELS];
  size_t count = 0;
  for (int i = 0; i < PROBLEM_KERNELS; i++) list[i].size = sizeof list[i];
  CHECK_STATUS(lpgemm_list_kernels(list, PROBLEM_KERNELS, &count), LPGEMM_SUCCESS);
  for (size_t i = 0; i < count && i < PROBLEM_KERNELS; i++) {
    if (list[i].available && list[i].backend == test_backend() && strcmp(list[i].name, kernel) == 0) return 1;
  }
  return 0;
}

static int is_of(const char *kernel, const char *family) {
  const size_t length = family ? strlen(family) : 0;
  return length > 0 && strncmp(kernel, family, length) == 0 && kernel[length] == '.';
}

int problem_check_by_all(problem *p, lpgemm_handle_t handle, const char *family, const char *other) {
  const char *names[PROBLEM_KERNELS];
  const int count = problem_kernels(names);
  int runs = 0;
  problem_expect(p);
  for (int i = 0; i < count; i++) {
    const lpgemm_status_t status = problem_run(p, handle, names[i]);
    if (status == LPGEMM_NOT_SUPPORTED) continue;
    CHECK_STATUS(status, LPGEMM_SUCCESS);
    problem_check(p, names[i]);
    problem_check_again(p, handle, names[i]);
    runs += is_of(names[i], family) || is_of(names[i], other);
  }
  return runs;
}

void problem_suit_chunks(problem_spec *spec) {
  lpgemm_weight_desc_t *d = &spec->desc;
  static const int64_t groups[] = {128, 0, 256, 1024};
  if (spec->m > 2) spec->m = 1 + spec->m % 2;
  d->group_k = groups[d->k % 4];
  d->super_k = 0;
  if (d->super_scale_type) d->scale_type = d->super_scale_type;
  if (d->super_zero_type) d->zero_type = d->super_zero_type;
  d->super_scale_type = d->super_zero_type = 0;
}

void problem_suit(problem_spec *spec, const char *kernel) {
  char family[16] = "", weights[8] = "", x[8] = ""; /* the words of a name: docs/kernels/README.md */
  int rows, columns = 0;
  sscanf(kernel, "%15[a-z0-9].%7[a-z0-9].%7[a-z0-9].%dx%d", family, weights, x, &rows, &columns);
  int several = weights[1] < '1' || weights[1] > '8';
  uint32_t bits = several ? 3 : (uint32_t)(weights[1] - '0');
  spec->desc.type = LPGEMM_UINT(bits);
  if (!several && weights[0] == 'f') spec->desc.type = LPGEMM_FLOAT(2, bits - 3);
  if (!several && weights[0] == 'c') spec->desc.type = LPGEMM_CODEBOOK(bits);
  for (int i = 0; i < 1 << bits && !several && weights[0] == 'c'; i++) spec->desc.codebook[i] = (float)i / 4 - 1.5f;
  if (!several && (weights[0] == 'f' || weights[0] == 'c')) {
    spec->desc.zero = LPGEMM_ZERO_NONE;
    spec->desc.zero_type = 0;
  }
  const int by_chunks = strcmp(family, "gemv1") == 0 || strcmp(family, "lut") == 0;
  const int by_rows = strcmp(family, "gemv1") == 0;
  if (by_chunks || by_rows) problem_suit_chunks(spec);
  if (strcmp(family, "gemv") == 0 || by_chunks || by_rows) spec->m = columns;
  if (strcmp(family, "gemm") == 0 && spec->desc.zero == LPGEMM_ZERO_PER_GROUP) spec->desc.zero_type = LPGEMM_UINT(8);
  if (strcmp(family, "dequant") == 0 || strcmp(family, "stripe") == 0) spec->m = 40; /* they take no few rows */
  const lpgemm_dtype_t bytes = strcmp(x, "i8") == 0     ? LPGEMM_I8
                               : strcmp(x, "e4m3") == 0 ? LPGEMM_E4M3
                               : strcmp(x, "e5m2") == 0 ? LPGEMM_E5M2
                                                        : 0;
  if (bytes) { /* what they multiply must be exact in 8 bits, and groups large */
    spec->x_type = bytes;
    if (spec->desc.type == LPGEMM_FLOAT(2, 5)) spec->desc.type = LPGEMM_E4M3;
    spec->desc.group_k = strstr(kernel, ".sm80") || strcmp(family, "gemm8") == 0 || by_rows ? 0 : 128;
    if (spec->desc.zero == LPGEMM_ZERO_PER_GROUP) spec->desc.zero_type = LPGEMM_UINT(8);
  }
  if (strcmp(x, "codes") == 0) { /* integers, and one scale and one zero a row */
    spec->x_type = LPGEMM_INT(4);
    if (strcmp(family, "skinny8") != 0) spec->m = 40; /* images take many rows */
    spec->desc.group_k = 0;
    if (spec->desc.zero == LPGEMM_ZERO_PER_GROUP) spec->desc.zero_type = LPGEMM_UINT(8);
  }
  if (strcmp(x, "bf16") == 0) spec->x_type = LPGEMM_BF16;
  if (strcmp(kernel, "dequant.any.f16.256x128.sm90a") == 0) { /* what fp16 holds is another one's */
    spec->desc.type = LPGEMM_FLOAT(6, 1);
    spec->desc.zero = LPGEMM_ZERO_NONE;
    spec->desc.zero_type = 0;
  }
}

int problem_takes_any_x(const char *kernel) {
  char x[8] = "";
  return sscanf(kernel, "%*[^.].%*[^.].%7[a-z0-9]", x) == 1 && strcmp(x, "any") == 0;
}

/* ---- drawing numbers ---- */

/* Codes of a type of at most 8 bits whose values lie in a range. */
typedef struct code_set {
  int count;
  uint8_t code[256];
} code_set;

/* step: only multiples of it, 0 = all. */
static code_set codes_between(lpgemm_dtype_t type, const float *codebook, double low, double high, double step) {
  code_set set = {0};
  for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(type); code++) {
    double v = ref_value(type, code, codebook);
    if (!(v >= low && v <= high) || isinf(v) || (step > 0 && v / step != nearbyint(v / step))) continue;
    set.code[set.count++] = (uint8_t)code;
  }
  return set;
}

static uint8_t draw(const code_set *set) { return set->code[test_random() % (uint64_t)set->count]; }

static double largest_value(lpgemm_dtype_t type, const float *codebook) {
  double largest = 0;
  for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(type); code++) {
    double v = fabs(ref_value(type, code, codebook));
    if (isfinite(v) && v > largest) largest = v;
  }
  return largest;
}

/* `count` numbers of any type, of magnitude low..high, in a new buffer. Exact: integers. */
static void *draw_array(lpgemm_dtype_t type, int64_t count, double low, double high, int exact, int misaligned) {
  size_t bytes = (size_t)ref_bytes(type);
  void *array = test_alloc_at((size_t)count * bytes, misaligned ? bytes : 0);
  if (bytes == 1) {
    code_set set = codes_between(type, NULL, low, high, exact ? 1 : 0);
    if (set.count == 0) { /* a range between two neighbours */
      ref_store(type, &set.code[0], 0, (low + high) / 2);
      set.count = 1;
    }
    for (int64_t i = 0; i < count; i++) ((uint8_t *)array)[i] = draw(&set);
  } else {
    int whole = exact || type == LPGEMM_U16 || type == LPGEMM_I32;
    for (int64_t i = 0; i < count; i++) {
      double v = test_uniform(low, high);
      ref_store(type, array, i, whole ? (double)test_between((int64_t)ceil(low), (int64_t)floor(high)) : v);
    }
  }
  return array;
}

/* Fills rows of a matrix; columns between `columns` and ld keep their poison. */
static void *draw_matrix(lpgemm_dtype_t type, int64_t rows, int64_t columns, int64_t ld, double low, double high,
                         int exact, int misaligned) {
  size_t bytes = (size_t)ref_bytes(type);
  size_t total = rows > 0 ? (size_t)((rows - 1) * ld + columns) * bytes : 0;
  char *matrix = test_alloc_at(total, misaligned ? bytes : 0);
  char *dense = draw_array(type, rows * columns, low, high, exact, 0);
  memset(matrix, 0xff, total);
  for (int64_t i = 0; i < rows; i++) {
    memcpy(matrix + (size_t)(i * ld) * bytes, dense + (size_t)(i * columns) * bytes, (size_t)columns * bytes);
  }
  test_free(dense);
  return matrix;
}

/* ---- weights ---- */

static void draw_version_2(problem_spec *spec) {
  static const int64_t shared[] = {16, 32, 128, 4096};
  lpgemm_weight_desc_t *d = &spec->desc;
  if (test_between(0, 3) != 0) return;
  if (test_between(0, 1)) d->columns = LPGEMM_COLUMNS_ORDERED;
  if (d->columns && test_between(0, 3) == 0) d->x_k = d->k + test_between(1, 40);
  if (spec->y_type != LPGEMM_I32 && test_between(0, 1)) d->row_scales = LPGEMM_F32;
  if (test_between(0, 1)) d->group_n = shared[test_between(0, 3)];
}

/* Columns in any order: a shuffle of X's, of which the first k are taken. */
static void draw_order(problem *p) {
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  const int64_t x_k = ref_x_k(d);
  if (!d->columns) return;
  int32_t *order = test_alloc((size_t)x_k * sizeof *order);
  for (int64_t i = 0; i < x_k; i++) order[i] = (int32_t)i;
  for (int64_t i = 0; i < x_k; i++) {
    const int64_t other = test_between(i, x_k - 1);
    const int32_t taken = order[other];
    order[other] = order[i];
    order[i] = taken;
  }
  p->source.column_order = order;
  p->source.column_order_bytes = (size_t)d->k * sizeof *order;
}

static void draw_row_scales(problem *p) {
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  if (!d->row_scales) return;
  float *scales = test_alloc((size_t)d->n * sizeof *scales);
  for (int64_t i = 0; i < d->n; i++) {
    scales[i] = p->spec.exact ? ldexpf(1, (int)test_between(-1, 1)) : (float)test_uniform(-2, 2);
  }
  p->source.row_scales = scales;
  p->source.row_scales_bytes = (size_t)d->n * sizeof *scales;
}

static int is_wide(lpgemm_dtype_t type) { return LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_FLOAT; }

/* Exact operands of a type: codes whose values are small multiples of a power of two. */
enum { EXACT_FLOAT_LIMIT = 16, EXACT_FLOAT_STEPS = 64 };

static void draw_codes(problem *p) {
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  code_set set = p->spec.exact && is_wide(d->type)
                     ? codes_between(d->type, NULL, -EXACT_FLOAT_LIMIT, EXACT_FLOAT_LIMIT, 1.0 / EXACT_FLOAT_STEPS)
                     : codes_between(d->type, d->codebook, -1e300, 1e300, 0);
  int bits = lpgemm_dtype_bits(d->type);
  const int64_t x_k = ref_x_k(d);
  int64_t ld = x_k + p->spec.pad_codes, elements = d->n > 0 ? (d->n - 1) * ld + x_k : 0;
  uint8_t *codes = test_alloc_at((size_t)elements, p->spec.misaligned ? 1 : 0);
  memset(codes, 0xff, (size_t)elements); /* what lies between k and ld is no code of most types */
  for (int64_t n = 0; n < d->n; n++) {
    for (int64_t k = 0; k < x_k; k++) codes[n * ld + k] = draw(&set);
  }
  p->source.codes_ld = ld;
  p->source.codes = codes;
  p->source.codes_bytes = (size_t)elements;
  p->source.code_layout = p->spec.code_layout;
  if (p->spec.code_layout == LPGEMM_CODES_BYTES) return;
  size_t bytes = ((size_t)elements * (size_t)bits + 7) / 8;
  uint8_t *stream = test_alloc_at(bytes, p->spec.misaligned ? 1 : 0);
  memset(stream, 0, bytes);
  for (int64_t i = 0; i < elements; i++) {
    for (int b = 0; b < bits; b++) {
      int64_t at = i * bits + b;
      if (codes[i] >> b & 1) stream[at / 8] |= (uint8_t)(1 << at % 8);
    }
  }
  test_free(codes);
  p->source.codes = stream;
  p->source.codes_bytes = bytes;
}

/* A scale array of magnitude about `target`: some negative, some zero where the type has them. Exact: 1/2, 1, 2, or
 * for the codes of two levels 1 and 2. */
static void *draw_scales(const problem *p, lpgemm_dtype_t type, int64_t count, double target) {
  if (p->spec.exact) {
    void *array = draw_array(type, count, 1, 1, 0, p->spec.misaligned);
    int is_code = type == LPGEMM_UINT(4) || type == LPGEMM_UINT(6) || type == LPGEMM_I8;
    for (int64_t i = 0; i < count; i++) ref_store(type, array, i, ldexp(1, (int)test_between(is_code ? 0 : -1, 1)));
    return array;
  }
  if (type == LPGEMM_E4M3 && target < 0x1p-6) target = 0x1p-6;
  if (type == LPGEMM_F16 && target < 0x1p-14) target = 0x1p-14;
  void *array = draw_array(type, count, target / 2, target * 1.5, 0, p->spec.misaligned);
  int64_t bytes = ref_bytes(type);
  for (int64_t i = 0; i < count; i++) {
    uint64_t dice = test_random() % 32;
    if (dice == 0 && type != LPGEMM_E8M0) memset((char *)array + i * bytes, 0, (size_t)bytes);
    if (dice == 1 && LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_REAL) ref_store(type, array, i, -target);
  }
  return array;
}

static int64_t groups_of(int64_t columns, int64_t k) { return columns ? (k + columns - 1) / columns : 1; }

static double super_code_mean(lpgemm_dtype_t type) { return type == LPGEMM_E4M3 ? 1 : type == LPGEMM_UINT(4) ? 8 : 32; }

static void draw_scales_and_zeros(problem *p) {
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  lpgemm_weight_source_t *s = &p->source;
  const int64_t lines = d->group_n > 1 ? (d->n + d->group_n - 1) / d->group_n : d->n;
  int64_t count = lines * groups_of(d->group_k, d->k), supers = lines * groups_of(d->super_k, d->k);
  double largest = largest_value(d->type, d->codebook), target = 1 / largest;
  double zero_limit = largest < 32768 ? largest : 32768; /* fits fp16 */
  int exact = p->spec.exact, odd = p->spec.misaligned;
  s->order = p->spec.order;
  if (d->super_scale_type) {
    double mean = super_code_mean(d->scale_type);
    s->scales = draw_scales(p, d->scale_type, count, mean);
    s->super_scales = draw_scales(p, d->super_scale_type, supers, target / mean);
    s->super_scales_bytes = (size_t)(supers * ref_bytes(d->super_scale_type));
  } else if (d->scale_type) {
    s->scales = draw_scales(p, d->scale_type, count, target);
  }
  if (d->scale_type) s->scales_bytes = (size_t)(count * ref_bytes(d->scale_type));
  if (d->zero == LPGEMM_ZERO_PER_GROUP) {
    int integers = d->zero_type == LPGEMM_U8 || d->zero_type == LPGEMM_U16;
    double high = exact && is_wide(d->type) ? 2 : integers ? ldexp(1, lpgemm_dtype_bits(d->type)) : zero_limit;
    if (d->zero_type == LPGEMM_U8 && high > 255) high = 255;
    if (integers && !exact && is_wide(d->type) && high > largest) high = largest;
    s->zeros = draw_array(d->zero_type, count, integers ? 0 : -floor(high), integers ? floor(high) : high, exact, odd);
  } else if (d->zero == LPGEMM_ZERO_MINIMUM) {
    double reach = d->scale_type ? 0.5 : 0.5 * zero_limit, mean = super_code_mean(d->zero_type);
    if (exact) {
      s->zeros = draw_array(d->zero_type, count, d->super_zero_type ? 0 : -3, 3, 1, odd);
    } else {
      s->zeros = d->super_zero_type ? draw_scales(p, d->zero_type, count, mean)
                                    : draw_array(d->zero_type, count, -reach, reach, 0, odd);
    }
    if (d->super_zero_type) {
      s->super_zeros = draw_scales(p, d->super_zero_type, supers, reach / mean);
      s->super_zeros_bytes = (size_t)(supers * ref_bytes(d->super_zero_type));
    }
  }
  if (d->zero_type) s->zeros_bytes = (size_t)(count * ref_bytes(d->zero_type));
}

/* ---- activations ---- */

/* The largest |x| for which every partial sum of products is a multiple of one unit and below 2^23 of them, in any
 * order and also when zeros or minima are summed apart. */
static double exact_x_limit(const problem_spec *spec) {
  const lpgemm_weight_desc_t *d = &spec->desc;
  double units = is_wide(d->type) ? EXACT_FLOAT_LIMIT * EXACT_FLOAT_STEPS : largest_value(d->type, d->codebook) * 4;
  double zero = d->zero == LPGEMM_ZERO_CONSTANT    ? fabs((double)d->zero_constant)
                : d->zero == LPGEMM_ZERO_PER_GROUP ? (is_wide(d->type) ? 2 : ldexp(1, lpgemm_dtype_bits(d->type)))
                : d->zero == LPGEMM_ZERO_MINIMUM   ? 12
                                                   : 0;
  units += zero * (is_wide(d->type) ? EXACT_FLOAT_STEPS : 4);
  units *= d->super_scale_type ? 16 : d->scale_type ? 4 : 1;
  return 0x1p23 / (units * (double)(d->k > 0 ? d->k : 1));
}

void problem_put(lpgemm_dtype_t type, void *array, int64_t at, double not_finite) {
  if (type == LPGEMM_E4M3) {
    ((uint8_t *)array)[at] = 0x7f;
  } else if (type == LPGEMM_E5M2) {
    ((uint8_t *)array)[at] = isnan(not_finite) ? 0x7f : not_finite < 0 ? 0xfc : 0x7c;
  } else if (LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_REAL) {
    ref_store(type, array, at, not_finite);
  }
}

static void draw_x(problem *p) {
  const problem_spec *s = &p->spec;
  lpgemm_dtype_t type = s->x_type;
  int64_t k = ref_x_k(&s->desc), ldx = k + s->pad_x;
  int kind = (int)LPGEMM_DTYPE_KIND(type), bits = lpgemm_dtype_bits(type);
  double high = kind == LPGEMM_KIND_REAL ? 1 : largest_value(type, NULL);
  if (s->exact) {
    double limit = floor(exact_x_limit(s));
    if (limit < 1) test_fail(__FILE__, __LINE__, "this exact problem cannot be exact");
    high = limit < (kind == LPGEMM_KIND_REAL ? 16 : high) ? limit : kind == LPGEMM_KIND_REAL ? 16 : high;
    if (type == LPGEMM_E5M2) high = fmin(high, 448); /* fp8 MMA cuts what is 2^13 times smaller than the largest */
  } else if (kind == LPGEMM_KIND_FLOAT && test_random() % 2) {
    high = 2; /* else all exponents */
  }
  p->x = draw_matrix(type, s->m, k, ldx, -high, high, s->exact, s->misaligned);
  if (kind == LPGEMM_KIND_INT && bits < 8) { /* sign-extended */
    for (int64_t i = 0; i < s->m; i++) {
      uint8_t *row = (uint8_t *)p->x + i * ldx;
      for (int64_t j = 0; j < k; j++) row[j] = (uint8_t)((row[j] ^ 1 << (bits - 1)) - (1 << (bits - 1)));
    }
  }
  if (s->not_finite && k > 0) {
    const double special[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int i = 0; i < 3 && i < s->m; i++) {
      problem_put(type, p->x, (s->m - 1 - i) * ldx + test_between(0, k - 1), special[i]);
    }
  }
  p->args.x = p->x;
  p->args.ldx = ldx;
  p->args.x_type = type;
  p->args.x_scale_mode = s->x_scale_mode;
  p->args.quantize_x = s->quantize_x;
  if (s->x_scale_mode == LPGEMM_X_SCALE_NONE) return;
  int64_t count = s->x_scale_mode == LPGEMM_X_SCALE_ROW ? s->m : 1;
  p->x_scale = draw_array(LPGEMM_F32, count, 0.5 / high, 2 / high, 0, s->misaligned);
  for (int64_t i = 0; s->exact && i < count; i++) {
    ref_store(LPGEMM_F32, p->x_scale, i, ldexp(1, (int)test_between(-1, 1)));
  }
  p->args.x_scale = p->x_scale;
}

/* ---- the whole ---- */

size_t problem_y_bytes(const problem *p) {
  int64_t m = p->args.m, n = p->spec.desc.n;
  return m > 0 ? (size_t)(((m - 1) * p->args.ldy + n) * ref_bytes(p->args.y_type)) : 0;
}

int problem_make(problem *p, lpgemm_handle_t handle, const problem_spec *spec) {
  memset(p, 0, sizeof *p);
  p->spec = *spec;
  const problem_spec *s = &p->spec;
  int64_t n = s->desc.n;
  p->source.size = sizeof p->source;
  draw_codes(p);
  draw_scales_and_zeros(p);
  draw_order(p);
  draw_row_scales(p);
  CHECK_STATUS(lpgemm_pack_weights(handle, &s->desc, &p->source, NULL, 0, &p->weights), LPGEMM_SUCCESS);
  p->args.size = sizeof p->args;
  p->args.weights = p->weights;
  p->args.m = s->m;
  draw_x(p);
  p->args.y_type = s->y_type;
  p->args.ldy = n + s->pad_y;
  p->args.ldc = s->in_place ? p->args.ldy : n + s->pad_c;
  p->args.alpha = &p->spec.alpha;
  p->args.beta = &p->spec.beta;
  p->args.activation = s->activation;
  double reach = s->exact ? 8 : 2;
  p->y = test_alloc_at(problem_y_bytes(p), s->misaligned ? (size_t)ref_bytes(s->y_type) : 0);
  p->args.y = p->y;
  /* C as it is before the call; with beta = 0 it holds nothing but NaN. In place it is copied to Y before a run. */
  p->c = draw_matrix(s->y_type, s->m, n, p->args.ldc, -reach, reach, s->exact, s->misaligned);
  if (s->beta == 0 && s->m > 0)
    memset(p->c, 0xff, (size_t)((s->m - 1) * p->args.ldc + n) * (size_t)ref_bytes(s->y_type));
  p->args.c = p->c;
  if (s->bias_type) {
    p->bias = draw_array(s->bias_type, n, -reach, reach, s->exact, s->misaligned);
    p->args.bias = p->bias;
    p->args.bias_type = s->bias_type;
  }
  p->want = malloc(((size_t)(s->m * n) + 1) * 5 * sizeof *p->want);
  if (!p->want) abort();
  p->bound = p->want + s->m * n;
  p->rounded = p->bound + s->m * n;
  p->fixed = p->rounded + s->m * n;
  p->summed = p->fixed + s->m * n;
  return p->weights != NULL;
}

int problem_make_drawn(problem *p, lpgemm_handle_t handle, const problem_spec *spec) {
  problem_spec s = *spec;
  draw_version_2(&s);
  return problem_make(p, handle, &s);
}

void problem_repack(problem *p, lpgemm_handle_t handle) {
  CHECK_STATUS(lpgemm_weights_destroy(p->weights), LPGEMM_SUCCESS);
  p->weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &p->spec.desc, &p->source, NULL, 0, &p->weights), LPGEMM_SUCCESS);
  p->args.weights = p->weights;
}

/* What X as fixed point may add to the bound: for every 128 columns half a unit of X times sum |w|; gelu's slope
 * is 1.13 at most. `bits` has a unit of 2^(1 - digits) of the power of two above the largest |x|, `lookup` of up to
 * that of sum |x|: p->fixed and p->summed are for no digits, fixed_term() knows how many a kernel has. */
static void expect_fixed(problem *p) {
  enum { CHUNK = 128, LEAST_EXPONENT = -102, LEAST_SUM = -97 };
  const lpgemm_weight_desc_t *d = &p->spec.desc;
  const lpgemm_run_args_t *a = &p->args;
  double *w = malloc(((size_t)d->k + 1) * sizeof *w);
  if (!w) abort();
  for (int64_t n = 0; n < d->n; n++) {
    ref_weight_row(d, &p->source, n, w);
    for (int64_t m = 0; m < a->m; m++) {
      double fixed = 0, summed = 0;
      for (int64_t first = 0; first < d->k; first += CHUNK) {
        double most = 0, sum = 0, weights = 0;
        int exponent;
        for (int64_t k = first; k < first + CHUNK && k < d->k; k++) {
          const int64_t column = d->columns ? p->source.column_order[k] : k;
          const double x = fabs(ref_load(a->x_type, a->x, m * (a->ldx ? a->ldx : ref_x_k(d)) + column));
          if (x > most) most = x;
          sum += x;
          weights += fabs(w[k]);
        }
        frexp(most, &exponent);
        fixed += ldexp(weights, exponent > LEAST_EXPONENT ? exponent : LEAST_EXPONENT);
        if (isfinite(sum)) summed += weights * fmax(sum * (1 + 0x1p-12), ldexp(1, LEAST_SUM));
      }
      const double slope = 1.13 * (a->alpha ? fabs((double)*a->alpha) : 1);
      p->fixed[m * d->n + n] = slope * fixed;
      p->summed[m * d->n + n] = slope * summed;
    }
  }
  free(w);
}

/* The weights' bits where kernels may take X as fixed point and that counts; 0: nowhere. */
static int fixed_bits(const problem *p) {
  enum { FIXED_ROWS = 16 }; /* more of them no such kernel takes */
  const lpgemm_dtype_t type = p->spec.desc.type, x = p->args.x_type;
  const int bits = (int)lpgemm_dtype_bits(type);
  if (test_backend() != LPGEMM_BACKEND_CUDA || p->spec.exact || LPGEMM_DTYPE_KIND(type) > LPGEMM_KIND_BIPOLAR ||
      x == LPGEMM_F32 || (LPGEMM_DTYPE_KIND(x) <= LPGEMM_KIND_BIPOLAR && x != LPGEMM_I8) ||
      p->args.y_type == LPGEMM_I32 || p->args.m > FIXED_ROWS) {
    return 0;
  }
  if (p->args.alpha && *p->args.alpha == 0) return 0; /* X may not even be there */
  return bits <= 4 ? bits : 0;
}

/* What the kernel may add to the bound of output i, or those that may be chosen. */
static double fixed_term(const problem *p, const char *kernel, int64_t i) {
  const int bits = fixed_bits(p);
  if (bits && kernel && strncmp(kernel, "lut.", 4) == 0) return ldexp(p->summed[i], bits - 30);
  if (bits == 0 || bits > 2 || (kernel && strncmp(kernel, "gemv1.", 6) != 0)) return 0;
  return ldexp(p->fixed[i], 2 * bits - 26);
}

void problem_expect(problem *p) {
  ref_gemm(&p->spec.desc, &p->source, &p->args, p->want, p->bound, p->rounded);
  if (fixed_bits(p)) expect_fixed(p);
  if (!p->spec.exact || p->args.y_type == LPGEMM_I32) return;
  for (int64_t i = 0; i < p->args.m * p->spec.desc.n; i++) {
    p->want[i] = ref_round(p->args.y_type, p->want[i]);
    p->bound[i] = p->rounded[i] = 0;
  }
}

static lpgemm_status_t run_with(problem *p, lpgemm_handle_t handle, const lpgemm_run_args_t *args, size_t bytes) {
  void *workspace = bytes ? test_alloc(bytes) : NULL;
  if (bytes) memset(workspace, 0xff, bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, bytes), LPGEMM_SUCCESS);
  if (p->spec.in_place) {
    memcpy(p->y, p->c, problem_y_bytes(p));
  } else {
    memset(p->y, 0xff, problem_y_bytes(p));
  }
  lpgemm_status_t status = lpgemm_run(handle, args);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(workspace);
  return status;
}

lpgemm_status_t problem_run(problem *p, lpgemm_handle_t handle, const char *kernel) {
  lpgemm_run_args_t args = p->args;
  size_t needed = 0;
  args.kernel = kernel;
  if (p->spec.in_place) args.c = args.y;
  CHECK_STATUS(lpgemm_workspace_size(handle, p->weights, args.m, &args, &needed), LPGEMM_SUCCESS);
  const lpgemm_status_t status = p->spec.no_workspace ? run_with(p, handle, &args, 0) : LPGEMM_WORKSPACE_TOO_SMALL;
  return status == LPGEMM_WORKSPACE_TOO_SMALL ? run_with(p, handle, &args, needed) : status;
}

const char *problem_title(const problem *p, const char *what) {
  static char title[512];
  const problem_spec *s = &p->spec;
  const lpgemm_weight_desc_t *d = &s->desc;
  snprintf(
      title, sizeof title,
      "%s: m=%lld n=%lld k=%lld w=%s group=%lld/%lld scale=%s*%s zero=%d:%s*%s:%g global=%g x=%s:%d quantize=%s "
      "y=%s bias=%s activation=%d alpha=%g beta=%g in_place=%d misaligned=%d not_finite=%d exact=%d ordered=%d/%lld "
      "row_scales=%d group_n=%lld",
      what ? what : "automatic", (long long)p->args.m, (long long)d->n, (long long)d->k, lpgemm_dtype_name(d->type),
      (long long)d->group_k, (long long)d->super_k, lpgemm_dtype_name(d->scale_type),
      lpgemm_dtype_name(d->super_scale_type), (int)d->zero, lpgemm_dtype_name(d->zero_type),
      lpgemm_dtype_name(d->super_zero_type), (double)d->zero_constant, (double)d->global_scale,
      lpgemm_dtype_name(s->x_type), (int)s->x_scale_mode, lpgemm_dtype_name(s->quantize_x),
      lpgemm_dtype_name(s->y_type), lpgemm_dtype_name(s->bias_type), (int)s->activation, (double)s->alpha,
      (double)s->beta, s->in_place, s->misaligned, s->not_finite, s->exact, (int)d->columns, (long long)d->x_k,
      d->row_scales != 0, (long long)d->group_n);
  return title;
}

static void check_tails(const problem *p, const char *what) {
  int64_t bytes = ref_bytes(p->args.y_type), n = p->spec.desc.n;
  for (int64_t i = 0; i + 1 < p->args.m; i++) {
    const uint8_t *row = (const uint8_t *)p->y + i * p->args.ldy * bytes;
    for (int64_t b = n * bytes; b < p->args.ldy * bytes; b++) {
      if (row[b] == 0xff) continue;
      test_fail(__FILE__, __LINE__, "%s: row %lld of y was written beyond its %lld columns", problem_title(p, what),
                (long long)i, (long long)n);
      return;
    }
  }
}

/* These scale weights in the type of X, stripe with more than 64 rows; on a GPU automatic choice may take them. */
static int rounds_weights(const problem *p, const char *kernel) {
  if (!kernel) return test_backend() == LPGEMM_BACKEND_CUDA;
  const lpgemm_weight_desc_t *const d = &p->spec.desc;
  if (strncmp(kernel, "stripe.", 7) == 0) {
    return p->args.m > 64 && LPGEMM_DTYPE_KIND(d->type) != LPGEMM_KIND_FLOAT && !d->super_scale_type &&
           d->zero != LPGEMM_ZERO_MINIMUM;
  }
  return strncmp(kernel, "gemm.", 5) == 0 || strncmp(kernel, "dequant.", 8) == 0;
}

/* Sums of fp8 on the tensor cores, whose accumulators are short: eps(X) is 2^-8 there (docs/numerics.md), eight times
 * what rounded weights have. Automatic choice may take them. */
static int adds_fp8(const problem *p, const char *kernel) {
  const int is_fp8 = p->args.x_type == LPGEMM_E4M3 || p->args.x_type == LPGEMM_E5M2;
  return is_fp8 && (!kernel || strncmp(kernel, "dequant.any.e", 11) == 0 || strncmp(kernel, "gemm8.", 6) == 0);
}

void problem_check(const problem *p, const char *what) {
  const char *const kernel = what && strchr(what, '.') ? what : NULL; /* other words: what automatic choice took */
  const int64_t outputs = p->args.m * p->spec.desc.n;
  double *bound = malloc(((size_t)outputs + 1) * sizeof *bound);
  if (!bound) abort();
  for (int64_t i = 0; i < outputs; i++) {
    bound[i] = (rounds_weights(p, kernel) ? p->rounded : p->bound)[i] + fixed_term(p, kernel, i);
    if (adds_fp8(p, kernel)) bound[i] += 7 * (p->rounded[i] - p->bound[i]);
  }
  CHECK_MATRIX(
      compare_matrix(p->args.y_type, p->y, p->args.ldy, p->args.m, p->spec.desc.n, p->want, bound, !p->spec.not_finite),
      problem_title(p, what));
  free(bound);
  check_tails(p, what);
}

void problem_check_again(problem *p, lpgemm_handle_t handle, const char *kernel) {
  size_t bytes = problem_y_bytes(p);
  void *first = test_alloc(bytes);
  CHECK_STATUS(problem_run(p, handle, kernel), LPGEMM_SUCCESS);
  memcpy(first, p->y, bytes);
  CHECK_STATUS(problem_run(p, handle, kernel), LPGEMM_SUCCESS);
  if (memcmp(first, p->y, bytes) != 0) {
    test_fail(__FILE__, __LINE__, "%s: the same call gave other bits the second time", problem_title(p, kernel));
  }
  test_free(first);
}

void problem_check_alone(problem *p, lpgemm_handle_t handle, const char *kernel) {
  lpgemm_run_args_t whole = p->args;
  int64_t n = p->spec.desc.n, y_bytes = ref_bytes(whole.y_type), row_bytes = n * y_bytes;
  if (whole.m == 0) return;
  char *together = test_alloc(problem_y_bytes(p)), *c = p->c, *y = p->y;
  p->args.batch_invariant = 1;
  lpgemm_status_t status = problem_run(p, handle, kernel);
  if (status == LPGEMM_SUCCESS) {
    memcpy(together, p->y, problem_y_bytes(p));
    const int64_t rows[] = {0, whole.m / 2, whole.m - 1};
    for (int i = 0; i < 3; i++) {
      p->args.m = 1;
      p->args.x = (const char *)whole.x + rows[i] * whole.ldx * ref_bytes(whole.x_type);
      p->args.x_scale = whole.x_scale_mode == LPGEMM_X_SCALE_ROW ? whole.x_scale + rows[i] : whole.x_scale;
      p->args.y = p->y = y + rows[i] * whole.ldy * y_bytes;
      p->args.c = p->c = c + rows[i] * whole.ldc * y_bytes;
      CHECK_STATUS(problem_run(p, handle, kernel), LPGEMM_SUCCESS);
      if (memcmp(p->y, together + rows[i] * whole.ldy * y_bytes, (size_t)row_bytes) != 0) {
        test_fail(__FILE__, __LINE__, "%s: row %lld of %lld has other bits alone", problem_title(p, kernel),
                  (long long)rows[i], (long long)whole.m);
      }
      p->args = whole;
      p->args.batch_invariant = 1;
      p->y = y;
      p->c = c;
    }
  } else {
    CHECK_STATUS(status, LPGEMM_NOT_SUPPORTED);
  }
  p->args = whole;
  test_free(together);
}

void problem_free(problem *p) {
  const void *buffers[] = {p->source.codes,
                           p->source.scales,
                           p->source.zeros,
                           p->source.super_scales,
                           p->source.super_zeros,
                           p->source.column_order,
                           p->source.row_scales,
                           p->x,
                           p->y,
                           p->c,
                           p->bias,
                           p->x_scale};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) test_free((void *)(uintptr_t)buffers[i]);
  CHECK_STATUS(lpgemm_weights_destroy(p->weights), LPGEMM_SUCCESS);
  free(p->want);
}
