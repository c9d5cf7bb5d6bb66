/* Weight matrices for tests: the list of types, a seeded random matrix of any description with its source arrays, and
 * the exact value of each of its weights. Knows the public header only. */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

#include "lpgemm.h"
#include "ref/exact.h"

enum { SAMPLE_TYPES = 54 };

/* Weight type i: u1..u8, i2..i8, b1..b8, c1..c4, then every eXmY. */
lpgemm_dtype_t sample_type(int i);

/* Types of scales on one level; the first is 0, none. */
enum { SAMPLE_SCALES = 6 };
extern const lpgemm_dtype_t sample_scale[SAMPLE_SCALES];

/* A handle of the backend under test, on the CPU with one thread. */
lpgemm_handle_t sample_handle(void);

lpgemm_weight_desc_t sample_desc(int64_t n, int64_t k, lpgemm_dtype_t type, int64_t group_k, lpgemm_dtype_t scale_type);

/* The same with per-group zeros of a type. */
lpgemm_weight_desc_t sample_desc_zeros(int64_t n, int64_t k, lpgemm_dtype_t type, int64_t group_k,
                                       lpgemm_dtype_t scale_type, lpgemm_dtype_t zero_type);

/* llama.cpp's Q4_K: u4, groups of 32 with u6 scales and minima, super groups of 256 with f16 factors. */
lpgemm_weight_desc_t sample_desc_q4k(int64_t n, int64_t k);

/* Rows of a dense array of a part, and the values that it holds in a row: groups or super-groups; 0 if the matrix has
 * no such part. */
int64_t sample_part_rows(const lpgemm_weight_desc_t *desc, lpgemm_part_t part);
int64_t sample_part_columns(const lpgemm_weight_desc_t *desc, lpgemm_part_t part);
lpgemm_dtype_t sample_part_type(const lpgemm_weight_desc_t *desc, lpgemm_part_t part);

enum { SAMPLE_PARTS = LPGEMM_PART_COLUMN_ORDER + 1 };

typedef struct sample {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source;   /* refers to the arrays below */
  uint8_t *codes;                  /* one a byte, [n][x_k], in the source's order of columns */
  uint8_t *source_codes;           /* the same as the source has them */
  void *part[SAMPLE_PARTS];        /* by lpgemm_part_t, row-major */
  void *source_part[SAMPLE_PARTS]; /* in the source's order */
  size_t part_bytes[SAMPLE_PARTS];
} sample;

/* Columns of the source; and the source's column of a stored one. */
int64_t sample_x_k(const lpgemm_weight_desc_t *desc);
int64_t sample_column(const sample *s, int64_t stored);

/* Draws a matrix with codes one a byte, dense. In test_alloc() memory, exactly as long as promised. */
void sample_make(sample *s, const lpgemm_weight_desc_t *desc);
void sample_free(sample *s);

/* Lays the same codes out another way; gaps between rows are filled with ones. */
void sample_lay_out(sample *s, lpgemm_code_layout_t layout, int64_t codes_ld, lpgemm_order_t order);

/* Packs into memory of the library; a failure fails the open case and gives NULL. */
lpgemm_weights_t sample_pack(lpgemm_handle_t handle, const sample *s);

/* The packed bytes in test_alloc() memory, wherever the weights lie; a failure fails the open case and gives NULL. */
uint8_t *sample_blob(lpgemm_handle_t handle, lpgemm_weights_t weights, size_t *size);

/* A weight's value: exact if finite, and if not, what it is. */
typedef struct sample_value {
  int finite;
  double other;
  exact value;
} sample_value;

/* k: the stored column. */
sample_value sample_weight(const sample *s, int64_t n, int64_t k);

/* The value of one code of any type of at most 16 bits or F32, written apart from the library's. */
double sample_code_value(lpgemm_dtype_t type, uint32_t code, const float *codebook);

#endif
