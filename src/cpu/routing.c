/* Mixtures of experts on the CPU: routing, rows by number, and the sum of a token's slots. */
#include "../experts/routing.h"

#include "cpu.h"

/* ---- routing ---- */

/* The expert of the stacks that a slot names, or -1. */
static int64_t expert_of(const lpg_route *r, int64_t slot) {
  const int64_t e = (int64_t)r->expert[slot] - r->first_expert;
  return e >= 0 && e < r->experts ? e : -1;
}

lpgemm_status_t lpgemm_i_route_host(lpgemm_handle_t handle, const lpg_route *r) {
  const int64_t slots = r->m * r->top_k;
  int32_t *next = r->counts; /* slots of an expert, then where its next one goes */
  (void)handle;
  memset(next, 0, (size_t)r->experts * sizeof *next);
  for (int64_t s = 0; s < slots; s++) {
    const int64_t e = expert_of(r, s);
    if (e >= 0) next[e]++;
  }
  int32_t end = 0;
  for (int64_t e = 0; e < r->experts; e++) {
    const int32_t count = next[e];
    r->offsets[e] = next[e] = end;
    end += count;
  }
  r->offsets[r->experts] = end;
  for (int64_t s = 0; s < slots; s++) {
    const int64_t e = expert_of(r, s);
    r->position[s] = e >= 0 ? next[e]++ : -1;
    if (e >= 0) r->token[r->position[s]] = (int32_t)(s / r->top_k);
  }
  for (int64_t s = end; s < slots; s++) r->token[s] = -1;
  *r->left_out = (int32_t)(slots - end);
  return LPGEMM_SUCCESS;
}

/* ---- rows by number ---- */

enum { TASK_NUMBERS = 1 << 14 }; /* some ten microseconds */

typedef struct gather_job {
  const lpg_gather *g;
  int64_t rows, at_once; /* that experts have; of a task */
} gather_job;

/* The order of the columns of the expert that has row i; *end: the first row that it has no longer. */
static const int32_t *order_of(const lpg_gather *g, int64_t i, int64_t *end) {
  int64_t e = 0, before = 0;
  *end = g->rows;
  if (!g->order) return NULL;
  for (; g->offsets && e < g->experts; e++) {
    before = lpg_offset(g->offsets[e], before, g->rows);
    *end = lpg_offset(g->offsets[e + 1], before, g->rows);
    if (i < *end) break;
  }
  return (const int32_t *)(const void *)(g->order + (uint64_t)e * g->order_stride);
}

#define COPY_IN_ORDER(type)                                                             \
  for (int64_t c = 0; c < g->k; c++) {                                                  \
    ((type *)to)[c] = order ? ((const type *)from)[order[c]] : ((const type *)from)[c]; \
  }

static void gather_row(const lpg_gather *g, int64_t i, const int32_t *order) {
  const int64_t row = g->row ? g->row[i] : i;
  const int is_there = row >= 0 && row < g->x_rows;
  const void *from = (const uint8_t *)g->x + (is_there ? row : 0) * g->ldx * g->bytes;
  void *to = (uint8_t *)g->out + i * g->ldo * g->bytes;
  if (g->out_scale) g->out_scale[i] = is_there ? g->x_scale[row] : 0.0f;
  if (!is_there) {
    memset(to, 0, (size_t)g->k * (size_t)g->bytes);
  } else if (!order) {
    memcpy(to, from, (size_t)g->k * (size_t)g->bytes);
  } else {
    switch (g->bytes) {
      case 1: COPY_IN_ORDER(uint8_t) break;
      case 2: COPY_IN_ORDER(uint16_t) break;
      default: COPY_IN_ORDER(uint32_t) break;
    }
  }
}

static void gather_task(void *context, int64_t index, void *unused) {
  const gather_job *j = context;
  (void)unused;
  const int64_t first = index * j->at_once, end = first + j->at_once < j->rows ? first + j->at_once : j->rows;
  const int32_t *order = NULL;
  for (int64_t i = first, has = first; i < end; i++) {
    if (i >= has) order = order_of(j->g, i, &has);
    gather_row(j->g, i, order);
  }
}

lpgemm_status_t lpgemm_i_gather_rows_host(lpgemm_handle_t handle, const lpg_gather *g) {
  gather_job j = {g, g->rows, lpg_ceil_div(TASK_NUMBERS, g->k + 1)};
  if (g->offsets) {
    j.rows = 0;
    for (int64_t e = 0; e <= g->experts; e++) j.rows = lpg_offset(g->offsets[e], j.rows, g->rows);
  }
  return lpgemm_i_parallel(handle->pool, lpg_ceil_div(j.rows, j.at_once), gather_task, &j);
}

/* ---- the sum of a token's slots ---- */

enum { BLOCK_N = 1024 };

/* Numbers first .. first + count - 1 of a token. */
static void combine_block(const lpg_combine *c, int64_t t, int64_t first, int64_t count) {
  float sum[BLOCK_N] = {0};
  for (int64_t j = 0; j < c->top_k; j++) {
    const int64_t slot = t * c->top_k + j, at = c->position[slot];
    if (at < 0 || at >= c->slots) continue;
    const float weight = c->weight ? c->weight[slot] : 1.0f;
    for (int64_t i = 0; i < count; i++) sum[i] += weight * lpg_load(c->y_type, c->partial, at * c->ld + first + i);
  }
  for (int64_t i = 0; i < count && c->beta != 0.0f; i++) {
    sum[i] += c->beta * lpg_load(c->y_type, c->c, t * c->ldc + first + i);
  }
  for (int64_t i = 0; i < count; i++) {
    const float v = sum[i] == sum[i] ? sum[i] : lpg_bits_f32(0x7fc00000u);
    lpg_store_f64(c->y_type, c->y, t * c->ldy + first + i, (double)v);
  }
}

static void combine_task(void *context, int64_t t, void *unused) {
  const lpg_combine *c = context;
  (void)unused;
  for (int64_t first = 0; first < c->n; first += BLOCK_N) {
    combine_block(c, t, first, c->n - first < BLOCK_N ? c->n - first : BLOCK_N);
  }
}

lpgemm_status_t lpgemm_i_combine_host(lpgemm_handle_t handle, const lpg_combine *combine) {
  lpg_combine c = *combine;
  return lpgemm_i_parallel(handle->pool, c.m, combine_task, &c);
}
