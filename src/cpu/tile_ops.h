/* The eight tile registers, of 16 rows of 64 bytes: AMX where the file is compiled for it, else the same in plain C, by
 * which tests try the kernel's loops on any machine. Part of tiles.c. The numbers of tiles are constants; a tile_file
 * is where tiles in plain C are. */
#ifndef LPG_CPU_TILE_OPS_H
#define LPG_CPU_TILE_OPS_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { TILE_LINES = 16, TILE_LINE_BYTES = 64 };

#if defined(__AMX_BF16__)
#include <immintrin.h>

typedef struct tile_shapes {
  uint8_t palette, start, none[14];
  uint16_t line_bytes[16];
  uint8_t lines[16];
} tile_shapes;

static void open_tiles(void) {
  static const tile_shapes shapes = {
      .palette = 1,
      .line_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
      .lines = {16, 16, 16, 16, 16, 16, 16, 16},
  };
  _tile_loadconfig(&shapes);
}

static void close_tiles(void) { _tile_release(); }

typedef char tile_file;

#define TILE_ZERO(file, t) _tile_zero(t)
#define TILE_LOAD(file, t, from, stride) _tile_loadd(t, from, stride)
#define TILE_STORE(file, t, to, stride) _tile_stored(t, to, stride)
#define TILE_MULTIPLY(file, sum, a, b) _tile_dpbf16ps(sum, a, b)

#else

typedef float tile_file[8][TILE_LINES][16];

static void open_tiles(void) {}
static void close_tiles(void) {}

static void tile_copy(void *to, int64_t to_stride, const void *from, int64_t from_stride) {
  for (int i = 0; i < TILE_LINES; i++) {
    memcpy((char *)to + i * to_stride, (const char *)from + i * from_stride, TILE_LINE_BYTES);
  }
}

static inline float bf16_at(const void *pairs, int i) {
  uint16_t bits;
  memcpy(&bits, (const char *)pairs + 2 * i, sizeof bits);
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* sum[m][n] += a[m][2i] * b[i][n][0] + a[m][2i + 1] * b[i][n][1], even and odd ones apart. */
static void tile_multiply(float (*sum)[16], float (*a)[16], float (*b)[16]) {
  for (int m = 0; m < TILE_LINES; m++) {
    for (int n = 0; n < 16; n++) {
      float part[2] = {0.0f, 0.0f};
      for (int i = 0; i < 32; i++) part[i % 2] += bf16_at(a[m], i) * bf16_at(b[i / 2], 2 * n + i % 2);
      sum[m][n] += part[0] + part[1];
    }
  }
}

#define TILE_ZERO(file, t) memset((file)[t], 0, sizeof(file)[t])
#define TILE_LOAD(file, t, from, stride) tile_copy((file)[t], TILE_LINE_BYTES, from, stride)
#define TILE_STORE(file, t, to, stride) tile_copy(to, stride, (file)[t], TILE_LINE_BYTES)
#define TILE_MULTIPLY(file, sum, a, b) tile_multiply((file)[sum], (file)[a], (file)[b])

#endif

/* Tiles are loaded behind the compiler's back: what was stored before must be in memory. */
static inline void tiles_follow(void) { atomic_signal_fence(memory_order_seq_cst); }

#endif
