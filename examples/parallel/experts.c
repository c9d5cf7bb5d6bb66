/* A layer of experts on several ranks. Either each rank has its part of every expert, cut as the FFN of a block is, or
 * it has some experts whole. Every rank routes all tokens; what it has not is left out, and the sum over ranks has it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

const char *const cut_names[CUTS] = {"tensor parallel", "expert parallel"};

typedef struct layer {
  rank *r;
  block part;                /* as which rank of how many it takes its part of an expert */
  lpgemm_weights_t up, down; /* stacks of `count` experts, from `first` on */
  int32_t first, count;
  int64_t m;
  void *expert, *weight; /* [most rows][top_k], of the backend */
  void *x, *y, *workspace;
  const float *tokens;
  float *zeros;
} layer;

/* ---- the router's part: the same on every rank ---- */

/* Different experts for a token. The fourth has a place that is left out, as tokens have that only fill a graph. */
static void draw_experts(const options *o, int32_t *expert, float *weight) {
  int64_t slots = most_rows(o) * o->top_k;
  float *number = get_memory((size_t)slots * sizeof *number);
  random_numbers(number, slots, 0.0f, (float)o->experts, 31);
  random_numbers(weight, slots, 0.1f, 0.9f, 32);
  for (int64_t i = 0; i < slots; i++) {
    int64_t token = i / o->top_k * o->top_k;
    expert[i] = (int32_t)number[i] % o->experts;
    for (int64_t j = token; j < i; j++) { /* the next one that the token has not named: places before are few */
      if (expert[j] != expert[i]) continue;
      expert[i] = (expert[i] + 1) % o->experts;
      j = token - 1;
    }
  }
  if (most_rows(o) > 3) expert[3 * o->top_k] = -1;
  free(number);
}

/* ---- weights ---- */

enum { GATE, UP, DOWN };

static matrix draw_matrix(const layer *l, int32_t expert, int which) {
  const options *o = l->r->job->o;
  int64_t n = which == DOWN ? o->shape.hidden : o->inter, k = which == DOWN ? o->inter : o->shape.hidden;
  return random_matrix(&l->r->b, n, k, o->bits, 1000 + 3 * (uint64_t)expert + (uint64_t)which);
}

/* Experts are dealt out evenly, the first ranks have one more. A rank without any has one that no index names. */
static void deal_experts(layer *l, int index) {
  const job *j = l->r->job;
  int32_t each = j->o->experts / j->ranks, more = j->o->experts % j->ranks;
  l->count = each + (index < more);
  l->first = each * index + (index < more ? index : more);
  if (l->count == 0) l->count = 1, l->first = j->o->experts;
}

static void load_experts(layer *l) {
  const options *o = l->r->job->o;
  int64_t hidden = o->shape.hidden, first;
  lpgemm_shard_t rows = shard_of(&l->part, LPGEMM_SHARD_ROWS, GROUP);
  lpgemm_shard_t columns = shard_of(&l->part, LPGEMM_SHARD_COLUMNS, GROUP); /* cut where gate and up are */
  lpgemm_weight_desc_t whole = describe(o->inter, hidden, o->bits), half = {.size = sizeof half};
  TRY(lpgemm_shard_desc(&whole, &rows, &half, &first));
  lpgemm_weight_desc_t up = describe(2 * half.n, hidden, o->bits), down = describe(hidden, half.n, o->bits);
  up.rows = LPGEMM_ROWS_PAIRED;
  up.experts = down.experts = l->count;
  lpgemm_handle_t handle = l->r->b.handle;
  TRY(lpgemm_weights_create(handle, &up, NULL, 0, &l->up));
  TRY(lpgemm_weights_create(handle, &down, NULL, 0, &l->down));
  for (int32_t e = 0; e < l->count; e++) {
    int32_t expert = (l->first + e) % o->experts;
    matrix gate = draw_matrix(l, expert, GATE), other = draw_matrix(l, expert, UP), out = draw_matrix(l, expert, DOWN);
    pack_part(&l->part, l->up, e, 0, half.n, &gate, &rows);
    pack_part(&l->part, l->up, e, half.n, half.n, &other, &rows);
    pack_part(&l->part, l->down, e, 0, hidden, &out, &columns);
    drop_matrix(&gate);
    drop_matrix(&other);
    drop_matrix(&out);
  }
  TRY(lpgemm_weights_finish(handle, l->up));
  TRY(lpgemm_weights_finish(handle, l->down));
}

/* ---- running ---- */

static lpgemm_route_args_t route_of(const layer *l) {
  lpgemm_route_args_t route = {.size = sizeof route, .m = l->m, .top_k = l->r->job->o->top_k};
  route.experts = l->count;
  route.first_expert = l->first;
  route.expert = l->expert;
  route.weight = l->weight;
  return route;
}

static lpgemm_experts_args_t args_of(const layer *l, const lpgemm_route_args_t *route) {
  lpgemm_dtype_t type = l->r->b.on->type;
  lpgemm_experts_args_t args = {.size = sizeof args, .up = l->up, .down = l->down, .route = route};
  args.x = l->x;
  args.x_type = type;
  args.y = l->y;
  args.y_type = type;
  args.activation = LPGEMM_ACTIVATION_SILU;
  return args;
}

static void run_alone(void *context) { /* without the sum */
  const layer *l = context;
  lpgemm_route_args_t route = route_of(l);
  lpgemm_experts_args_t args = args_of(l, &route);
  TRY(lpgemm_run_experts(l->r->b.handle, &args));
}

static void add_up(void *context) {
  const layer *l = context;
  const block *b = &l->r->b;
  if (b->reduce) b->reduce(b, l->y, l->m * l->r->job->o->shape.hidden, b->on->type);
}

static void run_layer(void *context) {
  run_alone(context);
  add_up(context);
}

static void start_with_tokens(void *context) {
  const layer *l = context;
  l->r->b.on->upload(l->x, l->tokens, l->m * l->r->job->o->shape.hidden);
}

static void start_with_zeros(void *context) {
  const layer *l = context;
  l->r->b.on->upload(l->y, l->zeros, l->m * l->r->job->o->shape.hidden);
}

/* ---- one rank on the CPU: against fp64 ---- */

/* y[row] += weight * down(silu(gate x) * (up x)), for the rows that name the expert. */
static void add_expert(const layer *l, int32_t e, const int32_t *expert, const float *weight, int64_t rows, double *y) {
  const options *o = l->r->job->o;
  int64_t hidden = o->shape.hidden, inter = o->inter;
  matrix of[3];
  double *w[3], *h = get_memory((size_t)inter * sizeof *h);
  for (int i = 0; i < 3; i++) {
    of[i] = draw_matrix(l, e, i);
    w[i] = get_memory((size_t)(inter * hidden) * sizeof *w[i]);
    for (int64_t at = 0; at < inter * hidden; at++) w[i][at] = weight_of(&of[i], at / of[i].desc.k, at % of[i].desc.k);
    drop_matrix(&of[i]);
  }
  for (int64_t slot = 0; slot < rows * o->top_k; slot++) {
    if (expert[slot] != e) continue;
    const float *x = l->tokens + slot / o->top_k * hidden;
    double *out = y + slot / o->top_k * hidden;
    for (int64_t i = 0; i < inter; i++) {
      double gate = 0.0, up = 0.0;
      for (int64_t c = 0; c < hidden; c++) gate += (double)x[c] * w[GATE][i * hidden + c];
      for (int64_t c = 0; c < hidden; c++) up += (double)x[c] * w[UP][i * hidden + c];
      h[i] = gate / (1.0 + exp(-gate)) * up;
    }
    for (int64_t n = 0; n < hidden; n++) {
      double sum = 0.0;
      for (int64_t i = 0; i < inter; i++) sum += h[i] * w[DOWN][n * inter + i];
      out[n] += (double)weight[slot] * sum;
    }
  }
  for (int i = 0; i < 3; i++) free(w[i]);
  free(h);
}

static double against_fp64(const layer *l, const int32_t *expert, const float *weight, const float *got) {
  const options *o = l->r->job->o;
  int64_t rows = o->rows[0], numbers = rows * o->shape.hidden;
  double *y = calloc((size_t)numbers, sizeof *y);
  float *want = get_memory((size_t)numbers * sizeof *want);
  if (!y) fail("no memory for tokens");
  for (int32_t e = 0; e < o->experts; e++) add_expert(l, e, expert, weight, rows, y);
  for (int64_t i = 0; i < numbers; i++) want[i] = (float)y[i];
  double off = relative_difference(got, want, numbers);
  double bound = experts_bound(o, l->r->b.on->type, 1);
  if (!(off <= bound)) fail("experts differ from fp64 by %.1e, rounding explains %.1e", off, bound);
  free(y);
  free(want);
  return off;
}

/* The words of common.c's derivation: gate and up l2 each, which SwiGLU counts both, and r2 for h; down's rows l2; the
 * sum of experts r2. Of several ranks each rounds its sum, about as much as one alone would, and ranks - 1 additions
 * round again. Twice for two layers, and 3 for every `about`. */
double experts_bound(const options *o, lpgemm_dtype_t type, int ranks) {
  double u = type == LPGEMM_F16 ? 0x1p-11 : 0x1p-24, r2 = u * u / 3.0;
  double l2 = 2.0 * r2 + fmax((double)o->inter, (double)o->shape.hidden) / 6.0 * 0x1p-48;
  return 3.0 * sqrt(2.0 * (3.0 * l2 + 2.0 * r2) + ranks * r2);
}

/* ---- a layer, cut in one way ---- */

static void prepare(layer *l) {
  const options *o = l->r->job->o;
  size_t bytes;
  l->m = most_rows(o);
  lpgemm_route_args_t route = route_of(l);
  lpgemm_experts_args_t args = args_of(l, &route);
  TRY(lpgemm_experts_workspace(l->r->b.handle, most_rows(o), &args, &bytes));
  l->workspace = l->r->b.on->allocate(bytes > 0 ? bytes : 1);
  TRY(lpgemm_set_workspace(l->r->b.handle, l->workspace, bytes));
}

static void time_layer(layer *l, cut how) {
  const engine *e = l->r->engine;
  const options *o = l->r->job->o;
  for (int i = 0; i < o->row_counts; i++) {
    timing *time = &l->r->job->report[l->r->index].expert_time[how][i];
    int in_graph = o->rows[i] < MOST_ROWS_IN_GRAPH;
    l->m = o->rows[i];
    time->block = e->time(l->r, run_layer, l, start_with_tokens, in_graph);
    time->products = e->time(l->r, run_alone, l, start_with_tokens, in_graph);
    if (l->r->b.reduce) time->sums = e->time(l->r, add_up, l, start_with_zeros, in_graph);
  }
}

void run_experts(rank *r, cut how, const float *tokens, float *out) {
  const options *o = r->job->o;
  const machine *on = r->b.on;
  int64_t hidden = o->shape.hidden, slots = most_rows(o) * o->top_k;
  int32_t *expert = get_memory((size_t)slots * sizeof *expert);
  float *weight = get_memory((size_t)slots * sizeof *weight);
  layer l = {.r = r, .part = r->b, .first = 0, .count = o->experts, .tokens = tokens};
  l.zeros = calloc((size_t)(most_rows(o) * hidden), sizeof *l.zeros);
  if (!l.zeros) fail("no memory for tokens");
  l.part.rank = (r->index + goes_wrong(r, FAIL_EXPERTS)) % r->job->ranks;
  if (how == CUT_EXPERTS) {
    deal_experts(&l, l.part.rank);
    l.part.rank = 0, l.part.ranks = 1;
  }
  draw_experts(o, expert, weight);
  l.expert = on->allocate((size_t)slots * sizeof *expert);
  l.weight = on->allocate((size_t)slots * sizeof *weight);
  r->engine->write(l.expert, expert, (size_t)slots * sizeof *expert);
  r->engine->write(l.weight, weight, (size_t)slots * sizeof *weight);
  l.x = on->allocate((size_t)(most_rows(o) * hidden) * on->bytes);
  l.y = on->allocate((size_t)(most_rows(o) * hidden) * on->bytes);
  load_experts(&l);
  prepare(&l);

  const float *first = out;
  for (int i = 0; i < o->row_counts; i++) {
    l.m = o->rows[i];
    start_with_tokens(&l);
    fail_here(r, FAIL_EXPERTS);
    run_layer(&l);
    on->download(out, l.y, l.m * hidden);
    out += l.m * hidden;
  }
  double work = (double)(o->rows[0] * o->top_k * o->inter * hidden);
  if (r->job->writes_exact && o->backend == LPGEMM_BACKEND_CPU && work < 1e9) {
    r->job->report[r->index].experts_fp64 = against_fp64(&l, expert, weight, first);
  }
  if (r->job->timed) time_layer(&l, how);

  TRY(lpgemm_set_workspace(r->b.handle, NULL, 0));
  TRY(lpgemm_weights_destroy(l.up));
  TRY(lpgemm_weights_destroy(l.down));
  void *memory[] = {l.expert, l.weight, l.x, l.y, l.workspace};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) on->release(memory[i]);
  free(l.zeros);
  free(expert);
  free(weight);
}
