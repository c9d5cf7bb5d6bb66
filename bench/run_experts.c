/* A layer of experts by lpgemm_run_experts(), from the router's indices to Y: checked against fp64 for one token and
 * against the slow kernel for all, then timed. Every launch has its own choice of experts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/ref/gemm_ref.h"
#include "parallel.h"
#include "random.h"
#include "run.h"
#include "weights.h"

enum { ROUTINGS = 32, MOST_COPIES = 64, SAMPLES = 64, X_SEED = 91, ROUTE_SEED = 92, WEIGHT_SEED = 93 };

typedef struct layer {
  const bench_machine *machine;
  const bench_case *c;
  bench_weights up, down; /* what experts are drawn from: expert e has their rows from e on */
  lpgemm_weight_desc_t up_desc, down_desc;
  lpgemm_weights_t up_stack[MOST_COPIES], down_stack[MOST_COPIES];
  void *up_memory[MOST_COPIES], *down_memory[MOST_COPIES];
  int64_t copies;
  int32_t *chosen; /* [ROUTINGS][m][top_k], on the host */
  float *weight;   /* [m][top_k], on the host */
  void *expert_there, *weight_there, *x, *y, *other_y, *workspace;
  size_t y_bytes, workspace_bytes;
  lpgemm_route_args_t route;
  lpgemm_experts_args_t args;
} layer;

/* ---- routing ---- */

/* Shares of the experts in the draw, added up. */
static void add_up_shares(const bench_case *c, double *shares) {
  double sum = 0;
  for (int e = 0; e < c->experts; e++) shares[e] = sum += c->routing == BENCH_ZIPF ? 1.0 / (e + 1) : 1.0;
}

/* top_k different experts. */
static void draw_token(const bench_case *c, const double *shares, uint64_t seed, int32_t *expert) {
  uint64_t draw = 0;
  for (int j = 0; j < c->top_k;) {
    const double at = bench_random(seed, draw++) * 0x1p-32 * shares[c->experts - 1];
    int32_t e = 0;
    while (e < c->experts - 1 && shares[e] <= at) e++;
    int is_new = 1;
    for (int i = 0; i < j; i++) is_new &= expert[i] != e;
    if (is_new) expert[j++] = e;
  }
}

static bench_error draw_routings(layer *l, bench_result *r) {
  const bench_case *c = l->c;
  const int64_t slots = c->m * c->top_k;
  double *shares = malloc((size_t)c->experts * sizeof *shares);
  int64_t *tokens = calloc((size_t)c->experts, sizeof *tokens);
  l->chosen = malloc((size_t)(ROUTINGS * slots) * sizeof *l->chosen);
  l->weight = malloc((size_t)slots * sizeof *l->weight);
  const int enough = shares && tokens && l->chosen && l->weight;
  if (enough) add_up_shares(c, shares);
  for (int64_t i = 0; enough && i < ROUTINGS; i++) {
    int32_t *own = l->chosen + i * slots;
    memset(tokens, 0, (size_t)c->experts * sizeof *tokens);
    for (int64_t t = 0; t < c->m; t++) {
      const int64_t number = i * c->m + (c->routing == BENCH_SAME ? 0 : t);
      draw_token(c, shares, ROUTE_SEED + (uint64_t)number * 7919, own + t * c->top_k);
    }
    for (int64_t s = 0; s < slots; s++) tokens[own[s]]++;
    int64_t most = 0;
    for (int e = 0; e < c->experts; e++) {
      r->named += (tokens[e] > 0) / (double)ROUTINGS;
      if (tokens[e] > most) most = tokens[e];
    }
    r->most += (double)most / ROUTINGS;
  }
  for (int64_t s = 0; enough && s < slots; s++) {
    l->weight[s] = (float)((0.5 + bench_random(WEIGHT_SEED, (uint64_t)s) * 0x1p-32) / c->top_k);
  }
  free(shares);
  free(tokens);
  BENCH_CHECK(enough, "out of memory");
  return NULL;
}

/* ---- stacks ---- */

/* Packs every expert from the drawn rows, one row further on each. */
static bench_error pack_stack(const layer *l, const bench_weights *from, const lpgemm_weight_desc_t *desc, void *memory,
                              size_t bytes, lpgemm_weights_t *stack) {
  lpgemm_handle_t handle = l->machine->handle;
  BENCH_LPGEMM(lpgemm_weights_create(handle, desc, memory, bytes, stack));
  for (int64_t e = 0; e < desc->experts; e++) {
    lpgemm_weight_source_t s = from->source;
    s.codes = (const uint8_t *)s.codes + e * desc->k;
    s.codes_bytes = (size_t)(desc->n * desc->k);
    const struct {
      const void **array;
      size_t *bytes;
    } parts[BENCH_PARTS] = {{NULL, NULL},
                            {&s.scales, &s.scales_bytes},
                            {&s.zeros, &s.zeros_bytes},
                            {&s.super_scales, &s.super_scales_bytes},
                            {&s.super_zeros, &s.super_zeros_bytes}};
    for (int i = 1; i < BENCH_PARTS; i++) {
      if (!*parts[i].array) continue;
      *parts[i].array = (const uint8_t *)*parts[i].array + (size_t)e * from->row_bytes[i];
      *parts[i].bytes = (size_t)desc->n * from->row_bytes[i];
    }
    BENCH_LPGEMM(lpgemm_pack_rows(handle, *stack, e, 0, desc->n, &s));
  }
  BENCH_LPGEMM(lpgemm_weights_finish(handle, *stack));
  return NULL;
}

/* About as large as weights of so many columns are in models: h and Y stay far from the largest fp16. */
static float scale_of(const lpgemm_weight_desc_t *desc) {
  return (desc->global_scale == 0.0f ? 1.0f : desc->global_scale) * exp2f(1.0f - floorf(log2f((float)desc->k) / 2));
}

static bench_error make_stacks(layer *l) {
  const bench_machine *machine = l->machine;
  lpgemm_weight_desc_t up = l->c->desc, down = up;
  down.n = up.k;
  down.k = up.n / 2;
  up.global_scale = scale_of(&up);
  down.global_scale = scale_of(&down);
  l->up_desc = up;
  l->down_desc = down;
  l->up_desc.experts = l->down_desc.experts = l->c->experts;
  l->up_desc.rows = LPGEMM_ROWS_PAIRED;
  up.n += l->c->experts;
  down.n += l->c->experts;
  BENCH_TRY(bench_draw_weights(machine, &up, &l->up));
  BENCH_TRY(bench_draw_weights(machine, &down, &l->down));
  size_t up_bytes, down_bytes;
  BENCH_LPGEMM(lpgemm_packed_size(&l->up_desc, &up_bytes));
  BENCH_LPGEMM(lpgemm_packed_size(&l->down_desc, &down_bytes));
  const int64_t copies = (int64_t)(machine->rotate_bytes / (up_bytes + down_bytes)) + 1;
  for (l->copies = 0; l->copies < copies && l->copies < MOST_COPIES; l->copies++) {
    const int64_t i = l->copies;
    BENCH_TRY(machine->allocate(up_bytes, &l->up_memory[i]));
    BENCH_TRY(machine->allocate(down_bytes, &l->down_memory[i]));
    BENCH_TRY(pack_stack(l, &l->up, &l->up_desc, l->up_memory[i], up_bytes, &l->up_stack[i]));
    BENCH_TRY(pack_stack(l, &l->down, &l->down_desc, l->down_memory[i], down_bytes, &l->down_stack[i]));
  }
  return NULL;
}

/* ---- launches ---- */

static bench_error launch(void *context, int64_t i) {
  layer *l = context;
  l->route.expert = (const int32_t *)l->expert_there + i % ROUTINGS * l->c->m * l->c->top_k;
  l->args.up = l->up_stack[i % l->copies];
  l->args.down = l->down_stack[i % l->copies];
  BENCH_LPGEMM(lpgemm_run_experts(l->machine->handle, &l->args));
  return NULL;
}

static bench_error bind_workspace(layer *l) {
  size_t bytes;
  BENCH_LPGEMM(lpgemm_experts_workspace(l->machine->handle, l->c->m, &l->args, &bytes));
  if (bytes > l->workspace_bytes) {
    l->machine->release(l->workspace);
    l->workspace = NULL;
    BENCH_TRY(l->machine->allocate(bytes, &l->workspace));
    l->workspace_bytes = bytes;
  }
  BENCH_LPGEMM(lpgemm_set_workspace(l->machine->handle, l->workspace, bytes));
  return NULL;
}

/* Runs launch 0 into y, which is poisoned before. kernel: of both products, NULL is the automatic choice. */
static bench_error run_into(layer *l, const char *kernel, void *y) {
  l->args.up_kernel = l->args.down_kernel = kernel;
  l->args.y = y;
  BENCH_TRY(bind_workspace(l));
  BENCH_TRY(l->machine->poison(y, l->y_bytes));
  BENCH_TRY(launch(l, 0));
  return l->machine->synchronize();
}

static bench_error make_operands(layer *l) {
  const bench_machine *machine = l->machine;
  const bench_case *c = l->c;
  const int64_t hidden = c->desc.k, slots = c->m * c->top_k;
  l->y_bytes = (size_t)(c->m * hidden * ref_bytes(c->y_type));
  BENCH_TRY(machine->allocate((size_t)(ROUTINGS * slots) * sizeof(int32_t), &l->expert_there));
  BENCH_TRY(machine->allocate((size_t)slots * sizeof(float), &l->weight_there));
  BENCH_TRY(machine->allocate((size_t)(c->m * hidden * ref_bytes(c->x_type)), &l->x));
  BENCH_TRY(machine->allocate(l->y_bytes, &l->y));
  BENCH_TRY(machine->allocate(l->y_bytes, &l->other_y));
  BENCH_TRY(machine->copy(l->expert_there, l->chosen, (size_t)(ROUTINGS * slots) * sizeof(int32_t)));
  BENCH_TRY(machine->copy(l->weight_there, l->weight, (size_t)slots * sizeof(float)));
  BENCH_TRY(machine->fill(c->x_type, l->x, c->m * hidden, X_SEED));
  l->route = (lpgemm_route_args_t){.size = sizeof l->route, .m = c->m};
  l->route.top_k = c->top_k;
  l->route.experts = c->experts;
  l->route.expert = l->expert_there;
  l->route.weight = l->weight_there;
  l->args = (lpgemm_experts_args_t){.size = sizeof l->args, .up = l->up_stack[0], .down = l->down_stack[0]};
  l->args.route = &l->route;
  l->args.x = l->x;
  l->args.x_type = c->x_type;
  l->args.y = l->y;
  l->args.y_type = c->y_type;
  l->args.activation = LPGEMM_ACTIVATION_SILU;
  l->args.batch_invariant = c->batch_invariant;
  return NULL;
}

/* ---- check ---- */

/* One expert's h for a token in fp64, with a bound of what rounding makes of it, and products of down with it. */
typedef struct sample {
  const layer *l;
  int64_t expert, hidden, inter;
  double eps;
  const double *x;
  double *h, *h_bound;     /* [inter] */
  double *out, *out_bound; /* [SAMPLES] */
} sample;

static void dot(const double *a, const double *b, int64_t k, double *sum, double *magnitudes) {
  *sum = *magnitudes = 0;
  for (int64_t i = 0; i < k; i++) {
    *sum += a[i] * b[i];
    *magnitudes += fabs(a[i] * b[i]);
  }
}

/* A product has its weights rounded to X's type, the sum in fp32 (far below that), and h is rounded. */
static void compute_h(void *context, int64_t first, int64_t end) {
  const sample *s = context;
  uint8_t *codes = malloc((size_t)s->hidden);
  double *row = malloc((size_t)s->hidden * sizeof *row);
  for (int64_t i = first; codes && row && i < end; i++) {
    double gate, up, gate_sum, up_sum;
    bench_weight_row(&s->l->up, s->expert + i, codes, row);
    dot(row, s->x, s->hidden, &gate, &gate_sum);
    bench_weight_row(&s->l->up, s->expert + s->inter + i, codes, row);
    dot(row, s->x, s->hidden, &up, &up_sum);
    const double active = gate / (1 + exp(-gate)), gate_bound = 2 * s->eps * gate_sum, up_bound = 2 * s->eps * up_sum;
    s->h[i] = active * up; /* the slope of SILU is at most 1.1 */
    s->h_bound[i] = 1.1 * gate_bound * (fabs(up) + up_bound) + fabs(active) * up_bound + s->eps * fabs(s->h[i]);
  }
  free(codes);
  free(row);
}

static int64_t sampled_column(const sample *s, int64_t i) { return i * (s->hidden - 1) / (SAMPLES - 1); }

static void compute_outputs(void *context, int64_t first, int64_t end) {
  const sample *s = context;
  uint8_t *codes = malloc((size_t)s->inter);
  double *row = malloc((size_t)s->inter * sizeof *row);
  for (int64_t i = first; codes && row && i < end; i++) {
    double magnitudes;
    bench_weight_row(&s->l->down, s->expert + sampled_column(s, i), codes, row);
    dot(row, s->h, s->inter, &s->out[i], &magnitudes);
    s->out_bound[i] = 2 * s->eps * magnitudes + s->eps * fabs(s->out[i]);
    for (int64_t j = 0; j < s->inter; j++) s->out_bound[i] += fabs(row[j]) * s->h_bound[j];
  }
  free(codes);
  free(row);
}

/* The token in the middle. */
static bench_error check_token(const layer *l, const void *host_x, const void *host_y, double *memory) {
  const bench_case *c = l->c;
  const int64_t token = c->m / 2, hidden = c->desc.k, inter = c->desc.n / 2;
  double *x = memory, *h = x + hidden, *h_bound = h + inter, *out = h_bound + inter, *bound = out + SAMPLES;
  double *sum = bound + SAMPLES, *sum_bound = sum + SAMPLES;
  sample s = {l, 0, hidden, inter, ldexp(1, c->x_type == LPGEMM_BF16 ? -8 : -11), x, h, h_bound, out, bound};
  for (int64_t k = 0; k < hidden; k++) x[k] = ref_load(c->x_type, host_x, token * hidden + k);
  for (int i = 0; i < 2 * SAMPLES; i++) sum[i] = 0;
  for (int j = 0; j < c->top_k; j++) {
    const double weight = (double)l->weight[token * c->top_k + j];
    s.expert = l->chosen[token * c->top_k + j];
    bench_parallel(inter, compute_h, &s);
    bench_parallel(SAMPLES, compute_outputs, &s);
    for (int i = 0; i < SAMPLES; i++) {
      sum[i] += weight * out[i];
      sum_bound[i] += fabs(weight) * bound[i];
    }
  }
  for (int i = 0; i < SAMPLES; i++) {
    const double y = ref_load(c->y_type, host_y, token * hidden + sampled_column(&s, i));
    const double most = sum_bound[i] + s.eps * fabs(sum[i]);
    BENCH_CHECK(fabs(y - sum[i]) <= most, "output %lld of token %lld is %g, not %g within %g",
                (long long)sampled_column(&s, i), (long long)token, y, sum[i], most);
  }
  return NULL;
}

/* The same by another kernel: where both round in the same places and are right, the difference is one of roundings, of
 * weights (twice), h, partial rows and Y, each by at most eps and in both. */
static bench_error check_all(const layer *l, const void *y, const void *other, double *difference) {
  const bench_case *c = l->c;
  const double eps = ldexp(1, c->y_type == LPGEMM_BF16 ? -8 : -11);
  double sum = 0, all = 0;
  for (int64_t i = 0; i < c->m * c->desc.k; i++) {
    const double a = ref_load(c->y_type, y, i), b = ref_load(c->y_type, other, i);
    BENCH_CHECK(isfinite(a) && isfinite(b), "output %lld is %g, and %g by the slow kernel", (long long)i, a, b);
    sum += (a - b) * (a - b);
    all += b * b;
  }
  *difference = all > 0 ? sqrt(sum / all) : 0;
  BENCH_CHECK(sum <= 100 * eps * eps * all, "the outputs differ from the slow kernel's by %g of them", *difference);
  return NULL;
}

static bench_error check(layer *l, bench_result *r) {
  const bench_case *c = l->c;
  char slow[64];
  const size_t x_bytes = (size_t)(c->m * c->desc.k * ref_bytes(c->x_type));
  const size_t doubles = (size_t)(c->desc.k + c->desc.n + 4 * SAMPLES);
  void *x = malloc(x_bytes), *y = malloc(l->y_bytes), *other = malloc(l->y_bytes);
  double *memory = malloc(doubles * sizeof *memory);
  bench_error error = x && y && other && memory ? NULL : bench_fail("out of memory");
  snprintf(slow, sizeof slow, "%s.w%d.any.64x64.sm80", l->machine->reference, lpgemm_dtype_bits(c->desc.type));
  const int is_cuda = l->machine->backend == LPGEMM_BACKEND_CUDA;
  if (!error) error = run_into(l, is_cuda ? slow : "reference.any.any.1x1.cpu", l->other_y);
  if (!error) error = run_into(l, NULL, l->y);
  if (!error) error = l->machine->copy(x, l->x, x_bytes);
  if (!error) error = l->machine->copy(y, l->y, l->y_bytes);
  if (!error) error = l->machine->copy(other, l->other_y, l->y_bytes);
  if (!error) error = check_token(l, x, y, memory);
  if (!error) error = check_all(l, y, other, &r->rms_error);
  snprintf(r->checked, sizeof r->checked, "a token by fp64, all by %s", l->machine->reference);
  free(x);
  free(y);
  free(other);
  free(memory);
  return error;
}

/* ---- the case ---- */

/* The bytes of named experts, X and Y once; and the products. */
static bench_error set_limit(const layer *l, bench_result *r) {
  const bench_case *c = l->c;
  size_t up, down;
  BENCH_LPGEMM(lpgemm_packed_size(&l->up_desc, &up));
  BENCH_LPGEMM(lpgemm_packed_size(&l->down_desc, &down));
  const double slots = (double)c->m * c->top_k, hidden = (double)c->desc.k, inter = (double)c->desc.n / 2;
  r->bytes = r->named * (double)(up + down) / c->experts +
             (double)c->m * hidden * (double)(ref_bytes(c->x_type) + ref_bytes(c->y_type));
  const double tflops = lpgemm_dtype_bits(c->x_type) > 8 ? 900 : 1700;
  r->limit_us = fmax(1.3 + r->bytes / l->machine->read_gbps * 1e-3, 1.5 + 6 * slots * inter * hidden / tflops * 1e-6);
  return NULL;
}

static bench_error run(layer *l, bench_result *r) {
  char text[1024];
  BENCH_TRY(draw_routings(l, r));
  const double start = bench_now();
  BENCH_TRY(make_stacks(l));
  BENCH_TRY(make_operands(l));
  r->spent.weights = bench_now() - start;
  BENCH_TRY(set_limit(l, r));
  BENCH_TRY(bind_workspace(l));
  BENCH_LPGEMM(lpgemm_explain_experts(l->machine->handle, &l->args, text, sizeof text));
  for (char *at = text; (at = strchr(at, '\n'));) *at = ';';
  const char *products = strstr(text, "up: "); /* their kernels; the layer's sizes stand in front */
  snprintf(r->plan, sizeof r->plan, "%.255s", products ? products : text);
  snprintf(r->kernel, sizeof r->kernel, "layer");
  BENCH_TRY(check(l, r));
  r->spent.check = bench_now() - start - r->spent.weights;
  return l->machine->time(launch, l, ROUTINGS, &r->time);
}

bench_error bench_run_experts(const bench_machine *machine, const bench_case *c, bench_result *r) {
  layer l = {.machine = machine, .c = c};
  bench_error error = run(&l, r);
  lpgemm_set_workspace(machine->handle, NULL, 0);
  for (int i = 0; i < MOST_COPIES; i++) {
    lpgemm_weights_destroy(l.up_stack[i]);
    lpgemm_weights_destroy(l.down_stack[i]);
    machine->release(l.up_memory[i]);
    machine->release(l.down_memory[i]);
  }
  bench_free_weights(machine, &l.up);
  bench_free_weights(machine, &l.down);
  void *memory[] = {l.expert_there, l.weight_there, l.x, l.y, l.other_y, l.workspace};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) machine->release(memory[i]);
  free(l.chosen);
  free(l.weight);
  return error;
}
