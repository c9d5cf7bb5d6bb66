/* Rows of joined parts into weights that are being packed. */
#ifndef LPG_IMPORT_ROWS_H
#define LPG_IMPORT_ROWS_H

#include "import.h"

/* What comes before packing rows of the parts, from row first_row of an expert on: checks that they may be packed,
 * and puts the column order in place. The weights are of lpgemm_weights_create(), and their description is that of the
 * parts but for n, experts, rows, row_scales and global_scale. */
lpgemm_status_t lpgemm_i_begin_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                    const lpg_joined *joined);

/* Packs all rows of the parts, whose data is in host memory; gives their part of the content. */
lpgemm_status_t lpgemm_i_import_rows(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row,
                                     const lpg_joined *joined, uint8_t *blob, lpg_content *content);

#endif
