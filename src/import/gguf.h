/* GGUF's block types: what they are called, how long a block is, what a matrix of them becomes, and the functions that
 * take blocks apart and put them together again. docs/formats.md has the layouts. */
#ifndef LPG_IMPORT_GGUF_H
#define LPG_IMPORT_GGUF_H

#include "import.h"

/* A block before it is written: its codes, one a byte, and its numbers by section. */
typedef struct lpg_block {
  const uint8_t *codes;
  const uint8_t *numbers[LPG_SECTIONS];
} lpg_block;

/* What is particular to a type. Blocks may lie at any address. */
typedef struct lpg_block_ops {
  /* Codes of `count` blocks, one after the other. */
  void (*codes)(const uint8_t *blocks, int64_t count, uint8_t *codes);
  /* Numbers of a section that are no f16 at a fixed place; NULL: there are none. */
  void (*numbers)(const uint8_t *blocks, int64_t count, lpg_section_id id, uint8_t *numbers);
  /* The inverse of both, of one block. 0 if a number does not fit. NULL: the type is expanded by reading. */
  int (*write)(const lpg_block *from, uint8_t *block);
} lpg_block_ops;

typedef struct lpg_ggml {
  int number;
  const char *name;
  const lpg_block_ops *ops;  /* NULL: known by name only */
  const char *why;           /* it is not read */
  int block, bytes;          /* columns and bytes of a block */
  int scale_at, minimum_at;  /* where its f16 d and m or dmin lie; -1: there is none */
  lpgemm_weight_desc_t desc; /* of the weights, but for n and k */
} lpg_ggml;

enum { LPG_GGML_NVFP4 = 40 };

/* The type of that number, read or not; NULL if no number of GGUF. */
const lpg_ggml *lpgemm_i_ggml(int number);

/* Refuses a number that is no type to read, by its name. */
lpgemm_status_t lpgemm_i_find_ggml(int number, const lpg_ggml **type);

/* The section that the f16 at scale_at, or minimum_at, belongs to. */
static inline lpg_section_id lpg_scale_section(const lpg_ggml *type) {
  return type->desc.super_scale_type ? LPG_SECTION_SUPER_SCALES : LPG_SECTION_SCALES;
}
static inline lpg_section_id lpg_minimum_section(const lpg_ggml *type) {
  return type->desc.super_zero_type ? LPG_SECTION_SUPER_ZEROS : LPG_SECTION_ZEROS;
}

/* Numbers that a block has of a section. */
static inline int lpg_block_numbers(const lpg_ggml *type, lpg_section_id id) {
  int is_super = id == LPG_SECTION_SUPER_SCALES || id == LPG_SECTION_SUPER_ZEROS;
  return type->block / (int)(is_super ? type->desc.super_k : type->desc.group_k);
}

extern const lpg_block_ops lpgemm_i_q4_0, lpgemm_i_q4_1, lpgemm_i_q5_0, lpgemm_i_q5_1, lpgemm_i_q8_0, lpgemm_i_q1_0,
    lpgemm_i_q2_0, lpgemm_i_mxfp4, lpgemm_i_nvfp4;         /* gguf_blocks.c */
extern const lpg_block_ops lpgemm_i_tq1_0, lpgemm_i_tq2_0; /* gguf_ternary.c */
extern const lpg_block_ops lpgemm_i_q2_k, lpgemm_i_q3_k, lpgemm_i_q4_k, lpgemm_i_q5_k, lpgemm_i_q6_k,
    lpgemm_i_iq4_xs; /* gguf_k.c */
extern const lpg_block_ops lpgemm_i_iq1_s, lpgemm_i_iq1_m, lpgemm_i_iq2_xxs, lpgemm_i_iq2_xs, lpgemm_i_iq2_s,
    lpgemm_i_iq3_xxs, lpgemm_i_iq3_s; /* iq.c */

#endif
