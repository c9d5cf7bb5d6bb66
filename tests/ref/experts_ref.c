#include "experts_ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_ref.h"

static void *need(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory) return memory;
  fprintf(stderr, "experts_ref: out of memory\n");
  abort();
}

/* ---- pairs ---- */

static double limit_of(const lpgemm_gate_t *gate) {
  return gate && gate->limit != 0 ? (double)gate->limit : (double)INFINITY;
}

static double activated(lpgemm_activation_t activation, const lpgemm_gate_t *gate, double g) {
  const double alpha = gate && gate->alpha != 0 ? (double)gate->alpha : 1;
  if (g > limit_of(gate)) g = limit_of(gate);
  if (activation != LPGEMM_ACTIVATION_SILU) return ref_activate(activation, g);
  return g == -(double)INFINITY ? 0 : g / (1 + exp(-alpha * g));
}

double ref_pair(lpgemm_activation_t activation, const lpgemm_gate_t *gate, double g, double u) {
  if (u > limit_of(gate)) u = limit_of(gate);
  if (u < -limit_of(gate)) u = -limit_of(gate);
  return activated(activation, gate, g) * (u + (gate ? (double)gate->up_offset : 0));
}

/* A factor that is off by so much, and another: how far the product may be. */
static double off_product(double a, double a_off, double b, double b_off) {
  return a_off * fabs(b) + fabs(a) * b_off + a_off * b_off;
}

double ref_pair_bound(lpgemm_activation_t activation, const lpgemm_gate_t *gate, lpgemm_dtype_t y_type, double g,
                      double g_off, double u, double u_off) {
  const double v = ref_pair(activation, gate, g, u), offset = gate ? (double)gate->up_offset : 0;
  const double up =
      fabs(u) + fabs(offset); /* the slope of an activation is at most 1.13; fp32 knows it to a few units */
  double error =
      off_product(activated(activation, gate, g), 1.13 * g_off + 8 * 0x1p-24 * fabs(g), up, u_off + 2 * 0x1p-24 * up);
  if (!isfinite(v)) error = 0;
  return error + ref_epsilon(y_type) * (fabs(v) + error) + ref_smallest(y_type) / 2;
}

/* Sums of all rows, without activation and the rounding of Y; then gate and up meet. */
static void pairs(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
                  int rounds, double *y, double *bound) {
  const int64_t m = args->m, n = desc->n, outputs = n / 2;
  lpgemm_run_args_t sums = *args;
  double *sum = need((size_t)(m * n), sizeof *sum), *off = need((size_t)(m * n), sizeof *off);
  sums.activation = LPGEMM_ACTIVATION_NONE;
  sums.bias_type = args->bias_type ? args->bias_type : args->y_type;
  sums.y_type = LPGEMM_F32;
  sums.ldy = 0;
  ref_gemm(desc, source, &sums, sum, off, rounds ? off : NULL);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < outputs; j++) {
      const int64_t g = i * n + j, u = g + outputs;
      y[i * outputs + j] = ref_pair(args->activation, args->gate, sum[g], sum[u]);
      bound[i * outputs + j] =
          ref_pair_bound(args->activation, args->gate, args->y_type, sum[g], off[g], sum[u], off[u]);
    }
  }
  free(sum);
  free(off);
}

void ref_product(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
                 int rounds, double *y, double *bound) {
  if (desc->rows == LPGEMM_ROWS_PAIRED) {
    pairs(desc, source, args, rounds, y, bound);
  } else {
    ref_gemm(desc, source, args, y, bound, rounds ? bound : NULL);
  }
}

/* ---- a layer ---- */

static lpgemm_dtype_t h_type_of(const lpgemm_experts_args_t *a) {
  if (a->x_type == LPGEMM_F16 || a->x_type == LPGEMM_BF16 || a->x_type == LPGEMM_F32) return a->x_type;
  return a->y_type == LPGEMM_F32 ? LPGEMM_BF16 : a->y_type;
}

/* Row e of an array of biases [experts][n]. */
static const void *bias_of(const void *bias, lpgemm_dtype_t type, int64_t e, int64_t n) {
  return bias ? (const uint8_t *)bias + e * n * ref_bytes(type) : NULL;
}

/* One slot: o[n of down] and how far what the library adds up may be from it. */
static void slot(const ref_expert *expert, const lpgemm_experts_args_t *a, int rounds, int64_t e, int64_t t, double *o,
                 double *off) {
  const lpgemm_dtype_t h_type = h_type_of(a), bias_type = a->bias_type ? a->bias_type : a->y_type;
  const int64_t inter = expert->up_desc.rows == LPGEMM_ROWS_PAIRED ? expert->up_desc.n / 2 : expert->up_desc.n;
  const int64_t x_k = ref_x_k(&expert->up_desc), n = expert->down_desc.n, k = expert->down_desc.k;
  const int64_t ldx = a->ldx ? a->ldx : x_k;
  double *h = need((size_t)inter, sizeof *h), *h_off = need((size_t)inter, sizeof *h_off);
  double *w = need((size_t)k, sizeof *w);
  void *rounded = need((size_t)inter, (size_t)ref_bytes(h_type));
  lpgemm_run_args_t up = {.size = sizeof up, .m = 1, .x_type = a->x_type, .y_type = h_type, .bias_type = bias_type};
  up.x = (const uint8_t *)a->x + t * ldx * ref_bytes(a->x_type);
  up.bias = bias_of(a->up_bias, bias_type, e, expert->up_desc.n);
  up.activation = a->activation;
  up.gate = a->gate;
  up.x_scale_mode = a->x_scale_mode;
  up.x_scale = a->x_scale_mode == LPGEMM_X_SCALE_ROW ? a->x_scale + t : a->x_scale;
  up.quantize_x = a->quantize_x;
  ref_product(&expert->up_desc, &expert->up, &up, rounds, h, h_off);
  for (int64_t i = 0; i < inter; i++) ref_store(h_type, rounded, i, h[i]);
  lpgemm_run_args_t down = {.size = sizeof down, .m = 1, .x = rounded, .x_type = h_type, .y_type = a->y_type};
  down.bias = bias_of(a->down_bias, bias_type, e, n);
  down.bias_type = bias_type;
  down.quantize_x = a->quantize_h;
  ref_product(&expert->down_desc, &expert->down, &down, rounds, o, off);
  /* The library's h is as far from h as h_off says, and so is `rounded`. */
  double most_off = 0;
  for (int64_t i = 0; i < inter; i++) most_off = fmax(most_off, h_off[i]);
  for (int64_t j = 0; j < n; j++) {
    ref_weight_row(&expert->down_desc, &expert->down, j, w);
    double moved = 0;
    for (int64_t i = 0; i < k; i++) {
      const int64_t column = expert->down_desc.columns ? expert->down.column_order[i] : i;
      const double own = a->quantize_h ? 2 * most_off : h_off[column]; /* the row's scale moves with its largest */
      moved += fabs(w[i]) * 2 * own;
    }
    if (isfinite(moved)) off[j] += moved * (1 + ref_epsilon(a->y_type));
  }
  free(h);
  free(h_off);
  free(w);
  free(rounded);
}

void ref_experts(const ref_expert *experts, const lpgemm_experts_args_t *a, int rounds, double *y, double *bound) {
  const lpgemm_route_args_t *route = a->route;
  const int64_t n = experts[0].down_desc.n, ldc = a->ldc ? a->ldc : n;
  const double beta = a->beta ? (double)*a->beta : 0;
  double *o = need((size_t)n, sizeof *o), *off = need((size_t)n, sizeof *off), *size = need((size_t)n, sizeof *size);
  for (int64_t t = 0; t < route->m; t++) {
    double *of_token = y + t * n, *error = bound + t * n;
    for (int64_t j = 0; j < n; j++) of_token[j] = error[j] = size[j] = 0;
    for (int64_t s = 0; s < route->top_k; s++) {
      const int64_t at = t * route->top_k + s, e = (int64_t)route->expert[at] - route->first_expert;
      if (e < 0 || e >= route->experts) continue;
      const double weight = route->weight ? (double)route->weight[at] : 1;
      slot(&experts[e], a, rounds, e, t, o, off);
      for (int64_t j = 0; j < n; j++) {
        of_token[j] += weight * o[j];
        error[j] += fabs(weight) * off[j];
        size[j] += fabs(weight) * (fabs(o[j]) + off[j]);
      }
    }
    for (int64_t j = 0; j < n; j++) {
      const double c = beta != 0 ? beta * ref_load(a->y_type, a->c, t * ldc + j) : 0;
      of_token[j] += c;
      error[j] += (route->top_k + 2) * 0x1p-24 * (size[j] + fabs(c));
      error[j] += ref_epsilon(a->y_type) * (fabs(of_token[j]) + error[j]) + ref_smallest(a->y_type);
      if (!isfinite(of_token[j])) error[j] = 0;
    }
  }
  free(o);
  free(off);
  free(size);
}
