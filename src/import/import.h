/* From the tensors of a checkpoint to packed weights. A format is a reader: it checks the tensors of one matrix, says
 * what they become, and gives codes and numbers of any rows. import.c does the rest for all of them: joins parts, cuts
 * slices, packs band by band. docs/formats.md is the specification of every format. */
#ifndef LPG_IMPORT_H
#define LPG_IMPORT_H

#include "../internal.h"

typedef struct lpg_reader lpg_reader;

/* One matrix of a checkpoint after its check: sizes and pointers that a reader may use without looking again. */
typedef struct lpg_part {
  const lpg_reader *reader;
  lpgemm_weight_desc_t desc;    /* of the whole matrix in the file, in packed column order */
  const lpgemm_tensor_t *codes; /* the tensors by what they hold; NULL where absent */
  const lpgemm_tensor_t *scales, *zeros, *order, *global;
  const uint8_t *code_data; /* of this expert */
  const uint8_t *scale_data, *zero_data;
  int64_t expert;
  int32_t variant; /* the reader's own: which arrangement of its family */
  float global_scale;
  int32_t *column_order; /* packed column -> column of the file; NULL: as they lie. import.c frees it */
  void *own;             /* whatever else the reader keeps; import.c frees it */
} lpg_part;

struct lpg_reader {
  lpgemm_format_t format;
  const char *name; /* in messages: "GPTQ" */
  /* Checks names, types, shapes and bytes of all tensors and fills *part. Reads no tensor but small ones. */
  lpgemm_status_t (*open)(const lpgemm_import_t *import, lpg_part *part);
  /* Codes of rows row .. row + rows - 1, all columns in the order of the file, one a byte at codes + i * k. rows is at
   * most LPG_BAND and ends at a multiple of LPG_BAND or at the last row. */
  void (*codes)(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes);
  /* Numbers of a section of those rows, in packed order and the section's type: dense [rows][count of the axis]. */
  void (*numbers)(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out);
};

enum { LPG_BAND = 64 }; /* rows read at once */

extern const lpg_reader lpgemm_i_read_gguf; /* gguf.c */

/* The tensor of that name, NULL if there is none. */
const lpgemm_tensor_t *lpgemm_i_tensor(const lpgemm_import_t *import, const char *name);

/* Checks that a tensor is there, has one of the types (0 ends the list) and exactly `bytes` as shape and type say. */
lpgemm_status_t lpgemm_i_need_tensor(const lpgemm_import_t *import, const char *name, const lpgemm_dtype_t *types,
                                     const lpgemm_tensor_t **tensor);

#endif
