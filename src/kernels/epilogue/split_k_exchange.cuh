/* Split-K reduction of a work tile in the common case, which store_fast.cuh stores: 16-bit Y in whole vectors.
 *
 * A part of K belongs to a team of consumer warps. Each team adds up some of the tile's rows of X, in blocks of eight:
 * every team sends it its sums of these rows, as its threads hold them, to a receive buffer in the shared memory of its
 * CTA, and then arrives on an mbarrier there. So no sum is read from afar, and a thread finds in the buffer what it has
 * the same rows of itself. The sums are added in the order of the parts, as split_k.cuh does, which takes all other
 * cases.
 *
 * Where there is room, the buffers lie behind the stages (apart). Before a team sends, the cluster's barrier says that
 * all CTAs have started, or have read what the work tile before brought. Else the buffers lie where the stages were:
 * the barrier says that all have multiplied, and the producer warps wait for the reading before they fill stages again.
 */
#pragma once

#include "split_k.cuh"
#include "store_fast.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The producer warps' share in a work tile's exchange. threads: of the CTA. */
template <class Args>
__device__ inline void wait_for_exchange(const Args &a, int threads) {
  __syncwarp();
  if (!a.plan.apart) cluster_arrive_only();
  cluster_wait();
  if (a.plan.apart) {
    cluster_arrive_only();
  } else {
    threads_meet(sums_are_added, threads);
  }
}

/* The receive buffers of a CTA's teams: [team][part][block of eight rows of X][row tile][thread of the team]. */
template <class T>
struct receive_buffers {
  static constexpr int team_threads = 32 * T::team_warps;
  uint32_t first; /* address, of the thread's own float4 */
  int parts, blocks;

  __device__ uint32_t place(int team, int part, int block, int r) const {
    return first + (((team * parts + part) * blocks + block) * T::row_tiles + r) * team_threads * 16;
  }
};

/* How the rows of X of a work tile are dealt out to the teams of all CTAs. */
struct team_shares {
  int parts, blocks, each; /* teams; eights of rows of X, and how many of them a team adds up */

  __device__ team_shares(const tile_place &at, int parts) : parts(parts), blocks((max(at.m_end - at.m, 0) + 7) / 8) {
    each = (int)((unsigned)(blocks + parts - 1) / (unsigned)parts);
  }
};

/* Sends the team's sums to the teams that add them up, and tells their CTAs. */
template <class T, class Args, class Work, class Product>
__device__ inline void send_parts(const Args &a, const Work &w, const team_shares &shares, int part,
                                  const receive_buffers<T> &to, const Product &product, uint32_t received) {
  int owner = 0, block = 0; /* the team that adds up the block, and its number there */
#pragma unroll
  for (int j = 0; j < T::TileM / 8; j++) {
    if (j >= shares.blocks) break;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      const auto *const sum = &product.sum[r][4 * j];
      store_to_block(to.place(owner % T::teams, part, block, r), w.first_rank + owner / T::teams,
                     make_float4(sum[0], sum[1], sum[2], sum[3]));
    }
    if (++block == shares.each) block = 0, owner++;
  }
  __syncwarp();
  if (threadIdx.x % 32 < a.plan.split_k) arrive_written(received, w.first_rank + threadIdx.x % 32);
}

/* Adds up 32 rows of X of the team's share of the sums, from its block `first` of eight on. */
template <class T>
__device__ inline void add_received(const team_shares &shares, int team, int own, int first,
                                    const receive_buffers<T> &from, piece_sums<T> &sums) {
  sums.clear();
#pragma unroll 2
  for (int p = 0; p < shares.parts; p++) {
#pragma unroll
    for (int i = 0; i < piece_sums<T>::x_rows / 8; i++) {
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        if (first + i < own) sums.add(r, i, load_four(from.place(team, p, first + i, r)));
      }
    }
  }
}

/* Stores a work tile whose K is split in the common case. turn: of the CTA's work tiles. Apart: the kernel has let all
 * threads arrive once at the cluster's barrier. */
template <class T, class Args, class Work, class Product>
__device__ inline void exchange_parts(const Args &a, const Work &w, int tile, int turn, const Product &product,
                                      const float *factors, uint8_t *memory) {
  constexpr int rows = T::row_tiles * LPG_TILE_ROWS, team_threads = receive_buffers<T>::team_threads;
  tile_place at = place_of<T>(a, w, tile);
  at.m_end = min(at.m_end, at.m + T::TileM);
  const team_shares shares(at, a.plan.split_k * T::teams);
  /* agreed(): else the compiler takes lanes to be apart in what follows, the main loop of the next work tile too */
  const int team = agreed(threadIdx.x / team_threads), part = w.rank * T::teams + team;
  const uint32_t base = shared_address(memory + a.plan.sums) + T::warps * lpg_sums_bytes(LPG_PASS_ROWS, rows);
  const receive_buffers<T> buffers = {base + threadIdx.x % team_threads * 16, shares.parts, shares.each};
  const int first_block = part * shares.each, own = min(shares.each, shares.blocks - first_block);
  const uint32_t received = shared_address(memory + a.plan.received);
  __syncwarp();
  if (!a.plan.apart) cluster_arrive_only();
  cluster_wait();
  send_parts<T>(a, w, shares, part, buffers, product, received);
  wait_for_written(received, turn % 2);
  at.m += first_block * 8;
  at.m_end = min(at.m_end, at.m + own * 8);
  const auto add = [&](piece_sums<T> &sums, int first) {
    add_received<T>(shares, team, own, first / 8, buffers, sums);
  };
  if (is_plain(a.epilogue)) {
    store_pieces<T, stores_plain>(a, at, factors, memory, add);
  } else {
    store_pieces<T, stores_all>(a, at, factors, memory, add);
  }
  __syncwarp();
  if (a.plan.apart) {
    cluster_arrive_only();
  } else {
    threads_arrive(sums_are_added, T::threads);
  }
}

}  // namespace
}  // namespace lpg
