/* One decoder block of a Llama whose linear layers are multiplied by lpgemm. block.c is the block, the same code for
 * the CPU and for CUDA, and for one rank of several (examples/parallel); what is no matrix product comes from a machine
 * (machine_cpu.c, machine_cuda.cu). Failures end the program: an engine would hand the status on. */
#ifndef BLOCK_H
#define BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "lpgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HEAD = 128, GROUP = 128 };      /* numbers of a head; weights that share a scale */
enum { MOST_JOINED = 3, SAMPLES = 8 }; /* matrices of a layer: q, k and v; rows of each that are kept for tests */

typedef struct block_shape {
  int64_t hidden, heads, kv_heads, ffn; /* Llama 3 8B: 4096, 32, 8, 14336 */
} block_shape;

/* Rows of one matrix of the model that this rank has. */
typedef struct joined {
  int64_t rows, at; /* in the rank's layer */
  int64_t whole_at; /* where they are in the layer that a rank alone has */
} joined;

/* A linear layer of n outputs and k inputs; of a rank, its part. */
typedef struct linear {
  int64_t n, k;
  lpgemm_weights_t weights;
  joined of[MOST_JOINED]; /* the matrices that it is made of, one below the other */
  int count;
  int64_t first_column, whole_k; /* the inputs: from this one of so many on */
  void *dense;                   /* the dequantised weights [n][k], where a reference needs them */
  /* With keep_samples, for tests: some rows as the source had them, exact in fp32. */
  int64_t samples, sample_row[MOST_JOINED * SAMPLES];
  float *sample; /* [samples][k] */
} linear;

typedef struct block block;
typedef struct machine machine;

/* y[m][n] = x[m][k] . W^T, or y += that. */
typedef void multiplier(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add);

struct block {
  const machine *on;
  lpgemm_handle_t handle;
  multiplier *multiply;  /* block_multiply(), or a reference in its place */
  block_shape model;     /* the whole block */
  block_shape shape;     /* what this rank has of it */
  int rank, ranks;       /* 0 ranks: alone */
  int64_t rows, context; /* the most tokens of one call, and of the cache */
  int exact;             /* all scales are one power of two: sums of small integers are exact in any order */
  int keep_samples;
  /* Adds up x of all ranks, in place, into every rank's x, in the order of the other work; NULL: alone. */
  void (*reduce)(const block *b, void *x, int64_t count, lpgemm_dtype_t type);
  linear qkv, o, gate_up, down;
  void *workspace;

  /* Memory of the machine, of its type of activations. */
  void *attention_gain, *ffn_gain; /* [hidden], of the two norms */
  void *x;                         /* [rows][hidden]: tokens in, tokens out */
  void *normed;                    /* [rows][hidden] */
  void *heads_in;                  /* [rows][queries, keys, values] */
  void *heads_out;                 /* [rows][queries] */
  void *gate_and_up;               /* [rows][2 ffn] */
  void *gated;                     /* [rows][ffn] */
  void *keys, *values;             /* [context][kv_heads][HEAD]: the cache */
  int32_t *position; /* of the first token of a call; in memory, so that a captured graph can be replayed */
};

/* The parts of a block that are no matrix product, and memory. */
struct machine {
  lpgemm_dtype_t type;             /* of activations */
  size_t bytes;                    /* of one */
  void *(*allocate)(size_t bytes); /* zeroed, 256-byte aligned */
  void (*release)(void *memory);
  void (*upload)(void *to, const float *from, int64_t count);
  void (*download)(float *to, const void *from, int64_t count);
  void (*set_position)(const block *b, int32_t position);
  void (*rms_norm)(const block *b, int64_t m, const void *x, const void *gain, void *y);
  void (*rope)(const block *b, int64_t m); /* rotates queries in place, and keys into the cache beside the values */
  void (*attention)(const block *b, int64_t m);
  void (*swiglu)(const block *b, int64_t m); /* silu(gate) * up */
};

extern const machine machine_cpu, machine_cuda;

/* block.c: random weights of `bits` bits on this machine. The caller sets on, handle, model, rows and context, and of
 * several ranks rank, ranks and reduce. */
void block_open(block *b, int bits);
void block_close(block *b);
void block_forward(const block *b, int64_t m); /* x to x */
void block_multiply(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add);

/* Matrices of k columns that share their input, for load_rows(). */
typedef struct rows_of {
  int64_t n, unit; /* rows, and how many of them stay together on a rank */
} rows_of;

/* A matrix of the model, whole, as a checkpoint holds it. */
typedef struct matrix {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source;
  uint8_t *codes;   /* [n][k] */
  uint16_t *scales; /* [n][k / GROUP], fp16 */
} matrix;

/* weights.c: the same numbers on every machine. A rank packs its part of each matrix: of its rows (column-parallel), or
 * of its columns (row-parallel: then the sum over ranks is the output). */
void load_rows(const block *b, linear *layer, const rows_of *matrices, int count, int64_t k, int bits, uint64_t seed);
void load_columns(const block *b, linear *layer, int64_t n, int64_t k, int64_t unit, int bits, uint64_t seed);
void unload(linear *layer);

/* What they are made of. */
lpgemm_weight_desc_t describe(int64_t n, int64_t k, int bits);
matrix random_matrix(const block *b, int64_t n, int64_t k, int bits, uint64_t seed);
void drop_matrix(matrix *m);
double weight_of(const matrix *m, int64_t row, int64_t column); /* by the definition of a weight */
lpgemm_shard_t shard_of(const block *b, lpgemm_shard_by_t by, int64_t unit);
/* Packs the rank's part of a matrix, of so many rows, from row `at` of weights that were created. */
void pack_part(const block *b, lpgemm_weights_t weights, int64_t expert, int64_t at, int64_t rows, const matrix *m,
               const lpgemm_shard_t *shard);
void random_numbers(float *out, int64_t count, float least, float most, uint64_t seed);

/* How the tokens come: a few at once, then one by one. Outputs are [tokens][hidden]. */
enum { CPU_PREFILL = 3, CPU_STEPS = 1, CUDA_PREFILL = 512, CUDA_STEPS = 64 };
float *random_tokens(const block_shape *shape, int64_t tokens); /* the first ones are the same however many there are */

/* Both print what they find, and end the program if outputs differ by more than rounding explains. */
float *run_cpu(const block_shape *shape, int bits); /* gives the outputs of its tokens */
#ifdef LPG_HAVE_CUDA
void run_cuda(const block_shape *shape, int bits, const float *cpu_outputs);
#else
static inline void run_cuda(const block_shape *shape, int bits, const float *cpu_outputs) {
  (void)shape, (void)bits, (void)cpu_outputs; /* such a library has no CUDA backend, so nobody calls this */
}
#endif

/* reference_cpu.c: the same product by dequantised weights, summed in fp64. */
void multiply_dense(const block *b, const linear *layer, int64_t m, const void *x, void *y, int add);

/* common.c */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
extern void (*on_failure)(const char *sentence); /* prints it; the program ends when it returns */
void *get_memory(size_t bytes);
double seconds(void); /* of a steady clock */
double median(double *numbers, int count);

/* Of two blocks with the same weights, one of them perhaps on several ranks; fails beyond the bound that common.c
 * derives for activations of this type. */
double difference(const block_shape *shape, lpgemm_dtype_t type, const float *got, const float *want, int64_t tokens,
                  int ranks);
double relative_difference(const float *got, const float *want, int64_t count);
double difference_bound(const block_shape *shape, lpgemm_dtype_t type, int ranks);

#define TRY(call)                              \
  do {                                         \
    if (call) fail("%s", lpgemm_last_error()); \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
