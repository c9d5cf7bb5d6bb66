/* Tensors of a checkpoint with random content, in the arrangement of any format, and the value of one weight by the
 * format's own formula: bit by bit, and slow. Knows the public header only. */
#ifndef TEST_CHECKPOINT_H
#define TEST_CHECKPOINT_H

#include "lpgemm.h"

typedef enum checkpoint_kind {
  CHECKPOINT_GPTQ, /* V2, ORDERED */
  CHECKPOINT_AWQ,
  CHECKPOINT_AWQ_GEMV,
  CHECKPOINT_AWQ_GEMV_FAST,
  CHECKPOINT_PACKED, /* WORDS, ZEROS, ORDERED */
  CHECKPOINT_INT8,   /* group: 0 = one number, -1 = one a row, else blocks of so many rows and columns; ZEROS */
  CHECKPOINT_FP8,
  CHECKPOINT_NVFP4,        /* V2: ModelOpt's */
  CHECKPOINT_MXFP,         /* bits 4, 6, 8 */
  CHECKPOINT_BLOCKS,       /* of gpt-oss: 3 experts */
  CHECKPOINT_BITSANDBYTES, /* NESTED */
  CHECKPOINT_HQQ,
  CHECKPOINT_BITNET /* V2: the scale multiplies */
} checkpoint_kind;

enum { V2 = 1, ORDERED = 2, WORDS = 4, ZEROS = 8, NESTED = 16 };

typedef struct checkpoint_spec {
  const char *name;
  checkpoint_kind kind;
  int64_t n, k, group; /* group 0: the row */
  int bits;
  int flags;
} checkpoint_spec;

/* One of each arrangement, and of those that depend on a width, of each width; sizes that are no powers of two. */
extern const checkpoint_spec checkpoint_specs[];
extern const int checkpoint_spec_count;

enum { CHECKPOINT_TENSORS = 8 };

typedef struct checkpoint {
  checkpoint_spec spec;
  lpgemm_import_t import;
  lpgemm_tensor_t tensor[CHECKPOINT_TENSORS]; /* data from test_alloc() */
  float global;                               /* the scale of all weights, as lpgemm takes it; 1 without one */
} checkpoint;

/* Draws the tensors. */
void checkpoint_make(checkpoint *c, const checkpoint_spec *spec);
void checkpoint_free(checkpoint *c);

/* The tensor of that name, which must be there. */
lpgemm_tensor_t *checkpoint_tensor(checkpoint *c, const char *name);

/* Weight (n, k), columns in the order of the file; exact. */
double checkpoint_value(const checkpoint *c, int64_t n, int64_t k);

#endif
