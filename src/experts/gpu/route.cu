/* Routing: a stable counting sort of slots by expert.
 *
 *   a warp has slots that follow one another, 32 a round: lanes with the same expert find one another by match.sync,
 * and the warp's own counts say how many there were before the counts of the warps, added up in their order, and those
 * of the experts say where each slot goes
 *
 * One CTA up to 4096 slots. Beyond, a CTA a part: one launch counts, the second adds up the counts of all parts and
 * sorts its part, a chunk of slots after the other. Nothing is added by atomics where order matters. */
#include "../../kernels/prim/shared.cuh"
#include "experts.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

constexpr int most_warps = 16, most_rounds = 8, warp_slots = 32 * most_rounds;

struct route_args {
  lpg_route route;
  int64_t slots, each; /* each: of a part */
  int warps;
};

/* Shared memory: where the next slot of each expert goes; how many a chunk has; and those of each warp. */
struct route_memory {
  int *start, *chunk, *sums; /* [experts + 1], [experts], [most_warps] */
  uint16_t *counts;          /* [warps][experts] */

  __device__ route_memory(uint8_t *memory, int experts)
      : start((int *)memory),
        chunk(start + experts + 1),
        sums(chunk + experts),
        counts((uint16_t *)(sums + most_warps)) {}

  static size_t bytes(int experts, int warps) {
    return (size_t)(2 * experts + 1 + most_warps) * sizeof(int) + (size_t)warps * (size_t)experts * sizeof(uint16_t);
  }
};

/* The slots of a chunk: experts (those that are left out: the number of experts), and ranks within warp and expert. */
struct chunk_slots {
  int64_t first; /* the lane's */
  int expert[most_rounds], rank[most_rounds], rounds;

  __device__ void read(const route_args &a, int64_t chunk, int64_t end) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t left = end - chunk < warp_slots * a.warps ? end - chunk : warp_slots * a.warps;
    rounds = (int)((left + 32 * a.warps - 1) / (32 * a.warps));
    first = chunk + warp * 32 * rounds + lane;
#pragma unroll
    for (int i = 0; i < most_rounds; i++) {
      const int64_t slot = first + 32 * i;
      expert[i] = a.route.experts;
      if (i >= rounds || slot >= end) continue;
      const int64_t own = (int64_t)a.route.expert[slot] - a.route.first_expert;
      if (own >= 0 && own < a.route.experts) expert[i] = (int)own;
    }
  }

  /* counts: of the warp, cleared. */
  __device__ void rank_them(int experts, uint16_t *counts) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < most_rounds; i++) {
      if (i >= rounds) break;
      const bool sorted = expert[i] < experts;
      const unsigned same = __match_any_sync(0xffffffffu, expert[i]);
      const int lower = __popc(same & ((1u << lane) - 1u)), before = sorted ? counts[expert[i]] : 0;
      __syncwarp(); /* all have read the counts */
      if (sorted && lower == 0) counts[expert[i]] = (uint16_t)(before + __popc(same));
      __syncwarp();
      rank[i] = before + lower;
    }
  }

  __device__ void place(const route_args &a, int64_t end, const route_memory &m) const {
    const uint16_t *const counts = m.counts + threadIdx.x / 32 * a.route.experts;
#pragma unroll
    for (int i = 0; i < most_rounds; i++) {
      const int64_t slot = first + 32 * i;
      if (i >= rounds || slot >= end) continue;
      const bool sorted = expert[i] < a.route.experts;
      const int at = sorted ? m.start[expert[i]] + counts[expert[i]] + rank[i] : -1;
      a.route.position[slot] = at;
      if (sorted) a.route.token[at] = (int)((uint64_t)slot / (unsigned)a.route.top_k);
    }
  }
};

/* Counts a chunk: the counts of each warp become those of the warps before it, and `chunk` is their sum. */
__device__ inline void count_chunk(const route_args &a, chunk_slots &own, const route_memory &m) {
  const int experts = a.route.experts;
  for (int i = threadIdx.x; i < a.warps * experts; i += blockDim.x) m.counts[i] = 0;
  __syncthreads();
  own.rank_them(experts, m.counts + threadIdx.x / 32 * experts);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    int before = 0;
    for (int w = 0; w < a.warps; w++) {
      const int count = m.counts[w * experts + e];
      m.counts[w * experts + e] = (uint16_t)before;
      before += count;
    }
    m.chunk[e] = before;
  }
  __syncthreads();
}

/* Turns counts[0 .. n-1] into what is before each; counts[n] is their sum. The whole CTA. */
__device__ inline void add_up(int *counts, int n, int *sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int each = (n + (int)blockDim.x - 1) / (int)blockDim.x, first = min((int)threadIdx.x * each, n);
  const int end = min(first + each, n);
  int own = 0;
  for (int i = first; i < end; i++) own += counts[i];
  int all = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, all, step);
    all += lane >= step ? other : 0;
  }
  if (lane == 31) sums[warp] = all;
  __syncthreads();
  int at = all - own;
  for (int w = 0; w < warp; w++) at += sums[w];
  for (int i = first; i < end; i++) {
    const int count = counts[i];
    counts[i] = at;
    at += count;
  }
  if (warp == warps - 1 && lane == 31) counts[n] = at;
  __syncthreads();
}

/* What follows from the offsets of all experts: what is left out, and slots that no expert has. The CTA takes its share
 * of the latter. */
__device__ inline void write_offsets(const route_args &a, const int *start, int64_t part, int64_t parts) {
  const int64_t sorted = start[a.route.experts];
  if (part == 0) {
    for (int e = threadIdx.x; e <= a.route.experts; e += blockDim.x) a.route.offsets[e] = start[e];
    if (threadIdx.x == 0) *a.route.left_out = (int)(a.slots - sorted);
  }
  for (int64_t i = sorted + part * blockDim.x + threadIdx.x; i < a.slots; i += parts * blockDim.x) {
    a.route.token[i] = -1;
  }
}

static __global__ void __launch_bounds__(32 * most_warps) route_alone_kernel(const route_args a) {
  LPG_SHARED_MEMORY(uint8_t, 16);
  const route_memory m(memory, a.route.experts);
  chunk_slots own;
  pdl_launch_next();
  pdl_wait();
  own.read(a, 0, a.slots);
  count_chunk(a, own, m);
  for (int e = threadIdx.x; e < a.route.experts; e += blockDim.x) m.start[e] = m.chunk[e];
  __syncthreads();
  add_up(m.start, a.route.experts, m.sums);
  write_offsets(a, m.start, 0, 1);
  own.place(a, a.slots, m);
}

/* The counts of a part. */
static __global__ void __launch_bounds__(32 * most_warps) route_count_kernel(const route_args a) {
  LPG_SHARED_MEMORY(uint8_t, 16);
  int *const counts = (int *)memory;
  const int experts = a.route.experts;
  const int64_t first = blockIdx.x * a.each, end = first + a.each < a.slots ? first + a.each : a.slots;
  pdl_launch_next();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) counts[e] = 0;
  __syncthreads();
  pdl_wait();
#pragma unroll 4
  for (int64_t slot = first + threadIdx.x; slot < end; slot += blockDim.x) {
    const int64_t own = (int64_t)a.route.expert[slot] - a.route.first_expert;
    if (own >= 0 && own < experts) atomicAdd(&counts[own], 1);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) a.route.counts[(int64_t)blockIdx.x * experts + e] = counts[e];
}

static __global__ void __launch_bounds__(32 * most_warps) route_place_kernel(const route_args a) {
  LPG_SHARED_MEMORY(uint8_t, 16);
  const int experts = a.route.experts, part = blockIdx.x, parts = gridDim.x;
  const route_memory m(memory, experts);
  const int64_t first = part * a.each, end = first + a.each < a.slots ? first + a.each : a.slots;
  pdl_launch_next();
  pdl_wait();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    int before = 0, all = 0;
#pragma unroll 8
    for (int p = 0; p < parts; p++) {
      const int count = a.route.counts[(int64_t)p * experts + e];
      before += p < part ? count : 0;
      all += count;
    }
    m.start[e] = all;
    m.chunk[e] = before;
  }
  __syncthreads();
  add_up(m.start, experts, m.sums);
  write_offsets(a, m.start, part, parts);
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) m.start[e] += m.chunk[e];
  chunk_slots own;
  for (int64_t chunk = first; chunk < end; chunk += warp_slots * a.warps) {
    own.read(a, chunk, end);
    __syncthreads(); /* the chunk before is placed, and `start` is there */
    count_chunk(a, own, m);
    own.place(a, end, m);
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += blockDim.x) m.start[e] += m.chunk[e];
  }
}

/* As many warps as their counts fit, and no more than few slots need: what they count must be added up. */
static int warps_for(int64_t slots, int experts, int64_t shared_memory) {
  int warps = most_warps;
  while (warps > 4 && slots <= warps / 2 * 32) warps /= 2;
  while (warps > 1 && (int64_t)route_memory::bytes(experts, warps) > shared_memory) warps /= 2;
  return warps;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_route(const lpg_device *device, const lpg_route *route, cudaStream_t stream) {
  const int64_t slots = route->m * route->top_k;
  lpg::route_args a = {*route, slots, 0, lpg::warps_for(slots, route->experts, device->shared_memory)};
  const bool follows = lpg::may_follow(device);
  const int threads = 32 * a.warps;
  const size_t bytes = lpg::route_memory::bytes(route->experts, a.warps);
  if (slots <= (int64_t)a.warps * lpg::warp_slots) {
    return lpg::launch_cluster((const void *)lpg::route_alone_kernel, dim3(1), 1, threads, bytes, stream, a, follows);
  }
  const dim3 grid((unsigned)route->parts);
  a.each = lpg_ceil_div(slots, route->parts);
  LPG_TRY(lpg::launch_cluster((const void *)lpg::route_count_kernel, grid, 1, threads,
                              (size_t)route->experts * sizeof(int), stream, a, follows));
  return lpg::launch_cluster((const void *)lpg::route_place_kernel, grid, 1, threads, bytes, stream, a, follows);
}

lpgemm_status_t lpgemm_i_cuda_load_route(int shared_memory) {
  LPG_TRY(lpg::allow_shared((const void *)lpg::route_alone_kernel, (size_t)shared_memory));
  LPG_TRY(lpg::allow_shared((const void *)lpg::route_count_kernel, (size_t)shared_memory));
  return lpg::allow_shared((const void *)lpg::route_place_kernel, (size_t)shared_memory);
}
