/* The token form: from the partial sums of warps and CTAs to outputs, in a fixed order, as gemv_reduce.cuh does it.
 *
 * Out: a partial has the accumulators of mma, a column a slot of the item. In: [row tile][token][16 rows], so that the
 * columns of all items meet; 512 bytes of it are 8 tokens. */
#pragma once

#include "../prim/cluster.cuh"
#include "gemv_fan_work.cuh"
#include "gemv_reduce.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Adds a warp's sums of a strip to those of its tokens. The warp alone has this partial. */
template <class T>
__device__ inline void add_to_tokens(const fan_item &item, int tokens, float factor, int lane, float *partial,
                                     const accumulators<T> &totals) {
  const int g = lane / 4;
  __syncwarp(); /* the strip before is added: other lanes may have had its tokens */
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int column = lane % 4 * 2 + i, token = item.token[column];
    if (token < 0) continue;
    const float weight = item.weight[column] * item.scale;
#pragma unroll
    for (int r = 0; r < T::row_tiles; r++) {
      float *const to = partial + (r * tokens + token) * LPG_TILE_ROWS + g;
      to[0] = fmaf(weight, totals.sum[r][0][i] * factor, to[0]);
      to[8] = fmaf(weight, totals.sum[r][0][i + 2] * factor, to[8]);
    }
  }
}

/* A float4 of a tile's sums: where it lies in a partial, and what it is of. */
template <class T, bool In>
struct fan_piece {
  int at; /* bytes; -1: nothing */
  int row_tile, token;

  static __device__ int count(const lpg_fan_plan &p) { return In ? T::row_tiles * ((p.tokens + 7) / 8) : T::row_tiles; }

  __device__ fan_piece(const lpg_fan_plan &p, int piece, int lane) {
    if (!In) {
      row_tile = piece;
      token = 0;
      at = piece * 512 + lane * 16;
      return;
    }
    const int eights = (p.tokens + 7) / 8;
    row_tile = (unsigned)piece / (unsigned)eights;
    token = (piece - row_tile * eights) * 8 + lane / 4;
    at = token < p.tokens ? (row_tile * p.tokens + token) * (LPG_TILE_ROWS * 4) + lane % 4 * 16 : -1;
  }
};

/* A token's sums of four neighbouring rows of down, from n on. */
__device__ inline void store_token(const fan_args &a, const fan_items &items, int token, int n, float4 sum) {
  const epilogue_args &e = a.product.epilogue;
  const int rows = min(a.product.n - n, 4);
  const float beta = e.c ? beta_of(e) : 0.0f;
  float v[4] = {sum.x, sum.y, sum.z, sum.w};
  if (e.bias) {
#pragma unroll 4
    for (int slot = token * a.top_k; slot < (token + 1) * a.top_k; slot++) {
      if (items.expert[slot] < 0) continue;
      const int64_t bias = (int64_t)items.expert[slot] * a.bias_stride + n;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (i < rows) v[i] = fmaf(items.weight[slot], load_real(e.bias_type, e.bias, bias + i), v[i]);
      }
    }
  }
  if (beta != 0.0f) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i < rows) v[i] = fmaf(beta, load_real(e.y_type, e.c, token * e.ldc + n + i), v[i]);
    }
  }
  if (rows > 0) store_outputs(e, token, n, n + rows, v);
}

template <class T, bool In>
__device__ inline void store_fan(const fan_args &a, const fan_work<T, In> &w, int round, int tile, int piece, int lane,
                                 float4 sum) {
  if constexpr (In) {
    const fan_piece<T, In> of(a.plan, piece, lane);
    const int super_tile = w.first_tile + round * w.round_tiles + tile;
    const int n = (super_tile * T::row_tiles + of.row_tile) * LPG_TILE_ROWS + lane % 4 * 4;
    if (of.at >= 0) store_token(a, w.items, of.token, n, sum);
  } else {
    const strip_place place = w.place(round, tile);
    const fan_item &item = w.items.item[place.item];
    const int row_tile = place.super_tile * T::row_tiles + piece, g = lane / 4, column = lane % 4 * 2;
    const int first = item.slot[column], second = item.slot[column + 1];
    if (first >= 0) store_two(a, item.expert, item.scale, first, row_tile, g, sum.x, sum.z);
    if (second >= 0) store_two(a, item.expert, item.scale, second, row_tile, g, sum.y, sum.w);
  }
}

/* With split-K: adds the warps' partials and writes the sums to the CTA that stores the tile: rank tile % split_k. */
template <class T, bool In>
__device__ inline void send_fan(const lpg_fan_plan &p, const fan_work<T, In> &w, const work &none, int round, int rank,
                                const uint8_t *partials, uint8_t *peers) {
  const int lane = threadIdx.x % 32, pieces = fan_piece<T, In>::count(p);
  const lpg_partition shares = w.shares(round);
  for (int job = w.warp; job < w.tiles_of(round) * pieces; job += T::warps) {
    const int tile = quotient(job, pieces);
    const fan_piece<T, In> of(p, job - tile * pieces, lane);
    if (of.at < 0) continue;
    const partial_span span = span_of(shares, tile, w.each * w.blocks, none);
    const uint8_t *to = peers + rank * p.peer_bytes + tile / (unsigned)p.split_k * p.partial_bytes + of.at;
    store_to_block(shared_address(to), tile % (unsigned)p.split_k,
                   add_partials(partials + span.first * p.partial_bytes + of.at, span.count, p.partial_bytes));
  }
}

template <class T, bool In>
__device__ inline void store_round(const fan_args &a, const fan_work<T, In> &w, const work &none, int round, int rank,
                                   const uint8_t *partials, const uint8_t *peers) {
  const lpg_fan_plan &p = a.plan;
  const int lane = threadIdx.x % 32, pieces = fan_piece<T, In>::count(p), split_k = p.split_k;
  const lpg_partition shares = w.shares(round);
  for (int job = w.warp; quotient(job, pieces) * split_k + rank < w.tiles_of(round); job += T::warps) {
    const int at = quotient(job, pieces), piece = job - at * pieces, tile = at * split_k + rank;
    const fan_piece<T, In> of(p, piece, lane);
    if (of.at < 0) continue;
    const partial_span span = span_of(shares, tile, w.each * w.blocks, none);
    const uint8_t *from = split_k > 1 ? peers + at * p.partial_bytes : partials + span.first * p.partial_bytes;
    store_fan<T, In>(
        a, w, round, tile, piece, lane,
        add_partials(from + of.at, split_k > 1 ? split_k : span.count, split_k > 1 ? p.peer_bytes : p.partial_bytes));
  }
}

}  // namespace
}  // namespace lpg
