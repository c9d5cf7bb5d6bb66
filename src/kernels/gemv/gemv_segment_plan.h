/* How a product with a stack is cut where experts have few rows of X each: the segment form, a gemv whose rows of X are
 * dealt out by offsets.
 *
 * An item is an expert with up to 8 of its rows, a strip a super tile of an item. Strips of all items, in their
 * order, are dealt out evenly to clusters. A round has strips of one item. How many items there are only the device
 * knows: memory is for the most there can be. */
#ifndef LPG_KERNELS_GEMV_SEGMENT_PLAN_H
#define LPG_KERNELS_GEMV_SEGMENT_PLAN_H

#include "gemv_stack_plan.h"

enum { LPG_SEGMENT_ROUND_BYTES = 32 }; /* of a round in shared memory */

typedef struct lpg_segment_plan {
  int32_t super_tiles;       /* of an expert */
  int32_t split_k, clusters; /* CTAs of a cluster, and clusters */
  lpg_partition k_part;      /* k blocks of a CTA */
  int32_t round_tiles;       /* strips after which sums are combined, the most */
  /* offsets in shared memory; x: two places in turn, for the items */
  int32_t x, x_stride, x_bytes, experts, rounds, partials, partial_bytes, peers, peer_bytes, warp, warp_bytes,
      scale_table_bytes, shared_bytes;
} lpg_segment_plan;

#endif
