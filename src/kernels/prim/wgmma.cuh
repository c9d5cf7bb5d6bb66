/* wgmma, the tensor core product of a warpgroup (four warps, sm_90a): D += A B with A 64 x 16 (weights), B 16 x N (X,
 * in shared memory) and D 64 x N in fp32. A is in registers or in shared memory.
 *
 * A product runs while the threads go on: they must not touch the registers of A and D until wgmma_wait() has returned.
 * Warp w of the four has rows 16 w .. 16 w + 15; its lanes hold A and D as in mma.cuh. d[4 j .. 4 j + 3] are columns
 * 8 j .. 8 j + 7 of D. */
#ifndef LPG_PRIM_WGMMA_CUH
#define LPG_PRIM_WGMMA_CUH

#include <cstdint>

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Needed before the first product, and after registers of A or D have been changed. */
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/* Closes the current group of products. */
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Waits until at most Left groups are still under way. */
template <int Left>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

/* The descriptor of an operand in shared memory with the 128-byte swizzle: rows of 128 bytes, 16-byte piece i of a row
 * at i ^ (row % 8), 8 rows in 1024 bytes. A place is an address / 16, as the instruction wants it; `place` is that of
 * the first row's k's of this product. */
__device__ inline uint32_t swizzled_place(uint32_t address) { return address / 16 | 1 << 16; }
__device__ inline uint64_t swizzled_rows(uint32_t place) {
  const uint32_t eight_rows = 1024 / 16, swizzle_128 = 1u << 30;
  return (uint64_t)(eight_rows | swizzle_128) << 32 | place;
}

#define LPG_OPERANDS_OF_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LPG_OPERANDS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LPG_OPERANDS_16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LPG_OPERANDS_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LPG_OPERANDS_48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LPG_OPERANDS_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define LPG_OPERANDS_80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define LPG_OPERANDS_96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define LPG_OPERANDS_112 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define LPG_ARRAY_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define LPG_ARRAY_16(d, i) LPG_ARRAY_4(d, i), LPG_ARRAY_4(d, i + 4), LPG_ARRAY_4(d, i + 8), LPG_ARRAY_4(d, i + 12)
#define LPG_ARRAY_32(d, i) LPG_ARRAY_16(d, i), LPG_ARRAY_16(d, i + 16)
#define LPG_ARRAY_64(d, i) LPG_ARRAY_32(d, i), LPG_ARRAY_32(d, i + 32)

/* One instruction. `list`: the operand numbers of D; a0 .. a3: those of A; b: that of B. */
#define LPG_WGMMA(type, columns, list, a0, a1, a2, a3, b, ...)                                                         \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" list "}, {%" #a0 ", %" #a1 \
               ", %" #a2 ", %" #a3 "}, %" #b ", 1, 1, 1, 0;"                                                           \
               : __VA_ARGS__                                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

/* The same as a group of its own, of as many columns as are asked for or a few more: the sums of others stay as they
 * are. One statement, since the compiler would commit again where branches between a fence and a commit meet, and is
 * slow where branches with so many registers do. */
#define LPG_WGMMA_GROUP(type, columns, list, a0, a1, a2, a3, b)                                                     \
  "wgmma.fence.sync.aligned;\n\t"                                                                                   \
  "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" list "}, {%" #a0 ", %" #a1 ", %" #a2 \
  ", %" #a3 "}, %" #b                                                                                               \
  ", 1, 1, 1, 0;\n\t"                                                                                               \
  "wgmma.commit_group.sync.aligned;\n\t"
/* Four products as such a group, with A in shared memory: 64 k of rows that are swizzled like those of B.
 * LPG_NEXT_OF_FOUR declares the operands of the three that follow the first. */
#define LPG_WGMMA_OF_FOUR(type, columns, list, a, b)                                               \
  "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" list "}, " a ", " b \
  ", 1, 1, 1, 0, 0;\n\t"
#define LPG_WGMMA_FOUR(type, columns, list, a, b)                                                           \
  "wgmma.fence.sync.aligned;\n\t" LPG_WGMMA_OF_FOUR(type, columns, list, "%" #a, "%" #b)                    \
      LPG_WGMMA_OF_FOUR(type, columns, list, "a1", "b1") LPG_WGMMA_OF_FOUR(type, columns, list, "a2", "b2") \
          LPG_WGMMA_OF_FOUR(type, columns, list, "a3", "b3") "wgmma.commit_group.sync.aligned;\n\t"
#define LPG_NEXT_OF_FOUR(a, b)                                                                                  \
  ".reg .b64 a1, a2, a3, b1, b2, b3;\n\tadd.s64 a1, %" #a ", 2;\n\tadd.s64 a2, %" #a ", 4;\n\tadd.s64 a3, %" #a \
  ", 6;\n\tadd.s64 b1, %" #b ", 2;\n\tadd.s64 b2, %" #b ", 4;\n\tadd.s64 b3, %" #b ", 6;\n\t"
#define LPG_IF_MORE(columns, least) "setp.gt.s32 p, %" #columns ", " #least ";\n\t@p bra.uni more_" #least ";\n\t"
#define LPG_MORE(least) "bra.uni done;\nmore_" #least ":\n\t"

/* The same with A in shared memory, swizzled like B. adds: D += A B, else D = A B. */
#define LPG_WGMMA_SHARED(type, columns, list, a_rows, b_rows, adds_operand, ...)                                \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #adds_operand                                           \
               ", 0;\n\t"                                                                                       \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" list "}, %" #a_rows \
               ", %" #b_rows ", p, 1, 1, 0, 0;\n\t}"                                                            \
               : __VA_ARGS__                                                                                    \
               : "l"(a), "l"(rows), "r"((int)adds))

#define LPG_OPERANDS_TO_32 LPG_OPERANDS_0 ", " LPG_OPERANDS_16
#define LPG_OPERANDS_TO_48 LPG_OPERANDS_TO_32 ", " LPG_OPERANDS_32
#define LPG_OPERANDS_TO_64 LPG_OPERANDS_TO_48 ", " LPG_OPERANDS_48
#define LPG_OPERANDS_TO_80 LPG_OPERANDS_TO_64 ", " LPG_OPERANDS_64
#define LPG_OPERANDS_TO_96 LPG_OPERANDS_TO_80 ", " LPG_OPERANDS_80
#define LPG_OPERANDS_TO_112 LPG_OPERANDS_TO_96 ", " LPG_OPERANDS_96
#define LPG_OPERANDS_TO_128 LPG_OPERANDS_TO_112 ", " LPG_OPERANDS_112

#define LPG_WGMMA_TYPE(name, type)                                                                                    \
  struct name {                                                                                                       \
    __device__ static void multiply(float (&d)[8], const uint32_t (&a)[4], uint64_t rows) {                           \
      LPG_WGMMA(type, 16, LPG_OPERANDS_OF_8, 8, 9, 10, 11, 12, LPG_ARRAY_4(d, 0), LPG_ARRAY_4(d, 4));                 \
    }                                                                                                                 \
    __device__ static void multiply(float (&d)[16], const uint32_t (&a)[4], uint64_t rows) {                          \
      LPG_WGMMA(type, 32, LPG_OPERANDS_0, 16, 17, 18, 19, 20, LPG_ARRAY_16(d, 0));                                    \
    }                                                                                                                 \
    __device__ static void multiply(float (&d)[32], const uint32_t (&a)[4], uint64_t rows) {                          \
      LPG_WGMMA(type, 64, LPG_OPERANDS_TO_32, 32, 33, 34, 35, 36, LPG_ARRAY_32(d, 0));                                \
    }                                                                                                                 \
    __device__ static void multiply(float (&d)[64], const uint32_t (&a)[4], uint64_t rows) {                          \
      LPG_WGMMA(type, 128, LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 ", " LPG_OPERANDS_48, 64, 65, 66, \
                67, 68, LPG_ARRAY_64(d, 0));                                                                          \
    }                                                                                                                 \
    __device__ static void multiply(float (&d)[128], const uint32_t (&a)[4], uint64_t rows) {                         \
      LPG_WGMMA(type, 256,                                                                                            \
                LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 ", " LPG_OPERANDS_48 ", " LPG_OPERANDS_64    \
                               ", " LPG_OPERANDS_80 ", " LPG_OPERANDS_96 ", " LPG_OPERANDS_112,                       \
                128, 129, 130, 131, 132, LPG_ARRAY_64(d, 0), LPG_ARRAY_64(d, 64));                                    \
    }                                                                                                                 \
    /* One group of products by the first `columns` columns, 65 to 128. */                                            \
    __device__ static void start(float (&d)[64], const uint32_t (&a)[4], uint64_t rows, int columns) {                \
      asm volatile("{\n\t.reg .pred p;\n\t" LPG_IF_MORE(69, 96)                                                       \
                       LPG_WGMMA_GROUP(type, 96, LPG_OPERANDS_TO_48, 64, 65, 66, 67, 68) LPG_MORE(96)                 \
                           LPG_WGMMA_GROUP(type, 128, LPG_OPERANDS_TO_64, 64, 65, 66, 67, 68) "done:\n\t}"            \
                   : LPG_ARRAY_64(d, 0)                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows), "r"(columns)                              \
                   : "memory");                                                                                       \
    }                                                                                                                 \
    /* Up to 128, or 129 to 192 columns. */                                                                           \
    __device__ static void start(float (&d)[96], const uint32_t (&a)[4], uint64_t rows, int columns) {                \
      asm volatile("{\n\t.reg .pred p;\n\t" LPG_IF_MORE(101, 160) LPG_IF_MORE(101, 128)                               \
                       LPG_WGMMA_GROUP(type, 128, LPG_OPERANDS_TO_64, 96, 97, 98, 99, 100) LPG_MORE(128)              \
                           LPG_WGMMA_GROUP(type, 160, LPG_OPERANDS_TO_80, 96, 97, 98, 99, 100) LPG_MORE(160)          \
                               LPG_WGMMA_GROUP(type, 192, LPG_OPERANDS_TO_96, 96, 97, 98, 99, 100) "done:\n\t}"       \
                   : LPG_ARRAY_64(d, 0), LPG_ARRAY_32(d, 64)                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows), "r"(columns)                              \
                   : "memory");                                                                                       \
    }                                                                                                                 \
    /* Up to 128, or 129 to 256 columns. */                                                                           \
    __device__ static void start(float (&d)[128], const uint32_t (&a)[4], uint64_t rows, int columns) {               \
      asm volatile("{\n\t.reg .pred p;\n\t" LPG_IF_MORE(133, 192) LPG_IF_MORE(133, 160) LPG_IF_MORE(133, 128)         \
                       LPG_WGMMA_GROUP(type, 128, LPG_OPERANDS_TO_64, 128, 129, 130, 131, 132) LPG_MORE(128)          \
                           LPG_WGMMA_GROUP(type, 160, LPG_OPERANDS_TO_80, 128, 129, 130, 131, 132) LPG_MORE(160)      \
                               LPG_WGMMA_GROUP(type, 192, LPG_OPERANDS_TO_96, 128, 129, 130, 131, 132) LPG_MORE(192)  \
                                   LPG_IF_MORE(133, 224)                                                              \
                                       LPG_WGMMA_GROUP(type, 224, LPG_OPERANDS_TO_112, 128, 129, 130, 131, 132)       \
                                           LPG_MORE(224) LPG_WGMMA_GROUP(type, 256, LPG_OPERANDS_TO_128, 128, 129,    \
                                                                         130, 131, 132) "done:\n\t}"                  \
                   : LPG_ARRAY_64(d, 0), LPG_ARRAY_64(d, 64)                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows), "r"(columns)                              \
                   : "memory");                                                                                       \
    }                                                                                                                 \
    /* Four products with A in shared memory, 64 k, as one group; by 65 to 128 columns. */                            \
    __device__ static void start_four(float (&d)[64], uint64_t a, uint64_t rows, int columns) {                       \
      asm volatile("{\n\t.reg .pred p;\n\t" LPG_NEXT_OF_FOUR(64, 65) LPG_IF_MORE(66, 96)                              \
                       LPG_WGMMA_FOUR(type, 96, LPG_OPERANDS_TO_48, 64, 65) LPG_MORE(96)                              \
                           LPG_WGMMA_FOUR(type, 128, LPG_OPERANDS_TO_64, 64, 65) "done:\n\t}"                         \
                   : LPG_ARRAY_64(d, 0)                                                                               \
                   : "l"(a), "l"(rows), "r"(columns)                                                                  \
                   : "memory");                                                                                       \
    }                                                                                                                 \
    /* Up to 128, or 129 to 256 columns. */                                                                           \
    __device__ static void start_four(float (&d)[128], uint64_t a, uint64_t rows, int columns) {                      \
      asm volatile("{\n\t.reg .pred p;\n\t" LPG_NEXT_OF_FOUR(128, 129) LPG_IF_MORE(130, 192) LPG_IF_MORE(130, 160)    \
                       LPG_IF_MORE(130, 128) LPG_WGMMA_FOUR(type, 128, LPG_OPERANDS_TO_64, 128, 129) LPG_MORE(128)    \
                           LPG_WGMMA_FOUR(type, 160, LPG_OPERANDS_TO_80, 128, 129) LPG_MORE(160) LPG_WGMMA_FOUR(      \
                               type, 192, LPG_OPERANDS_TO_96, 128, 129) LPG_MORE(192) LPG_IF_MORE(130, 224)           \
                               LPG_WGMMA_FOUR(type, 224, LPG_OPERANDS_TO_112, 128, 129) LPG_MORE(224)                 \
                                   LPG_WGMMA_FOUR(type, 256, LPG_OPERANDS_TO_128, 128, 129) "done:\n\t}"              \
                   : LPG_ARRAY_64(d, 0), LPG_ARRAY_64(d, 64)                                                          \
                   : "l"(a), "l"(rows), "r"(columns)                                                                  \
                   : "memory");                                                                                       \
    }                                                                                                                 \
    __device__ static void multiply(float (&d)[64], uint64_t a, uint64_t rows, bool adds) {                           \
      LPG_WGMMA_SHARED(type, 128, LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 ", " LPG_OPERANDS_48, 64,  \
                       65, 66, LPG_ARRAY_64(d, 0));                                                                   \
    }                                                                                                                 \
  };

LPG_WGMMA_TYPE(wgmma_f16, f16)
LPG_WGMMA_TYPE(wgmma_bf16, bf16)

/* int8 and FP8, 32 k at once, and TF32, 8 k at once; both operands in shared memory. */
#define LPG_INTEGERS_4(d, i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define LPG_INTEGERS_16(d, i) \
  LPG_INTEGERS_4(d, i), LPG_INTEGERS_4(d, i + 4), LPG_INTEGERS_4(d, i + 8), LPG_INTEGERS_4(d, i + 12)
#define LPG_INTEGERS_64(d) LPG_INTEGERS_16(d, 0), LPG_INTEGERS_16(d, 16), LPG_INTEGERS_16(d, 32), LPG_INTEGERS_16(d, 48)
#define LPG_WGMMA_BYTES(k_and_types, signs, ...)                                                                       \
  asm volatile(                                                                                                        \
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\t"                                                               \
      "wgmma.mma_async.sync.aligned.m64n128" k_and_types " {" LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 \
      ", " LPG_OPERANDS_48 "}, %64, %65, p" signs ";\n\t}"                                                             \
      : __VA_ARGS__                                                                                                    \
      : "l"(a), "l"(rows), "r"((int)adds))

struct wgmma_i8 {
  __device__ static void multiply(int (&d)[64], uint64_t a, uint64_t rows, bool adds) {
    LPG_WGMMA_BYTES("k32.s32.s8.s8", "", LPG_INTEGERS_64(d));
  }
};

struct wgmma_e4m3 {
  __device__ static void multiply(float (&d)[64], uint64_t a, uint64_t rows, bool adds) {
    LPG_WGMMA_BYTES("k32.f32.e4m3.e4m3", ", 1, 1", LPG_ARRAY_64(d, 0));
  }
};

struct wgmma_e4m3_by_e5m2 {
  __device__ static void multiply(float (&d)[64], uint64_t a, uint64_t rows, bool adds) {
    LPG_WGMMA_BYTES("k32.f32.e4m3.e5m2", ", 1, 1", LPG_ARRAY_64(d, 0));
  }
};

/* Of fp32 operands the upper 19 bits count. */
struct wgmma_tf32 {
  __device__ static void multiply(float (&d)[64], uint64_t a, uint64_t rows, bool adds) {
    LPG_WGMMA_BYTES("k8.f32.tf32.tf32", ", 1, 1", LPG_ARRAY_64(d, 0));
  }
};

/* Bit planes, 256 k at once: D is 64 x 256, both operands in shared memory. D counts the bits that both have set. */
#define LPG_INTEGERS_128(d) \
  LPG_INTEGERS_64(d), LPG_INTEGERS_16(d, 64), LPG_INTEGERS_16(d, 80), LPG_INTEGERS_16(d, 96), LPG_INTEGERS_16(d, 112)
#define LPG_WGMMA_256(shape_and_types)                                                                              \
  asm volatile(                                                                                                     \
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %130, 0;\n\t"                                                           \
      "wgmma.mma_async.sync.aligned." shape_and_types " {" LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 \
      ", " LPG_OPERANDS_48 ", " LPG_OPERANDS_64 ", " LPG_OPERANDS_80 ", " LPG_OPERANDS_96 ", " LPG_OPERANDS_112     \
      "}, %128, %129, p;\n\t}"                                                                                      \
      : LPG_INTEGERS_128(d)                                                                                         \
      : "l"(a), "l"(rows), "r"((int)adds))

struct wgmma_b1 {
  __device__ static void multiply(int (&d)[128], uint64_t a, uint64_t rows, bool adds) {
    LPG_WGMMA_256("m64n256k256.s32.b1.b1.and.popc");
  }
};

/* Bytes with A in registers: a[0] is row g, k 4 t .. 4 t + 3; a[1] the same of row g + 8; a[2] and a[3] those 16 k
 * further on. */
#define LPG_WGMMA_BYTES_SKINNY(columns, types, list, a0, a1, a2, a3, b, ...)                                           \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k32.s32." types " {" list "}, {%" #a0 ", %" #a1 ", %" #a2 \
               ", %" #a3 "}, %" #b ", 1;"                                                                              \
               : __VA_ARGS__                                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

struct wgmma_i8_skinny {
  __device__ static void multiply(int (&d)[4], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(8, "s8.s8", "%0, %1, %2, %3", 4, 5, 6, 7, 8, LPG_INTEGERS_4(d, 0));
  }
  __device__ static void multiply(int (&d)[8], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(16, "s8.s8", "%0, %1, %2, %3, %4, %5, %6, %7", 8, 9, 10, 11, 12, LPG_INTEGERS_4(d, 0),
                           LPG_INTEGERS_4(d, 4));
  }
  __device__ static void multiply(int (&d)[16], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(32, "s8.s8", LPG_OPERANDS_0, 16, 17, 18, 19, 20, LPG_INTEGERS_16(d, 0));
  }
  __device__ static void multiply(int (&d)[32], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(64, "s8.s8", LPG_OPERANDS_0 ", " LPG_OPERANDS_16, 32, 33, 34, 35, 36, LPG_INTEGERS_16(d, 0),
                           LPG_INTEGERS_16(d, 16));
  }
};

/* The same with unsigned bytes in registers by signed bytes in shared memory. */
struct wgmma_u8_by_i8 {
  __device__ static void multiply(int (&d)[16], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(32, "u8.s8", LPG_OPERANDS_0, 16, 17, 18, 19, 20, LPG_INTEGERS_16(d, 0));
  }
  __device__ static void multiply(int (&d)[32], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(64, "u8.s8", LPG_OPERANDS_0 ", " LPG_OPERANDS_16, 32, 33, 34, 35, 36, LPG_INTEGERS_16(d, 0),
                           LPG_INTEGERS_16(d, 16));
  }
  __device__ static void multiply(int (&d)[64], const uint32_t (&a)[4], uint64_t rows) {
    LPG_WGMMA_BYTES_SKINNY(128, "u8.s8", LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 ", " LPG_OPERANDS_48,
                           64, 65, 66, 67, 68, LPG_INTEGERS_64(d));
  }
};

/* The same with signed bytes (sums in int32), and with e4m3 (sums in fp32). Adds: D += A B, else D = A B. */
#define LPG_WGMMA_BYTES_IN(columns, types, list, a0, a1, a2, a3, b, flags, ...)                                    \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k32." types " {" list "}, {%" #a0 ", %" #a1 ", %" #a2 \
               ", %" #a3 "}, %" #b ", " flags ";"                                                                  \
               : __VA_ARGS__                                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))
#define LPG_WGMMA_BYTES_SET(number, types, array, flags)                                                              \
  __device__ static void multiply(number(&d)[16], const uint32_t(&a)[4], uint64_t rows) {                             \
    LPG_WGMMA_BYTES_IN(32, types, LPG_OPERANDS_0, 16, 17, 18, 19, 20, flags, array(d, 0));                            \
  }                                                                                                                   \
  __device__ static void multiply(number(&d)[32], const uint32_t(&a)[4], uint64_t rows) {                             \
    LPG_WGMMA_BYTES_IN(64, types, LPG_OPERANDS_0 ", " LPG_OPERANDS_16, 32, 33, 34, 35, 36, flags, array(d, 0),        \
                       array(d, 16));                                                                                 \
  }                                                                                                                   \
  __device__ static void multiply(number(&d)[64], const uint32_t(&a)[4], uint64_t rows) {                             \
    LPG_WGMMA_BYTES_IN(128, types, LPG_OPERANDS_0 ", " LPG_OPERANDS_16 ", " LPG_OPERANDS_32 ", " LPG_OPERANDS_48, 64, \
                       65, 66, 67, 68, flags, array(d, 0), array(d, 16), array(d, 32), array(d, 48));                 \
  }
template <bool Adds>
struct wgmma_i8_in {
  LPG_WGMMA_BYTES_SET(int, "s32.s8.s8", LPG_INTEGERS_16, "1")
};
template <>
struct wgmma_i8_in<false> {
  LPG_WGMMA_BYTES_SET(int, "s32.s8.s8", LPG_INTEGERS_16, "0")
};
template <bool Adds>
struct wgmma_e4m3_in {
  LPG_WGMMA_BYTES_SET(float, "f32.e4m3.e4m3", LPG_ARRAY_16, "1, 1, 1")
};
template <>
struct wgmma_e4m3_in<false> {
  LPG_WGMMA_BYTES_SET(float, "f32.e4m3.e4m3", LPG_ARRAY_16, "0, 1, 1")
};

/* stmatrix, transposed: stores four 8 x 8 matrices of 16-bit elements. A lane holds of each, as of D, columns 2 t and
 * 2 t + 1 of row g; lane 8 i + c passes the address where column c of matrix i goes. */
__device__ inline void store_transposed(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

/* The same as they are: a lane holds operand A of mma.cuh, and passes the address of row lane % 8 of matrix lane / 8.
 */
__device__ inline void store_matrices(uint32_t to, const uint32_t (&a)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a[0]), "r"(a[1]),
               "r"(a[2]), "r"(a[3])
               : "memory");
}

/* ldmatrix, transposed: loads what store_transposed() has stored. */
__device__ inline void load_transposed(uint32_t from, uint32_t (&pair)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pair[0]), "=r"(pair[1]), "=r"(pair[2]), "=r"(pair[3])
               : "r"(from)
               : "memory");
}

}  // namespace
}  // namespace lpg

#endif
