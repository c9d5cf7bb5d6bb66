/* How a decode problem is cut into pieces: plain arithmetic, for C and CUDA.
 *
 * K is cut into parts of K of whole k blocks; the CTAs of a cluster take one slice each of the
 * same rows (without clusters there is one slice). Rows are cut into super tiles of 16 or 32, dealt out evenly. The
 * weights go through registers; shared memory holds X and the sums. A large slice of X is loaded in phases, one while
 * the one before is multiplied, and super tiles whose sums do not fit are taken in rounds. */
#ifndef LPG_KERNELS_GEMV_PLAN_H
#define LPG_KERNELS_GEMV_PLAN_H

#include "../operand/center.h"
#include "../plan/partition.h"

/* ---- what a kernel's template and the weights fix ---- */

/* Steps of 16 columns that share a scale, by granules; 8 when these are larger. */
static inline int lpg_gemv_scale_steps(const lpg_packed *weights) {
  const int granule_k = lpg_granule_k(&weights->group);
  return weights->group.count <= 1 || granule_k >= 128 ? 8 : granule_k == 16 ? 1 : 2;
}

/* The type of the codes of two-level scales for which there is a kernel of its own, by the weights and groups that
 * GGUF's K-quants have; 0: there is none. Where the codes are unsigned, minima are of the same form. */
LPG_FN lpgemm_dtype_t lpg_gemv_codes(int is_integer, int bits, int scale_group) {
  if (scale_group == 2) {
    return is_integer && (bits == 4 || bits == 5) ? LPGEMM_UINT(6) : !is_integer && bits == 4 ? LPGEMM_I8 : 0;
  }
  if (scale_group != 1 || !is_integer) return 0;
  return bits == 2 ? LPGEMM_UINT(4) : bits == 3 || bits == 6 ? LPGEMM_I8 : 0;
}

/* The same for weights: 0 unless their columns fill whole super groups, which are k blocks. */
static inline lpgemm_dtype_t lpg_gemv_codes_of(const lpg_packed *weights, int has_shift) {
  const lpgemm_weight_desc_t *d = &weights->desc;
  const int is_integer = lpg_is_integer_kind(d->type);
  if (!is_integer && lpg_kind(d->type) != LPGEMM_KIND_CODEBOOK) return 0;
  const int scale_steps = lpg_gemv_scale_steps(weights);
  const lpgemm_dtype_t codes = lpg_gemv_codes(is_integer, weights->bits, scale_steps);
  if (codes == 0 || d->scale_type != codes || d->super_scale_type != LPGEMM_F16) return 0;
  if (weights->super.k != LPG_BLOCK_K || weights->k_padded % LPG_BLOCK_K != 0) return 0;
  if (weights->group.k != scale_steps * LPG_STEP_K) return 0;
  if (codes == LPGEMM_I8) return has_shift ? 0 : codes;
  return lpg_kind(d->type) == LPGEMM_KIND_UINT && d->zero == LPGEMM_ZERO_MINIMUM && d->zero_type == codes &&
                 d->super_zero_type == LPGEMM_F16
             ? codes
             : 0;
}

/* Bytes of a group's scales in the table of such a kernel (gemv_levels.cuh). */
LPG_FN int lpg_gemv_level_bytes(int shifted) { return shifted ? 160 : 64; }

/* Whether adding sums of X takes the registers of 32 warps. In kernels for two levels 2 bits leave them; 4
 * bits would too, but up to 8192 x 8192 16 warps with more registers are faster (H200, 2026-11-26, the log). */
LPG_FN int lpg_gemv_shifted(int bits, int has_shift, int levels) { return has_shift && (!levels || bits > 2); }

/* Warps of a CTA: 32 where 64 registers a lane do. */
LPG_FN int lpg_gemv_warps(int bits, int columns, int shifted) {
  return bits <= 4 && columns == 8 && !shifted ? 32 : 16;
}

/* Whether there are kernels with half of them: for integers without sums of X and with one level of scales, whose
 * kernels have 32. One row of 1 and 2 bits goes to gemv1. */
LPG_FN int lpg_gemv_has_half(int bits, int columns) { return columns == 8 && (bits == 3 || bits == 4); }

/* Row tiles of a super tile: with more, what is read of X is used more often, and more weights are under way, for which
 * there are registers while codes are narrow. */
LPG_FN int lpg_gemv_row_tiles(int bits, int columns, int scale_group, int shifted) {
  if (scale_group == 1) return 1;
  return bits <= (lpg_gemv_warps(bits, columns, shifted) == 32 ? 2 : 4) ? 2 : 1;
}

/* Whether a kernel can bring the columns of X into order: with more rows a launch in front takes less time, and the
 * registers are needed. */
LPG_FN int lpg_gemv_may_gather(int columns) { return columns == 8; }

/* Blocks whose scales and zeros are converted at once: as many as keep all lanes busy. */
LPG_FN int lpg_gemv_chunk(int row_tiles, int scale_group) {
  const int pairs = row_tiles * (LPG_BLOCK_K / LPG_STEP_K / scale_group) * 8;
  return pairs < 128 ? 128 / pairs : 1;
}

typedef struct lpg_gemv_kind {
  int tile_m;            /* of X that fit: 8 or 16 */
  int row_tiles;         /* of a super tile */
  int warps;             /* of a CTA, the most */
  int has_half;          /* there is a kernel with half of them */
  int scale_group_k;     /* columns that share a scale */
  int table_bytes;       /* the dequantiser's, in shared memory */
  int scale_table_bytes; /* a warp's table of scales and zeros */
  int raw_bytes;         /* scales and zeros of a chunk of blocks of a super tile, as they are packed */
  int has_sums;          /* sums of X a scale group are needed */
  int block_bytes;       /* packed, with scales and zeros, of a super tile */
} lpg_gemv_kind;

/* has_shift, zeros_differ: numbers.cuh. */
static inline lpg_gemv_kind lpg_gemv_kind_of(const lpg_packed *weights, int columns, int has_shift, int zeros_differ) {
  const int scale_group = lpg_gemv_scale_steps(weights), bits = weights->bits;
  const int is_codebook = lpg_kind(weights->desc.type) == LPGEMM_KIND_CODEBOOK && bits > 1;
  const int levels = lpg_gemv_codes_of(weights, has_shift) != 0, shifted = lpg_gemv_shifted(bits, has_shift, levels);
  lpg_gemv_kind kind;
  kind.tile_m = columns;
  kind.row_tiles = lpg_gemv_row_tiles(bits, columns, scale_group, shifted);
  kind.warps = lpg_gemv_warps(bits, columns, shifted);
  kind.has_half = lpg_gemv_has_half(bits, columns) && lpg_is_integer_kind(weights->desc.type) && !has_shift && !levels;
  kind.scale_group_k = scale_group * LPG_STEP_K;
  kind.table_bytes = is_codebook ? (1 << 2 * bits) * LPG_LANES * 4 : 0;
  const int chunk = lpg_gemv_chunk(kind.row_tiles, scale_group);
  const int pairs = chunk * kind.row_tiles * (LPG_BLOCK_K / kind.scale_group_k) * 8;
  kind.scale_table_bytes = lpg_round_up_to(pairs * (8 + (has_shift ? 8 : 0) + (zeros_differ ? 4 : 0)), 128);
  kind.raw_bytes = 0;
  for (int id = LPG_SECTION_SCALES; id <= LPG_SECTION_SUPER_ZEROS; id++) {
    kind.raw_bytes += kind.row_tiles * lpg_chunk_bytes(weights, (lpg_section_id)id, chunk);
  }
  kind.has_sums = has_shift;
  kind.block_bytes = kind.row_tiles * 2 * LPG_BLOCK_K * bits + kind.raw_bytes / chunk;
  if (levels) {
    const int groups = kind.row_tiles * (LPG_BLOCK_K / kind.scale_group_k);
    kind.scale_table_bytes = groups * lpg_gemv_level_bytes(has_shift);
    kind.raw_bytes = 0;
  }
  return kind;
}

/* ---- the plan ---- */

typedef struct lpg_gemv_plan {
  int32_t blocks;               /* of 256 columns */
  int32_t super_tiles;          /* of rows */
  int32_t split_k, clusters;    /* CTAs of a cluster, and clusters */
  int32_t warps;                /* of a CTA; half as many as usual: an SM has two CTAs */
  lpg_partition k_part, n_part; /* k blocks of a CTA, super tiles of a cluster */
  int32_t x_rows;               /* rows of X */
  int32_t phase_blocks;         /* blocks of a phase, the most */
  int32_t round_tiles;          /* super tiles after which sums are combined */
  /* offsets in shared memory */
  int32_t x, x_stride, x_place, sums, slots, slot_bytes, peers, peer_bytes, warp, warp_bytes, scale_table_bytes,
      shared_bytes;
  /* Where the kernel gathers the columns of X itself: the order of a CTA's, and a row of X as the caller has it, two
   * if there are more. Only where X has one phase. */
  int32_t order, raw, raw_bytes; /* raw_bytes: of such a row; 0: X comes in order */
} lpg_gemv_plan;

static inline int32_t lpg_gemv_part_blocks(const lpg_gemv_plan *p) { return p->k_part.each + (p->k_part.more > 0); }
static inline int32_t lpg_gemv_cluster_tiles(const lpg_gemv_plan *p) { return p->n_part.each + (p->n_part.more > 0); }

#endif
