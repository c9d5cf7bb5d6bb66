/* Split-K reduction of a work tile, through the shared memory of the cluster.
 *
 * K is cut among the CTAs of a cluster, and in a CTA among its teams of consumer warps. Each team writes its partial
 * sums to its CTA's shared memory. After a cluster barrier each CTA adds up the partials of all parts for some of the
 * rows of X, in a fixed order, and stores them (store_tile()). A second cluster barrier ends the reading. The partials
 * may lie where the stages were: so no stage may be filled between the two barriers, and the producer warps wait at
 * both. */
#pragma once

#include "../prim/async.cuh"
#include "../prim/barrier.cuh"
#include "../prim/cluster.cuh"
#include "../prim/named_barriers.h"
#include "sums.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The producer warps take part in both cluster barriers. */
__device__ inline void wait_for_parts() {
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  cluster_arrive_only();
  cluster_wait();
}

/* Sums in one's own shared memory, of one part: sums[row of X][row of W]. A place below 0: there are none, take 0. */
struct own_sums {
  const float *sums;
  int stride; /* of rows of X */

  __device__ int place(int x_row, int row) const { return x_row * stride + row; }

  template <class Vector, int Count>
  __device__ void take(Vector (&sum)[Count], const int (&place)[Count]) const {
#pragma unroll
    for (int i = 0; i < Count; i++) sum[i] = place[i] < 0 ? Vector{} : *(const Vector *)(sums + place[i]);
  }
};

/* Sums of all parts: those of each CTA in turn, and of each of its one or two parts, sums[part][row of X][row of W].
 * parts 0: K is not split, and they are one's own. Integer: they are integers, held as bits. */
template <bool Integer>
struct cluster_sums : own_sums {
  int parts, part_bytes, ctas, first_rank;

  template <class Vector, int Count>
  __device__ void take(Vector (&sum)[Count], const int (&place)[Count]) const {
    if (parts == 0) return own_sums::take(sum, place);
#pragma unroll
    for (int i = 0; i < Count; i++) sum[i] = {};
    const uint32_t first = shared_address(sums);
    const int two = parts - 1;
#pragma unroll 2
    for (int part = 0; part < ctas << two; part++) {
      const uint32_t from = address_in_block(first + (part & two) * part_bytes, first_rank + (part >> two));
#pragma unroll
      for (int i = 0; i < Count; i++) {
        if (place[i] >= 0) add(sum[i], from + place[i] * 4);
      }
    }
  }

 private:
  __device__ static float sum_of(float a, float b) {
    return Integer ? __int_as_float(__float_as_int(a) + __float_as_int(b)) : a + b;
  }
  __device__ static void add(float &sum, uint32_t from) { sum = sum_of(sum, load_one_at(from)); }
  __device__ static void add(float4 &sum, uint32_t from) {
    const float4 v = load_four_at(from);
    sum = make_float4(sum_of(sum.x, v.x), sum_of(sum.y, v.y), sum_of(sum.z, v.z), sum_of(sum.w, v.w));
  }
};

}  // namespace
}  // namespace lpg
