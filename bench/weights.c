#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "parallel.h"
#include "random.h"

enum { SEED = 7, CHOICES = 64, MAX_COPIES = 4096, ALIGN = 256 };
#define LARGEST_MINIMUM 0.5

/* ---- scales and zeros ---- */

/* Largest |code - zero| of the codes that are drawn. */
static double largest_code(const lpgemm_weight_desc_t *d) {
  double largest = 0;
  int is_float = LPGEMM_DTYPE_KIND(d->type) == LPGEMM_KIND_FLOAT;
  if (is_float && (d->type >> 8 & 255) >= 4) return 2; /* random.h */
  double zero = d->zero == LPGEMM_ZERO_CONSTANT ? (double)d->zero_constant : 0;
  for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(d->type); code++) {
    largest = fmax(largest, fabs(ref_value(d->type, code, d->codebook) - zero));
  }
  return largest;
}

/* The largest code of a type for coded scales and minima. */
static double largest_factor(lpgemm_dtype_t type) {
  return type == LPGEMM_E4M3 ? 448 : type == LPGEMM_I8 ? 127 : (double)((1 << lpgemm_dtype_bits(type)) - 1);
}

/* Elements of a part are drawn from a few numbers, since rounding to a type is slow. */
typedef struct drawing {
  char choice[CHOICES * 4];
  size_t element;
  uint64_t seed;
  char *out;
} drawing;

static void draw_range(void *context, int64_t first, int64_t end) {
  const drawing *d = context;
  for (int64_t i = first; i < end; i++) {
    const char *choice = d->choice + bench_random(d->seed, (uint64_t)i) % CHOICES * d->element;
    char *out = d->out + (size_t)i * d->element;
    switch (d->element) { /* copies of a fixed size need no call */
      case 1: *out = *choice; break;
      case 2: memcpy(out, choice, 2); break;
      default: memcpy(out, choice, 4);
    }
  }
}

/* rows x columns numbers of a type, drawn from [1/2, 1] times `top`, on the host and in the machine's memory. */
static bench_error draw_part(const bench_machine *machine, bench_weights *w, lpgemm_part_t part, lpgemm_dtype_t type,
                             int64_t columns, double top, const void **array, size_t *bytes) {
  if (type == 0) return NULL;
  drawing d = {.element = (size_t)ref_bytes(type), .seed = SEED + (uint64_t)part};
  for (int i = 0; i < CHOICES; i++) ref_store(type, d.choice, i, top * (0.5 + i / 126.0));
  w->row_bytes[part] = (size_t)columns * d.element;
  *bytes = (size_t)w->desc.n * w->row_bytes[part];
  d.out = w->part[part] = malloc(*bytes + 1);
  BENCH_CHECK(d.out, "out of memory");
  bench_parallel(w->desc.n * columns, draw_range, &d);
  void *memory;
  BENCH_TRY(machine->allocate(*bytes, &memory));
  *array = memory;
  return machine->copy(memory, d.out, *bytes);
}

static bench_error draw_parts(const bench_machine *machine, bench_weights *w) {
  const lpgemm_weight_desc_t *d = &w->desc;
  lpgemm_weight_source_t *s = &w->source;
  int64_t groups = d->group_k ? (d->k + d->group_k - 1) / d->group_k : 1;
  int64_t supers = d->super_k ? (d->k + d->super_k - 1) / d->super_k : 1;
  double largest = largest_code(d), scale = 1 / largest, super = 1, zero = 0.5 * largest, super_zero = 1;
  if (d->scale_type == 0) scale = 1;
  if (d->scale_type == LPGEMM_F16) scale = fmax(scale, 0x1p-13); /* normal numbers */
  if (d->super_scale_type) {
    super = scale / largest_factor(d->scale_type);
    scale = largest_factor(d->scale_type);
  }
  if (d->zero == LPGEMM_ZERO_MINIMUM) { /* about minus half of the range */
    zero = -LARGEST_MINIMUM;
    if (d->super_zero_type) {
      zero = largest_factor(d->zero_type);
      super_zero = -LARGEST_MINIMUM / zero;
    }
  }
  lpgemm_dtype_t zeros = d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM ? d->zero_type : 0;
  BENCH_TRY(draw_part(machine, w, LPGEMM_PART_SCALES, d->scale_type, groups, scale, &s->scales, &s->scales_bytes));
  BENCH_TRY(draw_part(machine, w, LPGEMM_PART_ZEROS, zeros, groups, zero, &s->zeros, &s->zeros_bytes));
  BENCH_TRY(draw_part(machine, w, LPGEMM_PART_SUPER_SCALES, d->super_scale_type, supers, super, &s->super_scales,
                      &s->super_scales_bytes));
  return draw_part(machine, w, LPGEMM_PART_SUPER_ZEROS, d->super_zero_type, supers, super_zero, &s->super_zeros,
                   &s->super_zeros_bytes);
}

/* Codes are right-aligned bits; the sign of INT is one of them. */
static lpgemm_dtype_t code_type(lpgemm_dtype_t type) {
  int is_int = LPGEMM_DTYPE_KIND(type) == LPGEMM_KIND_INT;
  return is_int ? LPGEMM_UINT((lpgemm_dtype_t)lpgemm_dtype_bits(type)) : type;
}

/* A random permutation, on the host. */
static bench_error draw_order(bench_weights *w) {
  const int64_t k = w->desc.k;
  w->order = malloc((size_t)k * sizeof *w->order + 1);
  BENCH_CHECK(w->order, "out of memory");
  for (int64_t i = 0; i < k; i++) {
    const int64_t at = (int64_t)(bench_random(SEED, (uint64_t)i) % (uint64_t)(i + 1));
    w->order[i] = w->order[at];
    w->order[at] = (int32_t)i;
  }
  w->source.column_order = w->order;
  w->source.column_order_bytes = (size_t)k * sizeof *w->order;
  return NULL;
}

bench_error bench_draw_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w) {
  memset(w, 0, sizeof *w);
  w->desc = *desc;
  w->source.size = sizeof w->source;
  w->source.codes_bytes = (size_t)(desc->n * desc->k);
  void *codes;
  BENCH_TRY(machine->allocate(w->source.codes_bytes, &codes));
  w->source.codes = codes;
  BENCH_TRY(machine->fill(code_type(desc->type), codes, desc->n * desc->k, SEED));
  if (desc->columns) BENCH_TRY(draw_order(w));
  return draw_parts(machine, w);
}

/* ---- norms ---- */

/* With minima, errors are relative to |code * scale| + |minimum| <= |w| + 2 |minimum|. */
static bench_error add_minima(const bench_machine *machine, bench_weights *w) {
  size_t bytes = (size_t)w->desc.n * sizeof *w->norm;
  double global = w->desc.global_scale == 0.0f ? 1 : fabs((double)w->desc.global_scale);
  double minima = LARGEST_MINIMUM * global * sqrt((double)w->desc.k);
  float *host = malloc(bytes);
  BENCH_CHECK(host, "out of memory");
  bench_error error = machine->copy(host, w->norm, bytes);
  for (int64_t i = 0; !error && i < w->desc.n; i++) host[i] += (float)(2 * minima);
  if (!error) error = machine->copy(w->norm, host, bytes);
  free(host);
  return error;
}

static bench_error measure_norms(const bench_machine *machine, bench_weights *w) {
  int64_t n = w->desc.n, k = w->desc.k;
  void *norm, *values;
  BENCH_TRY(machine->allocate((size_t)n * sizeof *w->norm, &norm));
  w->norm = norm;
  BENCH_TRY(machine->allocate((size_t)(n * k) * sizeof(float), &values));
  lpgemm_status_t status = lpgemm_unpack_weights(machine->handle, w->copy[0], LPGEMM_F32, values, 0);
  bench_error error = status ? bench_fail("lpgemm_unpack_weights: %s", lpgemm_last_error())
                             : machine->row_norms(LPGEMM_F32, values, n, k, k, w->norm);
  machine->release(values);
  if (!error && w->desc.zero == LPGEMM_ZERO_MINIMUM) error = add_minima(machine, w);
  return error;
}

/* ---- copies ---- */

bench_error bench_rotate_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w) {
  BENCH_TRY(bench_draw_weights(machine, desc, w));
  size_t packed;
  BENCH_LPGEMM(lpgemm_packed_size(desc, &packed));
  size_t stride = (packed + ALIGN - 1) / ALIGN * ALIGN, room = machine->available() / 2 / stride;
  size_t copies = machine->rotate_bytes / stride + 1;
  if (copies > MAX_COPIES) copies = MAX_COPIES;
  if (copies > room) copies = room;
  BENCH_CHECK(copies, "no memory for a packed matrix of %zu bytes", packed);
  BENCH_TRY(machine->allocate(copies * stride, &w->slab));
  w->copy = calloc(copies, sizeof *w->copy);
  BENCH_CHECK(w->copy, "out of memory");
  w->copies = (int64_t)copies;
  char *at = w->slab;
  BENCH_LPGEMM(lpgemm_pack_weights(machine->handle, desc, &w->source, at, packed, &w->copy[0]));
  for (size_t i = 1; i < copies; i++) {
    BENCH_TRY(machine->copy(at + i * stride, at, packed));
    BENCH_LPGEMM(lpgemm_deserialize(machine->handle, at + i * stride, packed,
                                    LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM, &w->copy[i]));
  }
  return NULL;
}

bench_error bench_make_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w) {
  BENCH_TRY(bench_rotate_weights(machine, desc, w));
  return measure_norms(machine, w);
}

void bench_weight_row(const bench_weights *w, int64_t row, uint8_t *codes, double *value) {
  lpgemm_weight_desc_t desc = w->desc;
  lpgemm_weight_source_t source = {.size = sizeof source, .codes = codes};
  lpgemm_dtype_t type = code_type(desc.type);
  const void **array[BENCH_PARTS] = {NULL, &source.scales, &source.zeros, &source.super_scales, &source.super_zeros};
  for (int64_t k = 0; k < desc.k; k++) {
    codes[k] = (uint8_t)bench_random_number(type, bench_random(SEED, (uint64_t)(row * desc.k + k)));
  }
  for (int i = 1; i < BENCH_PARTS; i++) {
    if (w->part[i]) *array[i] = (const char *)w->part[i] + (size_t)row * w->row_bytes[i];
  }
  desc.n = 1;
  desc.columns = LPGEMM_COLUMNS_PLAIN;
  if (!w->order) {
    ref_weight_row(&desc, &source, 0, value);
    return;
  }
  uint8_t *packed = malloc((size_t)desc.k); /* codes in the order in which groups count them, and values back */
  double *of_packed = malloc((size_t)desc.k * sizeof *of_packed);
  for (int64_t k = 0; packed && of_packed && k < desc.k; k++) packed[k] = codes[w->order[k]];
  source.codes = packed;
  if (packed && of_packed) ref_weight_row(&desc, &source, 0, of_packed);
  for (int64_t k = 0; k < desc.k; k++) value[w->order[k]] = packed && of_packed ? of_packed[k] : NAN;
  free(packed);
  free(of_packed);
}

void bench_free_weights(const bench_machine *machine, bench_weights *w) {
  for (int64_t i = 0; w->copy && i < w->copies; i++) lpgemm_weights_destroy(w->copy[i]);
  free(w->copy);
  free(w->order);
  const void *memory[] = {w->source.codes,       w->source.scales, w->source.zeros, w->source.super_scales,
                          w->source.super_zeros, w->slab,          w->norm};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) machine->release((void *)(uintptr_t)memory[i]);
  for (int i = 0; i < BENCH_PARTS; i++) free(w->part[i]);
  memset(w, 0, sizeof *w);
}
