#include "convert_pack.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 64 << 20 /* bytes of the file */, PIECE_ROWS = 128 /* of a piece: a multiple of this */ };

typedef struct packing {
  lpgemm_handle_t handle;
  const convert_parts *parts;
  uint64_t bytes;
  convert_progress *progress;
  int interrupted;
} packing;

/* Rows of a part. */
static int64_t rows_of(const convert_parts *parts, size_t i) {
  const lpgemm_import_t *part = &parts->part[i];
  if (part->n1) return part->n1 - part->n0;
  lpgemm_weight_desc_t d = {.size = sizeof d};
  return lpgemm_import_desc(part, 1, &d) == LPGEMM_SUCCESS ? d.n : 0;
}

/* Pieces begin at edges of tiles, and of blocks of rows that are the same for a piece as for the whole. */
static int fits_pieces(const packing *p) {
  const lpgemm_weight_desc_t *d = &p->parts->desc;
  const int64_t unit = d->group_n ? d->group_n : 16;
  int64_t row = 0;
  if (p->bytes <= PIECE || d->n <= PIECE_ROWS) return 0;
  for (size_t i = 0; i < p->parts->count; i++) {
    lpgemm_weight_desc_t own = {.size = sizeof own};
    if (row % unit != 0 || lpgemm_import_desc(&p->parts->part[i], 1, &own) != LPGEMM_SUCCESS) return 0;
    if (own.group_n != d->group_n) return 0;
    row += own.n;
  }
  return 1;
}

static lpgemm_status_t pack_part(packing *p, lpgemm_weights_t weights, size_t i, int64_t first_row) {
  const int64_t n = p->parts->desc.n, rows = rows_of(p->parts, i);
  int64_t step = (int64_t)((double)PIECE / (double)p->bytes * (double)n) / PIECE_ROWS * PIECE_ROWS;
  if (step < PIECE_ROWS) step = PIECE_ROWS;
  for (int64_t row = 0; row < rows; row += step) {
    lpgemm_import_t piece = p->parts->part[i];
    const int64_t count = rows - row < step ? rows - row : step;
    piece.n0 += row;
    piece.n1 = piece.n0 + count;
    p->interrupted = convert_interrupted();
    if (p->interrupted) return LPGEMM_SUCCESS;
    const lpgemm_status_t status = lpgemm_import_rows(p->handle, weights, 0, first_row + row, &piece);
    if (status != LPGEMM_SUCCESS) return status;
    if (p->progress) convert_progress_add(p->progress, (uint64_t)((double)p->bytes * (double)count / (double)n));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t pack_pieces(packing *p, void *memory, lpgemm_weights_t *weights) {
  int64_t row = 0;
  lpgemm_weights_t made;
  lpgemm_status_t status = lpgemm_weights_create(p->handle, &p->parts->desc, memory, p->parts->bytes, &made);
  if (status != LPGEMM_SUCCESS) return status;
  for (size_t i = 0; i < p->parts->count && status == LPGEMM_SUCCESS && !p->interrupted; i++) {
    status = pack_part(p, made, i, row);
    row += rows_of(p->parts, i);
  }
  if (status == LPGEMM_SUCCESS && !p->interrupted) status = lpgemm_weights_finish(p->handle, made);
  if (status == LPGEMM_SUCCESS && !p->interrupted) {
    *weights = made;
  } else {
    (void)lpgemm_weights_destroy(made);
  }
  return status;
}

int convert_pack(lpgemm_handle_t handle, const convert_parts *parts, uint64_t bytes, void *memory,
                 lpgemm_weights_t *weights, convert_progress *progress, char why[1200]) {
  packing p = {.handle = handle, .parts = parts, .bytes = bytes, .progress = progress};
  lpgemm_status_t status;
  if (fits_pieces(&p)) {
    status = pack_pieces(&p, memory, weights);
  } else {
    status = lpgemm_import_weights(handle, parts->part, parts->count, memory, parts->bytes, weights);
    if (status == LPGEMM_SUCCESS && progress) convert_progress_add(progress, bytes);
  }
  why[0] = 0;
  if (status != LPGEMM_SUCCESS) snprintf(why, 1200, "%s", lpgemm_last_error());
  return status == LPGEMM_SUCCESS && !p.interrupted;
}
