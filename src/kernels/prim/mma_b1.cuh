/* Binary mma.sync of one warp: D += popc(A AND B), A 16 x K bits (weights), B K x 8 bits (X), D 16 x 8 in int32.
 *
 * Lane 4 g + t holds 32-bit words: of A, bits 32 t .. 32 t + 31 of rows g and g + 8; of B, the same bits of column g.
 * With K = 256 it holds also the words 128 bits further on. D lies as in mma.cuh: (g, 2t..2t+1), (g + 8, 2t..2t+1). */
#ifndef LPG_PRIM_MMA_B1_CUH
#define LPG_PRIM_MMA_B1_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* D = popc(A AND B), K = 128. a[0]: row g, a[1]: row g + 8. */
__device__ inline void and_popc_128(int (&d)[4], const uint32_t *a, uint32_t b) {
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "r"(0));
}

/* The same with K = 256. a[2], a[3] and b1 are 128 bits further on. */
__device__ inline void and_popc_256(int (&d)[4], const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}

/* D += popc(A AND B), K = 256. */
__device__ inline void add_and_popc_256(int (&d)[4], const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace
}  // namespace lpg

#endif
