/* Rows of joined parts into weights that are being packed. */
#ifndef LPG_IMPORT_ROWS_H
#define LPG_IMPORT_ROWS_H

#include "import.h"

/* Packs all rows of the parts, from row first_row of the weights on: weights that lpgemm_weights_create() made, whose
 * description is that of the parts but for n, row_scales and global_scale. */
lpgemm_status_t lpgemm_i_import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t first_row,
                                     const lpg_joined *joined);

#endif
