/* Plans (src/kernels/plan/search.c, NAME_plan.c) on made-up GPUs: what is not refused has a plan, the pieces are the
 * whole, and everything lies in shared memory, aligned and apart. */
#include "kernels/dequant/dequant_plan.h"
#include "kernels/gemm/gemm_mode.h"
#include "kernels/gemm8/gemm8_plan.h"
#include "kernels/gemv/gemv_plan.h"
#include "kernels/operand/center.h"
#include "kernels/operand/expand.h"
#include "kernels/plan/rates.h"
#include "kernels/stripe/stripe_plan.h"
#include "made_up.h"
#include "plans.h"

static const lpg_device *const devices[] = {&sm90, &h100_pcie, &sm80, &sm86};

static lpgemm_weight_desc_t draw_desc(void) {
  static const lpgemm_dtype_t scales[] = {0, LPGEMM_F16, LPGEMM_F32, LPGEMM_E4M3, LPGEMM_UINT(6)};
  static const int64_t groups[] = {16, 32, 64, 128, 0};
  lpgemm_weight_desc_t d = {.size = sizeof d};
  uint32_t bits = (uint32_t)test_between(1, 8);
  d.type = bits <= 4 && test_between(0, 3) == 0 ? LPGEMM_CODEBOOK(bits) : LPGEMM_UINT(bits);
  d.n = test_between(0, test_between(0, 1) ? 100 : 70000);
  d.k = test_between(0, test_between(0, 1) ? 3000 : 70000);
  d.group_k = groups[test_between(0, 4)];
  d.scale_type = scales[test_between(0, 4)];
  if (d.scale_type == LPGEMM_UINT(6)) d.super_scale_type = LPGEMM_F16;
  if (d.super_scale_type && d.group_k) d.super_k = 256;
  if (d.scale_type && test_between(0, 1)) {
    d.zero = LPGEMM_ZERO_PER_GROUP;
    d.zero_type = LPGEMM_F16;
  }
  if (test_between(0, 2) == 0) {
    d.columns = LPGEMM_COLUMNS_ORDERED;
    d.x_k = d.k + test_between(0, 1) * test_between(0, 5000);
  }
  return d;
}

static void check_gemv(const lpg_gemv_plan *p, const lpg_gemv_kind *kind, const lpg_packed *w, int64_t m,
                       const lpg_device *device) {
  int slice_blocks = p->k_part.each + (p->k_part.more > 0), tiles = p->n_part.each + (p->n_part.more > 0);
  int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  CHECK(p->split_k == 1 || p->split_k == 2 || p->split_k == 4 || p->split_k == 8);
  const int half = p->warps < kind->warps; /* of the warps, and of an SM */
  CHECK(p->warps == kind->warps || (kind->has_half && 2 * p->warps == kind->warps && m == 1 && p->split_k == 1));
  CHECK(p->clusters <= (half ? 2 : 1) * (p->split_k == 1 ? device->sms : device->clusters[p->split_k]));
  check_parts(p->k_part, p->split_k, p->blocks);
  check_parts(p->n_part, p->clusters, p->super_tiles);
  CHECK((int64_t)p->blocks * LPG_BLOCK_K >= w->k_padded);
  CHECK((int64_t)p->super_tiles * kind->row_tiles >= w->row_tiles);
  CHECK(p->x_rows == (m < kind->tile_m ? m : kind->tile_m));
  CHECK(p->n_part.each >= 1 && p->phase_blocks >= (w->desc.k > 0) && p->phase_blocks <= slice_blocks);

  /* in the order in which they lie: the dequantiser's table, X, its sums, those of warps and of peers, what each warp
   * has */
  CHECK(p->x >= kind->table_bytes && p->x % 16 == 0 && p->x_stride % 16 == 0);
  CHECK(p->x_stride >= p->phase_blocks * LPG_BLOCK_K * 2);
  CHECK(p->x_place >= p->x_rows * p->x_stride && p->x_place % 16 == 0);
  CHECK(p->sums >= p->x + (p->phase_blocks < slice_blocks ? 2 : 1) * p->x_place && p->sums % 16 == 0);
  int sum_bytes = p->phase_blocks * LPG_BLOCK_K / kind->scale_group_k * kind->tile_m * 4;
  CHECK(p->slots >= p->sums + (kind->has_sums ? sum_bytes : 0) && p->slots % 16 == 0 && p->slot_bytes % 16 == 0);
  CHECK(p->slot_bytes == kind->row_tiles * LPG_TILE_ROWS * kind->tile_m * 4);
  CHECK(p->peers >= p->slots + (p->round_tiles + p->warps - 1) * p->slot_bytes && p->peers % 16 == 0);
  int areas = p->split_k > 1 ? (rounds > 1 ? 2 : 1) * p->split_k : 0;
  if (areas) CHECK(p->peer_bytes * p->split_k >= p->round_tiles * p->slot_bytes && p->peer_bytes % 16 == 0);
  CHECK(p->warp >= p->peers + areas * p->peer_bytes && p->warp % 16 == 0);
  CHECK(p->scale_table_bytes % 128 == 0 && kind->raw_bytes % 16 == 0 && p->warp_bytes % 16 == 0);
  CHECK(p->warp_bytes == kind->scale_table_bytes + kind->raw_bytes);
  CHECK(p->order == p->warp + p->warps * p->warp_bytes && p->order % 16 == 0);
  CHECK(p->raw_bytes == 0 || kind->tile_m == 8);
  if (p->raw_bytes > 0) { /* the order of a part, and one row of X or two */
    CHECK(w->desc.columns && p->phase_blocks == slice_blocks && p->raw == p->order + slice_blocks * LPG_BLOCK_K * 4);
    CHECK(p->raw_bytes >= 2 * w->x_k && p->raw_bytes % 16 == 0 && p->raw % 16 == 0);
    CHECK(p->shared_bytes == p->raw + p->raw_bytes * (p->x_rows > 1 ? 2 : 1));
  } else {
    CHECK(p->shared_bytes == p->order && p->raw == p->order);
  }
  CHECK((half ? 2 : 1) * (p->shared_bytes + 1024) <= device->shared_memory + 1024);
}

static int fitted, split, halved,
    streamed; /* plans that fit; of them with parts of K, halves of work tiles, stream-K */

static int refuses(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device) {
  return planner->refuses(planner, problem, device) != NULL;
}

static lpg_packed draw_packed(void) {
  const lpgemm_weight_desc_t desc = draw_desc();
  lpg_packed w;
  CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
  return w;
}

static void check_gemv_drawn(const lpg_device *device) {
  for (int i = 0; i < 600; i++) {
    const lpg_packed w = draw_packed();
    const lpg_planner *planner = test_between(0, 1) ? &lpgemm_i_gemv_8_planner : &lpgemm_i_gemv_16_planner;
    const lpg_problem problem = plan_problem(&w, LPGEMM_F16, test_between(1, planner->tile_m));
    const lpg_center center = lpg_center_of(&w.desc);
    const lpg_gemv_kind kind = lpg_gemv_kind_of(&w, planner->tile_m, lpg_has_shift(&center), center.per_group);
    lpg_gemv_plan p;
    const int fits = !refuses(planner, &problem, device), found = plan_of(planner, &problem, device, &p);
    fitted += fits;
    CHECK(found || !fits || w.row_tiles == 0);
    if (found) check_gemv(&p, &kind, &w, problem.m, device);
  }
}

/* Who gathers the columns of X: gemv for few rows, while that takes less time than a launch, which others pay. */
static void check_gathers(void) {
  static const int64_t k[] = {4096, 8192, 200000}, rows[] = {1, 2, 4, 8};
  for (int i = 0; i < COUNT(k); i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .n = 8192, .k = k[i], .group_k = 128};
    lpg_packed plain, ordered;
    desc.scale_type = LPGEMM_F16;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &plain), LPGEMM_SUCCESS);
    desc.columns = LPGEMM_COLUMNS_ORDERED;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &ordered), LPGEMM_SUCCESS);
    int gathered = 0;
    for (int m = 0; m < COUNT(rows); m++) {
      const lpg_problem with = plan_problem(&ordered, LPGEMM_F16, rows[m]),
                        without = plan_problem(&plain, LPGEMM_F16, rows[m]);
      lpg_planned a, b;
      CHECK(!lpgemm_i_plan(&lpgemm_i_gemv_8_planner, &with, &sm90, &a));
      CHECK(!lpgemm_i_plan(&lpgemm_i_gemv_8_planner, &without, &sm90, &b));
      const double more = a.launch.us - b.launch.us, launch = lpgemm_i_gather_us(&with, &sm90);
      CHECK(!b.launch.gathers && launch > 2 && more > 0);
      CHECK(a.launch.gathers ? more < launch : more > 0.99 * launch && more < 1.01 * launch);
      gathered += a.launch.gathers;
      if (rows[m] == 1) CHECK(a.launch.gathers == (k[i] < 100000));
      lpg_problem bytes = with;
      bytes.x_type = LPGEMM_I8; /* widened on the way: not gathered there */
      CHECK(!lpgemm_i_plan(&lpgemm_i_gemv_8_planner, &bytes, &sm90, &a) && !a.launch.gathers);
      CHECK(!lpgemm_i_plan(&lpgemm_i_gemm_planner, &with, &sm90, &a) && !a.launch.gathers);
    }
    CHECK(gathered >= (k[i] < 100000) && gathered < COUNT(rows));
  }
}

/* Stream-K: all k blocks are dealt out, to each cluster as many, and it has no work tile's middle but as its first. */
static void check_stream(const lpg_gemm_plan *p, const lpg_gemm_kind *kind) {
  const int64_t units = (int64_t)p->streamed * p->blocks;
  streamed++;
  CHECK(lpg_gemm_streams(kind->tile.tile_m, kind->tile.teams) && p->parts == 1 && p->split_k == 1);
  CHECK(p->whole + p->streamed == p->n_tiles * p->m_tiles && p->whole % p->clusters == 0);
  CHECK(p->streamed < 2 * p->clusters && p->clusters <= units);
  check_parts(p->stream, p->clusters, (int32_t)units);
}

/* Stream-K has room for its flags and sums in whatever workspace is bound, and is planned with what the planner asks
 * for. */
static void check_stream_room(const lpg_planner *planner, lpg_problem problem, const lpg_gemm_planned *unbound,
                              lpg_gemm_scales mode, const lpg_device *device) {
  const size_t own = planner->workspace(planner, &problem, device);
  const size_t more = planner->more_workspace(planner, &problem, device);
  lpg_gemm_planned p;
  problem.workspace = own + more;
  CHECK(plan_of(planner, &problem, device, &p));
  CHECK(more == 0 || memcmp(&p, unbound, sizeof p) == 0);
  problem.workspace = own + (size_t)test_between(0, (int64_t)device->sms * LPG_GEMM_STREAM_BYTES);
  CHECK(plan_of(planner, &problem, device, &p));
  const size_t scratch = lpg_gemm_scratch_bytes(&problem, mode);
  const size_t ctas = (size_t)(p.plan.clusters * p.plan.multicast);
  CHECK(p.plan.streamed == 0 || scratch + ctas * LPG_GEMM_STREAM_BYTES <= problem.workspace);
}

/* Halves: one a cluster at the most, each with rows of X. */
static void check_whole(int whole, int tiles, int clusters, int tile_m, int64_t m) {
  if (whole == tiles) return;
  halved++;
  CHECK(whole > 0 && whole < tiles && whole % clusters == 0 && 2 * (tiles - whole) <= clusters);
  CHECK((m - 1) % tile_m + 1 > tile_m / 2);
}

static void check_gemm(const lpg_gemm_plan *p, const lpg_gemm_kind *kind, const lpg_packed *w, int64_t m,
                       const lpg_device *device) {
  const int stage_k = kind->stage_k, each = lpg_gemm_stage_steps(kind->bits, stage_k) * LPG_STEP_K / stage_k;
  const int cluster = p->split_k * p->multicast; /* the blocks of one have parts of K, or the same tokens */
  CHECK(cluster == 1 || cluster == 2 || cluster == 4 || cluster == 8);
  CHECK(p->clusters <= (cluster == 1 ? device->sms : device->clusters[cluster]));
  CHECK(p->multicast == kind->multicast && (p->multicast == 1 || p->at_once == 1));
  CHECK(p->at_once == p->split_k * kind->tile.teams && p->parts == p->at_once * p->runs);
  CHECK(p->parts == 1 || p->parts <= p->blocks);
  CHECK(p->runs == 1 || (lpg_gemm_has_runs(kind->tile.tile_m, kind->tile.warps) && kind->tile.teams == 1));
  CHECK(p->runs <= 2 || p->at_once == 1);
  if (p->streamed) {
    check_stream(p, kind);
  } else {
    CHECK(p->clusters >= 1 && (p->clusters == 1 || p->clusters <= p->n_tiles * p->m_tiles));
    CHECK(p->whole == p->n_tiles * p->m_tiles || (p->parts == 1 && lpg_gemm_has_halves(p->x_rows)));
    check_whole(p->whole, p->n_tiles * p->m_tiles, p->clusters, kind->tile.tile_m, m);
  }
  check_parts(p->part, p->parts, p->blocks);
  CHECK((int64_t)p->blocks * LPG_BLOCK_K >= w->k_padded);
  CHECK((int64_t)p->n_tiles * kind->tile_n * p->multicast >= lpg_gemm_chunk_rows(w, kind->mode));
  const int widths = lpg_gemm_widths(kind->tile.tile_m);
  CHECK(p->x_rows <= kind->tile.tile_m && p->x_rows > kind->tile.tile_m - widths * LPG_GEMM_WIDTH_STEP);
  CHECK(p->x_rows % (8 * lpg_gemm_x_boxes(kind->tile.tile_m)) == 0);
  CHECK((int64_t)p->m_tiles * p->x_rows >= m && (int64_t)(p->m_tiles - 1) * p->x_rows < m);

  /* a stage of X that is free means that the weights and scales that come with it are free */
  const int block_stages = LPG_BLOCK_K / stage_k, others = (kind->tile.teams - 1) * block_stages;
  CHECK(block_stages <= LPG_GEMM_PRODUCER_WARPS &&
        p->x_stages <= lpg_gemm_most_blocks(kind->tile.tile_m) * block_stages);
  CHECK(p->x_stages >= others + block_stages);
  CHECK(each == 1 ? p->x_stages == p->w_stages || (others == 0 && p->x_stages < p->w_stages)
                  : p->x_stages <= 1 + each * (p->w_stages - 1) - others);
  const int prepared = lpg_gemm_is_prepared(kind->mode);
  CHECK(prepared ? p->slots == p->x_stages : p->x_stages <= 1 + block_stages * (p->slots - kind->tile.teams));

  /* in the order in which they lie */
  const int warps = kind->tile.teams * kind->tile.warps;
  CHECK(p->table >= 16 * p->x_stages && p->factors >= p->table + kind->table_bytes);
  const int factors_end = p->factors + 2 * LPG_GEMM_TILE_N * 4;
  CHECK(p->sums >= factors_end && p->factors % 16 == 0 && p->sums % 16 == 0);
  CHECK(p->scales >= factors_end && p->scales % 16 == 0 && kind->slot_bytes % 16 == 0);
  const int scales_end = prepared ? factors_end : p->scales + p->slots * kind->slot_bytes;
  if (p->boxes) { /* outputs of a whole work tile */
    CHECK(p->at_once == 1 && p->sums >= scales_end && p->sums % 1024 == 0);
    CHECK(p->x_ring >= p->sums + kind->tile_n * p->x_rows * 2 && p->x_stages >= 4);
    CHECK(p->x_ring >= p->sums + warps * LPG_PASS_ROWS * (LPG_TILE_ROWS + 4) * 4);
  } else if (p->at_once == 1) {
    CHECK(p->scales >= p->sums + warps * LPG_PASS_ROWS * (LPG_TILE_ROWS + 4) * 4);
  } else { /* all sums of a CTA */
    CHECK(p->sums >= p->x_ring);
    CHECK(p->shared_bytes >= p->sums + kind->tile.teams * p->runs * kind->tile.tile_m * (kind->tile_n + 4) * 4);
  }
  CHECK(p->x_ring >= scales_end && p->x_ring % 1024 == 0);
  CHECK(kind->x_stage_bytes % 1024 == 0 && kind->x_stage_bytes == kind->tile.tile_m * stage_k * 2);
  CHECK(p->w_ring >= p->x_ring + p->x_stages * kind->x_stage_bytes && p->w_ring % 128 == 0);
  CHECK(kind->w_stage_bytes ==
        kind->tile_n / LPG_TILE_ROWS * lpg_tile_bytes(kind->bits) * (each * stage_k / lpg_tile_k(kind->bits)));
  const int rings_end = p->w_ring + p->w_stages * kind->w_stage_bytes;
  CHECK(!prepared || p->scales == rings_end);
  const int stages_end = rings_end + (prepared ? p->slots * kind->slot_bytes : 0);
  const int sent = (kind->tile.tile_m / 8 + p->at_once - 1) / p->at_once * 8; /* rows of X that a team adds up */
  CHECK(p->shared_bytes >= stages_end && p->shared_bytes <= device->shared_memory);
  CHECK(p->apart
            ? p->exchanges && p->sums == stages_end && p->sums % 16 == 0 && p->x_stages >= others + 2 * block_stages
            : p->shared_bytes == stages_end);
  CHECK(!p->exchanges || (p->at_once > 1 && p->runs == 1 &&
                          p->shared_bytes >= p->sums + warps * LPG_PASS_ROWS * (LPG_TILE_ROWS + 4) * 4 +
                                                 kind->tile.teams * p->at_once * sent * kind->tile_n * 4));
  CHECK(p->received % 8 == 0 && p->received >= 16 * p->x_stages && p->received + 8 <= p->table);
  for (int i = 0; i < 8; i++) { /* where work tiles lie */
    const int tile = (int)((int64_t)p->n_tiles * p->m_tiles * i / 7), band = LPG_GEMM_BAND * p->m_tiles;
    CHECK(lpg_quotient(tile, p->by_band) == tile / (band > 0 ? band : 1));
    CHECK(lpg_quotient(tile, p->by_last_band) == tile / (p->n_tiles > 0 ? (p->n_tiles - 1) % LPG_GEMM_BAND + 1 : 1));
  }
}

static void check_divisor(void) {
  for (int i = 0; i < 20000; i++) {
    const int32_t by = (int32_t)test_between(1, INT64_C(1) << test_between(0, 31)), d = by > 0 ? by : INT32_MAX;
    const lpg_divisor divisor = lpg_divisor_of(d);
    const int32_t quotient = (int32_t)test_between(0, INT32_MAX / d);
    const int64_t n[] = {
        0, 1, d - 1, (int64_t)quotient * d, (int64_t)quotient * d - 1, test_between(0, INT32_MAX), INT32_MAX};
    for (int j = 0; j < COUNT(n); j++) {
      if (n[j] >= 0) CHECK_INT(lpg_quotient((int32_t)n[j], divisor), n[j] / d);
    }
  }
}

static const lpg_gemm_tile gemm_tiles[] = {
#define TILE(tile_m, teams, warps) {tile_m, teams, warps},
    LPG_GEMM_TILES(TILE)
#undef TILE
};

static void check_gemm_drawn(const lpg_device *device) {
  char taken[COUNT(gemm_tiles)] = {0};
  for (int i = 0; i < 1500; i++) {
    const lpg_packed w = draw_packed();
    lpg_problem problem = plan_problem(&w, test_between(0, 1) ? LPGEMM_F16 : LPGEMM_BF16, 0);
    problem.m = test_between(0, test_between(0, 1) ? 300 : 9000);
    problem.scale_span = (uint32_t)test_between(0, 1) * 255;
    problem.x_unaligned = (int)test_between(0, 1);
    problem.batch_invariant = test_between(0, 3) == 0;
    lpg_gemm_planned p;
    const int found = plan_of(&lpgemm_i_gemm_planner, &problem, device, &p);
    fitted += found;
    CHECK(found || device->shared_memory < 232448); /* on the H200, whatever the weights */
    if (!found) continue;
    const lpg_gemm_scales mode = lpgemm_i_gemm_scaling(&w, problem.x_type, problem.scale_span).mode;
    const lpg_gemm_kind kind = lpg_gemm_kind_of(&w, gemm_tiles[p.tile], mode, p.plan.multicast);
    CHECK(lpg_gemm_has_multicast(kind.tile.tile_m, p.plan.multicast));
    check_gemm(&p.plan, &kind, &w, problem.m, device);
    if (p.plan.streamed > 0) check_stream_room(&lpgemm_i_gemm_planner, problem, &p, mode, device);
    taken[p.tile] = 1;
  }
  for (int i = 0; i < COUNT(gemm_tiles); i++) { /* 256 rows of X ask for more than 99 KB of shared memory */
    CHECK(taken[i] || device->shared_memory < 163 * 1024);
  }
}

/* Images: a chunk is all rows, or whole work tiles and row tiles that share scales; it lies behind the copy of X, with
 * its factors, and what stream-K needs behind that. */
static void check_image_chunk(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *w = problem->weights;
  const int64_t n = w->desc.n, rows = lpg_gemm_chunk_rows(w, LPG_GEMM_SCALES_IMAGE), shared = w->tiles_a_scale;
  CHECK(rows == n || (rows > 0 && rows < n && rows % LPG_GEMM_TILE_N == 0));
  CHECK(rows == n || shared >= w->row_tiles || rows / LPG_TILE_ROWS % shared == 0);
  const int64_t pieces = lpg_ceil_div(rows, LPG_IMAGE_ROWS) * lpg_image_columns(w->desc.k);
  const size_t made = (size_t)lpg_gemm_made_bytes(w, LPG_GEMM_SCALES_IMAGE), x_bytes = lpg_x_copy_bytes(problem, 2);
  CHECK(made >= (size_t)pieces * LPG_IMAGE_PIECE + (size_t)rows * 4 && made <= LPG_GEMM_MOST_PREPARED);
  CHECK((int64_t)lpg_image_columns(w->desc.k) * LPG_IMAGE_K >= w->desc.k);
  const size_t own = planner->workspace(planner, problem, device);
  CHECK(own >= x_bytes + made && own % 16 == 0);
  CHECK(own + planner->more_workspace(planner, problem, device) <= x_bytes + LPG_GEMM_MOST_PREPARED + 16);
  lpg_planned planned;
  CHECK(!lpgemm_i_plan(planner, problem, device, &planned));
  CHECK(planned.launch.passes == (rows < n ? lpg_ceil_div(n, rows) : 1));
  lpg_problem more = *problem;
  more.m++;
  CHECK(planner->workspace(planner, &more, device) >= own);
}

static void check_image_drawn(const lpg_device *device) {
  char taken[COUNT(gemm_tiles)] = {0};
  for (int i = 0; i < 1000; i++) {
    const lpg_planner *planner = i % 2 ? &lpgemm_i_dequant_image_bf16_planner : &lpgemm_i_dequant_image_f16_planner;
    const lpg_packed w = draw_packed();
    lpg_problem problem = plan_problem(&w, planner->type, test_between(33, test_between(0, 1) ? 300 : 9000));
    problem.scale_span = (uint32_t)test_between(0, 1) * 255;
    problem.x_unaligned = (int)test_between(0, 1);
    if (w.desc.n == 0 || refuses(planner, &problem, device)) continue;
    lpg_gemm_planned p;
    const int found = plan_of(planner, &problem, device, &p);
    fitted += found;
    CHECK(found || device->shared_memory < 232448);
    if (!found) continue;
    const lpg_gemm_kind kind = lpg_gemm_kind_of(&w, gemm_tiles[p.tile], LPG_GEMM_SCALES_IMAGE, p.plan.multicast);
    CHECK(kind.slot_bytes == 0 && kind.table_bytes == 0 && p.plan.w_ring % 1024 == 0 && p.plan.runs == 1);
    check_gemm(&p.plan, &kind, &w, problem.m, device);
    check_image_chunk(planner, &problem, device);
    if (p.plan.streamed > 0) check_stream_room(planner, problem, &p, LPG_GEMM_SCALES_IMAGE, device);
    taken[p.tile] = 1;
    split += p.plan.split_k > 1;
  }
  for (int i = 0; i < COUNT(gemm_tiles); i++) {
    const lpg_gemm_tile t = gemm_tiles[i];
    const int has = lpg_gemm_has(LPG_GEMM_SCALES_IMAGE, t.tile_m, t.teams * t.warps);
    CHECK(has ? taken[i] || device->shared_memory < 232448 : !taken[i]);
  }
}

/* Rows of X of a work tile: 144 and 190 rows are two work tiles of 96, with 192 rows of W, 210 are two of 128, 400 two
 * of 224, which are not multiplied as 256, and 768 four of 192. */
static void check_gemm_width(void) {
  static const int64_t rows[][2] = {{80, 96},   {144, 96},  {190, 96},  {210, 128},
                                    {400, 224}, {512, 128}, {768, 192}, {1024, 256}};
  for (int i = 0; i < COUNT(rows); i++) {
    const lpgemm_weight_desc_t desc = {
        .size = sizeof desc, .type = LPGEMM_UINT(4), .n = 12288, .k = 2048, .group_k = 128, .scale_type = LPGEMM_F16};
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
    lpg_problem problem = plan_problem(&w, LPGEMM_F16, 0);
    lpg_gemm_planned p;
    problem.m = rows[i][0];
    CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, &sm90, &p));
    CHECK(p.plan.x_rows == rows[i][1]);
  }
}

/* Calls whose rows must not depend on M: the parts of K are the same, whatever M is. */
static void check_gemm_invariant(const lpg_device *device) {
  static const int64_t rows[] = {1, 32, 257, 5000};
  for (int i = 0; i < 300; i++) {
    const lpg_packed w = draw_packed();
    lpg_problem problem = plan_problem(&w, LPGEMM_F16, 0);
    problem.batch_invariant = 1;
    problem.scale_span = (uint32_t)test_between(0, 1) * 255;
    lpg_gemm_planned first, p;
    const int top = (int)test_between(1, 4);
    problem.experts = i % 4 ? 0 : (int32_t)test_between(2, 64);
    problem.slots = problem.experts ? top : 0;
    if (!plan_of(&lpgemm_i_gemm_planner, &problem, device, &first)) continue;
    for (int m = 0; m < COUNT(rows); m++) {
      problem.m = rows[m];
      problem.slots = problem.experts ? rows[m] * top : 0;
      problem.x_unaligned = (int)test_between(0, 1);
      fitted++;
      CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, device, &p) && p.plan.parts == first.plan.parts);
    }
  }
}

/* The matrices of invariant/parts (test_invariant.c), which need as many, with all that is drawn there. */
static void check_gemm_four_parts(const lpg_device *device) {
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(2),     LPGEMM_UINT(3), LPGEMM_UINT(4),
                                         LPGEMM_FLOAT(2, 1), LPGEMM_UINT(8), LPGEMM_E4M3};
  for (int i = 0; i < 6 * 16; i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = types[i / 16], .n = i / 8 % 2 ? 2436 : 2440, .k = 4400};
    desc.group_k = i % 2 ? 128 : 32;
    desc.scale_type = i / 2 % 2 ? LPGEMM_BF16 : LPGEMM_F16;
    if (i / 4 % 2 && LPGEMM_DTYPE_KIND(desc.type) == LPGEMM_KIND_UINT) {
      desc.zero = LPGEMM_ZERO_PER_GROUP;
      desc.zero_type = LPGEMM_U8;
    }
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
    for (uint32_t span = 3; span <= 255; span += 252) { /* near one another, and not */
      lpg_problem problem = plan_problem(&w, LPGEMM_F16, 40);
      lpg_gemm_planned p;
      problem.scale_span = span;
      problem.batch_invariant = 1;
      CHECK(plan_of(&lpgemm_i_gemm_planner, &problem, device, &p) && p.plan.parts == 4);
    }
  }
}

static void check_dequant_drawn(const lpg_device *device) {
  static const lpg_planner *const planners[] = {
      &lpgemm_i_dequant_f16_sm90a_planner,  &lpgemm_i_dequant_bf16_sm80_planner, &lpgemm_i_dequant_i8_sm90a_planner,
      &lpgemm_i_dequant_e4m3_sm90a_planner, &lpgemm_i_dequant_f16_sm80_planner,  &lpgemm_i_dequant_i8_sm80_planner};
  for (int i = 0; i < 1200; i++) {
    const lpg_packed w = draw_packed();
    const lpgemm_weight_desc_t desc = w.desc;
    const lpg_planner *planner = planners[i % COUNT(planners)];
    const int wgmma = planner->wgmma;
    const int64_t m = test_between(33, test_between(0, 1) ? 300 : 9000);
    lpg_problem problem = plan_problem(&w, planner->type, m);
    problem.scale_span = (uint32_t)test_between(0, 1) * 255;
    if (desc.n == 0 || refuses(planner, &problem, device)) continue; /* without rows of W no run comes so far */
    const lpgemm_dtype_t image = lpgemm_i_expand_image(&problem, planner->type, wgmma);
    const int x_bytes = (int)lpg_bytes(image);
    const lpg_expand_scaling scaling = lpgemm_i_expand_scaling(&problem, image);
    lpg_dequant_plan p;
    const int found = plan_of(planner, &problem, device, &p);
    fitted += found;
    CHECK(found || device->shared_memory < 232448 || desc.k * x_bytes > 130000);
    if (!found) continue;
    CHECK((int64_t)p.k_stages * LPG_DEQUANT_STAGE_BYTES >= desc.k * x_bytes);
    CHECK((int64_t)p.n_tiles * LPG_DEQUANT_TILE_N >= desc.n && p.chunk_tiles >= (desc.n > 0) &&
          p.chunk_tiles <= p.n_tiles);
    CHECK((int64_t)p.m_tiles * p.multicast * LPG_DEQUANT_TILE_M >= m && p.multicast >= 1 && p.multicast <= 2);
    CHECK(p.cluster == p.multicast * p.split_k && p.cluster <= 8 && (p.cluster == 1 || wgmma));
    CHECK(p.clusters >= 1 && p.clusters * p.cluster <= device->sms);
    split += p.split_k > 1;

    /* slices are not empty, and no cluster takes a second work tile, since the sums take the ring's place; those of
     * integers are not split */
    CHECK(p.split_k >= 1 && p.split_k <= p.k_stages && (p.split_k == 1 || !p.persistent));
    CHECK(p.split_k == 1 || x_bytes > 1 || scaling.in_table);

    /* the largest chunk is within the workspace, but for numbers that take no more than X; the plan's is no larger */
    lpg_dequant_plan largest = p;
    largest.chunk_tiles = lpg_dequant_most_tiles(&p);
    CHECK(lpg_dequant_chunk_bytes(&largest) <= LPG_DEQUANT_WORKSPACE + m * desc.k * x_bytes);
    CHECK(largest.chunk_tiles * lpg_dequant_tile_bytes(&p) <= LPG_DEQUANT_WORKSPACE);
    CHECK(largest.chunk_tiles >= p.chunk_tiles);

    /* in the order in which they lie; without wgmma, and of slices, the sums take the ring's place */
    CHECK(p.factors >= 16 * LPG_DEQUANT_MOST_STAGES && p.factors % 16 == 0 && p.x_ring % 1024 == 0);
    CHECK(p.sums >= p.factors + LPG_DEQUANT_TILE_N * 4 && p.sums % 16 == 0);
    CHECK(wgmma && p.split_k == 1 ? p.x_ring >= p.sums + LPG_DEQUANT_SUMS_BYTES : p.sums == p.x_ring);
    CHECK(p.shared_bytes >=
          p.sums + (p.split_k > 1 ? lpg_sums_bytes(LPG_DEQUANT_TILE_M, LPG_DEQUANT_TILE_N) : LPG_DEQUANT_SUMS_BYTES));
    CHECK(p.stages >= (wgmma ? LPG_DEQUANT_PRODUCER_WARPS : 2) && p.stages <= LPG_DEQUANT_MOST_STAGES);
    CHECK(p.w_ring == p.x_ring + p.stages * LPG_DEQUANT_X_BYTES && p.w_ring % 1024 == 0);
    CHECK(p.shared_bytes == p.w_ring + p.stages * LPG_DEQUANT_W_BYTES && p.shared_bytes <= device->shared_memory);
  }
}

static const lpg_gemm8_tile gemm8_tiles[] = {
#define TILE(tile_m, row_tiles) {tile_m, row_tiles},
    LPG_GEMM8_TILES(TILE)
#undef TILE
};

static void check_gemm8_drawn(const lpg_device *device) {
  int direct = 0, exchanged = 0;
  for (int i = 0; i < 400; i++) {
    const lpg_packed w = draw_packed();
    const lpgemm_weight_desc_t desc = w.desc;
    const lpgemm_dtype_t x_type = i % 3 ? LPGEMM_I8 : LPGEMM_E4M3;
    const int64_t m = test_between(1, test_between(0, 1) ? 300 : 9000);
    lpg_problem problem = plan_problem(&w, x_type, m);
    lpg_gemm8_planned planned;
    problem.x_unaligned = i % 4 == 3;
    if (desc.k == 0) continue; /* refused */
    const int found = plan_of(&lpgemm_i_gemm8_planner, &problem, device, &planned);
    fitted += found;
    CHECK(found || device->shared_memory < 232448);
    if (!found) continue;
    const lpg_gemm8_plan p = planned.plan;
    const lpg_gemm8_tile tile = gemm8_tiles[planned.tile];
    const int tile_m = tile.tile_m, tile_n = lpg_gemm8_tile_n(tile.row_tiles);
    const int stage_k = lpg_gemm8_stage_k(w.bits, tile_m, tile.row_tiles);
    CHECK(stage_k % lpg_tile_k(w.bits) == 0 && stage_k % LPG_GEMM8_X_K == 0);
    CHECK((int64_t)p.k_stages * stage_k >= desc.k && (int64_t)(p.k_stages - 1) * stage_k < desc.k);
    CHECK((int64_t)p.n_tiles * tile_n >= desc.n && (int64_t)p.m_tiles * tile_m >= m);
    CHECK(p.clusters >= 1 && p.split_k >= 1 && p.split_k <= 8);
    CHECK(p.clusters <= (p.split_k == 1 ? device->sms : device->clusters[p.split_k]));
    CHECK(p.whole == p.n_tiles * p.m_tiles || p.split_k == 1);
    check_whole(p.whole, p.n_tiles * p.m_tiles, p.clusters, tile_m, m);
    check_parts(p.part, p.split_k, p.k_stages);
    CHECK(p.part.each >= 1);

    /* in the workspace too: the image, sums of X, numbers of rows; those of a whole work tile may be read */
    const lpg_gemm8_workspace at = lpg_gemm8_workspace_of(&w, m);
    CHECK(at.x_sums >= (int64_t)p.k_stages * stage_k * m && at.x_sums % (8 * LPG_GEMM8_X_K) == 0);
    CHECK(at.factors >= at.x_sums + (int64_t)p.m_tiles * tile_m * 4 && at.factors % 16 == 0);
    CHECK(at.offsets >= at.factors + (int64_t)p.n_tiles * tile_n * 4);
    CHECK(at.bytes >= at.offsets + (int64_t)p.n_tiles * tile_n * 4);
    CHECK(at.bytes >= lpg_gemm8_workspace_of(&w, m - 1).bytes);

    /* in the order in which they lie; sums of slices take the rings' place */
    CHECK(p.factors >= 16 * LPG_GEMM8_MOST_STAGES && p.factors % 16 == 0 && p.sums % 16 == 0);
    CHECK(p.sums >= p.factors + LPG_GEMM8_TILE_N * 4 && p.x_ring % 1024 == 0);
    CHECK(p.stages >= 2 && p.stages <= LPG_GEMM8_MOST_STAGES);
    CHECK(p.x_bytes == tile_m * stage_k && p.x_bytes % 1024 == 0);
    CHECK(p.w_bytes == tile_n / LPG_TILE_ROWS * lpg_tile_bytes(w.bits) * (stage_k / lpg_tile_k(w.bits)));
    CHECK(p.w_ring == p.x_ring + p.stages * p.x_bytes && p.scales_ring == p.w_ring + p.stages * p.w_bytes);
    const int grouped = lpg_gemm8_mode_of(&w, x_type).grouped;
    CHECK(p.scales_bytes == (grouped ? lpg_gemm8_scales_bytes(tile_n, stage_k) : 0));
    const int end = p.scales_ring + p.stages * p.scales_bytes;
    CHECK(p.scales_ring % 16 == 0 && p.shared_bytes >= end && p.shared_bytes <= device->shared_memory);
    if (p.split_k == 1) {
      CHECK(p.x_ring >= p.sums + LPG_GEMM8_WARPS * lpg_sums_bytes(LPG_PASS_ROWS, tile.row_tiles * LPG_TILE_ROWS));
      CHECK(p.shared_bytes == end && !p.apart && !p.exchanges);
    } else {
      const int sent = lpg_exchange_bytes(tile_m, tile_n, p.split_k, 1, LPG_GEMM8_WARPS);
      CHECK(p.sums >= (p.apart ? end : p.x_ring) && p.shared_bytes >= p.sums + lpg_sums_bytes(tile_m, tile_n));
      CHECK(!p.exchanges || (p.apart ? p.shared_bytes : p.scales_ring) >= p.sums + sent);
    }
    /* X that is read directly: one work tile a CTA, and stages for those that are on their way */
    CHECK(!p.direct || (p.whole <= p.clusters && p.stages > LPG_GEMM8_DIRECT_AHEAD));
    CHECK(!p.direct || p.sums >= p.x_sums + tile_m * 4);
    CHECK(!p.direct || (!problem.x_unaligned && desc.k % 16 == 0 && (grouped || lpg_gemm8_finds_scales(&desc))));
    CHECK(p.received >= 16 * LPG_GEMM8_MOST_STAGES && p.factors >= p.received + 8);
    CHECK(p.offsets >= p.factors + tile_n * 4 && p.x_sums >= p.offsets + tile_n * 4 && p.sums >= p.x_sums);
    direct += p.direct;
    exchanged += p.exchanges;
  }
  CHECK(direct > 5 && exchanged > 50);
}

/* A lane copies two pieces of the scales and zeros of a unit; they are all of it. */
static void check_stripe_pieces(const lpg_packed *w) {
  int pieces = 0;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    const int each = lpg_stripe_pieces(w, (lpg_section_id)id), bytes = lpg_stripe_section_bytes(w, (lpg_section_id)id);
    if (bytes == 0) continue;
    const int slot = lpg_slot_bytes(lpg_section_type(&w->desc, (lpg_section_id)id));
    CHECK(each > 0 && each * (slot < 16 ? 8 : 16) <= bytes && bytes < each * (slot < 16 ? 8 : 16) + 16);
    pieces += 2 * each;
  }
  CHECK(pieces <= LPG_STRIPE_MOST_PIECES);
}

/* Stripes are all units and none twice; sums of whole work tiles, and stages, have room. */
static void check_stripe_drawn(const lpg_device *device) {
  const lpg_planner *planner = &lpgemm_i_stripe_planner;
  unsigned widths = 0;
  for (int i = 0; i < 8000; i++) {
    const lpg_packed w = draw_packed();
    const int64_t m = test_between(17, test_between(0, 1) ? 300 : 9000);
    const lpg_problem problem = plan_problem(&w, i % 2 ? LPGEMM_F16 : LPGEMM_BF16, m);
    lpg_stripe_plan p;
    if (refuses(planner, &problem, device)) continue;
    CHECK(plan_of(planner, &problem, device, &p));
    fitted++;
    widths |= 1u << w.bits;
    const int unit_k = lpg_stripe_k_of(&w), tile_n = lpg_stripe_tile_n(p.warps), tiles = p.n_tiles * p.m_tiles;
    CHECK(p.warps == LPG_STRIPE_WARPS && (p.tile_m == 32 || p.tile_m == 64 || p.tile_m == LPG_STRIPE_SCALED_M));
    CHECK((int64_t)p.units * unit_k >= w.desc.k && (int64_t)(p.units - 1) * unit_k < w.desc.k);
    CHECK((int64_t)p.n_tiles * tile_n >= w.desc.n && (int64_t)(p.n_tiles - 1) * tile_n < w.desc.n);
    CHECK((int64_t)p.m_tiles * p.tile_m >= m && (int64_t)(p.m_tiles - 1) * p.tile_m < m);
    check_parts(p.stripes, p.ctas, tiles * p.units);
    CHECK(p.stripes.each >= 1);
    split += p.stripes.more > 0 || p.stripes.each % p.units > 0;
    CHECK(p.shift <= p.zeros &&
          (p.scale_groups == 1 || p.scale_groups * 32 == unit_k || p.scale_groups * 16 == unit_k));
    CHECK((p.scale_groups == 1) == (w.group.count <= 1 || w.group.k >= unit_k));
    CHECK(w.group.count <= 1 || p.scale_groups * w.group.k >= unit_k); /* no group of the kernel spans two */
    check_stripe_pieces(&w);

    /* in the order in which they lie */
    const int codebook = lpg_kind(w.desc.type) == LPGEMM_KIND_CODEBOOK && w.bits > 1;
    CHECK(p.factors == (codebook ? 128 << 2 * w.bits : 0) && p.table == p.factors + 128);
    CHECK(p.ring % 128 == 0 && p.stage_bytes % 128 == 0);
    CHECK(p.ring >= p.table + (p.tile_m == LPG_STRIPE_SCALED_M ? 0 : p.warps * lpg_stripe_table_bytes(p.scale_groups)));
    CHECK(p.codes == p.tile_m * unit_k * 2 && p.scales >= p.codes + tile_n * unit_k * w.bits / 8);
    CHECK(p.scales % 16 == 0 && p.warp_scales % 16 == 0 && p.sums_of_x >= p.scales + p.warps * p.warp_scales);
    CHECK(p.stage_bytes >= p.sums_of_x + p.shift * p.scale_groups * p.tile_m * 4);
    CHECK(p.stage_bytes >= p.warps * lpg_sums_bytes(LPG_PASS_ROWS, tile_n / p.warps));
    CHECK(p.stages >= 2 && p.stages <= LPG_STRIPE_MOST_STAGES);
    CHECK(p.shared_bytes == p.ring + p.stages * p.stage_bytes && p.shared_bytes <= device->shared_memory);

    /* two partial sums of each CTA, and sums of X */
    const int64_t sums = p.shift ? lpg_stripe_x_rows(&p) * p.units * p.scale_groups * 4 : 0;
    const size_t bytes = planner->workspace(planner, &problem, device);
    CHECK(bytes >= (size_t)(2 * p.ctas * lpg_stripe_partial(&p) * 4 + sums));
    lpg_problem fewer = problem;
    fewer.m = test_between(17, (int)m);
    CHECK(planner->workspace(planner, &fewer, device) <= bytes);
  }
  CHECK(widths == 0x1fe);
}

/* Every kernel of the family has a plan on every GPU from 8.0 on, with each size of groups, and at least two stages;
 * two CTAs of an SM run at once on an A100, and on GPUs of 99 KB where memory allows it. */
static void check_stripe_units(void) {
  static const lpg_device *const gpus[] = {&sm80, &sm86, &sm89, &sm120};
  static const int64_t groups[] = {0, 16, 32, 64, 128};
  int kernels = 0;
  for (int i = 0; i < test_every_kernel_count; i++) {
    const lpg_kernel *kernel = &test_every_kernel[i];
    if (strcmp(kernel->family, "stripe") != 0) continue;
    kernels++;
    for (int j = 0; j < COUNT(gpus) * COUNT(groups); j++) {
      const lpg_device *device = gpus[j / COUNT(groups)];
      const lpgemm_dtype_t bits = (lpgemm_dtype_t)(kernel->name[8] - '0');
      const char letter = kernel->name[7];
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = 8192, .k = 8192, .group_k = groups[j % COUNT(groups)]};
      desc.type = letter == 'u'   ? LPGEMM_UINT(bits)
                  : letter == 'c' ? LPGEMM_CODEBOOK(bits)
                  : bits == 8     ? LPGEMM_E4M3
                                  : LPGEMM_FLOAT(2, bits - 3);
      desc.scale_type = LPGEMM_F16;
      for (int v = 0; letter == 'c' && v < 1 << bits; v++) desc.codebook[v] = (float)v - 1.0f;
      lpg_packed w;
      lpg_stripe_plan p;
      CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
      const lpg_problem problem = plan_problem(&w, strstr(kernel->name, ".bf16.") ? LPGEMM_BF16 : LPGEMM_F16, 256);
      CHECK(!lpgemm_i_refused(kernel, &problem, device));
      CHECK(plan_of(&lpgemm_i_stripe_planner, &problem, device, &p));
      CHECK(p.stages >= 2 && p.shared_bytes <= device->shared_memory);
      CHECK((device->shared_memory + 1024) / (p.shared_bytes + 1024) >= p.at_once);
      CHECK(device != &sm80 || p.at_once >= 2);
      const int large = (bits >= 5 && bits <= 7) || (bits == 4 && letter != 'f'); /* units, or a codebook's table */
      CHECK(p.at_once >= 2 || large || (desc.group_k != 0 && desc.group_k < 128));
    }
  }
  CHECK_INT(kernels, 2 * 11);
}

/* gemv's kernels for two levels of scales take the groups that they were made for, and no others. */
static void check_gemv_levels(void) {
  static const struct {
    lpgemm_dtype_t type, codes;
    lpgemm_zero_t zero;
    int64_t group;
  } forms[] = {{LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 32},
               {LPGEMM_UINT(5), LPGEMM_UINT(6), LPGEMM_ZERO_MINIMUM, 32},
               {LPGEMM_UINT(2), LPGEMM_UINT(4), LPGEMM_ZERO_MINIMUM, 16},
               {LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_ZERO_NONE, 16},
               {LPGEMM_CODEBOOK(4), LPGEMM_I8, LPGEMM_ZERO_NONE, 32}};
  for (int i = 0; i < COUNT(forms); i++) {
    for (int64_t group = 16; group <= 256; group *= 2) {
      lpgemm_weight_desc_t d = {.size = sizeof d, .type = forms[i].type, .n = 64, .k = 1024, .group_k = group};
      d.scale_type = forms[i].codes;
      d.super_scale_type = LPGEMM_F16;
      d.super_k = LPG_BLOCK_K;
      d.zero = forms[i].zero;
      if (d.zero == LPGEMM_ZERO_MINIMUM) {
        d.zero_type = d.scale_type;
        d.super_zero_type = LPGEMM_F16;
      }
      for (int j = 0; lpg_kind(d.type) == LPGEMM_KIND_CODEBOOK && j < 16; j++) d.codebook[j] = (float)j;
      lpg_packed w;
      CHECK_STATUS(lpgemm_i_make_packed(&d, &w), LPGEMM_SUCCESS);
      CHECK(lpg_gemv_codes_of(&w, d.zero == LPGEMM_ZERO_MINIMUM) == (group == forms[i].group ? d.scale_type : 0));
    }
  }
}

/* ---- plans that are too small for some numbers, and that there must be ---- */

static void check_refused(void) { /* numbers of 32 bits would not do */
  static const struct {
    int64_t n, k;
    lpgemm_dtype_t scale;
    int refused;
  } cases[] = {{1, INT32_MAX / 4 - 300, LPGEMM_F16, 0},
               {16, INT64_C(1) << 29, LPGEMM_F32, 1},
               {1, INT64_C(1073741760), LPGEMM_F16, 1},
               {INT32_MAX / 2 + INT64_C(17), 64, LPGEMM_F16, 1}};
  for (int i = 0; i < COUNT(cases) * COUNT(devices); i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .group_k = 16};
    desc.n = cases[i % COUNT(cases)].n;
    desc.k = cases[i % COUNT(cases)].k;
    desc.scale_type = cases[i % COUNT(cases)].scale;
    lpg_packed w;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
    const lpg_problem problem = plan_problem(&w, LPGEMM_F16, 1);
    CHECK_INT(refuses(&lpgemm_i_gemv_8_planner, &problem, devices[i / COUNT(cases)]), cases[i % COUNT(cases)].refused);
  }
}

static void check_llama(void) { /* what the H200 must not refuse */
  for (uint32_t bits = 1; bits <= 8; bits++) {
    for (int64_t m = 1; m <= 16; m++) {
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(bits), .n = 57344, .k = 8192};
      desc.group_k = 128;
      desc.scale_type = LPGEMM_F16;
      lpg_packed w;
      lpg_gemv_plan p;
      CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
      const lpg_problem problem = plan_problem(&w, LPGEMM_F16, m);
      CHECK(plan_of(m > 8 ? &lpgemm_i_gemv_16_planner : &lpgemm_i_gemv_8_planner, &problem, &sm90, &p));
      CHECK(p.x_rows == m);
    }
  }
}

/* Half CTAs: one row of integers, but not of Q3_K, whose two levels of scales have kernels of their own. */
static void check_halves(void) {
  for (int i = 0; i < 2; i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(3), .n = 4096, .k = 4096, .group_k = 16};
    desc.scale_type = i ? LPGEMM_I8 : LPGEMM_F16;
    if (i) desc.super_scale_type = LPGEMM_F16, desc.super_k = 256;
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = 4;
    lpg_packed w;
    lpg_gemv_plan p;
    CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
    for (int64_t m = 1; m <= 2; m++) {
      const lpg_problem problem = plan_problem(&w, LPGEMM_F16, m);
      CHECK(plan_of(&lpgemm_i_gemv_8_planner, &problem, &sm90, &p));
      CHECK_INT(p.warps, i == 0 && m == 1 ? 16 : 32);
    }
  }
}

/* The search keeps states and plans in arrays of this size. */
static void check_sizes(void) {
  for (int i = 0; i < test_every_kernel_count; i++) {
    const lpg_planner *planner = test_every_kernel[i].planner;
    CHECK(planner->state_bytes <= 512 && planner->plan_bytes <= (int)sizeof((lpg_planned *)0)->words);
    CHECK(planner->finish != NULL && planner->cut != NULL);
  }
}

void suite_plan(void) {
  static const char *const names[] = {"h200", "h100_pcie", "a100", "a10"};
  for (int d = 0; d < 4; d++) {
    if (!test_case("plan/gemv/%s", names[d])) continue;
    fitted = 0;
    check_gemv_drawn(devices[d]);
    CHECK(fitted > 300); /* else the checks above say little */
  }
  for (int d = 0; d < 3; d++) { /* the last has too little shared memory */
    if (test_case("plan/gemm/%s", names[d])) {
      fitted = halved = streamed = 0;
      check_gemm_drawn(devices[d]);
      CHECK(fitted > 300 && ((halved > 3 && streamed > 100) || devices[d]->arch < 90));
    }
    if (test_case("plan/image/%s", names[d])) {
      fitted = halved = streamed = split = 0;
      check_image_drawn(devices[d]);
      CHECK(fitted > 300 && ((split > 20 && halved > 3 && streamed > 20) || devices[d]->arch < 90));
    }
    if (test_case("plan/invariant/%s", names[d])) {
      fitted = 0;
      check_gemm_invariant(devices[d]);
      CHECK(fitted > 300);
    }
  }
  if (test_case("plan/gemm/width")) check_gemm_width();
  if (test_case("plan/divisor")) check_divisor();
  if (test_case("plan/invariant/parts")) check_gemm_four_parts(&sm90);
  for (int d = 0; d < 2; d++) {
    if (!test_case("plan/gemm8/%s", names[d])) continue;
    fitted = halved = 0;
    check_gemm8_drawn(devices[d]);
    CHECK(fitted > 300 && halved > 5);
  }
  for (int d = 0; d < 4; d++) {
    if (!test_case("plan/dequant/%s", names[d])) continue;
    fitted = split = 0;
    check_dequant_drawn(devices[d]);
    CHECK(fitted > 100 && (split > 20 || devices[d]->clusters[1] == 0));
  }
  for (int d = 0; d < 4; d++) {
    if (!test_case("plan/stripe/%s", names[d])) continue;
    fitted = split = 0;
    check_stripe_drawn(devices[d]);
    CHECK(fitted > 200 && split > 50 && split < fitted);
  }
  if (test_case("plan/gemv_levels")) check_gemv_levels();
  if (test_case("plan/stripe/units")) check_stripe_units();
  if (test_case("plan/gathers")) check_gathers();
  if (test_case("plan/refused")) check_refused();
  if (test_case("plan/llama")) check_llama();
  if (test_case("plan/halves")) check_halves();
  if (test_case("plan/sizes")) check_sizes();
}
