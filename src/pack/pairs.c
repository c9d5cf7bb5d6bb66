/* Pairs of rows on the host: what was packed as a plain matrix becomes one half of a paired one. */
#include "../layouts/unit.h"
#include "pack.h"
#include "sections.h"

/* The words of row `from` of a tile to those of row `to` of another, column tile by column tile. */
static void move_codes(int bits, int64_t k_tiles, const uint8_t *from, int from_row, uint8_t *to, int to_row) {
  for (int64_t k_tile = 0; k_tile < k_tiles; k_tile++, from += lpg_tile_bytes(bits), to += lpg_tile_bytes(bits)) {
    for (int w = 0; w < lpg_lane_words(bits) / 2; w++) {
      for (int t = 0; t < 4; t++) {
        memcpy(to + lpg_word_offset(to_row % LPG_PAIR_ROWS * 4 + t, 2 * w + to_row / LPG_PAIR_ROWS),
               from + lpg_word_offset(from_row % LPG_PAIR_ROWS * 4 + t, 2 * w + from_row / LPG_PAIR_ROWS), 4);
      }
    }
  }
}

static uint8_t *tile_row(const lpg_packed *packed, const uint8_t *blob, int64_t row) {
  return (uint8_t *)(uintptr_t)blob + packed->section[LPG_SECTION_CODES].offset +
         lpg_tile_offset(packed->bits, packed->k_tiles, row / LPG_TILE_ROWS, 0);
}

/* The other half of a byte of UINT(4) stays, whatever was there before. */
static void move_numbers(const lpg_packed *own, const uint8_t *rows, int64_t from, const lpg_packed *packed, int64_t to,
                         lpg_section_id id, uint8_t *blob) {
  if (packed->section[id].bytes == 0) return;
  const lpg_line source = lpg_line_of(own, id, from), line = lpg_line_of(packed, id, to);
  for (int64_t j = 0; j < lpg_section_axis(packed, id)->padded; j++) {
    uint8_t *at = blob + line.offset + j * line.stride;
    if (line.bytes == 0) *at = (uint8_t)(*at & ~(15u << line.shift));
    lpg_put_number(&line, blob, j, lpg_get_number(&source, rows, j));
  }
}

void lpgemm_i_pair_rows_host(const lpg_packed *own, const uint8_t *rows, const lpg_packed *packed, int half,
                             int64_t output, uint8_t *blob) {
  const int64_t count = lpg_round_up(own->desc.n, LPG_PAIR_ROWS); /* the padding of the last tile too: it is 0 */
  const uint64_t exponents = LPG_SECTION_ROW_EXPONENTS, factors = LPG_SECTION_ROW_SCALES;
  for (int64_t from = 0; from < count; from++) {
    const int64_t at = output + from;
    const int64_t to = at / LPG_PAIR_ROWS * LPG_TILE_ROWS + half * LPG_PAIR_ROWS + at % LPG_PAIR_ROWS;
    move_codes(packed->bits, packed->k_tiles, tile_row(own, rows, from), (int)(from % LPG_TILE_ROWS),
               tile_row(packed, blob, to), (int)(to % LPG_TILE_ROWS));
    for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
      move_numbers(own, rows, from, packed, to, (lpg_section_id)id, blob);
    }
    if (packed->section[exponents].bytes) {
      blob[packed->section[exponents].offset + (uint64_t)to] = rows[own->section[exponents].offset + (uint64_t)from];
    }
    if (packed->section[factors].bytes) {
      memcpy(blob + packed->section[factors].offset + 4 * to, rows + own->section[factors].offset + 4 * from, 4);
    }
  }
}
