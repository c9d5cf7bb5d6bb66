/* What the reader of bitsandbytes keeps of a quant_state, beside the nested tensors in part->more. */
#ifndef LPG_IMPORT_BITSANDBYTES_H
#define LPG_IMPORT_BITSANDBYTES_H

#include <stdint.h>

enum { LPG_NESTED_ABSMAX, LPG_NESTED_MAP }; /* of part->more; NULL: absmaxes are fp32 */

typedef struct lpg_quant_state {
  int64_t block, nested_block; /* numbers that share an absmax; absmaxes that share a nested one */
  float nested_offset;
} lpg_quant_state;

#endif
