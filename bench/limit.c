#include "limit.h"

#include <math.h>

/* Bytes of `count` numbers of a type, packed without gaps. */
static double bytes_of(double count, lpgemm_dtype_t type) { return ceil(count * lpgemm_dtype_bits(type) / 8); }

/* In an array of the API every number takes whole bytes. */
static double array_bytes(double count, lpgemm_dtype_t type) { return count * ((lpgemm_dtype_bits(type) + 7) / 8); }

/* Scales, zeros, minima. */
static double part_bytes(const lpgemm_weight_desc_t *d) {
  double n = (double)d->n, k = (double)d->k;
  double groups = n * (d->group_k ? ceil(k / (double)d->group_k) : 1);
  double supers = n * (d->super_k ? ceil(k / (double)d->super_k) : 1);
  double bytes = bytes_of(groups, d->scale_type) + bytes_of(supers, d->super_scale_type);
  if (d->zero == LPGEMM_ZERO_PER_GROUP || d->zero == LPGEMM_ZERO_MINIMUM) {
    bytes += bytes_of(groups, d->zero_type) + bytes_of(supers, d->super_zero_type);
  }
  return bytes;
}

double bench_ideal_bytes(const bench_case *c) {
  const lpgemm_weight_desc_t *d = &c->desc;
  double m = (double)c->m, n = (double)d->n, k = (double)d->k;
  double packed = bytes_of(n * k, d->type) + part_bytes(d);
  switch (c->operation) {
    case BENCH_CALL:
    case BENCH_CHOOSE:
    case BENCH_IMPORT:  /* the tensors say it */
    case BENCH_EXPERTS: /* the routing does */
    case BENCH_TOKEN:   /* it has four products a layer */
    case BENCH_PREPARE: return (double)NAN;
    case BENCH_GEMM:
    case BENCH_REGRET: return packed + array_bytes(m * k, c->x_type) + array_bytes(m * n, c->y_type);
    case BENCH_BLAS: return array_bytes(n * k + m * k, c->baseline) + array_bytes(m * n, c->y_type);
    case BENCH_QUANTIZE:
      return array_bytes(n * k, c->x_type) + n * k + 4 * (c->x_scale_mode == LPGEMM_X_SCALE_ROW ? n : 1);
    case BENCH_PACK:
      return packed + part_bytes(d) + (c->code_layout == LPGEMM_CODES_BITS ? bytes_of(n * k, d->type) : n * k);
    default: return packed + array_bytes(n * k, c->out_type);
  }
}

double bench_limit_us(const bench_case *c, double gbps) {
  double memory = bench_ideal_bytes(c) / gbps * 1e-3;
  if (isnan(memory)) return memory;
  if (c->operation == BENCH_PACK || c->operation == BENCH_UNPACK || c->operation == BENCH_QUANTIZE) return memory;
  int bits = lpgemm_dtype_bits(c->operation == BENCH_BLAS ? c->baseline : c->x_type);
  double tflops = bits > 8 ? 900 : bits == 8 ? 1700 : 15000;
  double work = 2.0 * (double)c->m * (double)c->desc.n * (double)c->desc.k / tflops * 1e-6;
  return fmax(1.3 + memory, 1.5 + work);
}

double bench_tflops(const bench_case *c, const bench_result *r) {
  if (c->operation != BENCH_GEMM && c->operation != BENCH_BLAS && c->operation != BENCH_REGRET) return (double)NAN;
  return 2.0 * (double)c->m * (double)c->desc.n * (double)c->desc.k / r->time.us * 1e-6;
}
