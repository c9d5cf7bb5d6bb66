/* How the products of the token form (plan/fan.h) are cut: as gemv's, with strips in the place of super tiles.
 *
 * An item is an expert with up to 8 of the slots that name it. A strip is a super tile of an item. On the way out
 * strips are dealt out to clusters; on the way in super tiles of Y are, each with the strips of all items. How many
 * items there are only the device knows: memory is for the most there can be. */
#ifndef LPG_KERNELS_GEMV_FAN_PLAN_H
#define LPG_KERNELS_GEMV_FAN_PLAN_H

#include "../plan/fan.h"
#include "gemv_stack_plan.h"

typedef struct lpg_fan_plan {
  int32_t super_tiles;           /* of an expert */
  int32_t split_k, clusters;     /* CTAs of a cluster, and clusters */
  lpg_partition k_part;          /* k blocks of a CTA */
  int32_t tokens, slots, x_rows; /* x_rows: tokens, or slots on the way in */
  int32_t round_tiles;           /* strips, on the way in super tiles, after which sums are combined */
  /* offsets in shared memory; experts: of slots, with what else there is one of a slot */
  int32_t x, x_stride, items, experts, partials, partial_bytes, peers, peer_bytes, warp, warp_bytes, scale_table_bytes,
      shared_bytes;
} lpg_fan_plan;

#endif
