/* Tensor core products of one warp: D += A B with A 16 x 16 (weights), B 16 x 8 (activations), D 16 x 8 in fp32.
 *
 * Thread (g, t) = lane 4 g + t holds A's (g, 2t..2t+1), (g + 8, 2t..2t+1), (g, 2t+8..2t+9), (g + 8, 2t+8..2t+9), B's
 * (2t..2t+1, g), (2t+8..2t+9, g) and D's (g, 2t..2t+1), (g + 8, 2t..2t+1). */
#pragma once

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Four 8 x 8 matrices of 16-bit numbers from shared memory: lane 8 j + i brings the address of row i (16 bytes) of
 * matrix j, and gets of every matrix the numbers (g, 2t..2t+1). Rows of X that way are B, 32 columns at once. The
 * compiler may move it, but not before what the address was computed from: keep() holds that behind a barrier. */
__device__ inline void load_matrices(uint32_t address, uint32_t (&b)[4]) {
  asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
      : "r"(address));
}

struct mma_f16 {
  __device__ static void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct mma_bf16 {
  __device__ static void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/* Of bytes: A is 16 x 32 and B 32 x 8, four neighbours of the columns above in each register; sums are integers. */
struct mma_i8 {
  __device__ static void multiply(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

}  // namespace
}  // namespace lpg
