/* Pairs of rows on the GPU: what was packed as a plain matrix becomes one half of a paired one (pairs.c). */
#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "pack.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct pairs_args {
  lpg_packed own, packed;
  const uint8_t *rows;
  uint8_t *blob;
  int64_t output, first; /* first: the launch's first row of `own` */
  int half;
};

__device__ inline int64_t tile_row(const lpg_packed &packed, int64_t row) {
  return (int64_t)packed.section[LPG_SECTION_CODES].offset +
         lpg_tile_offset(packed.bits, packed.k_tiles, row / LPG_TILE_ROWS, 0);
}

/* CTAs of grid.y have a row each; those of grid.x share its words and numbers. */
static __global__ void __launch_bounds__(256) pairs_kernel(const __grid_constant__ pairs_args a) {
  const lpg_packed &packed = a.packed;
  const int64_t from = a.first + blockIdx.y, output = a.output + from;
  const int64_t to = output / LPG_PAIR_ROWS * LPG_TILE_ROWS + a.half * LPG_PAIR_ROWS + output % LPG_PAIR_ROWS;
  const int64_t first = (int64_t)blockIdx.x * 256 + threadIdx.x, step = (int64_t)gridDim.x * 256;
  const int tile_bytes = lpg_tile_bytes(packed.bits), words = lpg_lane_words(packed.bits) / 2 * 4;
  const int from_lane = (int)(from % LPG_PAIR_ROWS) * 4, to_lane = (int)(to % LPG_PAIR_ROWS) * 4;
  const int from_half = (int)(from % LPG_TILE_ROWS / LPG_PAIR_ROWS);
  const uint8_t *const source = a.rows + tile_row(a.own, from);
  uint8_t *const target = a.blob + tile_row(packed, to);
  for (int64_t i = first; i < packed.k_tiles * words; i += step) {
    const int64_t tile = i / words;
    const int word = (int)(i - tile * words) / 4, t = (int)(i - tile * words) % 4;
    *(uint32_t *)(target + tile * tile_bytes + lpg_word_offset(to_lane + t, 2 * word + a.half)) =
        *(const uint32_t *)(source + tile * tile_bytes + lpg_word_offset(from_lane + t, 2 * word + from_half));
  }
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    if (packed.section[i].bytes == 0) continue;
    const lpg_line get = lpg_line_of(&a.own, id, from), put = lpg_line_of(&packed, id, to);
    for (int64_t j = first; j < lpg_section_axis(&packed, id)->padded; j += step) {
      uint8_t *const at = a.blob + put.offset + j * put.stride;
      if (put.bytes == 0) *at = (uint8_t)(*at & ~(15u << put.shift)); /* the other half is another launch's */
      lpg_put_number(&put, a.blob, j, lpg_get_number(&get, a.rows, j));
    }
  }
  if (first > 0) return;
  const lpg_section *const exponents = packed.section + LPG_SECTION_ROW_EXPONENTS;
  const lpg_section *const factors = packed.section + LPG_SECTION_ROW_SCALES;
  if (exponents->bytes) {
    a.blob[exponents->offset + to] = a.rows[a.own.section[LPG_SECTION_ROW_EXPONENTS].offset + from];
  }
  if (factors->bytes) {
    *(float *)(a.blob + factors->offset + 4 * to) =
        *(const float *)(a.rows + a.own.section[LPG_SECTION_ROW_SCALES].offset + 4 * from);
  }
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_pair_rows(const lpg_packed *own, const uint8_t *rows, const lpg_packed *packed, int half,
                                        int64_t output, uint8_t *blob, cudaStream_t stream) {
  constexpr int64_t most = 65535;                                 /* rows a launch */
  const int64_t count = lpg_round_up(own->desc.n, LPG_PAIR_ROWS); /* the padding of the last tile too: it is 0 */
  const int64_t words = packed->k_tiles * lpg_lane_words(packed->bits) * 2;
  const int64_t ctas = lpg_ceil_div(words, 256 * 8);
  for (int64_t first = 0; first < count; first += most) {
    const int64_t left = count - first < most ? count - first : most;
    const lpg::pairs_args args = {*own, *packed, rows, blob, output, first, half};
    LPG_TRY(lpg::launch((const void *)lpg::pairs_kernel, dim3((unsigned)(ctas > 0 ? ctas : 1), (unsigned)left), 256, 0,
                        stream, args));
  }
  return LPGEMM_SUCCESS;
}
