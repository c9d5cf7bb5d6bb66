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

/* A work tile's exchange, as a team sees it. Every team of the cluster sends, adds its own share, and ends. Apart: the
 * kernel has let all threads arrive once at the cluster's barrier. */
template <class T>
struct parts_exchange {
  tile_place own; /* the team's share of the work tile */

  template <class Args, class Work>
  __device__ parts_exchange(const Args &a, const Work &w, int tile, uint8_t *memory)
      : own(place_of<T>(a, w, tile)),
        shares(tile_place{own.m, min(own.m_end, own.m + T::TileM), 0, 0}, a.plan.split_k * T::teams) {
    constexpr int rows = T::row_tiles * LPG_TILE_ROWS, team_threads = receive_buffers<T>::team_threads;
    /* agreed(): else the compiler takes lanes to be apart in what follows, the main loop of the next work tile too */
    team = T::teams > 1 ? agreed(threadIdx.x / team_threads) : 0;
    part = w.rank * T::teams + team;
    const uint32_t base = shared_address(memory + a.plan.sums) + T::warps * lpg_sums_bytes(LPG_PASS_ROWS, rows);
    buffers = {base + threadIdx.x % team_threads * 16, shares.parts, shares.each};
    const int first_block = part * shares.each;
    blocks = min(shares.each, shares.blocks - first_block);
    own.m += first_block * 8;
    own.m_end = min(own.m_end, own.m + blocks * 8);
  }

  /* Sends the team's sums to the teams that add them up, tells their CTAs, and waits for those that it adds up. turn:
   * of the CTA's work tiles. */
  template <class Args, class Work, class Product>
  __device__ void send(const Args &a, const Work &w, int turn, const Product &product, uint8_t *memory) const {
    const uint32_t received = shared_address(memory + a.plan.received);
    __syncwarp();
    if (!a.plan.apart) cluster_arrive_only();
    cluster_wait();
    int owner = 0, block = 0; /* the team that adds up the block, and its number there */
#pragma unroll
    for (int j = 0; j < T::TileM / 8; j++) {
      if (j >= shares.blocks) break;
#pragma unroll
      for (int r = 0; r < T::row_tiles; r++) {
        const auto *const sum = &product.sum[r][4 * j];
        store_to_block(buffers.place(owner % T::teams, part, block, r), w.first_rank + owner / T::teams,
                       make_float4(as_float(sum[0]), as_float(sum[1]), as_float(sum[2]), as_float(sum[3])));
      }
      if (++block == shares.each) block = 0, owner++;
    }
    __syncwarp();
    if (threadIdx.x % 32 < a.plan.split_k) arrive_written(received, w.first_rank + threadIdx.x % 32);
    wait_for_written(received, turn % 2);
  }

  /* Adds up the sums of 32 rows of X of the team's share, from its row `first` on. */
  __device__ void add(piece_sums<T> &sums, int first) const {
    sums.clear();
#pragma unroll 2
    for (int p = 0; p < shares.parts; p++) {
#pragma unroll
      for (int i = 0; i < piece_sums<T>::x_rows / 8; i++) {
#pragma unroll
        for (int r = 0; r < T::row_tiles; r++) {
          if (first / 8 + i < blocks) sums.add(r, i, load_four(buffers.place(team, p, first / 8 + i, r)));
        }
      }
    }
    if (T::integer_sums) sums.convert_integers();
  }

  template <class Args>
  __device__ void end(const Args &a) const {
    __syncwarp();
    if (a.plan.apart) {
      cluster_arrive_only();
    } else {
      threads_arrive(sums_are_added, T::threads);
    }
  }

 private:
  team_shares shares;
  receive_buffers<T> buffers;
  int team, part, blocks; /* blocks: of eight rows of X that the team adds up */
};

/* Stores a work tile whose K is split in the common case. turn: of the CTA's work tiles. */
template <class T, class Args, class Work, class Product>
__device__ inline void exchange_parts(const Args &a, const Work &w, int tile, int turn, const Product &product,
                                      const float *factors, uint8_t *memory) {
  const parts_exchange<T> exchange(a, w, tile, memory);
  exchange.send(a, w, turn, product, memory);
  const auto add = [&](piece_sums<T> &sums, int first) { exchange.add(sums, first); };
  if (is_plain(a.epilogue)) {
    store_pieces<T, stores_plain>(a, exchange.own, factors, memory, add);
  } else {
    store_pieces<T, stores_all>(a, exchange.own, factors, memory, add);
  }
  exchange.end(a);
}

}  // namespace
}  // namespace lpg
