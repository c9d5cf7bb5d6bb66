/* A reader of packed matrices, written from src/layouts/FORMAT.md alone: it includes nothing of the library, so that
 * the specification, the packer and this reader check one another. Section numbers are those of FORMAT.md. */
#ifndef TEST_FORMAT_READER_H
#define TEST_FORMAT_READER_H

#include <stdint.h>

enum { /* section 4, in the header's order */
       FORMAT_CODES,
       FORMAT_SCALES,
       FORMAT_ZEROS,
       FORMAT_SUPER_SCALES,
       FORMAT_SUPER_ZEROS,
       FORMAT_ROW_EXPONENTS,
       FORMAT_COLUMN_ORDER,
       FORMAT_ROW_SCALES,
       FORMAT_SECTIONS
};

typedef struct format_axis {
  int64_t span, count, padded; /* section 3 */
} format_axis;

typedef struct format_reader {
  const uint8_t *bytes;
  uint64_t size;
  int64_t n, k, group_k, super_k;
  uint32_t type, scale_type, super_scale_type, zero, zero_type, super_zero_type;
  float zero_constant, global_scale, codebook[16];
  uint32_t scale_span, rows, row_scales, columns;
  int64_t group_n, x_k; /* x_k: as the header has it */
  int bits;
  int64_t tile_k, unit_words, unit_codes, tile_bytes;
  int64_t n_padded, k_padded, row_tiles, k_tiles, tiles_a_scale, scale_tiles;
  format_axis group, super;
  uint64_t offset[FORMAT_SECTIONS], length[FORMAT_SECTIONS];
} format_reader;

/* Checks everything that section 10 names. NULL if the blob is right, else what is wrong. */
const char *format_open(format_reader *r, const uint8_t *bytes, uint64_t size);

/* Section 2.1: the packed row of row n of the matrix. All functions below take packed rows. */
int64_t format_row(const format_reader *r, int64_t n);

/* Section 11: how many blobs the bytes are, one after the other, of one stack; 0 if they are none, with what is wrong.
 */
int64_t format_stack(const uint8_t *bytes, uint64_t size, const char **wrong);

/* The code of row n and stored column k as it was before packing. */
uint32_t format_code(const format_reader *r, int64_t n, int64_t k);

/* Value j of row n of a section, 1 to 4: its bits, and the number that they stand for. */
uint32_t format_bits(const format_reader *r, int section, int64_t n, int64_t j);
double format_value(const format_reader *r, int section, int64_t n, int64_t j);

/* Section 7.2: the source's column of stored column k; section 7.3. */
int64_t format_column(const format_reader *r, int64_t k);
double format_row_scale(const format_reader *r, int64_t n);

int format_row_exponent(const format_reader *r, int64_t n);

/* Section 9; exact as long as fp64 holds the products. */
double format_weight(const format_reader *r, int64_t n, int64_t k);

/* The hash of section 2 over whole 64-bit words. */
uint64_t format_hash(const uint8_t *bytes, uint64_t count);

#endif
