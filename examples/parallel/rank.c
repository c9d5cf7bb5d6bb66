/* What a rank does. */
#include "parallel.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t most_rows(const options *o) { return o->rows[o->row_counts - 1]; }

int64_t output_rows(const options *o) {
  int64_t rows = STEPS;
  for (int i = 0; i < o->row_counts; i++) rows += o->rows[i];
  return rows;
}

int64_t all_rows(const options *o) { return output_rows(o) + (o->experts > 0 ? CUTS * (output_rows(o) - STEPS) : 0); }

double agree(const rank *r, double number) {
  double most = number;
  meet(); /* the last numbers have been read */
  r->job->report[r->index].agreed = number;
  meet();
  for (int i = 0; i < r->job->ranks; i++) {
    if (r->job->report[i].agreed > most) most = r->job->report[i].agreed;
  }
  return most;
}

/* Not in the first run, of one rank alone. */
static int is_chosen(const rank *r, fail_place place) {
  const options *o = r->job->o;
  return o->fail_at == place && o->fail_rank == r->index && !r->job->writes_exact;
}

void fail_here(const rank *r, fail_place place) {
  const options *o = r->job->o;
  if (!is_chosen(r, place) || o->fail_how == FAIL_WRONG) return;
  if (o->fail_how == FAIL_KILL) kill(getpid(), SIGKILL);
  while (o->fail_how == FAIL_HANG) pause();
  fail("it was told to fail");
}

/* ---- the block ---- */

int goes_wrong(const rank *r, fail_place place) { return is_chosen(r, place) && r->job->o->fail_how == FAIL_WRONG; }

static void open_block(rank *r, int exact) {
  const options *o = r->job->o;
  int other = goes_wrong(r, exact ? FAIL_OPEN : FAIL_ROWS); /* has the slices of the next rank */
  r->b.exact = exact;
  r->b.model = o->shape;
  r->b.rows = most_rows(o);
  r->b.context = (most_rows(o) + STEPS + 15) / 16 * 16;
  r->b.rank = (r->index + other) % r->job->ranks;
  r->b.ranks = r->job->ranks;
  r->b.keep_samples = !exact;
  block_open(&r->b, o->bits);
}

/* Rows of each count from the start of a sequence, then decode steps after the last of them. */
static void run_block(rank *r, const float *tokens, float *out) {
  const options *o = r->job->o;
  const block *b = &r->b;
  int64_t hidden = b->shape.hidden, most = most_rows(o);
  for (int i = 0; i < o->row_counts; i++) {
    int64_t count = o->rows[i] * hidden;
    b->on->set_position(b, 0);
    b->on->upload(b->x, tokens, count);
    block_forward(b, o->rows[i]);
    b->on->download(out, b->x, count);
    out += count;
  }
  r->engine->steps(r, tokens + most * hidden, (int32_t)most, STEPS, out);
}

static uint64_t hash_of(const float *numbers, int64_t count) { /* FNV-1a */
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

static int64_t packed_bytes(const block *b) {
  const linear *layers[LAYERS] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  int64_t bytes = 0;
  for (int i = 0; i < LAYERS; i++) {
    lpgemm_weights_info_t info = {.size = sizeof info};
    TRY(lpgemm_weights_info(layers[i]->weights, &info));
    bytes += (int64_t)info.packed_bytes;
  }
  return bytes;
}

/* The outputs of one rank, once more by sums in fp64, where that takes seconds. */
static void check_against_fp64(rank *r, const float *tokens, const float *got) {
  const options *o = r->job->o;
  block *b = &r->b;
  double products = (double)packed_bytes(b) * 8.0 / o->bits * (double)output_rows(o);
  if (products > 1e10) return;
  float *want = get_memory((size_t)(output_rows(o) * o->shape.hidden) * sizeof *want);
  b->multiply = multiply_dense;
  run_block(r, tokens, want);
  b->multiply = block_multiply;
  r->job->report[r->index].fp64 = difference(&o->shape, b->on->type, got, want, output_rows(o), 1);
  free(want);
}

void run_rank(const void *context, int index) {
  const job *j = context;
  const options *o = j->o;
  rank r = {.job = j, .index = index, .engine = &engine_cpu};
#ifdef LPG_HAVE_CUDA
  if (o->backend == LPGEMM_BACKEND_CUDA) r.engine = &engine_cuda;
#endif
  fail_here(&r, FAIL_OPEN);
  r.engine->open(&r);

  open_block(&r, 1);
  fail_here(&r, FAIL_ROWS);
  check_slices(&r);
  block_close(&r.b);

  int64_t numbers = all_rows(o) * o->shape.hidden;
  float *tokens = random_tokens(&o->shape, most_rows(o) + STEPS);
  float *out = get_memory((size_t)numbers * sizeof *out);
  open_block(&r, 0);
  check_products(&r);
  run_block(&r, tokens, out);
  j->report[index].packed_bytes = packed_bytes(&r.b);
  if (j->writes_exact && o->backend == LPGEMM_BACKEND_CPU) check_against_fp64(&r, tokens, out);
  if (j->timed) time_block(&r, tokens);

  block_close(&r.b);

  for (int how = 0; how < CUTS && o->experts > 0; how++) {
    int64_t row = output_rows(o) + how * (output_rows(o) - STEPS);
    run_experts(&r, (cut)how, tokens, out + row * o->shape.hidden);
  }
  if (goes_wrong(&r, FAIL_STEPS)) out[numbers - 1] += 1.0f;
  j->report[index].hash = hash_of(out, numbers);
  if (index == 0) memcpy(j->outputs, out, (size_t)numbers * sizeof *out);
  free(out);
  free(tokens);
  meet(); /* nobody leaves while another may still need it */
  r.engine->close(&r);
}
