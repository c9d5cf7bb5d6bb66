/* Packing and unpacking in the machine's memory, as a fraction of the copy bandwidth. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "run.h"
#include "weights.h"

enum { BITS_SEED = 31, SAMPLED_ROWS = 64 };

typedef struct packing {
  const bench_machine *machine;
  const bench_case *c;
  bench_weights w; /* drawn, not packed */
  void *bits;      /* the codes as a dense bit stream */
  void *packed;
  size_t packed_bytes;
  lpgemm_weights_t weights;
  void *out;
  size_t out_bytes;
} packing;

static bench_error pack(void *context, int64_t i) {
  packing *p = context;
  (void)i;
  BENCH_LPGEMM(lpgemm_weights_destroy(p->weights));
  p->weights = NULL;
  BENCH_LPGEMM(
      lpgemm_pack_weights(p->machine->handle, &p->c->desc, &p->w.source, p->packed, p->packed_bytes, &p->weights));
  return NULL;
}

static bench_error unpack(void *context, int64_t i) {
  packing *p = context;
  (void)i;
  BENCH_LPGEMM(lpgemm_unpack_weights(p->machine->handle, p->weights, p->c->out_type, p->out, 0));
  return NULL;
}

/* ---- checks ---- */

/* Code i of a row of the source. */
static uint32_t source_code(const packing *p, const uint8_t *row, int64_t first, int64_t i) {
  if (!p->bits) return row[i];
  int bits = lpgemm_dtype_bits(p->c->desc.type);
  uint32_t code = 0;
  for (int b = 0; b < bits; b++) {
    int64_t bit = first + i * bits + b;
    code |= (uint32_t)(row[bit / 8] >> bit % 8 & 1) << b;
  }
  return code;
}

static bench_error check_codes(const packing *p, int64_t row, uint8_t *got, uint8_t *source) {
  int64_t k = p->c->desc.k, first = p->bits ? row * k * lpgemm_dtype_bits(p->c->desc.type) : row * k * 8;
  int64_t last = first + (p->bits ? k * lpgemm_dtype_bits(p->c->desc.type) : k * 8);
  const uint8_t *codes = p->bits ? p->bits : p->w.source.codes;
  BENCH_TRY(p->machine->copy(source, codes + first / 8, (size_t)((last + 7) / 8 - first / 8)));
  BENCH_TRY(p->machine->copy(got, (const uint8_t *)p->out + row * k, (size_t)k));
  for (int64_t i = 0; i < k; i++) {
    uint32_t want = source_code(p, source, first % 8, i);
    BENCH_CHECK(got[i] == want, "code (%lld, %lld) is %u after packing, not %u", (long long)row, (long long)i, got[i],
                want);
  }
  return NULL;
}

static bench_error check_values(const packing *p, int64_t row, void *got, double *value, uint8_t *codes) {
  int64_t k = p->c->desc.k;
  lpgemm_dtype_t type = p->c->out_type;
  size_t bytes = (size_t)(k * ref_bytes(type));
  BENCH_TRY(p->machine->copy(got, (const char *)p->out + (size_t)row * bytes, bytes));
  bench_weight_row(&p->w, row, codes, value);
  for (int64_t i = 0; i < k; i++) {
    double v = ref_load(type, got, i), bound = ref_epsilon(type) * fabs(value[i]) + ref_smallest(type) / 2;
    BENCH_CHECK(fabs(v - value[i]) <= bound, "weight (%lld, %lld) is %.9g, not %.9g", (long long)row, (long long)i, v,
                value[i]);
  }
  return NULL;
}

/* Rows spread over the matrix, the first and the last among them: codes, or values. */
static bench_error check_rows(const packing *p, int values) {
  int64_t n = p->c->desc.n, k = p->c->desc.k, rows = n < SAMPLED_ROWS ? n : SAMPLED_ROWS;
  size_t bytes = (size_t)(k + 1) * sizeof(double);
  void *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
  bench_error error = a && b && c ? NULL : bench_fail("out of memory");
  for (int64_t i = 0; !error && i < rows; i++) {
    int64_t row = rows > 1 ? i * (n - 1) / (rows - 1) : 0;
    error = values ? check_values(p, row, a, b, c) : check_codes(p, row, a, b);
  }
  free(a);
  free(b);
  free(c);
  return error;
}

static bench_error check_parts(const packing *p) {
  for (int part = 1; part < BENCH_PARTS; part++) {
    size_t bytes = p->w.row_bytes[part] * (size_t)p->c->desc.n;
    if (!bytes) continue;
    void *got = malloc(bytes);
    BENCH_CHECK(got, "out of memory");
    lpgemm_status_t status = lpgemm_unpack_part(p->machine->handle, p->weights, (lpgemm_part_t)part, got, bytes);
    int equal = status == LPGEMM_SUCCESS && memcmp(got, p->w.part[part], bytes) == 0;
    free(got);
    BENCH_CHECK(status == LPGEMM_SUCCESS, "lpgemm_unpack_part: %s", lpgemm_last_error());
    BENCH_CHECK(equal, "part %d is not what was packed", part);
  }
  return NULL;
}

/* ---- the case ---- */

static bench_error make(packing *p) {
  const bench_machine *machine = p->machine;
  const bench_case *c = p->c;
  int64_t count = c->desc.n * c->desc.k;
  BENCH_TRY(bench_draw_weights(machine, &c->desc, &p->w));
  if (c->operation == BENCH_PACK && c->code_layout == LPGEMM_CODES_BITS) {
    size_t bytes = (size_t)(count * lpgemm_dtype_bits(c->desc.type) + 7) / 8;
    BENCH_TRY(machine->allocate(bytes, &p->bits));
    BENCH_TRY(machine->fill(LPGEMM_U8, p->bits, (int64_t)bytes, BITS_SEED));
    machine->release((void *)(uintptr_t)p->w.source.codes);
    p->w.source.code_layout = LPGEMM_CODES_BITS;
    p->w.source.codes = p->bits;
    p->w.source.codes_bytes = bytes;
  }
  BENCH_LPGEMM(lpgemm_packed_size(&c->desc, &p->packed_bytes));
  BENCH_TRY(machine->allocate(p->packed_bytes, &p->packed));
  size_t element = c->operation == BENCH_PACK ? 1 : (size_t)ref_bytes(c->out_type);
  BENCH_TRY(machine->allocate((size_t)count * element, &p->out));
  return pack(p, 0);
}

static bench_error run(packing *p, bench_result *r) {
  const bench_machine *machine = p->machine;
  BENCH_TRY(make(p));
  if (p->c->operation == BENCH_PACK) {
    snprintf(r->checked, sizeof r->checked, "codes of %d rows, all scales", (int)SAMPLED_ROWS);
    BENCH_TRY(machine->time_call(pack, p, 1, &r->time));
    BENCH_LPGEMM(lpgemm_unpack_weights(machine->handle, p->weights, LPGEMM_U8, p->out, 0));
    BENCH_TRY(machine->synchronize());
    BENCH_TRY(check_rows(p, 0));
    return check_parts(p);
  }
  int values = p->c->out_type != LPGEMM_U8;
  snprintf(r->checked, sizeof r->checked, "%s of %d rows", values ? "values" : "codes", (int)SAMPLED_ROWS);
  BENCH_TRY(machine->time_call(unpack, p, 1, &r->time));
  return check_rows(p, values);
}

bench_error bench_run_pack(const bench_machine *machine, const bench_case *c, bench_result *r) {
  packing p = {.machine = machine, .c = c};
  snprintf(r->kernel, sizeof r->kernel, "%s", bench_operation_name(c->operation));
  bench_error error = run(&p, r);
  lpgemm_weights_destroy(p.weights);
  bench_free_weights(machine, &p.w); /* its source may be p.bits */
  machine->release(p.packed);
  machine->release(p.out);
  return error;
}
