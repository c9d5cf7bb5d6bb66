/* The CPU kernel for X in bytes, its own, those that FAST rounds to or the digits of EXACT: products of bytes, one
 * source compiled for several instruction sets,
 *
 *     -DLPG_DOT=base
 *     -DLPG_DOT=avx2    -mavx2 -mfma -mf16c                                  VPMADDUBSW
 *     -DLPG_DOT=avxvnni the same, -mavxvnni                                  VPDPBUSD of 256 bits
 *     -DLPG_DOT=vbmi    those of avx512 (blocked.c), -mavx512vbmi -mavx512vnni -mgfni   VPDPBUSD
 *     -DLPG_DOT=dotprod -march=armv8.2-a+dotprod                             SDOT
 *
 * all with -O3 -ffp-contract=fast. A task takes some tiles of 16 rows of W, a block of them at a time. For each chunk
 * of 256 columns it brings a tile's codes into the form of a panel of bytes and multiplies that by all rows of X. Sums
 * of a unit, 32 columns or 16 where groups are no multiples of 32, are exact integers; the scales of W and X go on them
 * in fp32.
 *
 * A row of X alone needs no panel (dot_row.h), and weights of several digits have a panel for each.
 *
 * The order of the operations for an element of Y does not depend on how Y is cut: results are batch invariant, but for
 * that row, which then has panels where the call asks for it. */
#include <math.h>

#include "cpu.h"
#include "dot_rows.h"
#include "epilogue_rows.h"

enum {
  MOST_ROWS = 256, /* of X at a time */
  BLOCK_TILES = 4,
  ROUNDS = 5,     /* of tasks, one for each thread: ever smaller, so that nobody waits long for the last one */
  FEW_LINES = 16, /* of X: so few are read again for every tile */
  MOST_UNITS = LPG_DOT_K / LPG_STEP_K
};

typedef struct scratch {
  _Alignas(64) uint8_t panel[LPG_DOT_PANEL];
  uint32_t words[LPG_MAX_WORDS];
  dot_group group[MOST_UNITS];
  _Alignas(64) dot_values values[LPG_SECTIONS];
  _Alignas(64) dot_codes codes[2]; /* of scales, and of minima, where bytes are multiplied by the former */
  const dot_group *of_unit[MOST_UNITS];
  _Alignas(64) float sums[BLOCK_TILES][MOST_ROWS][LPG_TILE_ROWS];
  double kept[BLOCK_TILES][MOST_ROWS][LPG_TILE_ROWS]; /* products that fp32 may not hold, with all factors of W */
  double row[LPG_DOT_K];
  float x[LPG_DOT_K];
  dot_row met;
  const uint8_t *end; /* of the task's codes */
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* ---- what fp32 may not hold ---- */

static double factor_of(const job *j, int64_t row) { return j->row_scales ? (double)j->row_scales[row] : 1.0; }

/* One row of X by a tile over a chunk, in fp64. */
static void multiply_fp64(const job *j, int64_t m, int64_t row_tile, int64_t k, double *sums, scratch *s) {
  const lpg_call *call = &j->call;
  const int64_t left = j->from.packed->desc.k - k, columns = left < LPG_DOT_K ? left : LPG_DOT_K;
  to_floats(call->problem.x_type, call->x, (j->first + m) * call->ldx + k, columns, j->from.x_value, s->x);
  for (int slot = 0; slot < LPG_TILE_ROWS; slot++) {
    const int64_t row = row_tile * LPG_TILE_ROWS + lpg_slot_row(slot);
    lpg_weight_row(j->from.packed, call->section, row, k, columns, (float)factor_of(j, row), s->row);
    for (int64_t i = 0; i < columns; i++) sums[slot] += (double)s->x[i] * s->row[i];
  }
}

/* ---- what the digits of X do not hold ---- */

/* sums += x times the weights whose bytes are at a place of a chunk. */
static void add_product(const job *j, float x, int place, const operands *o, float *sums) {
  const dot_group *g = o->group[place / j->unit];
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    const vuint quad = (vuint)load_bytes(o->panel + place / 4 * LPG_DOT_QUAD + p * 4 * V);
    vint byte = (vint)(quad >> (uint32_t)(place % 4 * 8) & 255u);
    if (j->x.sums == SUMS) byte += load_bytes((const uint8_t *)(g->less + p * V)) << 16 >> 16;
    if (j->x.sums == SUMS_TIMES_ZERO) byte += j->x.less;
    vfloat w = __builtin_convertvector(byte, vfloat) * load(g->scale + p * V);
    if (o->has_rest) w += load(g->rest + p * V);
    store(sums + p * V, load(sums + p * V) + w * x);
  }
}

/* sums += those elements of a row of X, by a chunk. */
static void multiply_apart(const job *j, int64_t m, int64_t k, const operands *o, float *sums) {
  const lpg_call *call = &j->call;
  const uint32_t *some = j->x.some + m * j->x.blocks + k / LPG_DOT_BLOCK;
  for (int first = 0; first < o->units * j->unit; first += LPG_DOT_BLOCK) {
    for (uint32_t left = some[first / LPG_DOT_BLOCK]; left != 0; left &= left - 1) {
      const int place = __builtin_ctz(left);
      const int64_t at = (j->first + m) * call->ldx + k + first + column_of_block(place);
      add_product(j, lpg_load(call->problem.x_type, call->x, at), first + place, o, sums);
    }
  }
}

/* ---- a task ---- */

/* Groups of the units of a chunk of a tile; 0: fp32 may not hold them. */
static int load_groups(const job *j, const dot_pattern *p, int64_t row_tile, int64_t k, int units, scratch *s) {
  const lpg_packed *packed = j->from.packed;
  const dot_sections from = dot_sections_of(&j->groups, row_tile);
  const int64_t group = index_on(&packed->group, k), super = index_on(&packed->super, k);
  float(*scales)[LPG_TILE_ROWS] = s->values[LPG_SECTION_SCALES], (*zeros)[LPG_TILE_ROWS] = s->values[LPG_SECTION_ZEROS];
  float(*supers)[LPG_TILE_ROWS] = s->values[LPG_SECTION_SUPER_SCALES];
  float(*super_zeros)[LPG_TILE_ROWS] = s->values[LPG_SECTION_SUPER_ZEROS];
  if (from.scales) load_values(&j->groups, LPG_SECTION_SCALES, from.scales, group, p->groups, scales);
  if (from.supers) load_values(&j->groups, LPG_SECTION_SUPER_SCALES, from.supers, super, p->supers, supers);
  if (from.zeros) load_values(&j->groups, LPG_SECTION_ZEROS, from.zeros, group, p->groups, zeros);
  if (from.super_zeros) {
    load_values(&j->groups, LPG_SECTION_SUPER_ZEROS, from.super_zeros, super, p->supers, super_zeros);
  }
  vint bad = {0};
  for (int i = 0; i < p->groups; i++) {
    const int upper = p->super_of_group[i];
    const dot_numbers numbers = {from.scales ? scales[i] : NULL, from.supers ? supers[upper] : NULL,
                                 from.zeros ? zeros[i] : NULL, from.super_zeros ? super_zeros[upper] : NULL};
    bad |= make_dot_group(&j->groups, &numbers, &s->group[i]);
  }
  for (int i = 0; i < V; i++) {
    if (bad[i]) return 0;
  }
  for (int u = 0; u < units; u++) s->of_unit[u] = &s->group[p->group_of[u * j->unit / LPG_STEP_K]];
  return 1;
}

/* The same where bytes are multiplied by the codes of their scales. The upper scales are fp16 (limits.c): fp32 holds
 * all of them. */
static void load_folded_groups(const job *j, const dot_pattern *p, int64_t row_tile, int64_t k, int units, scratch *s) {
  const lpg_packed *packed = j->from.packed;
  const dot_sections from = dot_sections_of(&j->groups, row_tile);
  const int64_t group = index_on(&packed->group, k), super = index_on(&packed->super, k);
  float(*scales)[LPG_TILE_ROWS] = s->values[LPG_SECTION_SUPER_SCALES];
  float(*rests)[LPG_TILE_ROWS] = s->values[LPG_SECTION_SUPER_ZEROS];
  load_codes(&j->groups, LPG_SECTION_SCALES, from.scales, group, p->groups, 0x00010001u, s->codes[0]);
  load_values(&j->groups, LPG_SECTION_SUPER_SCALES, from.supers, super, p->supers, scales);
  spread_codes(p, units, s->codes[0]);
  if (from.zeros) {
    load_codes(&j->groups, LPG_SECTION_ZEROS, from.zeros, group, p->groups, 1, s->codes[1]);
    load_values(&j->groups, LPG_SECTION_SUPER_ZEROS, from.super_zeros, super, p->supers, rests);
    spread_codes(p, units, s->codes[1]);
  }
  for (int u = 0; u < units; u++) {
    const int upper = p->super_of[2 * u];
    make_folded_group(scales[upper], from.zeros ? rests[upper] : NULL,
                      (const uint32_t(*)[LPG_TILE_ROWS])s->codes[1] + 2 * u, &s->group[u]);
    s->of_unit[u] = &s->group[u];
  }
}

/* Groups of a chunk of a tile, in either way; 0: fp32 may not hold them. */
static int load_chunk_groups(const job *j, int64_t row_tile, int64_t k, int units, scratch *s) {
  dot_pattern own;
  const int has_pattern = j->has_pattern && units * j->unit == LPG_DOT_K;
  if (!has_pattern) own = find_pattern(j->from.packed, k, units * j->unit);
  const dot_pattern *pattern = has_pattern ? &j->pattern : &own;
  if (!j->groups.folds) return load_groups(j, pattern, row_tile, k, units, s);
  load_folded_groups(j, pattern, row_tile, k, units, s);
  return 1;
}

/* Codes of a row tile from a column on, one that a tile begins with: 16 codes are two bytes for each bit. */
static const uint8_t *codes_at(const job *j, int64_t row_tile, int64_t k) {
  const lpg_packed *packed = j->from.packed;
  return j->call.section[LPG_SECTION_CODES] + lpg_tile_offset(packed->bits, packed->k_tiles, row_tile, 0) +
         k * 2 * packed->bits;
}

/* digit: of weights that have several. */
static void load_panel(const job *j, int64_t row_tile, int64_t k, int columns, int digit, scratch *s) {
  const int bits = j->from.packed->bits;
  for (int i = 0; i < columns; i += lpg_tile_k(bits)) {
    const uint8_t *tile = codes_at(j, row_tile, k + i);
    const dot_change change = {j->groups.bytes.has_table ? j->groups.bytes.table[digit] : NULL,
                               j->groups.folds ? (const uint32_t(*)[LPG_TILE_ROWS])s->codes[0] + i / LPG_STEP_K : NULL};
    const uint8_t *ahead = codes_ahead(tile, s->end);
    for (int line = 0; line < lpg_tile_bytes(bits); line += 64) __builtin_prefetch(ahead + line, 0, 2);
    make_panel(bits, tile, change, s->words, s->panel + i / 4 * LPG_DOT_QUAD);
  }
}

/* From the scales of a digit to those of the next one. */
static void lower_scales(int units, scratch *s) {
  for (int u = 0; u < units; u++) {
    if (u > 0 && s->of_unit[u] == s->of_unit[u - 1]) continue;
    float *scale = s->group[s->of_unit[u] - s->group].scale;
    for (int slot = 0; slot < LPG_TILE_ROWS; slot++) scale[slot] *= 0x1p-8f;
  }
}

static int units_of_chunk(const job *j, int64_t chunk) {
  const int64_t left = j->x.columns - chunk * LPG_DOT_K;
  return (int)(left < LPG_DOT_K ? left : LPG_DOT_K) / LPG_STEP_K >> (j->unit != LPG_STEP_K);
}

static int takes_row(const job *j) {
  const int64_t bytes = dot_row_bytes(&j->x) + 64 + j->x.columns / LPG_DOT_K * (int64_t)sizeof(dot_lanes);
  if (j->call.problem.m != 1 || j->x.lines != 1 || j->call.problem.batch_invariant || bytes > LPG_SHARED_BYTES)
    return 0;
  return has_row_loop(j->from.packed->bits, &j->groups.bytes, j->groups.folds) &&
         (!j->groups.folds || has_nibbles(j->from.packed));
}

/* Behind the bytes of X; the memory has room for both. */
static void make_lanes(job *j, void *memory) {
  j->lanes = memory;
  j->strips = find_strips(j->from.packed->bits, j->unit, &j->from.packed->group,
                          lpg_slot_bytes(j->from.packed->desc.scale_type));
  j->are_plain = are_plain(&j->groups, j->unit);
  for (int64_t chunk = 0; chunk < j->x.columns / LPG_DOT_K; chunk++) {
    fill_lanes(&j->strips, j->x.bytes + chunk * LPG_DOT_K, j->x.step + chunk * (LPG_DOT_K / LPG_DOT_BLOCK),
               unit_of_digits(j->groups.bytes.digits), &j->lanes[chunk]);
    fill_starts(&j->strips, &j->x, &j->lanes[chunk]);
  }
}

/* Scales and zeros of a whole chunk of a tile for the row, and what minima leave; 0: fp32 may not hold them. */
static int load_row_groups(const job *j, const dot_sections *from, int64_t row_tile, int64_t k, float *sums,
                           scratch *s) {
  enum { UNITS = LPG_DOT_K / LPG_STEP_K };
  const dot_lanes *lanes = &j->lanes[k / LPG_DOT_K];
  const int units = j->unit == LPG_STEP_K ? UNITS : UNITS / 2;
  const operands o = {.group = s->of_unit, .sum = j->x.sum + k / j->unit, .all = j->x.all + k / j->unit};
  if (j->groups.folds || j->are_plain) {
    const dot_scales n = dot_scales_of(&j->groups, from, k);
    const float value = j->groups.bytes.step;
    const lpgemm_dtype_t type = j->from.packed->desc.scale_type;
    if (j->groups.folds) {
      fill_row_nibbles(&j->strips, &n, o.sum, j->x.step + k / LPG_DOT_BLOCK, lanes, &s->met, sums);
    } else if (type == LPGEMM_F16) {
      fill_row_scales(LPGEMM_F16, &j->strips, &n, units, o.all, lanes, value, &s->met, sums);
    } else if (type == LPGEMM_I8) {
      fill_row_scales(LPGEMM_I8, &j->strips, &n, units, o.all, lanes, value, &s->met, sums);
    } else {
      fill_row_scales(LPGEMM_UINT(6), &j->strips, &n, units, o.all, lanes, value, &s->met, sums);
    }
    return 1;
  }
  if (!load_chunk_groups(j, row_tile, k, units, s)) return 0;
  fill_row_groups(&j->strips, &j->x, lanes, s->of_unit, &s->met);
  if (!j->groups.has_rest) return 1;
  vfloat total[LPG_DOT_PARTS];
  memcpy(total, sums, sizeof total);
  for (int u = 0; u < units; u++) add_rest(j, &o, 0, u, 0, total);
  memcpy(sums, total, sizeof total);
  return 1;
}

/* The row of X by a whole chunk of a tile. */
static void multiply_row_chunk(const job *j, const dot_sections *from, int64_t row_tile, int64_t chunk, int tile,
                               scratch *s) {
  const int64_t k = chunk * LPG_DOT_K;
  if (j->x.kept[chunk] == KEPT_ALL || !load_row_groups(j, from, row_tile, k, s->sums[tile][0], s)) {
    multiply_fp64(j, 0, row_tile, k, s->kept[tile][0], s);
    return;
  }
  multiply_row(j->from.packed->bits, &j->groups.bytes, &j->strips, j->groups.folds, j->x.sums == SUMS,
               codes_at(j, row_tile, k), s->end, &j->lanes[chunk], &s->met);
}

/* All rows of X by a panel. */
static void multiply_panel(const job *j, int64_t k, operands *o, float (*sums)[LPG_TILE_ROWS]) {
  const int64_t chunk = k / LPG_DOT_K;
  for (int64_t m = 0; m < j->rows;) {
    int rows = 0; /* without those that are multiplied in fp64 */
    while (m + rows < j->rows && rows < LPG_DOT_ROWS && j->x.kept[(m + rows) * j->x.chunks + chunk] != KEPT_ALL) rows++;
    if (rows == 0) {
      m++;
      continue;
    }
    o->x = j->x.bytes + m * j->x.lines * j->x.stride + k;
    o->step = j->x.step + m * j->x.blocks + k / LPG_DOT_BLOCK;
    o->sum = j->x.sum + m * j->x.lines * j->x.units + k / j->unit;
    o->all = j->x.all + m * j->x.units + k / j->unit;
    rows = multiply(j->groups.bytes.bits, j->unit / 4, rows, j, o, &sums[m]);
    for (; rows > 0; rows--, m++) {
      if (j->x.kept[m * j->x.chunks + chunk] == KEPT_SOME) multiply_apart(j, m, k, o, sums[m]);
    }
  }
}

static void multiply_chunk(const job *j, int64_t row_tile, int64_t chunk, int tile, scratch *s) {
  const int64_t k = chunk * LPG_DOT_K;
  const int units = units_of_chunk(j, chunk);
  const int fits = load_chunk_groups(j, row_tile, k, units, s);
  operands o = {.panel = s->panel, .group = s->of_unit, .units = units, .has_rest = j->groups.has_rest};
  for (int64_t m = 0; m < j->rows; m++) {
    if (!fits || j->x.kept[m * j->x.chunks + chunk] == KEPT_ALL) multiply_fp64(j, m, row_tile, k, s->kept[tile][m], s);
  }
  for (int digit = 0; fits && digit < j->groups.bytes.digits; digit++) {
    if (digit > 0) lower_scales(units, s);
    load_panel(j, row_tile, k, units * j->unit, digit, s);
    multiply_panel(j, k, &o, s->sums[tile]);
  }
}

static void finish_tile(const job *j, int64_t row_tile, int tile, const scratch *s) {
  const int64_t first = row_tile * LPG_TILE_ROWS, left = j->from.packed->desc.n - first;
  double factor[LPG_TILE_ROWS], of_rows[LPG_TILE_ROWS];
  for (int n = 0; n < LPG_TILE_ROWS; n++) {
    factor[n] = (double)j->from.packed->desc.global_scale * factor_of(j, first + n);
  }
  for (int64_t m = 0; m < j->rows; m++) {
    for (int n = 0; n < LPG_TILE_ROWS; n++) {
      const int slot = lpg_row_slot(n);
      of_rows[n] = (double)s->sums[tile][m][slot] * factor[n] + s->kept[tile][m][slot];
    }
    lpg_epilogue_tile(&j->call, j->first + m, first, (int)(left < LPG_TILE_ROWS ? left : LPG_TILE_ROWS), of_rows);
  }
}

/* Some tiles, so many that their sums are in scratch. */
static void multiply_tiles(const job *j, int64_t first, int tiles, scratch *s) {
  const int64_t chunks = j->call.skip_product ? 0 : j->x.chunks;
  for (int64_t i = 0; i < tiles * j->rows; i++) { /* a row at a time: its size is known */
    memset(s->sums[i / j->rows][i % j->rows], 0, sizeof s->sums[0][0]);
    memset(s->kept[i / j->rows][i % j->rows], 0, sizeof s->kept[0][0]);
  }
  const int64_t whole = j->lanes && chunks > 0 ? j->x.columns / LPG_DOT_K : 0, left_chunks = chunks - whole;
  for (int i = 0; i < tiles && whole > 0; i++) {
    const dot_sections from = dot_sections_of(&j->groups, first + i);
    memset(s->met.sums, 0, sizeof s->met.sums);
    for (int64_t chunk = 0; chunk < whole; chunk++) multiply_row_chunk(j, &from, first + i, chunk, i, s);
    add_row_sums(&s->met, s->sums[i][0]);
  }
  const int is_few = j->rows * j->x.lines <= FEW_LINES; /* then W is read as it lies; of many X stays in the cache */
  for (int64_t i = 0; i < tiles * left_chunks; i++) {
    const int tile = (int)(is_few ? i / left_chunks : i % tiles);
    multiply_chunk(j, first + tile, whole + (is_few ? i % left_chunks : i / tiles), tile, s);
  }
  for (int i = 0; i < tiles; i++) finish_tile(j, first + i, i, s);
}

/* The first tile of a task: those of a round share half of what is left, those of the last one all of it. */
static int64_t first_of_task(int64_t row_tiles, int threads, int64_t task) {
  if (threads == 1) return task == 0 ? 0 : row_tiles;
  int64_t first = 0;
  for (int round = 1; first < row_tiles; round++) {
    const int64_t tiles = lpg_ceil_div(row_tiles - first, round < ROUNDS ? 2 * threads : threads);
    if (task < threads) return first + task * tiles < row_tiles ? first + task * tiles : row_tiles;
    first += threads * tiles;
    task -= threads;
  }
  return row_tiles;
}

static void run_task(void *context, int64_t index, void *memory) {
  const job *j = context;
  scratch *s = memory;
  const int64_t first = first_of_task(j->from.packed->row_tiles, j->threads, index);
  const int64_t end = first_of_task(j->from.packed->row_tiles, j->threads, index + 1);
  s->end = j->call.section[LPG_SECTION_CODES] + lpg_tile_offset(j->from.packed->bits, j->from.packed->k_tiles, end, 0);
  for (int64_t tile = first; tile < end; tile += BLOCK_TILES) {
    multiply_tiles(j, tile, end - tile < BLOCK_TILES ? (int)(end - tile) : BLOCK_TILES, s);
  }
}

/* ---- the call ---- */

static void bytes_task(void *context, int64_t index, void *unused) {
  const job *j = context;
  (void)unused;
  if (!j->call.made_x) make_bytes(&j->from, j->first + index, &j->x, index);
  if (j->x.sum) make_sums(&j->x, index);
}

#define NAME_(isa, part) lpgemm_i_cpu_dot_##isa##part
#define NAME(isa, part) NAME_(isa, part)

lpgemm_status_t NAME(LPG_DOT, )(const lpg_call *call) {
  job j = {.row_scales = call->row_scales, .call = *call};
  const lpg_packed *packed = call->problem.weights;
  const int64_t m = call->problem.m;
  const int is_byte = lpg_is_bytes(call->problem.x_type), is_rounded = call->problem.level == LPGEMM_LEVEL_FAST;
  lpg_dot_bytes bytes;
  if (m == 0 || packed->desc.n == 0 || !lpg_find_bytes(&packed->desc, is_rounded, &bytes)) return LPGEMM_SUCCESS;
  j.call.row_scales = NULL;
  fill_tables(&j.call, &j.from);
  j.groups = describe_dot_groups(&j.from, &bytes, is_rounded && !is_byte);
  const int has_small = packed->group.count > 1 && packed->group.k % LPG_DOT_BLOCK;
  j.unit = has_small && !j.groups.folds ? LPG_STEP_K : LPG_DOT_BLOCK;
  j.x = shape_of_x(packed->desc.k, j.unit, lines_of(&call->problem));
  j.x.sums = j.groups.folds ? PAIRS_OF_SUMS : j.groups.one_zero || j.groups.leaves_minimum ? SUMS_TIMES_ZERO : SUMS;
  j.has_pattern = has_pattern(&packed->group) && has_pattern(&packed->super);
  if (j.has_pattern) j.pattern = find_pattern(packed, 0, LPG_DOT_K);
  j.threads = lpgemm_i_pool_threads(call->pool);
  j.x.less = j.groups.center - (int32_t)j.groups.near;
  uint8_t *memory = lpgemm_i_pool_shared(call->pool);
  const int64_t made = call->made_x ? 0 : dot_made_bytes(&j.x);
  int64_t most = j.x.columns == 0 ? MOST_ROWS : LPG_SHARED_BYTES / (made + dot_sums_bytes(&j.x));
  if (most > MOST_ROWS) most = MOST_ROWS;
  for (; j.first < m; j.first += j.rows) {
    j.rows = m - j.first < most ? m - j.first : most;
    if (call->made_x) {
      place_made(&j.x, m, j.first, (void *)call->made_x); /* which is not written */
    } else {
      place_made(&j.x, j.rows, 0, memory);
    }
    place_sums(&j.x, j.rows, memory + j.rows * made);
    if (!call->skip_product) LPG_TRY(lpgemm_i_parallel(call->pool, j.rows, bytes_task, &j));
    if (!call->skip_product && takes_row(&j)) {
      make_lanes(&j, memory + lpg_round_up(dot_row_bytes(&j.x), 64));
    }
    LPG_TRY(lpgemm_i_parallel(call->pool, j.threads == 1 ? 1 : j.threads * ROUNDS, run_task, &j));
  }
  return LPGEMM_SUCCESS;
}

/* ---- X alone ---- */

static int32_t variant(const lpg_problem *problem) { return lines_of(problem); }

static dot_x shape_of_made(const lpg_problem *problem) {
  return shape_of_x(problem->weights->desc.k, LPG_DOT_BLOCK, lines_of(problem));
}

static size_t made_bytes(const lpg_problem *problem) {
  const dot_x x = shape_of_made(problem);
  return (size_t)(problem->m * dot_made_bytes(&x));
}

static lpgemm_status_t make_x(const lpg_call *call, void *made) {
  job j = {.call = *call, .x = shape_of_made(&call->problem)};
  fill_tables(&j.call, &j.from);
  place_made(&j.x, call->problem.m, 0, made);
  return lpgemm_i_parallel(call->pool, call->problem.m, bytes_task, &j);
}

const lpg_x_form NAME(LPG_DOT, _form) = {.bytes = made_bytes, .variant = variant, .make = make_x};
