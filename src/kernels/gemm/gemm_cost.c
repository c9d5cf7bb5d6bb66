/* What plans of gemm cost. */
#include "gemm_cost.h"

#include <math.h>

/* How much longer dequantising takes in a mode than in the plain one, with fewer than 128 rows of X a work tile, and
 * with more, where the loads of scales are hidden (H200, 2026-11-26). */
static double slower_by_mode(lpg_gemm_scales mode, int is_wide) {
  switch (mode) {
    case LPG_GEMM_SCALES_IMAGE: return 0.0;
    case LPG_GEMM_SCALES_ROW:
    case LPG_GEMM_SCALES_NEAR: return 0.8;
    case LPG_GEMM_SCALES_GROUP: return 1.0;
    case LPG_GEMM_SCALES_ZEROS: return 1.1;
    case LPG_GEMM_SCALES_SMALL: return 1.4;
    case LPG_GEMM_SCALES_E8M0: return is_wide ? 1.15 : 1.4;
    case LPG_GEMM_SCALES_SPLIT: return is_wide ? 1.3 : 1.4;
    case LPG_GEMM_SCALES_SPLIT_SMALL: return is_wide ? 1.5 : 1.7; /* between others, not fitted */
    case LPG_GEMM_SCALES_E4M3: return is_wide ? 1.3 : 1.7;
    case LPG_GEMM_SCALES_PREPARED_SPLIT: return 1.6;
    case LPG_GEMM_SCALES_RESTS: /* as levels, not fitted */
    case LPG_GEMM_SCALES_LEVELS_32:
    case LPG_GEMM_SCALES_LEVELS_16: return is_wide ? 1.7 : 1.75;
    default: return 2.2;
  }
}

enum {
  LPG_GEMM_LOAD_NS = 350,     /* of a k block, by the warps that load it: as long as work tiles of few rows of X take */
  LPG_GEMM_TOGETHER_NS = 300, /* of one wave of clusters that share X: five calls (H200, 2026-11-28) */
  LPG_GEMM_STREAM_NS = 1900,  /* of stream-K: sending sums, */
  LPG_GEMM_PARTIAL_BYTES = 64 /* and adding so many of another part's a nanosecond (H200, 2026-11-26) */
};

/* Of work tiles of up to 64 rows of X, by the warps that multiply: dequantising 128 rows by a k block; another work
 * tile, beside its blocks; adding up parts of K, and each of them; a call with its first work tile. sustained: how much
 * longer it takes at the clock of sustained work, to which records from 65 rows on belong. */
typedef struct gemm_few {
  double dequantise, tile, parts, each_part, start, sustained;
} gemm_few;

/* Of work tiles of 128 rows of X and more: dequantising 128 rows of W by a k block, by rows of X and by warps that
 * multiply. */
typedef struct gemm_wide {
  double of_128, of_128_by_12, of_192_by_12, of_256;
  double multiply_by_12; /* multiplying by 12 warps, beside 8 */
} gemm_wide;

/* Nanoseconds with 4-bit integers in the plain mode. */
typedef struct gemm_constants {
  gemm_few few, few_16; /* 8 warps; 16 */
  double busy;          /* a call whose CTAs fill the GPU: the next call's first steps are not hidden */
  gemm_wide dequantise_wide;
  double multiply, multiply_wide; /* 128 rows of W by a row of X and a k block */
  double overlap, overlap_wide;   /* exponents: how well dequantising and multiplying go together */
  double part_bytes;              /* of other CTAs' parts, added up in a nanosecond with few rows of X */
  double wide_tile, large_tile;   /* a work tile beside its blocks with 128 and 192 rows of X, with 256 */
  double start;                   /* of a call with these */
  double sustained_wide;
} gemm_constants;

/* Of a matrix: up to 64 rows of X a work tile by 316 times of 32 shapes, 22 of them drawn, with 21 to 594 rows, each
 * work tile and several parts of K forced (H200, 2026-11-29: bench/results/h200-gemm-warps.txt); more by 92 times of 26
 * drawn shapes (H200, 2026-11-26: docs/log/2026-11.md), but for what dequantising takes and
 * how it overlaps: set by hand from whole waves of four kinds of weights (H200, 2026-11-29:
 * bench/results/h200-gemm-tall.txt, sections 1 and 2). Of experts: by 240 of the recorded times of eight products of
 * four models with 8 to 1024 rows an expert, each work tile forced (H200, 2026-11-27). */
static const gemm_constants of_matrix = {
    .few = {.dequantise = 675, .tile = 1060, .parts = 580, .each_part = 60, .start = 60, .sustained = 1.08},
    .few_16 = {.dequantise = 545, .tile = 2370, .parts = 410, .each_part = 60, .start = 480, .sustained = 1.28},
    .busy = 1540,
    .dequantise_wide = {.of_128 = 1110, .of_128_by_12 = 960, .of_192_by_12 = 1240, .of_256 = 1500, .multiply_by_12 = 1},
    .multiply = 8,
    .multiply_wide = 11,
    .overlap = 1.7,
    .overlap_wide = 3,
    .part_bytes = 36,
    .wide_tile = 1050,
    .large_tile = 1000,
    .start = 700,
    .sustained_wide = 1.1};
static const gemm_constants of_experts = {
    .few = {.dequantise = 740, .tile = 1800, .parts = 800, .start = 3300, .sustained = 1.0},
    .few_16 = {.dequantise = 680, .tile = 1800, .parts = 800, .start = 3300, .sustained = 1.0},
    .dequantise_wide = {.of_128 = 570, .of_128_by_12 = 530, .of_256 = 570, .multiply_by_12 = 0.93},
    .multiply = 12,
    .multiply_wide = 10,
    .overlap = 3,
    .overlap_wide = 1.5,
    .part_bytes = HUGE_VAL,
    .wide_tile = 1300,
    .large_tile = 1300,
    .start = 1500,
    .sustained_wide = 1.1};

/* Of images: by 40 times of four shapes with 256 to 4096 rows, 4-bit integers and Q4_K by bf16 X (H200, 2026-11-27). */
static const gemm_constants of_image = {.multiply_wide = 11.3,
                                        .dequantise_wide = {.multiply_by_12 = 0.93},
                                        .overlap_wide = 1.5,
                                        .wide_tile = 2000,
                                        .large_tile = 2500,
                                        .start = 700,
                                        .sustained_wide = 1.1};

static const gemm_constants *constants_of(const lpg_problem *problem, const lpg_gemm_kind *kind) {
  return kind->mode == LPG_GEMM_SCALES_IMAGE ? &of_image : problem->experts > 0 ? &of_experts : &of_matrix;
}

static const gemm_few *few_of(const gemm_constants *c, const lpg_gemm_kind *kind) {
  return kind->tile.teams * kind->tile.warps == 16 ? &c->few_16 : &c->few;
}

/* Nanoseconds in which threads load a row of X of a k block, where TMA cannot: by four warps or two (18 times of three
 * matrices with 17 to 512 rows; H200, 2026-11-27). */
static double load_row_ns(const lpg_gemm_kind *kind) { return kind->stage_k == LPG_GEMM_BOX_K ? 60.0 : 160.0; }

/* Reading a k block while all SMs do: of what a work tile reads per block, weights come out of memory once, and all of
 * it through L2 (H200, 2026-11-23). */
static double read_ns(const lpg_gemm_kind *kind, double tile_m, const lpg_gemm_speed *speed) {
  const double codes = kind->tile_n * 32.0 * kind->bits, x = tile_m * 512.0 / kind->multicast;
  const double dram = kind->mode == LPG_GEMM_SCALES_IMAGE ? 0.0 : codes / lpg_dram_rate(speed->rates);
  return fmax(dram, (codes + x) / lpg_l2_rate(speed->rates));
}

static double wide_ns(const gemm_wide *w, const lpg_gemm_tile *t) {
  if (t->tile_m == LPG_GEMM_TILE_M) return w->of_256;
  return t->tile_m > 128 ? w->of_192_by_12 : t->warps == 12 ? w->of_128_by_12 : w->of_128;
}

/* A k block, at the speed of dequantising and multiplying, which overlap. multiplied: of the rows of X that are copied.
 */
static double block_ns(const gemm_constants *c, const lpg_gemm_kind *kind, double multiplied,
                       const lpg_gemm_speed *speed) {
  const double share = kind->tile_n / 128.0;
  const int is_wide = kind->tile.tile_m >= 128;
  const double slower = slower_by_mode(kind->mode, is_wide);
  const double by_warps = is_wide && kind->tile.warps == 12 ? c->dequantise_wide.multiply_by_12 : 1.0;
  const double each = is_wide ? wide_ns(&c->dequantise_wide, &kind->tile) : few_of(c, kind)->dequantise;
  const double dequantise = each * share * slower;
  const double multiply = (is_wide ? c->multiply_wide : c->multiply) * share * by_warps * multiplied;
  const double power = is_wide ? c->overlap_wide : c->overlap,
               both = pow(pow(dequantise, power) + pow(multiply, power), 1.0 / power);
  return fmax(LPG_GEMM_LOAD_NS, both) / speed->alu;
}

static double slower_by_rows(const gemm_constants *c, const lpg_problem *problem, const lpg_gemm_kind *kind) {
  if (problem->m <= 64) return 1.0;
  return kind->tile.tile_m < 128 ? few_of(c, kind)->sustained : c->sustained_wide;
}

/* How much gemv is preferred where both take about as long: in a chain of layers calls of gemm lose more than a call
 * that is repeated. Nanoseconds, and up to 8 rows a factor (set by hand; steps of models with 1, 4 and 16 rows, H200,
 * 2026-11-29). */
static int is_in_chain(const lpg_problem *problem, int64_t rows) {
  return problem->m <= rows && problem->experts == 0 && !problem->batch_invariant;
}
static double in_chain_ns(const lpg_problem *problem) { return is_in_chain(problem, 16) ? 300.0 : 0.0; }
static double slower_in_chain(const lpg_problem *problem) { return is_in_chain(problem, 8) ? 1.08 : 1.0; }

static double tile_ns(const gemm_constants *c, const lpg_gemm_kind *kind) {
  const int tile_m = kind->tile.tile_m;
  return tile_m < 128 ? few_of(c, kind)->tile : tile_m < LPG_GEMM_TILE_M ? c->wide_tile : c->large_tile;
}

/* Nanoseconds in which a CTA adds up the sums of a work tile's parts, beyond what storing takes anyway: the constants
 * come from the fit of a matrix, what they stand for from time stamps. Bytes are those of the other CTAs' parts; of 256
 * rows of X each CTA adds up 128 KB a part; in clusters of eight with 192 and 256 rows of W the sums are the most of a
 * small matrix (H100 and H200, 2026-11-22 to 25: docs/log/2026-11.md). 192 rows of X cost more, by two calls
 * (bench/results/h200-gemm-tall.txt, section 5). */
static double parts_ns(const gemm_constants *c, const lpg_gemm_plan *p, const lpg_gemm_kind *kind) {
  const int tile_m = kind->tile.tile_m, many = p->split_k >= 8 && kind->tile_n > 128;
  if (p->at_once == 1) return 0.0;
  if (tile_m == LPG_GEMM_TILE_M) return 1150.0 * p->split_k;
  const double bytes = kind->tile_n * p->x_rows * 4.0 * (p->split_k - 1) / p->split_k;
  const gemm_few *few = few_of(c, kind);
  const double parts = tile_m >= 128 ? 740.0 + 110.0 * p->split_k + bytes / (tile_m == LPG_GEMM_SQUARE_M ? 12.0 : 34.0)
                                     : few->parts + few->each_part * p->split_k + bytes / c->part_bytes;
  return parts + (many ? tile_m * (tile_m > 32 ? 75.0 : 35.0) : 0.0);
}

/* How much longer work tiles take than with 4-bit integers, for which the plan's constants stand: of 128 rows of X at
 * 8192 x 8192 with 2048 rows, and of fewer at 57344 x 8192, 8192 x 28672 and 8192 x 8192 with 32 and 64 (H200,
 * 2026-11-22; 2 bits and e4m3 2026-11-23). */
static double slower_of_128(const lpgemm_weight_desc_t *d, int64_t m) {
  const int bits = lpg_bits(d->type), is_integer = lpg_is_integer_kind(d->type), few = m < 128;
  if (lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK) return few ? 1.1 : 1.15;
  switch (bits) {
    case 1: return few ? 0.87 : 0.92;
    case 2: return few ? 1.0 : 0.98;
    case 3:
    case 4: return 1.0;
    case 5: return 1.1;
    case 6: return few ? 1.03 : 1.07;
    case 7: return few ? 1.18 : 1.26;
    default: return is_integer || d->type == LPGEMM_E4M3 ? 1.08 : few ? 1.2 : 1.24;
  }
}

/* With 256 rows of X weights are dequantised half as often, and that is hidden (H200, 2026-11-23); of 192 the same is
 * assumed. */
static double slower_by_dequantiser(const lpgemm_weight_desc_t *d, int64_t m, int tile_m) {
  const double slower = slower_of_128(d, m);
  return tile_m > 128 ? fmin(slower, 1.0 + 0.3 * (slower - 1.0)) : slower;
}

/* Kernels of 16 warps multiply the last k block whole. */
static double unused_blocks(const lpg_gemm_kind *kind, int64_t k) {
  if (kind->tile.teams * kind->tile.warps >= 16) return 0.0;
  const int64_t beyond = (LPG_BLOCK_K - k % LPG_BLOCK_K) % LPG_BLOCK_K; /* columns */
  return (double)(beyond - beyond % kind->stage_k) / LPG_BLOCK_K;
}

/* Rows of X that a work tile multiplies, in the mean: an expert's last one takes the narrowest product that has its
 * own, of more than half of the rows that there is room for. */
static double multiplied_rows(const lpg_gemm_kind *kind, int x_rows, const lpg_expected_rows *rows) {
  const int step = LPG_GEMM_WIDTH_STEP, least = kind->tile.tile_m / 2 + step;
  double multiplied = 0.0, tiles = 0.0;
  if (rows->experts == 0 || lpg_gemm_widths(kind->tile.tile_m) == 1) return x_rows;
  for (int i = 0; i < LPG_ROW_EXAMPLES; i++) {
    const double own = lpg_example_rows(rows, i), whole = ceil(own / x_rows) - 1.0, left = own - whole * x_rows;
    tiles += whole + 1.0;
    multiplied += whole * x_rows + fmax(least, ceil(left / step) * step);
  }
  return multiplied / tiles;
}

lpg_gemm_costs lpgemm_i_gemm_costs(const lpg_problem *problem, const lpg_gemm_kind *kind, int x_rows,
                                   const lpg_expected_rows *rows, const lpg_gemm_speed *speed) {
  const int tile_m = kind->tile.tile_m;
  const double multiplied = multiplied_rows(kind, x_rows, rows);
  const gemm_constants *const c = constants_of(problem, kind);
  const double loads = speed->loads_x ? load_row_ns(kind) * fmin(x_rows, rows->each) : 0.0;
  const double slower = kind->mode == LPG_GEMM_SCALES_IMAGE
                            ? 1.0
                            : slower_by_dequantiser(&problem->weights->desc, (int64_t)rows->each, tile_m);
  const lpg_gemm_costs costs = {
      .of = c,
      .sms = speed->sms,
      .block = fmax(loads, block_ns(c, kind, multiplied, speed)),
      .read = read_ns(kind, x_rows, speed),
      .half_block = lpg_gemm_has_halves(tile_m) ? fmax(0.5 * loads, block_ns(c, kind, 0.5 * tile_m, speed)) : 0.0,
      .half_read = lpg_gemm_has_halves(tile_m) ? read_ns(kind, 0.5 * tile_m, speed) : 0.0,
      .tile = tile_ns(c, kind),
      .start = (tile_m < 128 ? few_of(c, kind)->start : c->start + tile_ns(c, kind)) + in_chain_ns(problem),
      .busy = tile_m < 128 ? c->busy : 0.0,
      .slower = slower * slower_by_rows(c, problem, kind) * slower_in_chain(problem),
      .unused = unused_blocks(kind, problem->weights->desc.k)};
  return costs;
}

double lpgemm_i_gemm_cost(const lpg_gemm_plan *p, const lpg_gemm_kind *kind, const lpg_expected_rows *rows,
                          const lpg_gemm_costs *costs) {
  const double whole = rows->experts > 0 ? p->n_tiles * lpg_expected_tiles(rows, p->x_rows) : p->whole;
  const double rounds = ceil(whole / p->clusters);
  /* CTAs that run share what L2 gives. Work tiles of few rows of X were fitted so, others as if all SMs always read. */
  const double busy = fmin(1.0, (double)p->clusters * p->split_k * p->multicast / costs->sms);
  const double read = kind->tile.tile_m < 128 ? busy * costs->read : costs->read;
  const double block = fmax(costs->block, read), half_block = fmax(costs->half_block, costs->half_read);
  if (p->streamed > 0) {
    const double each = p->stream.each + (p->stream.more > 0);
    const double partials = kind->tile_n * p->x_rows * 4.0 / LPG_GEMM_PARTIAL_BYTES;
    return (rounds * (p->blocks - costs->unused) * block + each * block + (rounds + 1.0) * costs->tile +
            LPG_GEMM_STREAM_NS + partials * fmin(p->blocks / each, p->clusters) + costs->start) *
           costs->slower;
  }
  const int halves = p->whole < p->n_tiles * p->m_tiles;
  const int most = (p->blocks + p->at_once - 1) / p->at_once * kind->tile.teams; /* of a CTA */
  const double blocks = most - (p->at_once == 1 ? costs->unused : 0.0); /* of parts the last one is short, and waits */
  /* CTAs that share X wait for one another at the start and at the end; several waves hide that */
  const double together = p->multicast > 1 && rounds <= 1.0 ? LPG_GEMM_TOGETHER_NS : 0.0;
  return (rounds * (blocks * block + parts_ns(costs->of, p, kind)) + fmax(0.0, rounds - 1.0) * costs->tile +
          halves * (blocks * half_block + costs->tile) + costs->start + together + busy * costs->busy) *
         costs->slower;
}

/* Microseconds that preparing the scales of a chunk takes: their bytes (Q4_K, Q2_K, Q6_K and bipolar weights of 4096 x
 * 4096 to 28672 x 8192; H200, 2026-11-23), or the rounds of CTAs after the first, three of which an SM has at once
 * (bipolar weights 91728 x 960 in groups of 64: seven; H200, 2026-11-26). The kernel for two levels takes as long by
 * bytes (8192 x 8192: Q4_K 11.6, Q6_K 14.1), and has fewer rounds. */
static double prepare_us(const lpg_packed *weights, const lpg_device *device) {
  const double granules = (double)lpg_gemm_scale_groups(weights), sms = device->sms > 0 ? device->sms : 1;
  const double tiles = granules <= 8 ? 4 : granules <= 16 ? 2 : 1; /* of a CTA: gemm_prepare.cu */
  const double rounds = (double)lpg_gemm_chunk_tiles(weights, LPG_GEMM_SCALES_PREPARED) / tiles / (3.0 * sms) - 1.0;
  return 3.0 + fmax((double)lpg_gemm_made_bytes(weights, LPG_GEMM_SCALES_PREPARED) / 2.5e6, 2.3 * rounds);
}

/* Microseconds that expanding a chunk takes: what L2 takes of its bytes (4096 x 4096: 15; H200, 2026-11-27). */
static double expand_us(const lpg_packed *weights) {
  return 5.0 + (double)lpg_gemm_made_bytes(weights, LPG_GEMM_SCALES_IMAGE) / 2.4e6;
}

double lpgemm_i_gemm_make_us(const lpg_packed *weights, lpg_gemm_scales mode, const lpg_device *device) {
  return mode == LPG_GEMM_SCALES_IMAGE ? expand_us(weights) : prepare_us(weights, device);
}
