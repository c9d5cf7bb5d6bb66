/* Weights as a checkpoint holds them: one code a byte and one fp16 scale for 128 weights of a row, here at random. Each
 * rank has whole matrices before it and packs its part: of a checkpoint that is mapped it would read no more than that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"

static uint64_t next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void random_numbers(float *out, int64_t count, float least, float most, uint64_t seed) {
  for (int64_t i = 0; i < count; i++) out[i] = least + (most - least) * (float)(next(&seed) >> 40) * 0x1p-24f;
}

/* fp16 numbers from a power of two to nearly twice as much: the exponent is that of `about`, the mantissa any, or 0. */
static void random_scales(uint16_t *scales, int64_t count, double about, int exact, uint64_t seed) {
  uint64_t exponent = (uint64_t)(15 + ilogb(about));
  for (int64_t i = 0; i < count; i++) scales[i] = (uint16_t)(exponent << 10 | (exact ? 0 : next(&seed) >> 54));
}

static double scale_value(uint16_t scale) { return ldexp(1024.0 + (scale & 1023), (scale >> 10) - 25); }

lpgemm_weight_desc_t describe(int64_t n, int64_t k, int bits) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = n, .k = k};
  desc.type = LPGEMM_UINT((lpgemm_dtype_t)bits);
  desc.group_k = GROUP;
  desc.scale_type = LPGEMM_F16;
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = (float)(1 << (bits - 1)); /* GPTQ's 8 and 2 */
  return desc;
}

matrix random_matrix(const block *b, int64_t n, int64_t k, int bits, uint64_t seed) {
  int64_t groups = k / GROUP;
  matrix made = {.desc = describe(n, k, bits), .source = {.size = sizeof made.source}};
  made.source.codes_bytes = (size_t)(n * k);
  made.source.scales_bytes = (size_t)(n * groups) * sizeof(uint16_t);
  made.source.codes = made.codes = get_memory(made.source.codes_bytes);
  made.source.scales = made.scales = get_memory(made.source.scales_bytes);
  for (int64_t i = 0; i < n * k; i += 8) {
    uint64_t eight = next(&seed) & 0x0101010101010101u * ((1u << bits) - 1);
    memcpy(made.codes + i, &eight, sizeof eight);
  }
  /* Codes spread like sqrt((4^bits - 1) / 12); outputs shall be about as large as inputs. */
  random_scales(made.scales, n * groups, sqrt(12.0 / ((double)(1 << 2 * bits) - 1.0) / (double)k), b->exact, seed);
  return made;
}

void drop_matrix(matrix *m) {
  free(m->codes);
  free(m->scales);
}

lpgemm_shard_t shard_of(const block *b, lpgemm_shard_by_t by, int64_t unit) {
  lpgemm_shard_t shard = {.size = sizeof shard, .by = by, .rank = b->rank, .unit = unit};
  shard.ranks = b->ranks > 0 ? b->ranks : 1;
  return shard;
}

double weight_of(const matrix *m, int64_t row, int64_t column) {
  double code = m->codes[row * m->desc.k + column];
  return (code - (double)m->desc.zero_constant) * scale_value(m->scales[row * (m->desc.k / GROUP) + column / GROUP]);
}

/* Rows first .. of a matrix, the first and the last of them among others, columns from layer->first_column on: by the
 * definition of a weight, not by what is packed. */
static void keep_samples(linear *layer, const joined *of, const matrix *m, int64_t first) {
  int64_t count = of->rows < SAMPLES ? of->rows : SAMPLES;
  for (int64_t i = 0; i < count; i++) {
    int64_t row = count > 1 ? i * (of->rows - 1) / (count - 1) : 0;
    float *out = layer->sample + layer->samples * layer->k;
    layer->sample_row[layer->samples++] = of->at + row;
    for (int64_t j = 0; j < layer->k; j++) out[j] = (float)weight_of(m, first + row, layer->first_column + j);
  }
}

void pack_part(const block *b, lpgemm_weights_t weights, int64_t expert, int64_t at, int64_t rows, const matrix *m,
               const lpgemm_shard_t *shard) {
  lpgemm_weight_source_t source = {.size = sizeof source};
  TRY(lpgemm_shard_source(&m->desc, &m->source, shard, &source));
  if (rows > 0) TRY(lpgemm_pack_rows(b->handle, weights, expert, at, rows, &source));
}

static void create(const block *b, linear *layer, int bits) {
  lpgemm_weight_desc_t desc = describe(layer->n, layer->k, bits);
  TRY(lpgemm_weights_create(b->handle, &desc, NULL, 0, &layer->weights));
  if (b->keep_samples) {
    layer->sample = get_memory((size_t)(MOST_JOINED * SAMPLES * layer->k + 1) * sizeof *layer->sample);
  }
}

void load_rows(const block *b, linear *layer, const rows_of *matrices, int count, int64_t k, int bits, uint64_t seed) {
  *layer = (linear){.k = k, .whole_k = k, .count = count};
  int64_t whole_at = 0, first[MOST_JOINED];
  for (int i = 0; i < count; i++) { /* sizes alone need no source */
    lpgemm_weight_desc_t whole = describe(matrices[i].n, k, bits), part = {.size = sizeof part};
    lpgemm_shard_t shard = shard_of(b, LPGEMM_SHARD_ROWS, matrices[i].unit);
    TRY(lpgemm_shard_desc(&whole, &shard, &part, &first[i]));
    layer->of[i] = (joined){.rows = part.n, .at = layer->n, .whole_at = whole_at + first[i]};
    layer->n += part.n;
    whole_at += whole.n;
  }
  create(b, layer, bits);
  for (int i = 0; i < count; i++) {
    matrix m = random_matrix(b, matrices[i].n, k, bits, seed + (uint64_t)i);
    lpgemm_shard_t shard = shard_of(b, LPGEMM_SHARD_ROWS, matrices[i].unit);
    const joined *of = &layer->of[i];
    pack_part(b, layer->weights, 0, of->at, of->rows, &m, &shard);
    if (b->keep_samples) keep_samples(layer, of, &m, first[i]);
    drop_matrix(&m);
  }
  TRY(lpgemm_weights_finish(b->handle, layer->weights));
}

void load_columns(const block *b, linear *layer, int64_t n, int64_t k, int64_t unit, int bits, uint64_t seed) {
  lpgemm_shard_t shard = shard_of(b, LPGEMM_SHARD_COLUMNS, unit);
  matrix m = random_matrix(b, n, k, bits, seed);
  lpgemm_weight_desc_t part = {.size = sizeof part};
  *layer = (linear){.n = n, .whole_k = k, .count = 1, .of[0].rows = n};
  TRY(lpgemm_shard_desc(&m.desc, &shard, &part, &layer->first_column));
  layer->k = part.k;
  create(b, layer, bits);
  pack_part(b, layer->weights, 0, 0, n, &m, &shard);
  if (b->keep_samples) keep_samples(layer, &layer->of[0], &m, 0);
  drop_matrix(&m);
  TRY(lpgemm_weights_finish(b->handle, layer->weights));
}

void unload(linear *layer) {
  TRY(lpgemm_weights_destroy(layer->weights));
  free(layer->sample);
}
