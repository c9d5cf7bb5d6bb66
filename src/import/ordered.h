/* Columns of 16 rows in shared memory, where a kernel packs them in an order: how many bytes, and where. */
#ifndef LPG_IMPORT_ORDERED_H
#define LPG_IMPORT_ORDERED_H

#include "../layouts/tile.h"

/* Of a block; fewer where an SM has room for three of them. */
enum { LPG_ORDERED_THREADS = 512, LPG_ORDERED_FEWER = 256 };

/* Bytes of a column. */
LPG_FN int lpg_ordered_column(int bits) { return bits <= 4 ? 8 : 16; }

/* Where a column begins: after 16 columns 8 bytes are left out, so that threads that have 16 columns each find
 * different banks. */
LPG_FN uint32_t lpg_ordered_place(int bits, uint32_t column) {
  return column * (uint32_t)lpg_ordered_column(bits) + column / 16 * 8;
}

#endif
