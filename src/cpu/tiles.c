/* The CPU kernel for many rows of X, on AMX: products of bf16 in tiles of 16 by 16 by 32, summed in fp32. One source,
 *
 *     -DLPG_TILES=amx    the flags of avx512 (blocked.c), -mamx-tile -mamx-bf16
 *     -DLPG_TILES=base   none: tiles in plain C, by which tests try the rest on any machine
 *
 * both with -O3 -ffp-contract=fast.
 *
 *                       256 columns         X becomes one, two or three pieces of bf16, whose sum it is, exactly; a
 *                  +-------------------+    weight less a center of its group is exact in bf16 too. So the products
 *   rows of X, bf16|  A  |             |    are exact, and scales go on the sums of each group:
 *                  +-------------------+
 *   16 rows of W,  |  B  |             |        sum of x w = scale * sum of x (value - center) + rest * sum of x
 *   pairs of bf16  +-------------------+
 *
 * with weight = (value - center) * scale + rest. The center is the integer next to the zero, or to where a minimum
 * makes 0, so that |value - center| * scale is at most twice |weight| unless that is rest alone: large activations on
 * weights that are 0 leave nothing behind.
 *
 * A task computes a block of Y as in blocked.c. The order of the operations for an element of Y does not depend on how
 * Y is cut: results are batch invariant. */
#include "cpu.h"
#include "epilogue_rows.h"
#include "tile_ops.h"
#include "unpack.h"

enum {
  CHUNK_K = 256,
  STEP_K = 32, /* columns of a tile */
  STEPS = CHUNK_K / STEP_K,
  PAIRS = STEP_K / 2,
  X_STRIDE = CHUNK_K + STEP_K, /* so that rows do not fall into the same sets of the cache; whole cache lines */
  PANEL_TILES = 2,             /* of W, and of X, that are multiplied with their sums in tiles */
  MULTIPLY_ROWS = PANEL_TILES * TILE_LINES,
  X_ROWS = 512,         /* (piece, row) pairs of X in scratch */
  MAX_BLOCK_ROWS = 256, /* rows of X of a task */
  SUMS = 8192           /* (row, tile) pairs of sums in scratch */
};

/* Scales, and what goes on the sums of X, of a group's 16 rows in slot order. */
typedef struct factors {
  float scale[LPG_TILE_ROWS], rest[LPG_TILE_ROWS];
} factors;

typedef struct scratch {
  _Alignas(64) uint16_t x[X_ROWS][X_STRIDE]; /* [piece][row] */
  uint32_t panel[PANEL_TILES][STEPS * PAIRS][LPG_TILE_ROWS];
  float products[PANEL_TILES][PANEL_TILES][TILE_LINES][LPG_TILE_ROWS]; /* of tiles of X and of W */
  float sums[SUMS][LPG_TILE_ROWS];
  float x_sums[STEPS][MAX_BLOCK_ROWS]; /* of the columns of a step */
  float row[CHUNK_K];
  uint32_t words[LPG_MAX_WORDS];
  factors factor[PANEL_TILES][STEPS]; /* of a segment */
  tile_file tiles;
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* What the tasks of a call share. */
typedef struct job {
  unpacker from;
  int pieces, zeros_differ, has_rest;
  float rest;                                  /* what the center is more than the one zero of all weights */
  int64_t block_rows, block_tiles, row_blocks; /* the block of Y of a task; a block of rows fills tiles */
  _Alignas(64) uint16_t value[256];            /* of stored codes, less the center of all weights, in bf16 */
} job;

typedef int16_t vshort __attribute__((vector_size(4 * V)));

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- X ---- */

/* Digits of 8 bits: what bf16 has. */
static int pieces_of(lpgemm_dtype_t x_type) { return x_type == LPGEMM_F32 ? 3 : x_type == LPGEMM_F16 ? 2 : 1; }

static float sum_of_step(const float *x) {
  vfloat sum = {0.0f};
  float total = 0.0f;
  for (int i = 0; i < STEP_K; i += V) sum += load(x + i);
  for (int i = 0; i < V; i++) total += sum[i];
  return total;
}

/* The upper half of x's bits is bf16, and what it leaves of x is exact. */
static void split_row(const job *j, int64_t rows, float *x, scratch *s, int64_t r) {
  for (int piece = 0; piece < j->pieces; piece++) {
    uint16_t *out = s->x[piece * rows + r];
    for (int i = 0; i < CHUNK_K; i += V) {
      const vuint bits = (vuint)load(x + i);
      const vhalf upper = __builtin_convertvector(bits >> 16, vhalf);
      memcpy(out + i, &upper, sizeof upper);
      store(x + i, load(x + i) - (vfloat)(bits & 0xffff0000u));
    }
  }
}

/* Columns [k, k + columns) of the rows of a block, and zeros up to whole tiles. */
static void load_x(const job *j, int64_t first_row, int64_t rows, int64_t k, int columns, scratch *s) {
  const lpg_call *call = j->from.call;
  for (int64_t r = 0; r < rows; r++) {
    const int is_there = first_row + r < call->problem.m;
    memset(s->row, 0, sizeof s->row);
    if (is_there) {
      to_floats(call->problem.x_type, call->x, (first_row + r) * call->ldx + k, columns, j->from.x_value, s->row);
    }
    for (int step = 0; j->has_rest && step < STEPS; step++) s->x_sums[step][r] = sum_of_step(s->row + step * STEP_K);
    split_row(j, rows, s->row, s, r);
  }
}

/* ---- W ---- */

/* Pairs of integers, at most 256 in magnitude, as bf16. */
INLINE vuint pairs_to_bf16(vshort pairs) {
  const vint both = (vint)pairs, low = (vint)((vuint)both << 16) >> 16, high = both >> 16;
  return (vuint) __builtin_convertvector(low, vfloat) >> 16 |
         ((vuint) __builtin_convertvector(high, vfloat) & 0xffff0000u);
}

/* Pairs of codes to their entries in a table of 2^bits. */
INLINE vuint look_up(vuint codes, int bits, const uint16_t *table) {
#if defined(__AVX512BW__)
  const __m512i index = (__m512i)codes;
  __m512i found = _mm512_permutex2var_epi16(_mm512_load_si512(table), index, _mm512_load_si512(table + 32));
  for (int quarter = 1; quarter < 1 << bits >> 6; quarter++) {
    const __m512i low = _mm512_load_si512(table + 64 * quarter), high = _mm512_load_si512(table + 64 * quarter + 32);
    const __mmask32 mine = _mm512_cmpeq_epi16_mask(_mm512_srli_epi16(index, 6), _mm512_set1_epi16((short)quarter));
    found = _mm512_mask_mov_epi16(found, mine, _mm512_permutex2var_epi16(low, index, high));
  }
  return (vuint)found;
#else
  vuint found;
  (void)bits;
  for (int i = 0; i < V; i++) found[i] = table[codes[i] & 255u] | (uint32_t)table[codes[i] >> 16] << 16;
  return found;
#endif
}

/* 8 columns, pair `pair` of the runs, of the untangled tile as 4 pairs for 16 rows: entries of the table, or integers
 * less their centers. Most widths have one run of bits. */
INLINE void decode_pairs(const job *j, const scratch *s, int pair, int runs, const int16_t *center,
                         uint32_t (*panel)[LPG_TILE_ROWS]) {
  const lpg_run *run = j->from.run[pair];
  const int bits = j->from.packed->bits;
  for (int slot = 0; slot < LPG_TILE_ROWS; slot += V) {
    vshort centers = {0};
    vuint values[4];
    if (center) memcpy(&centers, center + 2 * slot, sizeof centers);
#pragma GCC unroll 4
    for (int t = 0; t < 4; t++) {
      vuint codes = {0};
      for (int i = 0; i < runs; i++) {
        vuint word;
        memcpy(&word, s->words + (run[i].word * 4 + t) * LPG_TILE_ROWS + slot, sizeof word);
        word = word >> (uint32_t)run[i].shift & ((1u << run[i].bits) - 1u) * 0x10001u;
        codes |= runs == 1 ? word : word << (uint32_t)run[i].code_bit;
      }
      values[t] = center ? pairs_to_bf16((vshort)codes - centers) : look_up(codes, bits, j->value);
    }
#pragma GCC unroll 4
    for (int t = 0; t < 4; t++) memcpy(panel[t] + slot, &values[t], sizeof values[t]);
  }
}

/* The 16 columns of a step, as 8 pairs. */
static void decode_step(const job *j, const scratch *s, int step, const int16_t *center,
                        uint32_t (*panel)[LPG_TILE_ROWS]) {
  for (int pair = 2 * step; pair < 2 * step + 2; pair++, panel += 4) {
    const int runs = j->from.runs[pair];
    if (runs == 1 && center) decode_pairs(j, s, pair, 1, center, panel);
    if (runs == 1 && !center) decode_pairs(j, s, pair, 1, NULL, panel);
    if (runs > 1 && center) decode_pairs(j, s, pair, runs, center, panel);
    if (runs > 1 && !center) decode_pairs(j, s, pair, runs, NULL, panel);
  }
}

/* The integer next to a zero from which all values of the type are at most 256, so that bf16 holds the differences. */
static float nearest_center(const lpgemm_weight_desc_t *d, float zero) {
  const float offset = (float)lpg_integer_offset(d->type), highest = offset + 256.0f;
  const float lowest = offset + (float)(lpg_integer_step(d->type) * ((1 << lpg_bits(d->type)) - 1)) - 256.0f;
  const float level = rintf(zero), above = level > lowest ? level : lowest; /* of NaN as well */
  return above < highest ? above : highest;
}

/* Scales and rests of a group; and, where zeros differ, centers as codes, twice each. */
static void load_group(const job *j, int64_t row_tile, int64_t k, factors *f, int16_t *center) {
  const lpgemm_weight_desc_t *d = &j->from.packed->desc;
  const float offset = (float)lpg_integer_offset(d->type);
  float zero[LPG_TILE_ROWS];
  for (int i = 0; i < LPG_TILE_ROWS; i++) f->scale[i] = 1.0f;
  if (d->scale_type) section_to_floats(&j->from, LPG_SECTION_SCALES, row_tile, k, f->scale);
  multiply_by_section(&j->from, LPG_SECTION_SUPER_SCALES, row_tile, k, f->scale);
  for (int i = 0; i < LPG_TILE_ROWS; i++) f->rest[i] = j->rest * f->scale[i];
  if (!j->zeros_differ) return;
  section_to_floats(&j->from, LPG_SECTION_ZEROS, row_tile, k, zero);
  multiply_by_section(&j->from, LPG_SECTION_SUPER_ZEROS, row_tile, k, zero);
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    const int is_minimum = d->zero == LPGEMM_ZERO_MINIMUM;
    const float nearest = nearest_center(d, is_minimum ? -zero[i] / f->scale[i] : zero[i]), left = nearest - zero[i];
    f->rest[i] = is_minimum ? fmaf(nearest, f->scale[i], zero[i]) : left != 0.0f ? left * f->scale[i] : 0.0f;
    center[2 * i] = center[2 * i + 1] = (int16_t)(nearest - offset);
  }
}

/* The steps [first, end) of a chunk, all in one group. */
typedef struct segment {
  int first, end;
} segment;

static segment next_segment(const job *j, int64_t k, int first, int steps) {
  const int64_t group = j->from.packed->group.k, at = k + first * STEP_K, left = (at / group + 1) * group - at;
  return (segment){first, (int)least(steps, first + lpg_ceil_div(left, STEP_K))};
}

/* Columns from k on of a row tile, as the panel of its place. */
static void decode(const job *j, int64_t row_tile, int64_t k, int steps, int place, scratch *s) {
  const lpg_packed *packed = j->from.packed;
  const int bits = packed->bits, tile_k = lpg_tile_k(bits);
  int16_t center[2 * LPG_TILE_ROWS];
  for (segment at = {0, 0}; at.end < steps;) {
    at = next_segment(j, k, at.end, steps);
    load_group(j, row_tile, k + at.first * STEP_K, &s->factor[place][at.first], center);
    for (int i = at.first * STEP_K; i < at.end * STEP_K; i += LPG_STEP_K) {
      const int step = (int)((k + i) % tile_k) / LPG_STEP_K;
      if (step == 0) {
        const int64_t tile = lpg_tile_offset(bits, packed->k_tiles, row_tile, (k + i) / tile_k);
        untangle(bits, j->from.call->section[LPG_SECTION_CODES] + tile, s->words);
      }
      decode_step(j, s, step, j->zeros_differ ? center : NULL, s->panel[place] + i / 2);
    }
  }
}

/* ---- the product ---- */

/* Products of 16 or 32 rows of X, piece after piece, and two row tiles of W, over a segment. x: the first row. */
INLINE void multiply_segment(int x_tiles, int pieces, int64_t rows, const uint16_t (*x)[X_STRIDE], segment at,
                             scratch *s) {
  enum { BYTES = X_STRIDE * sizeof(uint16_t) };
  TILE_ZERO(s->tiles, 0);
  TILE_ZERO(s->tiles, 1);
  if (x_tiles > 1) {
    TILE_ZERO(s->tiles, 2);
    TILE_ZERO(s->tiles, 3);
  }
  for (int step = at.first; step < at.end; step++) {
    TILE_LOAD(s->tiles, 6, s->panel[0][step * PAIRS], TILE_LINE_BYTES);
    TILE_LOAD(s->tiles, 7, s->panel[1][step * PAIRS], TILE_LINE_BYTES);
    for (int piece = 0; piece < pieces; piece++) {
      TILE_LOAD(s->tiles, 4, x[piece * rows] + step * STEP_K, BYTES);
      TILE_MULTIPLY(s->tiles, 0, 4, 6);
      TILE_MULTIPLY(s->tiles, 1, 4, 7);
      if (x_tiles > 1) {
        TILE_LOAD(s->tiles, 5, x[piece * rows + TILE_LINES] + step * STEP_K, BYTES);
        TILE_MULTIPLY(s->tiles, 2, 5, 6);
        TILE_MULTIPLY(s->tiles, 3, 5, 7);
      }
    }
  }
  TILE_STORE(s->tiles, 0, s->products[0][0], TILE_LINE_BYTES);
  TILE_STORE(s->tiles, 1, s->products[0][1], TILE_LINE_BYTES);
  if (x_tiles > 1) {
    TILE_STORE(s->tiles, 2, s->products[1][0], TILE_LINE_BYTES);
    TILE_STORE(s->tiles, 3, s->products[1][1], TILE_LINE_BYTES);
  }
}

/* sums += products * scale + sum of x * rest, for a tile of W and 16 rows of X. */
INLINE void add_products(int has_rest, float (*products)[LPG_TILE_ROWS], const factors *f, const float *x_sums,
                         float (*sums)[LPG_TILE_ROWS]) {
  for (int i = 0; i < LPG_TILE_ROWS; i += V) {
    const vfloat scale = load(f->scale + i), rest = load(f->rest + i);
    for (int r = 0; r < TILE_LINES; r++) {
      vfloat sum = load(sums[r] + i) + load(products[r] + i) * scale;
      if (has_rest) sum += rest * x_sums[r];
      store(sums[r] + i, sum);
    }
  }
}

/* Adds the products of a chunk and of two row tiles to their sums: those of the first, then those of the second. */
static void multiply_chunk(const job *j, int64_t rows, int64_t k, int steps, float (*sums)[LPG_TILE_ROWS], scratch *s) {
  for (int64_t r = 0; r < rows; r += MULTIPLY_ROWS) {
    const int x_tiles = rows - r > TILE_LINES ? 2 : 1;
    for (segment at = {0, 0}; at.end < steps;) {
      at = next_segment(j, k, at.end, steps);
      if (x_tiles == 2) multiply_segment(2, j->pieces, rows, (const uint16_t(*)[X_STRIDE])s->x + r, at, s);
      if (x_tiles == 1) multiply_segment(1, j->pieces, rows, (const uint16_t(*)[X_STRIDE])s->x + r, at, s);
      for (int t = 0; t < x_tiles; t++) {
        const int64_t first = r + t * TILE_LINES;
        float x_sums[TILE_LINES] = {0};
        for (int step = at.first; j->has_rest && step < at.end; step++) {
          for (int i = 0; i < TILE_LINES; i++) x_sums[i] += s->x_sums[step][first + i];
        }
        for (int i = 0; i < PANEL_TILES; i++) {
          if (j->has_rest) {
            add_products(1, s->products[t][i], &s->factor[i][at.first], x_sums, sums + i * rows + first);
          } else {
            add_products(0, s->products[t][i], &s->factor[i][at.first], x_sums, sums + i * rows + first);
          }
        }
      }
    }
  }
}

/* ---- a task: a block of Y ---- */

static void finish_block(const job *j, int64_t row, int64_t rows, int64_t tile, int64_t tiles, const scratch *s) {
  const lpg_call *call = j->from.call;
  const double factor = (double)j->from.packed->desc.global_scale;
  for (int64_t r = 0; r < rows && row + r < call->problem.m; r++) {
    for (int64_t i = 0; i < tiles; i++) {
      double of_rows[LPG_TILE_ROWS];
      const int64_t first = (tile + i) * LPG_TILE_ROWS;
      for (int n = 0; n < LPG_TILE_ROWS; n++) of_rows[n] = (double)s->sums[i * rows + r][lpg_row_slot(n)] * factor;
      lpg_epilogue_tile(call, row + r, first, (int)least(LPG_TILE_ROWS, j->from.packed->desc.n - first), of_rows);
    }
  }
}

static void run_block(void *context, int64_t index, void *memory) {
  const job *j = context;
  const lpg_call *call = j->from.call;
  scratch *s = memory;
  const int64_t row = index % j->row_blocks * j->block_rows, tile = index / j->row_blocks * j->block_tiles;
  const int64_t rows = least(j->block_rows, lpg_round_up(call->problem.m - row, TILE_LINES));
  const int64_t tiles = least(j->block_tiles, j->from.packed->row_tiles - tile);
  const int64_t k = call->skip_product ? 0 : j->from.packed->desc.k;
  memset(s->sums, 0, (size_t)(rows * lpg_round_up(tiles, PANEL_TILES)) * sizeof s->sums[0]);
  memset(s->panel, 0, sizeof s->panel); /* half of it stays unused if the number of tiles is odd */
  memset(s->factor, 0, sizeof s->factor);
  open_tiles();
  for (int64_t at = 0; at < k; at += CHUNK_K) {
    const int columns = (int)least(CHUNK_K, k - at), steps = (int)lpg_ceil_div(columns, STEP_K);
    load_x(j, row, rows, at, columns, s);
    for (int64_t i = 0; i < tiles; i += PANEL_TILES) {
      decode(j, tile + i, at, steps, 0, s);
      if (i + 1 < tiles) decode(j, tile + i + 1, at, steps, 1, s);
      tiles_follow();
      multiply_chunk(j, rows, at, steps, s->sums + i * rows, s);
    }
  }
  close_tiles();
  finish_block(j, row, rows, tile, tiles, s);
}

/* ---- the call ---- */

static void read_zeros(job *j) {
  const lpgemm_weight_desc_t *d = &j->from.packed->desc;
  const int is_integer = lpg_is_integer_kind(d->type), bits = lpg_bits(d->type);
  const int is_one = d->zero == LPGEMM_ZERO_NONE || d->zero == LPGEMM_ZERO_CONSTANT;
  const float center = is_integer && is_one ? nearest_center(d, d->zero_constant) : 0.0f;
  const float largest = (float)(1 << bits); /* of zeros that are integers */
  j->zeros_differ = !is_one;
  j->rest = is_integer && is_one ? center - d->zero_constant : 0.0f;
  j->has_rest = j->rest != 0.0f;
  if (d->zero == LPGEMM_ZERO_MINIMUM) j->has_rest = 1;
  if (d->zero == LPGEMM_ZERO_PER_GROUP)
    j->has_rest = lpg_is_real(d->zero_type) || nearest_center(d, largest) != largest;
  for (int i = 0; i < 256; i++) {
    const int code = i & ((1 << bits) - 1), value = lpg_integer_step(d->type) * code + lpg_integer_offset(d->type);
    j->value[i] = (uint16_t)(lpg_f32_bits(is_integer ? (float)value - center : j->from.code_value[code]) >> 16);
  }
}

static void choose_blocks(job *j) {
  const int64_t m = j->from.call->problem.m, row_tiles = j->from.packed->row_tiles;
  const int64_t threads = lpgemm_i_pool_threads(j->from.call->pool);
  const int64_t most_rows = least(MAX_BLOCK_ROWS, X_ROWS / j->pieces / MULTIPLY_ROWS * MULTIPLY_ROWS);
  j->block_rows = lpg_round_up(lpg_ceil_div(m, lpg_ceil_div(m, most_rows)), TILE_LINES);
  while (j->block_rows > MULTIPLY_ROWS && lpg_ceil_div(m, j->block_rows) * row_tiles < threads * PANEL_TILES) {
    j->block_rows = lpg_round_up(j->block_rows / 2, TILE_LINES);
  }
  j->row_blocks = lpg_ceil_div(m, j->block_rows);
  j->block_tiles = lpg_round_up(lpg_ceil_div(row_tiles * j->row_blocks, threads), PANEL_TILES);
  j->block_tiles = least(j->block_tiles, SUMS / j->block_rows / PANEL_TILES * PANEL_TILES);
}

#define NAME_(isa) lpgemm_i_cpu_tiles_##isa
#define NAME(isa) NAME_(isa)

lpgemm_status_t NAME(LPG_TILES)(const lpg_call *call) {
  job j;
  if (call->problem.m == 0 || call->problem.weights->desc.n == 0) return LPGEMM_SUCCESS;
  fill_tables(call, &j.from);
  j.pieces = pieces_of(call->problem.x_type);
  read_zeros(&j);
  choose_blocks(&j);
  return lpgemm_i_parallel(call->pool, j.row_blocks * lpg_ceil_div(j.from.packed->row_tiles, j.block_tiles), run_block,
                           &j);
}
