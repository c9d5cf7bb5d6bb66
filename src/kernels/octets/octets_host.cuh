/* The kernels for int8 by integers from the host: arguments, plan, launch. */
#pragma once

#include "../../cuda/cuda.h"
#include "octets_groups.cuh"
#include "octets_limits.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* What is remembered of a problem. */
struct octets_memo {
  lpg_octets_plan plan;
  int item;
};

static lpgemm_status_t find_octets_plan(const lpg_call &call, octets_memo &best) {
  static_assert(sizeof best <= sizeof call.memo->words, "a memo is too small for a plan");
  if (call.memo && call.memo->filled) {
    memcpy(&best, call.memo->words, sizeof best);
    return LPGEMM_SUCCESS;
  }
  double ns = 0.0;
  LPG_CHECK(lpg_octets_choose(call.problem.plan, call.problem.m, call.device, &best.plan, &best.item, &ns),
            LPGEMM_INTERNAL_ERROR, "a kernel was chosen that has no plan on %s", call.device->name);
  if (call.memo) {
    memcpy(call.memo->words, &best, sizeof best);
    call.memo->filled = 1;
  }
  return LPGEMM_SUCCESS;
}

template <int Bits, int Tokens, int RowTiles>
static lpgemm_status_t launch_octets(const lpg_call &call, const octets_args &a) {
  using T = octets_traits<Bits, Tokens, RowTiles>;
  return launch_cluster((const void *)octets_kernel<T>, dim3((unsigned)(a.plan.slices * a.plan.groups)), a.plan.slices,
                        T::threads, (size_t)a.plan.shared_bytes, call.stream, a, true);
}

/* The kernels for scales of groups that there are: with(kernel, threads) for each that takes such weights. */
template <int Bits, int Tokens, int RowTiles, class With>
static lpgemm_status_t with_groups_kernel(bool subtracts, With with) {
  if constexpr (lpg_octets_has_item(Bits, Tokens, RowTiles)) {
    if (subtracts) {
      if constexpr (Bits < 8)
        return with((const void *)octets_groups_kernel<octets_group_traits<Bits, Tokens, RowTiles, true>>);
    } else {
      if constexpr (lpg_octets_has_centered(Bits))
        return with((const void *)octets_groups_kernel<octets_group_traits<Bits, Tokens, RowTiles, false>>);
    }
  }
  return LPGEMM_SUCCESS;
}

template <int Bits, int Tokens, int RowTiles>
static lpgemm_status_t launch_octets_groups(const lpg_call &call, const octets_args &a) {
  bool is_there = false;
  LPG_TRY((with_groups_kernel<Bits, Tokens, RowTiles>(
      lpg_octets_subtracts(&call.problem.plan->desc), [&](const void *kernel) {
        is_there = true;
        return launch_cluster(kernel, dim3((unsigned)(a.plan.slices * a.plan.groups)), a.plan.slices,
                              octets_traits<Bits, Tokens, RowTiles>::threads, (size_t)a.plan.shared_bytes, call.stream,
                              a, true);
      })));
  LPG_CHECK(is_there, LPGEMM_INTERNAL_ERROR, "an item was chosen for which there is no kernel");
  return LPGEMM_SUCCESS;
}

static octets_groups make_octets_groups(const lpg_call &call) {
  const lpg_plan &plan = *call.problem.plan;
  const lpgemm_weight_desc_t &d = plan.desc;
  octets_groups g = {};
  g.scales = call.section[LPG_SECTION_SCALES];
  g.scale_row = plan.group.padded * lpg_slot_bytes(d.scale_type);
  if (d.zero == LPGEMM_ZERO_PER_GROUP) {
    g.zeros = call.section[LPG_SECTION_ZEROS];
    g.zero_row = plan.group.padded * lpg_slot_bytes(d.zero_type);
  }
  while (LPG_OCTETS_X_K << g.log2 < plan.group.k) g.log2++;
  g.last = (int32_t)plan.group.count - 1;
  g.scale_is_bf16 = d.scale_type == LPGEMM_BF16;
  g.zero = (uint32_t)lpg_octets_zero(&d) * 0x01010101u;
  return g;
}

template <int Bits>
static lpgemm_status_t run_octets(const lpg_call &call) {
  const lpg_plan &plan = *call.problem.plan;
  const lpg_octets_workspace at = lpg_octets_workspace_of(&plan, call.problem.m);
  octets_memo memo = {};
  octets_args a = {};
  LPG_TRY(find_octets_plan(call, memo));
  a.plan = memo.plan;
  a.codes = call.section[LPG_SECTION_CODES];
  a.row_bytes = plan.k_tiles * lpg_tile_bytes(plan.bits);
  a.row_vectors = (int32_t)(a.row_bytes / 512);
  a.row_tiles = (int32_t)plan.row_tiles;
  a.n = (int32_t)plan.desc.n;
  a.m = (int32_t)call.problem.m;
  a.image = (const uint8_t *)call.workspace;
  a.image_tokens = (int32_t)lpg_octets_tokens(call.problem.m);
  a.image_stage = (int64_t)a.image_tokens * LPG_OCTETS_X_K;
  a.x_sums = (const int32_t *)(a.image + at.x_sums);
  a.factors = (const float *)(a.image + at.factors);
  a.offsets = (const int32_t *)(a.image + at.offsets);
  a.epilogue = make_epilogue(call);
  if (!call.skip_product) LPG_TRY(lpgemm_i_octets_prepare_call(&call));
  if (lpg_octets_grouped(&plan)) {
    a.groups = make_octets_groups(call);
#define LPG_ITEM(tokens, row_tiles) launch_octets_groups<Bits, tokens, row_tiles>,
    static lpgemm_status_t (*const launch[])(const lpg_call &, const octets_args &) = {LPG_OCTETS_ITEMS(LPG_ITEM)};
#undef LPG_ITEM
    return launch[memo.item](call, a);
  }
#define LPG_ITEM(tokens, row_tiles) launch_octets<Bits, tokens, row_tiles>,
  lpgemm_status_t (*const launch[])(const lpg_call &, const octets_args &) = {LPG_OCTETS_ITEMS(LPG_ITEM)};
#undef LPG_ITEM
  return launch[memo.item](call, a);
}

template <int Bits, int Tokens, int RowTiles>
static lpgemm_status_t allow_octets_groups(size_t bytes) {
  const auto allow = [&](const void *kernel) { return allow_shared(kernel, bytes); };
  LPG_TRY((with_groups_kernel<Bits, Tokens, RowTiles>(true, allow)));
  return with_groups_kernel<Bits, Tokens, RowTiles>(false, allow);
}

template <int Bits>
static lpgemm_status_t prepare_octets() {
  int device, bytes;
  LPG_CUDA(cudaGetDevice(&device));
  LPG_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
#define LPG_ITEM(tokens, row_tiles)                                                                          \
  LPG_TRY(allow_shared((const void *)octets_kernel<octets_traits<Bits, tokens, row_tiles>>, (size_t)bytes)); \
  LPG_TRY((allow_octets_groups<Bits, tokens, row_tiles>((size_t)bytes)));
  LPG_OCTETS_ITEMS(LPG_ITEM)
#undef LPG_ITEM
  return lpgemm_i_octets_prepare_x();
}

}  // namespace
}  // namespace lpg

/* A line of a generated file. */
#define LPG_OCTETS(symbol, bits)                                                                   \
  extern "C" lpgemm_status_t symbol(const lpg_call *call) { return lpg::run_octets<bits>(*call); } \
  extern "C" lpgemm_status_t symbol##_prepare(void) { return lpg::prepare_octets<bits>(); }
