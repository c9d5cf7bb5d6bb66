/* Packing one matrix: cli/convert_pack.c. */
#ifndef CLI_CONVERT_PACK_H
#define CLI_CONVERT_PACK_H

#include "convert.h"

/* Packs the parts into memory, a large matrix in pieces of rows, so that an interruption and the progress are not
 * far apart. bytes: what it has in the file, for the progress. 1; 0 with *why, or with "" where it was interrupted. */
int convert_pack(lpgemm_handle_t handle, const convert_parts *parts, uint64_t bytes, void *memory,
                 lpgemm_weights_t *weights, convert_progress *progress, char why[1200]);

#endif
