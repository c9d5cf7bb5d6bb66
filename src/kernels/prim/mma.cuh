/* mma.sync, the tensor core product of one warp: D += A B with A 16 x 16 (weights), B 16 x 8 (X) and D 16 x 8 in fp32.
 *
 * Lane 4 g + t holds two elements in each register:
 *   A  (g, 2t..2t+1), (g + 8, 2t..2t+1), (g, 2t+8..2t+9), (g + 8, 2t+8..2t+9)
 *   B  (2t..2t+1, g), (2t+8..2t+9, g)
 *   D  (g, 2t..2t+1), (g + 8, 2t..2t+1), one float each */
#ifndef LPG_PRIM_MMA_CUH
#define LPG_PRIM_MMA_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ldmatrix: four 8 x 8 matrices of 16-bit elements from shared memory. Lane 8 j + i passes the address of row i (16
 * bytes) of matrix j; each lane gets elements (g, 2t..2t+1) of every matrix. With rows of X as the matrices' rows this
 * is B for 32 k. The asm is not volatile, so the compiler may move it, but not before the computation of `address`: an
 * address that went through keep() after a barrier holds the load behind that barrier. */
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

/* The same with tf32: A is 16 x 8, B 8 x 8. An element is an fp32 number of which the lower 13 bits do not count.
 *   A  (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
 *   B  (t, g), (t + 4, g) */
struct mma_tf32 {
  __device__ static void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/* The same with int8: A is 16 x 32, B 32 x 8, four neighbours in each register; the sums are int32. */
struct mma_i8 {
  __device__ static void multiply(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

}  // namespace
}  // namespace lpg

#endif
