/* How problems are cut into pieces (src/kernels/decode/decode_plan.h, wide_plan.h), on made-up GPUs: what is said to
 * fit has a plan, the pieces are the whole, and everything lies in shared memory, aligned and apart. */
#include "kernels/dequant/dequant_plan.h"
#include "kernels/epilogue/sums.h"
#include "kernels/gemm/gemm_limits.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/gemm8/gemm8_plan.h"
#include "kernels/gemv/gemv_limits.h"
#include "kernels/gemv/gemv_plan.h"
#include "kernels/operand/limits.h"

#include "devices.h"
#include "test.h"

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
  return d;
}

/* The parts of `count` things are all of them, and differ by one at most. */
static void check_shares(lpg_shares s, int parts, int count) {
  CHECK(s.each * parts + s.more == count);
  CHECK(s.more >= 0 && s.more < parts);
}

static void check_plan(const lpg_decode_plan *p, const lpg_decode_kind *kind, const lpg_plan *w, int64_t m,
                       const lpg_device *device) {
  int slice_blocks = p->slice.each + (p->slice.more > 0), tiles = p->group.each + (p->group.more > 0);
  int rounds = (tiles + p->round_tiles - 1) / p->round_tiles;
  CHECK(p->slices == 1 || p->slices == 2 || p->slices == 4 || p->slices == 8);
  CHECK(p->groups <= (p->slices == 1 ? device->units : device->clusters[p->slices]));
  check_shares(p->slice, p->slices, p->blocks);
  check_shares(p->group, p->groups, p->super_tiles);
  CHECK((int64_t)p->blocks * LPG_BLOCK_K >= w->k_padded);
  CHECK((int64_t)p->super_tiles * kind->row_tiles >= w->row_tiles);
  CHECK(p->x_rows == (m < kind->columns ? m : kind->columns));
  CHECK(p->group.each >= 1 && p->phase_blocks >= 1 && p->phase_blocks <= slice_blocks);

  /* in the order in which they lie: the decoder's table, X, its sums, slots, inboxes, what each warp has */
  CHECK(p->x >= kind->table_bytes && p->x % 16 == 0 && p->x_stride % 16 == 0);
  CHECK(p->x_stride >= p->phase_blocks * LPG_BLOCK_K * 2);
  CHECK(p->x_place >= p->x_rows * p->x_stride && p->x_place % 16 == 0);
  CHECK(p->sums >= p->x + (p->phase_blocks < slice_blocks ? 2 : 1) * p->x_place && p->sums % 16 == 0);
  int sum_bytes = p->phase_blocks * LPG_BLOCK_K / kind->granule_k * kind->columns * 4;
  CHECK(p->slots >= p->sums + (kind->has_sums ? sum_bytes : 0) && p->slots % 16 == 0 && p->slot_bytes % 16 == 0);
  CHECK(p->slot_bytes == kind->row_tiles * LPG_TILE_ROWS * kind->columns * 4);
  CHECK(p->inbox >= p->slots + (p->round_tiles + kind->warps - 1) * p->slot_bytes && p->inbox % 16 == 0);
  int inboxes = p->slices > 1 ? (rounds > 1 ? 2 : 1) * p->slices : 0;
  if (inboxes) CHECK(p->inbox_slice * p->slices >= p->round_tiles * p->slot_bytes && p->inbox_slice % 16 == 0);
  CHECK(p->warp >= p->inbox + inboxes * p->inbox_slice && p->warp % 16 == 0);
  CHECK(p->number_bytes % 128 == 0 && kind->raw_bytes % 16 == 0 && p->warp_bytes % 16 == 0);
  CHECK(p->warp_bytes == kind->number_bytes + kind->raw_bytes);
  CHECK(p->shared_bytes == p->warp + kind->warps * p->warp_bytes);
  CHECK(p->shared_bytes <= device->shared_memory);
}

static int fitted, split, halved; /* plans that fit, and those of them with slices of K, and with halves of items */

static void check_drawn(const lpg_device *device) {
  for (int i = 0; i < 200; i++) {
    lpgemm_weight_desc_t desc = draw_desc();
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    int columns = test_between(0, 1) ? 8 : 16;
    int64_t m = test_between(1, columns);
    static const int shifted[] = {0, 1, 1}, differ[] = {0, 0, 1}; /* what zeros may ask for */
    for (int flags = 0; flags < 3; flags++) {
      lpg_decode_kind kind = lpg_decode_kind_of(&w, columns, shifted[flags], differ[flags]);
      lpg_decode_plan p = {0};
      int fits = lpg_decode_fits(&kind, &w, columns, device);
      int found = lpg_decode_make_plan(&kind, &w, m, device, &p);
      fitted += fits;
      CHECK(found || !fits);
      if (found) check_plan(&p, &kind, &w, m, device);
    }
  }
}

/* Halves: one a cluster at the most, each with rows of X. */
static void check_whole(int whole, int items, int groups, int tokens, int64_t m) {
  if (whole == items) return;
  halved++;
  CHECK(whole > 0 && whole < items && whole % groups == 0 && 2 * (items - whole) <= groups);
  CHECK((m - 1) % tokens + 1 > tokens / 2);
}

static void check_wide_plan(const lpg_wide_plan *p, const lpg_wide_kind *kind, const lpg_plan *w, int64_t m,
                            const lpg_device *device) {
  const int stage_k = kind->stage_k, each = lpg_wide_stage_steps(kind->bits, stage_k) * LPG_STEP_K / stage_k;
  const int cluster = p->slices * p->share; /* the blocks of one have slices of K, or the same tokens */
  CHECK(cluster == 1 || cluster == 2 || cluster == 4 || cluster == 8);
  CHECK(p->groups <= (cluster == 1 ? device->units : device->clusters[cluster]));
  CHECK(p->share == kind->share && (p->share == 1 || p->at_once == 1));
  CHECK(p->at_once == p->slices * kind->item.teams && p->parts == p->at_once * p->runs);
  CHECK(p->parts == 1 || p->parts <= p->blocks);
  CHECK(p->runs == 1 || (lpg_wide_has_runs(kind->item.tokens, kind->item.row_tiles) && kind->item.teams == 1));
  CHECK(p->runs <= 2 || p->at_once == 1);
  CHECK(p->groups >= 1 && (p->groups == 1 || p->groups <= p->row_items * p->token_items));
  CHECK(p->whole == p->row_items * p->token_items || (p->parts == 1 && lpg_wide_has_halves(kind->item.tokens)));
  check_whole(p->whole, p->row_items * p->token_items, p->groups, kind->item.tokens, m);
  check_shares(p->part, p->parts, p->blocks);
  CHECK((int64_t)p->blocks * LPG_BLOCK_K >= w->k_padded);
  CHECK((int64_t)p->row_items * kind->rows * p->share >= w->desc.n && (int64_t)p->token_items * kind->item.tokens >= m);

  /* a stage of X that is free means that the weights and scales that come with it are free */
  const int block_stages = LPG_BLOCK_K / stage_k, others = (kind->item.teams - 1) * block_stages;
  CHECK(block_stages <= LPG_WIDE_COPY_WARPS && p->x_stages <= lpg_wide_most_blocks(kind->item.tokens) * block_stages);
  CHECK(p->x_stages >= others + block_stages);
  CHECK(each == 1 ? p->x_stages == p->w_stages || (others == 0 && p->x_stages < p->w_stages)
                  : p->x_stages <= 1 + each * (p->w_stages - 1) - others);
  const int lines = kind->form == LPG_WIDE_LINES;
  CHECK(lines ? p->slots == p->x_stages : p->x_stages <= 1 + block_stages * (p->slots - kind->item.teams));

  /* in the order in which they lie */
  const int warps = kind->item.teams * kind->item.warps;
  CHECK(p->table >= 16 * p->x_stages && p->factors >= p->table + kind->table_bytes);
  const int factors_end = p->factors + 2 * LPG_WIDE_ROWS * 4;
  CHECK(p->sums >= factors_end && p->factors % 16 == 0 && p->sums % 16 == 0);
  CHECK(p->scales >= factors_end && p->scales % 16 == 0 && kind->slot_bytes % 16 == 0);
  if (p->at_once == 1) {
    CHECK(p->scales >= p->sums + warps * LPG_PASS_TOKENS * (kind->item.row_tiles * LPG_TILE_ROWS + 4) * 4);
  } else { /* all sums of a block of threads */
    CHECK(p->sums >= p->x_ring);
    CHECK(p->shared_bytes >= p->sums + kind->item.teams * p->runs * kind->item.tokens * (kind->rows + 4) * 4);
  }
  CHECK(p->x_ring >= (lines ? factors_end : p->scales + p->slots * kind->slot_bytes) && p->x_ring % 1024 == 0);
  CHECK(kind->x_stage_bytes % 1024 == 0 && kind->x_stage_bytes == kind->item.tokens * stage_k * 2);
  CHECK(p->w_ring >= p->x_ring + p->x_stages * kind->x_stage_bytes && p->w_ring % 128 == 0);
  CHECK(kind->w_stage_bytes ==
        kind->rows / LPG_TILE_ROWS * lpg_tile_bytes(kind->bits) * (each * stage_k / lpg_tile_k(kind->bits)));
  const int rings_end = p->w_ring + p->w_stages * kind->w_stage_bytes;
  CHECK(!lines || p->scales == rings_end);
  CHECK(p->shared_bytes == rings_end + (lines ? p->slots * kind->slot_bytes : 0));
  CHECK(p->shared_bytes <= device->shared_memory);
}

static void check_wide_drawn(const lpg_device *device) {
#define ITEM(tokens, row_tiles, teams, warps) {tokens, row_tiles, teams, warps},
  static const lpg_wide_item items[] = {LPG_WIDE_ITEMS(ITEM)};
#undef ITEM
  for (int i = 0; i < 200; i++) {
    lpgemm_weight_desc_t desc = draw_desc();
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    int64_t m = test_between(0, test_between(0, 1) ? 300 : 9000);
    for (int item = 0; item < (int)(sizeof items / sizeof items[0]); item++) {
      for (int form = LPG_WIDE_WHOLE; form <= LPG_WIDE_LINES; form++) {
        const int tokens = items[item].tokens, row_tiles = items[item].row_tiles;
        int share = (int)test_between(1, 2);
        if (!lpg_wide_has_share(tokens, row_tiles, share)) share = 3 - share;
        CHECK(lpg_wide_has_share(tokens, row_tiles, share));
        lpg_wide_kind kind = lpg_wide_kind_of(&w, items[item], (lpg_wide_form)form, share);
        lpg_wide_plan p = {0};
        double cost = HUGE_VAL;
        int parts = 1 << test_between(0, 4) & ~1;
        int found = lpg_wide_make_plan(&kind, &w, m, device, parts, 1.0, &p, &cost);
        fitted += found;
        const int smallest = tokens == 32 && items[item].warps == 8 && items[item].teams == 1;
        CHECK(found || !smallest || parts > 1 ||
              device->shared_memory < 232448); /* on the H200, whatever the weights */
        if (!found) continue;
        CHECK(cost > 0 && (parts == 0 || p.parts == parts));
        check_wide_plan(&p, &kind, &w, m, device);
      }
    }
  }
}

/* Calls whose rows must not depend on M: there is a plan of those parts, whatever M is. */
static void check_wide_invariant(const lpg_device *device) {
  static const int64_t rows[] = {0, 1, 32, 257, 5000};
  for (int i = 0; i < 200; i++) {
    lpgemm_weight_desc_t desc = draw_desc();
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    for (int form = LPG_WIDE_WHOLE; form <= LPG_WIDE_LINES; form++) {
      lpg_wide_plan p = {0};
      int item = 0, parts = lpgemm_i_wide_invariant_parts(&w, (lpg_wide_form)form, device);
      double cost = 0;
      if (!lpgemm_i_wide_choose(&w, 32, (lpg_wide_form)form, device, 0, 0, &p, &item, &cost))
        continue; /* there is none */
      for (int m = 0; m < 5; m++) {
        fitted++;
        const int has_map = (int)test_between(0, 1);
        CHECK(lpgemm_i_wide_choose(&w, rows[m], (lpg_wide_form)form, device, parts, has_map, &p, &item, &cost));
        CHECK(p.parts == parts);
      }
    }
  }
}

/* The matrix of invariant/parts (test_invariant.c), which needs as many, with all that is drawn there. */
static void check_wide_four_parts(const lpg_device *device) {
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(2),     LPGEMM_UINT(3), LPGEMM_UINT(4),
                                         LPGEMM_FLOAT(2, 1), LPGEMM_UINT(8), LPGEMM_E4M3};
  for (int i = 0; i < 6 * 8; i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = types[i / 8], .n = 2052, .k = 4400};
    desc.group_k = i % 2 ? 128 : 32;
    desc.scale_type = i / 2 % 2 ? LPGEMM_BF16 : LPGEMM_F16;
    if (i / 4 % 2 && LPGEMM_DTYPE_KIND(desc.type) == LPGEMM_KIND_UINT) {
      desc.zero = LPGEMM_ZERO_PER_GROUP;
      desc.zero_type = LPGEMM_U8;
    }
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    for (uint32_t span = 3; span <= 255; span += 252) { /* near one another, and not */
      const lpg_wide_form form = lpgemm_i_wide_scaling(&w, LPGEMM_F16, span).form;
      CHECK_INT(lpgemm_i_wide_invariant_parts(&w, form, device), 4);
    }
  }
}

static void check_dense_drawn(const lpg_device *device) {
  for (int i = 0; i < 400; i++) {
    lpgemm_weight_desc_t desc = draw_desc();
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    int64_t m = test_between(33, test_between(0, 1) ? 300 : 9000);
    int x_bytes = (int)test_between(1, 2), wgmma = (int)test_between(0, 1);
    lpg_expand_scaling scaling = {0};
    if (test_between(0, 1)) *(x_bytes == 1 || test_between(0, 1) ? &scaling.in_table : &scaling.finds) = 1;
    lpg_dense_plan p = {0};
    int found = lpg_dense_make_plan(&w, m, x_bytes, scaling, wgmma, device, &p);
    fitted += found;
    CHECK(found || device->shared_memory < 232448 || desc.k * x_bytes > 130000 || desc.k == 0);
    if (!found) continue;
    CHECK((int64_t)p.k_stages * LPG_DENSE_STAGE_BYTES >= desc.k * x_bytes);
    CHECK((int64_t)p.row_items * LPG_DENSE_ROWS >= desc.n && p.chunk_items >= (desc.n > 0) &&
          p.chunk_items <= p.row_items);
    CHECK((int64_t)p.token_items * p.share * LPG_DENSE_TOKENS >= m && p.share >= 1 && p.share <= 2);
    CHECK(p.cluster == p.share * p.slices && p.cluster <= 8 && (p.cluster == 1 || wgmma));
    CHECK(p.groups >= 1 && p.groups * p.cluster <= device->units);
    split += p.slices > 1;

    /* slices are not empty, and nobody takes an item after the first, since its sums take the ring's place; those of
     * integers are not split */
    CHECK(p.slices >= 1 && p.slices <= p.k_stages && (p.slices == 1 || !p.persistent));
    CHECK(p.slices == 1 || x_bytes == 2 || scaling.in_table);

    /* the largest chunk is within the workspace, but for numbers that take no more than X; the plan's is no larger */
    lpg_dense_plan largest = p;
    largest.chunk_items = lpg_dense_most_items(&p);
    CHECK(lpg_dense_chunk_bytes(&largest) <= LPG_DENSE_WORKSPACE + m * desc.k * x_bytes);
    CHECK(largest.chunk_items * lpg_dense_item_bytes(&p) <= LPG_DENSE_WORKSPACE);
    CHECK(largest.chunk_items >= p.chunk_items);

    /* in the order in which they lie; without wgmma, and of slices, the sums take the ring's place */
    CHECK(p.factors >= 16 * LPG_DENSE_MOST_STAGES && p.factors % 16 == 0 && p.x_ring % 1024 == 0);
    CHECK(p.sums >= p.factors + LPG_DENSE_ROWS * 4 && p.sums % 16 == 0);
    CHECK(wgmma && p.slices == 1 ? p.x_ring >= p.sums + LPG_DENSE_SUMS_BYTES : p.sums == p.x_ring);
    CHECK(p.shared_bytes >=
          p.sums + (p.slices > 1 ? lpg_sums_bytes(LPG_DENSE_TOKENS, LPG_DENSE_ROWS) : LPG_DENSE_SUMS_BYTES));
    CHECK(p.stages >= (wgmma ? LPG_DENSE_COPY_WARPS : 2) && p.stages <= LPG_DENSE_MOST_STAGES);
    CHECK(p.w_ring == p.x_ring + p.stages * LPG_DENSE_X_BYTES && p.w_ring % 1024 == 0);
    CHECK(p.shared_bytes == p.w_ring + p.stages * LPG_DENSE_W_BYTES && p.shared_bytes <= device->shared_memory);
  }
}

static void check_octets_drawn(const lpg_device *device) {
  LPG_OCTETS_LIST(items);
  for (int i = 0; i < 400; i++) {
    lpgemm_weight_desc_t desc = draw_desc();
    lpg_plan w;
    CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
    const int64_t m = test_between(1, test_between(0, 1) ? 300 : 9000);
    lpg_octets_plan p = {0};
    int item = 0;
    double cost = 0;
    const lpgemm_dtype_t x_type = i % 3 ? LPGEMM_I8 : LPGEMM_E4M3;
    int found = desc.k > 0 && lpg_octets_choose(&w, x_type, m, device, &p, &item, &cost);
    fitted += found;
    CHECK(found || desc.k == 0 || device->shared_memory < 232448);
    if (!found) continue;
    const int tokens = items[item].tokens, rows = lpg_octets_rows(items[item].row_tiles);
    const int stage_k = lpg_octets_stage_k(w.bits, items[item].tokens, items[item].row_tiles);
    CHECK(cost > 0 && stage_k % lpg_tile_k(w.bits) == 0 && stage_k % LPG_OCTETS_X_K == 0);
    CHECK((int64_t)p.k_stages * stage_k >= desc.k && (int64_t)(p.k_stages - 1) * stage_k < desc.k);
    CHECK((int64_t)p.row_items * rows >= desc.n && (int64_t)p.token_items * tokens >= m);
    CHECK(p.groups >= 1 && p.slices >= 1 && p.slices <= 8);
    CHECK(p.groups <= (p.slices == 1 ? device->units : device->clusters[p.slices]));
    CHECK(p.whole == p.row_items * p.token_items || p.slices == 1);
    check_whole(p.whole, p.row_items * p.token_items, p.groups, tokens, m);
    check_shares(p.part, p.slices, p.k_stages);
    CHECK(p.part.each >= 1);

    /* in the workspace too: the image, sums of tokens, numbers of rows; those of a whole item may be read */
    const lpg_octets_workspace at = lpg_octets_workspace_of(&w, m);
    CHECK(at.x_sums >= (int64_t)p.k_stages * stage_k * m && at.x_sums % (8 * LPG_OCTETS_X_K) == 0);
    CHECK(at.factors >= at.x_sums + (int64_t)p.token_items * tokens * 4 && at.factors % 16 == 0);
    CHECK(at.offsets >= at.factors + (int64_t)p.row_items * rows * 4);
    CHECK(at.bytes >= at.offsets + (int64_t)p.row_items * rows * 4);
    CHECK(at.bytes >= lpg_octets_workspace_of(&w, m - 1).bytes);

    /* in the order in which they lie; sums of slices take the rings' place */
    CHECK(p.factors >= 16 * LPG_OCTETS_MOST_STAGES && p.factors % 16 == 0 && p.sums % 16 == 0);
    CHECK(p.sums >= p.factors + LPG_OCTETS_ROWS * 4 && p.x_ring % 1024 == 0);
    CHECK(p.stages >= 2 && p.stages <= LPG_OCTETS_MOST_STAGES);
    CHECK(p.x_bytes == tokens * stage_k && p.x_bytes % 1024 == 0);
    CHECK(p.w_bytes == rows / LPG_TILE_ROWS * lpg_tile_bytes(w.bits) * (stage_k / lpg_tile_k(w.bits)));
    CHECK(p.w_ring == p.x_ring + p.stages * p.x_bytes && p.numbers_ring == p.w_ring + p.stages * p.w_bytes);
    const int grouped = lpg_octets_form_of(&w, x_type).grouped;
    CHECK(p.numbers_bytes == (grouped ? lpg_octets_numbers_bytes(rows, stage_k) : 0));
    CHECK(p.numbers_ring % 16 == 0 && p.shared_bytes == p.numbers_ring + p.stages * p.numbers_bytes);
    CHECK(p.shared_bytes <= device->shared_memory);
    if (p.slices == 1) {
      CHECK(p.x_ring >=
            p.sums + LPG_OCTETS_WARPS * lpg_sums_bytes(LPG_PASS_TOKENS, items[item].row_tiles * LPG_TILE_ROWS));
    } else {
      CHECK(p.sums >= p.x_ring && p.shared_bytes >= p.sums + lpg_sums_bytes(tokens, rows));
    }
  }
}

void suite_plan(void) {
  static const char *const names[] = {"h200", "h100_pcie", "a100", "a10"};
  for (int d = 0; d < 4; d++) {
    if (!test_case("plan/drawn/%s", names[d])) continue;
    fitted = 0;
    check_drawn(devices[d]);
    CHECK(fitted > 300); /* else the checks above say little */
  }
  for (int d = 0; d < 3; d++) { /* the last has too little shared memory */
    if (!test_case("plan/wide/%s", names[d])) continue;
    fitted = halved = 0;
    check_wide_drawn(devices[d]);
    CHECK(fitted > 300 && (halved > 10 || devices[d]->arch < 90));
    if (!test_case("plan/invariant/%s", names[d])) continue;
    fitted = 0;
    check_wide_invariant(devices[d]);
    CHECK(fitted > 300);
  }
  if (test_case("plan/invariant/parts")) check_wide_four_parts(devices[0]);
  for (int d = 0; d < 2; d++) {
    if (!test_case("plan/octets/%s", names[d])) continue;
    fitted = halved = 0;
    check_octets_drawn(devices[d]);
    CHECK(fitted > 300 && halved > 5);
  }
  for (int d = 0; d < 4; d++) {
    if (!test_case("plan/dense/%s", names[d])) continue;
    fitted = split = 0;
    check_dense_drawn(devices[d]);
    CHECK(fitted > 100 && (split > 20 || devices[d]->clusters[1] == 0));
  }
  if (test_case("plan/refused")) { /* numbers of 32 bits would not do */
    static const struct {
      int64_t n, k;
      lpgemm_dtype_t scale;
      int refused;
    } cases[] = {{1, INT32_MAX / 4 - 300, LPGEMM_F16, 0},
                 {16, INT64_C(1) << 29, LPGEMM_F32, 1},
                 {1, INT64_C(1073741760), LPGEMM_F16, 1},
                 {INT32_MAX / 2 + INT64_C(17), 64, LPGEMM_F16, 1}};
    for (int i = 0; i < 4; i++) {
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT(4), .group_k = 16};
      desc.n = cases[i].n;
      desc.k = cases[i].k;
      desc.scale_type = cases[i].scale;
      lpg_plan w;
      CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
      lpg_problem problem = {.plan = &w, .m = 1, .x_type = LPGEMM_F16, .y_type = LPGEMM_F16};
      for (int d = 0; d < 4; d++) {
        CHECK((lpgemm_i_decode_8_refuses(&problem, devices[d]) != NULL) == cases[i].refused);
      }
    }
  }
  if (test_case("plan/llama")) { /* what the H200 must not refuse */
    for (uint32_t bits = 1; bits <= 8; bits++) {
      for (int64_t m = 1; m <= 16; m++) {
        lpgemm_weight_desc_t desc = {.size = sizeof desc};
        desc.n = 57344;
        desc.k = 8192;
        desc.type = LPGEMM_UINT(bits);
        desc.group_k = 128;
        desc.scale_type = LPGEMM_F16;
        lpg_plan w;
        lpg_decode_plan p = {0};
        CHECK_STATUS(lpgemm_i_make_plan(&desc, &w), LPGEMM_SUCCESS);
        lpg_decode_kind kind = lpg_decode_kind_of(&w, m > 8 ? 16 : 8, 0, 0);
        CHECK(lpg_decode_make_plan(&kind, &w, m, devices[0], &p));
        CHECK(p.x_rows == m);
      }
    }
  }
}
