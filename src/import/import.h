/* From the tensors of a checkpoint to packed weights. A format is a reader: it checks the tensors of one matrix, says
 * what they become, and gives codes and numbers of any rows. import.c does the rest for all of them: joins parts, cuts
 * slices, packs band by band. docs/formats.md is the specification of every format. */
#ifndef LPG_IMPORT_H
#define LPG_IMPORT_H

#include "../internal.h"

typedef struct lpg_reader lpg_reader;

enum { LPG_MORE = 2 };

/* One matrix of a checkpoint after its check: sizes and pointers that a reader may use without looking again. */
typedef struct lpg_part {
  const lpg_reader *reader;
  lpgemm_weight_desc_t desc;    /* of the whole matrix in the file, in packed column order; global_scale 0 or 1: none */
  const lpgemm_tensor_t *codes; /* the tensors by what they hold; NULL where absent */
  const lpgemm_tensor_t *scales, *zeros;
  const uint8_t *code_data; /* of this expert; in host memory when codes() and numbers() are called */
  const uint8_t *scale_data, *zero_data;
  const lpgemm_tensor_t *more[LPG_MORE]; /* others that numbers() reads */
  const uint8_t *more_data[LPG_MORE];
  const char *global_name; /* the tensor that global_scale is from, for messages; NULL: none */
  int32_t variant;         /* the reader's own: which arrangement of its family */
  int32_t *column_order;   /* packed column -> column of the file; NULL: as they lie. import.c frees it */
  void *own;               /* whatever else the reader keeps, one block; import.c frees it */
} lpg_part;

struct lpg_reader {
  lpgemm_format_t format;
  const char *name; /* in messages: "GPTQ" */
  /* Checks names, types, shapes and bytes of all tensors and fills *part, which is zeroed before, as far as it knows
   * better. Reads no tensor but small ones. The struct `import` and its list of tensors were checked. */
  lpgemm_status_t (*open)(const lpgemm_import_t *import, lpg_part *part);
  /* Codes of rows row .. row + rows - 1, all columns in the order of the file, one a byte at codes + i * k. rows is at
   * most LPG_BAND. Called by several threads at once. */
  void (*codes)(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes);
  /* Numbers of a section of those rows, in packed order and the section's type: dense [rows][count of the axis]. Rows
   * of group_n that share numbers are each asked for. out is aligned to its type. */
  void (*numbers)(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out);
};

enum { LPG_BAND = 64 }; /* rows read at once */

extern const lpg_reader lpgemm_i_read_gptq, lpgemm_i_read_gptq_v2;                              /* gptq.c */
extern const lpg_reader lpgemm_i_read_awq, lpgemm_i_read_awq_gemv, lpgemm_i_read_awq_gemv_fast; /* awq.c */
extern const lpg_reader lpgemm_i_read_compressed;                                               /* compressed.c */
extern const lpg_reader lpgemm_i_read_scaled;                                                   /* scaled.c */
extern const lpg_reader lpgemm_i_read_nvfp4, lpgemm_i_read_mxfp;                                /* fp4.c */
extern const lpg_reader lpgemm_i_read_bitsandbytes;                                             /* bitsandbytes.c */
extern const lpg_reader lpgemm_i_read_hqq;                                                      /* hqq.c */
extern const lpg_reader lpgemm_i_read_bitnet, lpgemm_i_read_bitnet_auto;                        /* bitnet.c */
extern const lpg_reader lpgemm_i_read_gguf;                                                     /* gguf.c */

/* ---- parts to a description: parts.c ---- */

/* Checked parts, what each contributes, and what they become together. */
typedef struct lpg_slice {
  int64_t n0, n1, k0, k1; /* resolved: rows of the file, packed columns */
} lpg_slice;

struct lpg_joined {
  size_t count;
  lpg_part *part;
  lpg_slice *slice;
  lpgemm_weight_desc_t desc;
};

/* Opens the parts and joins them; lpgemm_i_close_parts() frees what they hold, also after a failure. */
lpgemm_status_t lpgemm_i_open_parts(const lpgemm_import_t *parts, size_t count, lpg_joined *joined);
void lpgemm_i_close_parts(lpg_joined *joined);

int lpgemm_i_same_codebook(const lpgemm_weight_desc_t *a, const lpgemm_weight_desc_t *b);

/* ---- tensors: tensors.c ---- */

/* The tensor of that name, NULL if there is none. */
const lpgemm_tensor_t *lpgemm_i_tensor(const lpgemm_import_t *import, const char *name);

/* Checks that a tensor is there, has one of the types (0 ends the list), is not empty and has exactly `bytes` as shape
 * and type say (of GGUF's block types the reader checks the bytes). No dimension is above 2^40, and the numbers fit
 * 2^58.
 */
lpgemm_status_t lpgemm_i_need_tensor(const lpgemm_import_t *import, const char *name, const lpgemm_dtype_t *types,
                                     const lpgemm_tensor_t **tensor);
/* The same for one that may be absent: *tensor is NULL then. */
lpgemm_status_t lpgemm_i_may_have_tensor(const lpgemm_import_t *import, const char *name, const lpgemm_dtype_t *types,
                                         const lpgemm_tensor_t **tensor);

/* Of two tensors the one that is there, the first rather than the second; refuses if neither is. */
lpgemm_status_t lpgemm_i_need_one_of(const lpgemm_import_t *import, const char *a, const char *b, const char **name);

/* "[32][511]", "[]": for messages, in a buffer of the caller. */
enum { LPG_SHAPE_TEXT = 96 };
const char *lpgemm_i_shape_text(const lpgemm_tensor_t *tensor, char *text);

/* 1 if the tensor has just these dimensions. */
static inline int lpg_is_matrix(const lpgemm_tensor_t *t, int64_t rows, int64_t columns) {
  return t->dims == 2 && t->shape[0] == rows && t->shape[1] == columns;
}

/* Refuses a tensor that is not [rows][columns]; `why` is what needs it: "4 bits and N = 4096". */
lpgemm_status_t lpgemm_i_need_matrix(const lpgemm_tensor_t *tensor, int64_t rows, int64_t columns, const char *why, ...)
    LPG_PRINTF(4, 5);

int64_t lpgemm_i_elements(const lpgemm_tensor_t *tensor);

/* Element i of a checked tensor of integers or real numbers in host memory. */
int64_t lpgemm_i_integer(const lpgemm_tensor_t *tensor, int64_t i);
void lpgemm_i_integers(const lpgemm_tensor_t *tensor, int64_t *out); /* all of them */
double lpgemm_i_real(const lpgemm_tensor_t *tensor, int64_t i);

/* A tensor with one number, or one for each of `experts`, which must be finite and not 0, as desc.global_scale; its
 * inverse if `divides`. */
lpgemm_status_t lpgemm_i_global_scale(const lpgemm_tensor_t *tensor, int64_t expert, int64_t experts, int divides,
                                      lpg_part *part);

/* ---- groups and orders: groups.c ---- */

/* Sets desc.group_k for `groups` numbers a row: what the caller says, or what the sizes say; 0 for one. Refuses a size
 * that does not fit, or is no multiple of 16. what: the tensor that has the groups. */
lpgemm_status_t lpgemm_i_set_group(const lpgemm_import_t *import, int64_t groups, const char *what, lpg_part *part);

/* From a tensor g_idx [k], NULL if absent: sets desc.group_k, desc.columns and column_order. */
lpgemm_status_t lpgemm_i_set_order(const lpgemm_import_t *import, const lpgemm_tensor_t *g_idx, int64_t groups,
                                   const char *what, lpg_part *part);

/* Refuses an expert where the format has no stacks. */
lpgemm_status_t lpgemm_i_no_stack(const lpgemm_import_t *import, const char *format);

#endif
