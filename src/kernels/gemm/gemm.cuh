/* gemm: mixed-input GEMM from a few rows of X on; the weights are dequantised in registers and multiplied by wgmma
 * (sm_90a).
 *
 *   4 producer warps fill a ring of stages in shared memory: X by TMA (plain loads where TMA cannot read X), packed
 *   weights by TMA, scales by cp.async. Each stage has a full and an empty mbarrier.
 *   8, 12 or 16 consumer warps, each with 16 rows of W of the work tile:
 *     for each batch of 1 to 4 MMA steps (16 k each): dequantise and scale the weights (wgmma's A operand, in
 *     registers) while the tensor cores run the batch before; X is the B operand, in shared memory
 *   Split-K is over the CTAs of a cluster and over teams of consumer warps in a CTA; the partial sums are added in a
 *   fixed order. Then the epilogue. CTAs are persistent: a cluster takes work tiles in turn, and of the last ones
 *   perhaps some k blocks (gemm_stream.cuh). */
#pragma once

#include "../epilogue/split_k_exchange.cuh"
#include "gemm_load.cuh"
#include "gemm_mma.cuh"
#include "gemm_stream.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Waits until the stage is full. With two teams a warp may ask for a stage while the k block that the other team waits
 * for there is still on its way. Parity cannot tell the turn before that from the one to come, so it waits first until
 * the other team has released the stage. */
template <class T>
__device__ inline void wait_stage(uint32_t full, uint32_t parity) {
  if (T::teams > 1) wait_barrier(barriers_of::empty_of(full), parity ^ 1);
  wait_barrier(full, parity);
}

/* Where a consumer warp is in the rings. full and codes: addresses in shared memory; x, and codes of an image: the low
 * words of descriptors of wgmma (swizzled_place()); scales: offset in shared memory. */
template <class T>
struct consumer_place {
  static constexpr lpg_gemm_slot layout = T::scales_layout();
  ring_place full, x, codes, scales;
  uint32_t parity = 0;

  __device__ consumer_place(const gemm_args &a, uint32_t base, uint32_t scales_bytes)
      : full(barriers_of{base}.full(0), a.plan.x_stages, 16),
        x(gemm_product<T>::place(base + a.plan.x_ring), a.plan.x_stages, gemm_product<T>::stage_distance),
        codes(T::image ? gemm_product<T>::place(base + a.plan.w_ring) : base + a.plan.w_ring, a.plan.w_stages,
              T::image ? T::w_stage_bytes / 16 : T::w_stage_bytes),
        scales(a.plan.scales, a.plan.slots, scales_bytes) {}

  /* Skips k blocks that belong to other teams. */
  __device__ void skip_blocks(int count) {
    x.advance(count * (steps / T::x_steps));
    codes.advance(count * (steps / T::w_steps));
    parity ^= full.advance(count * (steps / T::x_steps));
    scales.advance(count * (steps / layout.steps));
  }

  __device__ void wait() const { wait_stage<T>(full.at, parity); }

  /* Tells the compiler that all lanes are there. */
  __device__ void agree() {
    for (ring_place *ring : {&full, &x, &codes, &scales}) ring->at = agreed(ring->at);
    parity = agreed(parity);
  }
};

/* The weights of a consumer warp: the lane's packed words of the current stage, and the scales and zeros of its
 * rows. */
template <class T>
struct warp_weights {
  static constexpr lpg_gemm_slot layout = T::scales_layout();
  const typename T::Dequantiser dequantiser;
  const scaled_dequantiser<T::Bits> scaled;
  const scales_args &scales;
  const int row_tile, lane;  /* the warp's, in the work tile */
  const uint32_t lane_codes; /* offset of the lane's words in a stage */
  const uint32_t stage_groups,
      prepared_bytes; /* prepared scales: scale groups in a stage, and bytes of a row tile's in a stage */
  row_scales_of<T> rows;
  uint32_t word[4 * T::w_vectors];

  __device__ warp_weights(const gemm_args &a, const uint8_t *table, int warp, int lane)
      : dequantiser(a.dequantiser, table, lane),
        scaled(a.dequantiser),
        scales(a.scale_data),
        row_tile(warp),
        lane(lane),
        lane_codes(row_tile * T::w_vectors * 512 + lane * 16),
        stage_groups(a.stage_groups),
        prepared_bytes(a.stage_groups * LPG_GEMM_PREPARED_BYTES) {
    rows.set_centers(T::Codes::round(a.dequantiser.center), T::Codes::round(a.dequantiser.center));
  }

  __device__ uint32_t scales_bytes() const { return T::prepared ? row_tiles_of<T> * prepared_bytes : layout.bytes; }

  /* Sets the powers of two of the warp's rows in a work tile. stage_scales: the tile's first stage of scales. */
  __device__ void set_powers(const scales_args &scale_data, const uint8_t *stage_scales) {
    const uint8_t *const exponents = stage_scales + layout.exponents + row_tile * LPG_TILE_ROWS;
    rows.set_power(scale_data, (const int8_t *)exponents, lane / 4);
  }

  /* Loads the words that are first needed in the batch of steps that begins at `step`. stage: address. */
  __device__ void load_codes(uint32_t stage, int step) {
#pragma unroll
    for (int v = 0; v < T::w_vectors; v++) {
      if (T::first_step(v) / T::batch == step / T::batch) load_words(stage + lane_codes + v * 512, &word[4 * v]);
    }
  }

  /* Loads the scales and zeros of the scale group that begins at `step`, if one does. */
  __device__ void load_scales(const uint8_t *scale_data, int step) {
    if (!T::scales_weights || step % T::ScaleSteps != 0) return;
    if constexpr (T::prepared) {
      const uint32_t group = step % layout.steps * stage_groups / layout.steps;
      const uint8_t *const prepared = scale_data + row_tile * prepared_bytes + group * LPG_GEMM_PREPARED_BYTES;
      rows.load(((const float4 *)prepared)[lane / 4]);
    } else if constexpr (T::levels) {
      const int scale_group = row_tile * layout.scale_groups + step % layout.steps / T::ScaleSteps;
      const uint8_t *const upper = scale_data + layout.upper + row_tile * (2 * LPG_TILE_ROWS);
      if (step % layout.steps == 0) rows.load_upper(upper, upper + layout.upper_bytes, lane / 4);
      rows.load_codes(scale_data + scale_group * LPG_TILE_ROWS, scale_data + layout.zeros + scale_group * LPG_TILE_ROWS,
                      lane / 4);
    } else if constexpr (T::one_level_rests) {
      const int scale_group = row_tile * layout.scale_groups + step % layout.steps / T::ScaleSteps;
      rows.load_rests(scales, scale_data + scale_group * layout.scale_bytes,
                      scale_data + layout.zeros + scale_group * layout.zero_bytes, lane / 4);
    } else {
      const int scale_group = row_tile * layout.scale_groups + step % layout.steps / T::ScaleSteps;
      rows.load(scaled, scale_data + scale_group * layout.scale_bytes,
                scale_data + layout.zeros + scale_group * layout.zero_bytes, lane / 4);
    }
  }

  /* Dequantises the A operand of one MMA step. */
  __device__ void dequantise(uint32_t (&operand)[4], int step) const {
    const int unit = step % T::w_steps / T::unit_steps, pair = step % T::unit_steps * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t *const unit_words = &word[unit * T::unit_words * 2 + half];
#pragma unroll
      for (int i = 0; i < 2; i++) operand[half + 2 * i] = rows.weights(dequantiser, half, unit_words, pair + i);
    }
  }

  /* Dequantises the A operands of the batch of steps that begins at `first`, whose scales are loaded. */
  __device__ void dequantise_batch(uint32_t (&operands)[T::batch][4], const uint8_t *scale_data, int first) {
#pragma unroll
    for (int step = first; step < first + T::batch; step++) {
      if (step > first) load_scales(scale_data, step);
      dequantise(operands[step - first], step);
    }
  }
};

/* The same of an image: nothing of it is in registers. */
template <class T>
struct image_weights {
  static constexpr int rows = T::tile_n / LPG_IMAGE_ROWS; /* pieces of a stage along N */
  const uint32_t first;                                   /* the warpgroup's first piece in a stage, in 16 bytes */

  __device__ image_weights(const gemm_args &, const uint8_t *, int warp, int)
      : first(warp / 4 * (LPG_IMAGE_PIECE / 16)) {}

  __device__ static uint32_t scales_bytes() { return 0; }
  __device__ static void set_powers(const scales_args &, const uint8_t *) {}
  __device__ static void load_codes(uint32_t, int) {}
  __device__ static void load_scales(const uint8_t *, int) {}

  /* The piece of a step of the stage at `stage`. */
  __device__ uint32_t piece(uint32_t stage, int step) const {
    return stage + first + step / T::batch * rows * (LPG_IMAGE_PIECE / 16);
  }
};

/* The consumer warp has read a stage: it arrives on the stage's empty mbarrier (0: none). With multicast the
 * producers of every CTA write to this stage, so the warp arrives on the mbarrier of each CTA. */
template <class T>
__device__ inline void release_stage(const gemm_work &w, uint32_t empty, int lane) {
  __syncwarp(); /* all lanes have read it */
  if (T::may_multicast) {
    if (lane < w.multicast && empty != 0) arrive_remote(empty, w.multicast > 1 ? lane : w.rank);
  } else if (lane == 0 && empty != 0) {
    arrive(empty);
  }
}

/* Stores a work tile. before: the sum of the team's earlier parts of K. */
template <class T, class Work>
__device__ inline void store_sums(const gemm_args &a, const Work &w, int tile, int turn, gemm_product<T> &product,
                                  const gemm_product<T> &before, int runs, float *factors, uint8_t *memory) {
  const bool split = a.plan.at_once > 1, two_parts = T::runs && runs > 1;
  if (T::runs && two_parts && !split) product.add(before);
  if (split && a.plan.exchanges && !two_parts) return exchange_parts<T>(a, w, tile, turn, product, factors, memory);
  if constexpr (T::TileM >= piece_sums<T>::x_rows) {
    if (!split && stores_pieces(a.epilogue, a.n)) {
      const tile_place at = place_of<T>(a, w, tile);
      if (is_plain(a.epilogue)) return store_plain<T>(a, at, product, factors, memory);
      return store_pieces<T, stores_all>(a, at, factors, memory,
                                         [&](piece_sums<T> &sums, int first) { sums.take(product, first); });
    }
  }
  const int parts = !split ? 0 : two_parts ? 2 : T::teams;
  store_tile<T, T::runs ? 2 : T::teams>(a, w, tile, product, before, parts, factors, memory);
}

/* The state of a consumer warp, kept from one work tile to the next. */
template <class T>
struct consumer_warp {
  const int lane, warp, team; /* warp: in its team */
  const gemm_parts<T> parts;
  std::conditional_t<T::image, image_weights<T>, warp_weights<T>> weights;
  consumer_place<T> place;
  uint32_t empty_before; /* empty mbarrier of the stage that a wgmma may still read; 0: none */
  const bool ahead;      /* no split-K: the warp waits for the next work tile's first stage while it multiplies */

  __device__ consumer_warp(const gemm_args &a, const gemm_work &w, barriers_of barriers, const uint8_t *memory,
                           int cta_warp)
      : lane(threadIdx.x % 32),
        warp(cta_warp % T::team_warps),
        team(cta_warp / T::team_warps),
        parts(a, w),
        weights(a, memory + a.plan.table, warp, lane),
        place(a, barriers.base, weights.scales_bytes()),
        empty_before(0),
        ahead(a.plan.at_once == 1) {}

  /* A work tile's place, for when it is stored: behind the mbarriers. */
  __device__ tile_place *place_kept(uint8_t *memory) const {
    static_assert(16 * lpg_gemm_most_blocks(T::TileM) * T::block_stages <= LPG_GEMM_BARRIER_BYTES / 2 &&
                      T::warps * sizeof(tile_place) <= LPG_GEMM_BARRIER_BYTES / 2,
                  "there is room for both");
    return (tile_place *)(memory + LPG_GEMM_BARRIER_BYTES / 2) + threadIdx.x / 32;
  }
  __device__ void keep_place(const tile_place &at, uint8_t *memory) const {
    if (lane == 0) *place_kept(memory) = at;
  }
};

/* Whether rows' factors are found while the kernel before may still run (PDL): they come from weights alone. */
template <class T>
constexpr bool has_early_factors = !T::prepared && !T::image && !T::takes_experts;

/* Finds the factor of each of a warp's rows in a work tile. warp: in its team. */
template <class T>
__device__ inline void fill_factors(const gemm_args &a, const gemm_work &w, const tile_place &at, int expert, int warp,
                                    int lane, float *factors) {
  if (lane >= LPG_TILE_ROWS) return;
  const int row = warp * LPG_TILE_ROWS + lane;
  factors[row] = w.reads && a.k > 0 ? row_factor<T>(a, at.n + row, expert) : 0.0f;
  static_assert(LPG_BIASES_BEHIND == 2 * LPG_GEMM_TILE_N, "biases lie behind both turns' factors");
  if (T::takes_experts && a.epilogue.paired && a.epilogue.bias) {
    factors[LPG_BIASES_BEHIND + row] = pair_bias(a.epilogue, at.n + row, a.n / 2, at.bias);
  }
}

/* The same with rests, where the rows' powers of two are found with them. By the whole warp. alpha = 0: weights are not
 * read. */
template <class T>
__device__ inline void fill_factors_and_powers(const gemm_args &a, const gemm_work &w, const tile_place &at, int warp,
                                               int lane, row_scales_of<T> &rows, float *factors) {
  float factor = 0.0f;
  if (w.reads) factor = find_row_powers<T>(a, at.n / LPG_TILE_ROWS + warp, lane, rows.row_power);
  factors[warp * LPG_TILE_ROWS + lane % LPG_TILE_ROWS] = a.scale_data.factor * factor;
}

/* Passes over the stages from MMA step `step` of a k block on, which hold nothing. */
template <class T>
__device__ inline void skip_stages(const gemm_work &w, consumer_warp<T> &own, int step) {
  auto &place = own.place;
#pragma unroll 1
  for (; step < steps; step += T::x_steps) {
    const int next = step + T::x_steps;
    release_stage<T>(w, own.empty_before, own.lane);
    own.empty_before = barriers_of::empty_of(place.full.at);
    place.x.advance();
    if (next % T::w_steps == 0) place.codes.advance();
    if (next % T::scales_layout().steps == 0) place.scales.advance();
    place.parity ^= place.full.advance();
    if (next < steps || own.ahead) place.wait();
  }
  place.agree();
  own.empty_before = agreed(own.empty_before);
}

/* Multiplies one work tile. While the tensor cores run a batch, the warp dequantises the next one. Before it waits
 * for the last batch of a stage it waits for the next stage and loads its first words, so the tensor cores do not
 * fall idle between stages. */
template <class T>
__device__ inline void multiply_tile(const gemm_args &a, const work_of<T> &w, int tile, int turn, int streamed_blocks,
                                     bool ends, consumer_warp<T> &own, uint8_t *memory) {
  const auto &parts = own.parts;
  auto &weights = own.weights;
  auto &place = own.place;
  const int blocks = streamed_blocks == 0 ? parts.blocks_of(own.team) : parts.reads ? streamed_blocks : 0;
  gemm_product<T> product, before; /* before: sum of the earlier parts of K */
  uint32_t operands[gemm_product<T>::depth][T::batch][4];
  /* K's last block may end with stages that hold nothing: then it is a short one. */
  const bool has_end = streamed_blocks == 0 ? parts.first_block(own.team) + blocks == a.plan.blocks : ends;
  const int tail = last_steps<T>(a), short_blocks = agreed(has_end && blocks > 0 && tail <= steps - T::x_steps);
  for (int i = 0; i < own.team; i++) place.skip_blocks(1);
  float *const factors = (float *)(memory + a.plan.factors) + turn % 2 * LPG_GEMM_TILE_N;
  int expert;
  const tile_place at = find_place<T>(a, w, tile, memory, expert); /* here, where the whole warp is */
  if constexpr (T::takes_experts) own.keep_place(at, memory);
  const int x_rows = T::takes_experts ? agreed(at.m_end - at.m) : at.m_end - at.m;
  if (!has_early_factors<T>) pdl_wait();
  if constexpr (T::finds_row_powers) {
    fill_factors_and_powers<T>(a, w, at, own.warp, own.lane, weights.rows, factors);
  } else {
    fill_factors<T>(a, w, at, expert, own.warp, own.lane, factors);
  }
  if (has_early_factors<T>) pdl_wait();
  if (own.ahead || blocks > 0) {
    place.wait();
    weights.load_codes(place.codes.at, 0);
  }
  if (T::runs) before.clear();
  if (T::has_powers) weights.set_powers(a.scale_data, memory + place.scales.at);
  weights.load_scales(memory + place.scales.at, 0);
  int left = blocks;
  /* A k block with all its stages, or with those that begin before K's end. */
  const auto multiply_block = [&](auto is_whole) {
    constexpr bool whole = decltype(is_whole)::value;
#pragma unroll
    for (int first = 0; first < steps - (whole ? 0 : T::x_steps); first += T::batch) {
      const int x_step = first % T::x_steps, next = first + T::batch;
      const uint32_t read = own.empty_before; /* the stage before: read when all earlier batches are done */
      const auto wait_for_batch_before = [&]() {
        product.wait();
        if (x_step == 0) release_stage<T>(w, read, own.lane);
      };
      if constexpr (T::image) {
        product.start(weights.piece(place.codes.at, x_step), place.x.at, x_step, x_rows);
        wait_for_batch_before(); /* there is nothing to do meanwhile */
      } else {
        auto &batch = operands[first / T::batch % gemm_product<T>::depth];
        weights.dequantise_batch(batch, memory + place.scales.at, first);
        product.start(batch, place.x.at, x_step, x_rows);
      }
      if (next % T::w_steps == 0) place.codes.advance();
      if (next % T::scales_layout().steps == 0) place.scales.advance();
      if (next % T::x_steps == 0) {
        const bool comes = next < steps || left > 1 || own.ahead;
        const uint32_t here = place.full.at, parity_here = place.parity;
        own.empty_before = barriers_of::empty_of(here);
        place.x.advance();
        place.parity ^= place.full.advance();
        if (T::teams > 1 && next == steps) place.skip_blocks(left > 1 ? T::teams - 1 : 0);
        /* no branch: see row_scales_of::load(); if no stage follows, it waits for the current one, which is full */
        wait_stage<T>(comes ? place.full.at : here, comes ? place.parity : parity_here);
      }
      weights.load_codes(place.codes.at, next % T::w_steps);
      weights.load_scales(memory + place.scales.at, next % steps);
      if (!T::image) wait_for_batch_before();
      if (!whole && next % T::x_steps == 0 && next >= tail) {
        product.finish();
        return skip_stages<T>(w, own, next);
      }
    }
  };
#pragma unroll 1
  for (int run = 0; run < parts.runs; run++) {
    product.clear();
    const int end = T::runs && parts.runs > 1 ? left - parts.blocks_of(own.team, run) : 0;
#pragma unroll 1
    for (const int whole_end = end == 0 ? short_blocks : end; left > whole_end; left--) {
      multiply_block(std::true_type());
    }
    if (left > end) {
      multiply_block(std::false_type());
      left--;
    }
    product.finish();
    if (T::runs && run + 1 < parts.runs) before.add(product);
  }
  __syncwarp();
  /* With split-K a team begins the next work tile at a stage of its own: it releases the last stage now, and skips the
   * other teams' blocks that are left. */
  if (a.plan.at_once > 1) {
    if (own.lane == 0 && own.empty_before != 0) arrive(own.empty_before);
    own.empty_before = 0;
    for (int i = own.team + T::teams * (blocks - 1) + 1; T::teams > 1 && i < parts.blocks(); i++) place.skip_blocks(1);
  }
  if constexpr (T::streams) {
    if (a.plan.streamed > 0 && tile >= w.tiles) {
      const gemm_turn own_turn = turn_of(a, w, turn); /* again: registers are few */
      if (own_turn.is_partial()) return store_partials<T>(a, product, x_rows);
      add_partials<T>(a, w, tile, own_turn.blocks, x_rows, product);
    }
  }
  if constexpr (T::takes_experts) {
    store_sums<T>(a, placed_tile{w.rank, own.place_kept(memory)}, tile, turn, product, before, parts.runs, factors,
                  memory);
  } else {
    store_sums<T>(a, w, tile, turn, product, before, parts.runs, factors, memory);
  }
}

/* Inlined: else the compiler waits for each product. */
template <class T>
__device__ __forceinline__ void multiply_tiles(const gemm_args &a, const work_of<T> &w, barriers_of barriers,
                                               uint8_t *memory, int warp) {
  consumer_warp<T> own(a, w, barriers, memory, warp);
  int number = 0; /* of the turn */
  if constexpr (T::streams) {
    /* The compiler must see that all lanes go through the same k blocks: see agreed(). */
    for (;; number++) {
      const gemm_turn turn = turn_of(a, w, number);
      const int tile = agreed(turn.tile);
      if (tile < 0) break;
      multiply_tile<T>(a, w, tile, number, agreed(turn.blocks), agreed(turn.first + turn.blocks) == a.plan.blocks, own,
                       memory);
    }
  } else {
    const int tiles = tiles_of<T>(a, w, memory);
    for (int tile = w.first_tile; tile < tiles; tile += w.stride)
      multiply_tile<T>(a, w, tile, number++, 0, false, own, memory);
  }
  if (is_multicast<T>(a.plan)) release_stage<T>(w, own.empty_before, own.lane); /* the last: see load_tiles() */
  if (T::streams) wait_stores_read();                                           /* the CTA's shared memory goes */
  __syncwarp();
}

template <class T>
__global__ void __launch_bounds__(T::threads, 1) gemm_kernel(const __grid_constant__ gemm_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const lpg_gemm_plan &p = a.plan;
  pdl_launch_next();
  const uint32_t base = shared_address(memory);
  const barriers_of barriers = {base};
  if (threadIdx.x == 0) barriers.init<T>(p);
  __syncthreads();
  if (p.apart && p.exchanges) cluster_arrive_only(); /* see parts_exchange */
  if (is_multicast<T>(p)) cluster_arrive_only();     /* mbarriers are ready before other CTAs copy or arrive */
  if (a.epilogue.device_alpha) pdl_wait();           /* reads_product() reads it */
  const work_of<T> w(p, reads_product(a.epilogue));
  read_experts<T>(a, memory);
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  if (warp >= T::warps) {
    release_registers<T::producer_registers>();
    load_tiles<T>(a, w, barriers, memory, warp - T::warps, lane);
    __syncwarp();
  } else {
    take_registers<T::consumer_registers>();
    if (T::has_powers) fill_scales<T>(a, memory + p.scales);
    T::Dequantiser::fill_table(a.dequantiser, memory + p.table, threadIdx.x, 32 * T::warps);
    threads_meet(tables_are_filled, 32 * T::warps);
    if (is_multicast<T>(p)) cluster_wait();
    multiply_tiles<T>(a, w, barriers, memory, warp);
  }
  if (is_multicast<T>(p)) { /* no CTA exits while others may copy to it; producers have seen all arrivals */
    cluster_arrive_only();
    cluster_wait();
  }
}

}  // namespace
}  // namespace lpg
