/* The CPU kernel for daily use: blocked and threaded, one source compiled for several instruction sets,
 *
 *     -DLPG_BLOCKED=base
 *     -DLPG_BLOCKED=avx2    -mavx2 -mfma -mf16c
 *     -DLPG_BLOCKED=avx512  -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
 *
 * all with -O3 -ffp-contract=fast.
 *
 *                  256 columns          A task computes a block of Y from rows of X and tiles of 16 rows of W.
 *               +---------------+
 *     rows of X |   x in fp32   |       X is converted to fp32, a few chunks of 256 columns at a time. A chunk of a
 *               +---------------+       tile is decoded to a panel: 16 weights for every column, in the order of
 *               +---------------+       the packed form's slots. The panel is multiplied by all rows of X, several
 *     16 rows   | panel in fp32 |       at once with their sums in registers: in fp32 within a chunk, in fp64
 *     of W      +---------------+       across chunks.
 *
 * The order of the operations for an element of Y does not depend on how Y is cut: results are batch invariant. */
#include <math.h>

#include "cpu.h"
#include "epilogue_rows.h"
#include "unpack.h"

enum {
#if defined(__AVX512F__)
  MAX_ROWS = 14,  /* rows of X that are multiplied at once */
  PANEL_TILES = 2 /* tiles of W side by side in a panel */
#elif defined(__AVX2__) || defined(__aarch64__)
  MAX_ROWS = 6,
  PANEL_TILES = 1
#else
  MAX_ROWS = 2,
  PANEL_TILES = 1
#endif
};

enum {
  CHUNK_K = 256,
  X_STRIDE = CHUNK_K + 16,             /* so that rows do not fall into the same sets of the cache */
  WIDTH = PANEL_TILES * LPG_TILE_ROWS, /* of a panel */
  MAX_BLOCK_ROWS = 256,                /* rows of X of a task, for each of which its weights are decoded once */
  X_CHUNKS = MAX_BLOCK_ROWS,           /* (row, chunk) pairs of X in scratch */
  SUMS = 2048,                         /* (row, tile) pairs of sums in scratch */
  TASKS_A_THREAD = 4,                  /* so that threads end at about the same time */
  EXACT_F32 = 1 << 24                  /* fp32 holds every integer up to here */
};

typedef struct scratch {
  float panel[CHUNK_K][WIDTH];
  float x[X_CHUNKS][X_STRIDE];
  double sums[SUMS][LPG_TILE_ROWS];
  double row[CHUNK_K];
  uint32_t words[LPG_MAX_WORDS];
  float scale[LPG_TILE_ROWS], zero[LPG_TILE_ROWS]; /* of the current group, in slot order */
  double factor[WIDTH];                            /* of the rows of a panel, in slot order */
} scratch;
_Static_assert(sizeof(scratch) <= LPG_SCRATCH_BYTES, "the scratch of a thread is too small");

/* What the tasks of a call share. */
typedef struct job {
  unpacker from;
  lpg_call call; /* without row scales: they are in the sums */
  const float *row_scales;
  int64_t block_rows, block_tiles; /* the block of Y of a task */
  int64_t row_blocks;
  int span;                   /* columns that are summed in fp32 */
  lpg_magnitudes scale, zero; /* with which a group is decoded in fp32 */
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- W ---- */

/* Scales and zeros of the group of column k; 0: they are too large or too small to decode the group in fp32. */
static int load_group(const job *j, int64_t row_tile, int64_t k, scratch *s) {
  for (int i = 0; i < LPG_TILE_ROWS; i++) {
    s->scale[i] = 1.0f;
    s->zero[i] = j->from.packed->desc.zero_constant;
  }
  if (j->from.packed->desc.scale_type) section_to_floats(&j->from, LPG_SECTION_SCALES, row_tile, k, s->scale);
  if (j->from.packed->desc.zero_type) section_to_floats(&j->from, LPG_SECTION_ZEROS, row_tile, k, s->zero);
  return multiply_by_section(&j->from, LPG_SECTION_SUPER_SCALES, row_tile, k, s->scale) &&
         multiply_by_section(&j->from, LPG_SECTION_SUPER_ZEROS, row_tile, k, s->zero) &&
         lpg_is_within(j->scale, s->scale) && lpg_is_within(j->zero, s->zero);
}

/* How codes become values. */
enum { INTEGERS, SHORT_TABLE, LONG_TABLE, EIGHTS /* e4m3 */ };

INLINE vfloat value_of(int how, vuint code, const float *table, float step, float offset) {
  if (how == INTEGERS) return __builtin_convertvector((vint)code, vfloat) * step + offset;
  return how == EIGHTS ? eights_to_floats(code) : look_up_floats(table, how == SHORT_TABLE, code);
}

/* What makes weights of codes, for V rows. */
typedef struct decoder {
  float step, offset;
  vfloat scale, zero;
  const float *table;
} decoder;

INLINE void put_weights(int how, int minimum, const decoder *d, vuint code, float *out) {
  const vfloat value = value_of(how, code, d->table, d->step, d->offset);
  store(out, minimum ? multiply_add(value, d->scale, d->zero) : (value - d->zero) * d->scale);
}

/* Decodes the 16 columns of a step of the untangled tile into 16 rows of the panel. */
INLINE void decode_step(int how, int minimum, const job *j, const scratch *s, int step, float *panel) {
  lpgemm_dtype_t type = j->from.packed->desc.type;
  decoder d = {(float)lpg_integer_step(type), (float)lpg_integer_offset(type), .table = j->from.code_value};
  for (int slot = 0; slot < LPG_TILE_ROWS; slot += V) {
    d.scale = load(s->scale + slot);
    d.zero = load(s->zero + slot);
    for (int half = 0; half < 2; half++) {
      const lpg_run *run = j->from.run[2 * step + half];
      const int runs = j->from.runs[2 * step + half];
      float *out = panel + 8 * half * WIDTH + slot;
      if (runs > 1) {
        for (int i = 0; i < 8; i++) { /* i = 2t + odd */
          put_weights(how, minimum, &d, extract(run, runs, s->words + i / 2 * LPG_TILE_ROWS + slot, i % 2),
                      out + i * WIDTH);
        }
        continue;
      }
      const uint32_t shift = (uint32_t)run->shift, mask = (1u << run->bits) - 1u;
#pragma GCC unroll 4
      for (int t = 0; t < 4; t++) {
        vuint word;
        memcpy(&word, s->words + (run->word * 4 + t) * LPG_TILE_ROWS + slot, sizeof word);
        put_weights(how, minimum, &d, word >> shift & mask, out + 2 * t * WIDTH);
        put_weights(how, minimum, &d, word >> (shift + 16u) & mask, out + (2 * t + 1) * WIDTH);
      }
    }
  }
}

/* Decodes columns [k, k + columns) of a row tile, without the global scale; k is a multiple of CHUNK_K. 0: fp32 cannot
 * hold what it takes. */
static int decode(const job *j, int64_t row_tile, int64_t k, int columns, scratch *s, float *panel) {
  const lpg_packed *packed = j->from.packed;
  int bits = packed->bits, tile_k = lpg_tile_k(bits), minimum = packed->desc.zero == LPGEMM_ZERO_MINIMUM;
  const lpgemm_dtype_t type = packed->desc.type;
  const int how = lpg_is_integer_kind(type) ? INTEGERS
                  : bits <= 4               ? SHORT_TABLE
                  : type == LPGEMM_E4M3     ? EIGHTS
                                            : LONG_TABLE;
  int64_t next_group = k; /* where the next group begins */
  for (int i = 0; i < columns; i += LPG_STEP_K) {
    int step = (int)((k + i) % tile_k) / LPG_STEP_K;
    if (i == 0 || step == 0) {
      int64_t tile = lpg_tile_offset(bits, packed->k_tiles, row_tile, (k + i) / tile_k);
      untangle(bits, j->from.call->section[LPG_SECTION_CODES] + tile, s->words);
    }
    if (k + i >= next_group) {
      if (!load_group(j, row_tile, k + i, s)) return 0;
      next_group = ((k + i) / packed->group.k + 1) * packed->group.k;
    }
    float *out = panel + i * WIDTH;
    switch (how * 2 + minimum) {
      case INTEGERS * 2: decode_step(INTEGERS, 0, j, s, step, out); break;
      case INTEGERS * 2 + 1: decode_step(INTEGERS, 1, j, s, step, out); break;
      case SHORT_TABLE * 2: decode_step(SHORT_TABLE, 0, j, s, step, out); break;
      case SHORT_TABLE * 2 + 1: decode_step(SHORT_TABLE, 1, j, s, step, out); break;
      case LONG_TABLE * 2: decode_step(LONG_TABLE, 0, j, s, step, out); break;
      case LONG_TABLE * 2 + 1: decode_step(LONG_TABLE, 1, j, s, step, out); break;
      case EIGHTS * 2: decode_step(EIGHTS, 0, j, s, step, out); break;
      default: decode_step(EIGHTS, 1, j, s, step, out); break;
    }
  }
  return 1;
}

/* Scale * code + minimum loses its leading digits where the two cancel, so it needs a fused multiply-add, and exact
 * scales and minima. */
static int needs_fp64(const lpg_packed *packed) {
  if (packed->desc.zero != LPGEMM_ZERO_MINIMUM) return 0;
  return !FUSED || packed->desc.super_scale_type == LPGEMM_F32 || packed->desc.super_zero_type == LPGEMM_F32;
}

/* Any weights, slowly, and with the global scale and that of the row, which may be what brings them into fp32's range.
 */
static void decode_fp64(const job *j, int64_t row_tile, int64_t k, int columns, scratch *s, float *panel) {
  for (int slot = 0; slot < LPG_TILE_ROWS; slot++) {
    int64_t row = row_tile * LPG_TILE_ROWS + lpg_slot_row(slot);
    lpg_weight_row(j->from.packed, j->from.call->section, row, k, columns, j->row_scales ? j->row_scales[row] : 1.0f,
                   s->row);
    for (int i = 0; i < columns; i++) panel[i * WIDTH + slot] = (float)s->row[i];
  }
}

/* ---- the product ---- */

/* A panel, and what the sums of its products are multiplied by. */
typedef struct operand {
  const float *panel;
  const double *factor;
} operand;

/* What panels leave out, for a row tile. */
static void set_factors(const job *j, int64_t row_tile, double *factor) {
  for (int slot = 0; slot < LPG_TILE_ROWS; slot++) {
    factor[slot] = (double)j->from.packed->desc.global_scale;
    if (j->row_scales) factor[slot] *= (double)j->row_scales[row_tile * LPG_TILE_ROWS + lpg_slot_row(slot)];
  }
}

/* sums[tile][row] += X[row] . w[tile] over `columns` columns. */
INLINE void multiply_rows(int rows, int columns, const float *x, const operand *w, double *sums, int64_t tile_stride) {
  enum { VECTORS = WIDTH / V };
  vfloat sum[MAX_ROWS][VECTORS];
  for (int r = 0; r < rows; r++) {
    for (int i = 0; i < VECTORS; i++) sum[r][i] = (vfloat){0};
  }
  for (int k = 0; k < columns; k++) {
    for (int r = 0; r < rows; r++) {
      for (int i = 0; i < VECTORS; i++) sum[r][i] += x[r * X_STRIDE + k] * load(w->panel + k * WIDTH + i * V);
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int i = 0; i < VECTORS; i++) {
      int tile = i * V / LPG_TILE_ROWS;
      add(sum[r][i], w->factor + i * V, sums + tile * tile_stride + r * LPG_TILE_ROWS + i * V % LPG_TILE_ROWS);
    }
  }
}

/* A loop of its own for each number of rows, so that the sums stay in registers. */
static void multiply(int rows, int columns, const float *x, const operand *w, double *sums, int64_t tile_stride) {
#define CASE(n)                                                            \
  case n:                                                                  \
    if (n <= MAX_ROWS) multiply_rows(n, columns, x, w, sums, tile_stride); \
    break
  switch (rows) {
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
    CASE(7);
    CASE(8);
    CASE(9);
    CASE(10);
    CASE(11);
    CASE(12);
    CASE(13);
    CASE(14);
  }
#undef CASE
}

/* The part of X that a task has in scratch: some chunks of its rows. */
typedef struct x_part {
  int64_t rows, first_k, chunks;
} x_part;

static void load_x(const job *j, int64_t first_row, x_part part, scratch *s) {
  const lpg_call *call = j->from.call;
  for (int64_t c = 0; c < part.chunks; c++) {
    int64_t k = part.first_k + c * CHUNK_K, left = j->from.packed->desc.k - k;
    int64_t columns = least(left, CHUNK_K);
    for (int64_t r = 0; r < part.rows; r++) {
      int64_t first = (first_row + r) * call->ldx + k;
      to_floats(call->problem.x_type, call->x, first, columns, j->from.x_value, s->x[c * part.rows + r]);
    }
  }
}

/* Adds the products of a part of X and of the row tiles [tile, tile + tiles), at most PANEL_TILES, to their sums. */
static void multiply_tiles(const job *j, int64_t tile, int64_t tiles, x_part part, double *sums, scratch *s) {
  int fp64 = needs_fp64(j->from.packed);
  for (int64_t c = 0; c < part.chunks; c++) {
    int64_t k = part.first_k + c * CHUNK_K, left = j->from.packed->desc.k - k;
    int columns = (int)(left < CHUNK_K ? left : CHUNK_K);
    operand w = {s->panel[0], s->factor};
    for (int64_t i = 0; i < tiles; i++) {
      float *panel = s->panel[0] + i * LPG_TILE_ROWS;
      double *factor = s->factor + i * LPG_TILE_ROWS;
      set_factors(j, tile + i, factor);
      if (fp64 || !decode(j, tile + i, k, columns, s, panel)) {
        decode_fp64(j, tile + i, k, columns, s, panel);
        for (int slot = 0; slot < LPG_TILE_ROWS; slot++) factor[slot] = 1.0;
      }
    }
    int64_t groups = lpg_ceil_div(part.rows, MAX_ROWS), rows;
    for (int64_t g = 0, r = 0; g < groups; g++, r += rows) { /* of about the same size */
      rows = (part.rows - r) / (groups - g);
      for (int first = 0; first < columns; first += j->span) {
        w.panel = s->panel[first];
        multiply((int)rows, columns - first < j->span ? columns - first : j->span, s->x[c * part.rows + r] + first, &w,
                 sums + r * LPG_TILE_ROWS, part.rows * LPG_TILE_ROWS);
      }
    }
  }
}

/* ---- a task: a block of Y ---- */

static void finish_block(const job *j, int64_t row, int64_t rows, int64_t tile, int64_t tiles, const scratch *s) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < tiles; i++) {
      const double *of_slots = s->sums[i * rows + r];
      double of_rows[LPG_TILE_ROWS];
      int64_t first = (tile + i) * LPG_TILE_ROWS;
      for (int n = 0; n < LPG_TILE_ROWS; n++) of_rows[n] = of_slots[lpg_row_slot(n)];
      lpg_epilogue_tile(j->from.call, row + r, first, (int)least(LPG_TILE_ROWS, j->from.packed->desc.n - first),
                        of_rows);
    }
  }
}

static void run_block(void *context, int64_t index, void *memory) {
  const job *j = context;
  scratch *s = memory;
  int64_t row = index % j->row_blocks * j->block_rows, tile = index / j->row_blocks * j->block_tiles;
  int64_t rows = least(j->block_rows, j->from.call->problem.m - row),
          tiles = least(j->block_tiles, j->from.packed->row_tiles - tile);
  int64_t chunks = j->from.call->skip_product ? 0 : lpg_ceil_div(j->from.packed->desc.k, CHUNK_K),
          chunks_at_once = X_CHUNKS / rows;
  memset(s->sums, 0, (size_t)(rows * lpg_round_up(tiles, PANEL_TILES)) * sizeof s->sums[0]);
  memset(s->panel, 0, sizeof s->panel); /* half of it stays unused if the number of tiles is odd */
  memset(s->factor, 0, sizeof s->factor);
  for (int64_t c = 0; c < chunks; c += chunks_at_once) {
    x_part part = {rows, c * CHUNK_K, least(chunks_at_once, chunks - c)};
    load_x(j, row, part, s);
    for (int64_t i = 0; i < tiles; i += PANEL_TILES) {
      multiply_tiles(j, tile + i, least(PANEL_TILES, tiles - i), part, s->sums[i * rows], s);
    }
  }
  finish_block(j, row, rows, tile, tiles, s);
}

/* ---- the call ---- */

/* The largest magnitude of an integer type. */
static double largest_magnitude(lpgemm_dtype_t type) {
  int bits = lpg_bits(type);
  return lpg_kind(type) == LPGEMM_KIND_INT ? ldexp(1.0, bits - 1) : ldexp(1.0, bits) - 1.0;
}

/* Columns that fp32 may add up at a time: all of a chunk, or when the result must be exact (integers without scales) as
 * many as fit into 24 bits; 0 if that is none. */
static int choose_span(const lpg_call *call) {
  const lpgemm_weight_desc_t *d = &call->problem.weights->desc;
  if (!lpg_is_integer_kind(call->problem.x_type) || !lpg_is_integer_kind(d->type) || d->scale_type) return CHUNK_K;
  double zero = fabs((double)d->zero_constant);
  if (zero != floor(zero) || d->zero == LPGEMM_ZERO_MINIMUM || lpg_is_real(d->zero_type)) return CHUNK_K;
  if (d->zero == LPGEMM_ZERO_PER_GROUP) zero = ldexp(1.0, lpg_bits(d->type));
  double product = largest_magnitude(call->problem.x_type) * (largest_magnitude(d->type) + zero);
  return (int)fmin(CHUNK_K, floor(EXACT_F32 / product));
}

/* As large as scratch allows, so that X is converted and W decoded rarely, but enough tasks for all threads. */
static void choose_blocks(job *j) {
  int64_t m = j->from.call->problem.m, row_tiles = j->from.packed->row_tiles,
          threads = lpgemm_i_pool_threads(j->from.call->pool);
  int64_t tasks = threads == 1 ? 1 : threads * TASKS_A_THREAD;
  j->block_rows = lpg_ceil_div(m, lpg_ceil_div(m, MAX_BLOCK_ROWS));
  while (j->block_rows > 2 * MAX_ROWS && lpg_ceil_div(m, j->block_rows) * row_tiles < threads * PANEL_TILES) {
    j->block_rows = lpg_round_up(j->block_rows / 2, MAX_ROWS);
  }
  j->row_blocks = lpg_ceil_div(m, j->block_rows);
  j->block_tiles = lpg_round_up(lpg_ceil_div(row_tiles * j->row_blocks, tasks), PANEL_TILES);
  j->block_tiles = least(j->block_tiles, SUMS / least(m, j->block_rows) / PANEL_TILES * PANEL_TILES);
}

#define NAME_(isa) lpgemm_i_cpu_blocked_##isa
#define NAME(isa) NAME_(isa)

lpgemm_status_t NAME(LPG_BLOCKED)(const lpg_call *call) {
  job j;
  if (call->problem.m == 0 || call->problem.weights->desc.n == 0) return LPGEMM_SUCCESS;
  j.span = choose_span(call);
  if (j.span == 0) return lpgemm_i_cpu_reference(call); /* a single product may be too large for fp32 */
  j.call = *call;
  j.row_scales = call->row_scales;
  j.call.row_scales = NULL;
  fill_tables(&j.call, &j.from);
  lpg_choose_ranges(j.from.packed, &j.scale, &j.zero);
  choose_blocks(&j);
  return lpgemm_i_parallel(call->pool, j.row_blocks * lpg_ceil_div(j.from.packed->row_tiles, j.block_tiles), run_block,
                           &j);
}
