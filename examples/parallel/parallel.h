/* A decoder block of a Llama on several ranks (tensor parallelism), a process a rank. main.c starts the ranks, three
 * times: one alone, all, and all again; rank.c is what a rank does; engine_cpu.c and engine_cuda.c are its backend,
 * with the sum over ranks: by NCCL (nccl.c), or on the host (host_sum.c). ../block has the block itself. */
#ifndef PARALLEL_H
#define PARALLEL_H

#include "../block/block.h"
#include "board.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_ROW_COUNTS = 8, STEPS = 16, LAYERS = 4 /* matrices of a block */ };
enum { MOST_ROWS_IN_GRAPH = 512, MOST_COPIES = 32 };
#define COLD_BYTES 1e9 /* of weights in turn */

/* Where and how a rank fails, for tests. */
typedef enum fail_place { FAIL_NOWHERE, FAIL_OPEN, FAIL_JOIN, FAIL_ROWS, FAIL_STEPS, FAIL_EXPERTS } fail_place;
typedef enum fail_manner {
  FAIL_ERROR,
  FAIL_KILL,
  FAIL_HANG,
  FAIL_WRONG /* it goes on with wrong numbers */
} fail_manner;

typedef struct options {
  const char *model;
  block_shape shape;
  int32_t experts, top_k; /* of a layer of experts; 0: none */
  int64_t inter;          /* outputs of gate and of up of an expert */
  int ranks, bits;
  lpgemm_backend_t backend;
  int64_t rows[MOST_ROW_COUNTS];
  int row_counts;
  int checks_only;
  int host_sum; /* even where NCCL could do it */
  const char *nccl, *record;
  double limit; /* seconds that ranks may take */
  int fail_rank;
  fail_place fail_at;
  fail_manner fail_how;
} options;

/* Microseconds of one block with so many rows, and of its four products and its two sums over ranks alone. */
typedef struct timing {
  double block, products, sums;
} timing;

/* How a layer of experts is cut: each expert by its inner numbers, or the stack by experts. */
typedef enum cut { CUT_INTER, CUT_EXPERTS, CUTS } cut;
extern const char *const cut_names[CUTS];

/* What a rank reports. */
typedef struct report {
  uint64_t hash;       /* of all outputs */
  double fp64;         /* of one rank alone on the CPU: the block against sums in fp64 */
  double experts_fp64; /* the same of the experts with the first row count */
  double error;        /* of sampled products against fp64, as a share of the bound */
  int64_t checked;     /* how many */
  timing time[MOST_ROW_COUNTS], expert_time[CUTS][MOST_ROW_COUNTS]; /* of experts `block` is the layer */
  double agreed;                                                    /* the number of a rank in agree() */
  int64_t packed_bytes;
  char device[128], driver[32], runtime[64], sum[32];
  int gpus, shares; /* GPUs that it sees; whether several ranks are on one */
} report;

/* One run of all ranks; all pointers are to memory that they share. */
typedef struct job {
  const options *o;
  int ranks, timed;
  int copies;       /* of the weights, in turn, so that no cache keeps them */
  int writes_exact; /* the first run: others compare with it */
  board *board;
  report *report;    /* [ranks] */
  float *outputs;    /* [all_rows()][hidden], of the first rank */
  float *exact;      /* products by exact weights: of one rank alone; others compare theirs */
  double *partial;   /* [ranks][samples of a layer * most rows][2]: parts of sums in fp64 */
  char *slots;       /* [2][ranks][slot_bytes], for sums on the host */
  size_t slot_bytes; /* fp32 of the most rows */
} job;

typedef struct rank rank;

/* A backend. */
typedef struct engine {
  void (*open)(rank *r); /* device, stream and handle; joins the other ranks */
  void (*close)(rank *r);
  void (*write)(void *to, const void *from, size_t bytes);         /* bytes as they are */
  void (*read_floats)(float *to, const void *from, int64_t count); /* of fp32 in memory of the backend */
  /* Microseconds of the work: the median of repetitions, each begun by all ranks at once after prepare(). In a graph
   * (CUDA), or call by call. */
  double (*time)(rank *r, void (*work)(void *), void *context, void (*prepare)(void *), int in_graph);
  /* Decode steps from `first` on, in a graph (CUDA): row i of out is what came out for row i of tokens. */
  void (*steps)(rank *r, const float *tokens, int32_t first, int steps, float *out);
} engine;
extern const engine engine_cpu, engine_cuda;

struct rank {
  const job *job;
  int index;
  const engine *engine;
  block b;
};

/* rank.c */
void run_rank(const void *context, int index); /* a job */
int64_t most_rows(const options *o);
int64_t output_rows(const options *o);      /* of all row counts, then of the decode steps */
int64_t all_rows(const options *o);         /* and of experts: cut in one way, then in the other */
double agree(const rank *r, double number); /* the largest of all ranks' */
void fail_here(const rank *r, fail_place place);
int goes_wrong(const rank *r, fail_place place); /* it shall go on with wrong numbers */

/* checks.c: what a rank finds wrong is its failure. */
int64_t exact_numbers(const options *o); /* of all products with all row counts */
void check_slices(rank *r);              /* b.exact: products are those of a rank alone, bit for bit */
void check_products(rank *r);            /* against fp64 */
size_t partial_numbers(const options *o);

/* experts.c: outputs of all row counts */
void run_experts(rank *r, cut how, const float *tokens, float *out);
double experts_bound(const options *o, lpgemm_dtype_t type, int ranks);

/* times.c */
void time_block(rank *r, const float *tokens);

/* host_sum.c: the same bits whatever the ranks' speed, since parts are added in the order of ranks. */
void host_sum_open(const rank *r);
/* What a rank does in one sum: its part goes to its slot; when all have come, add() sums up the slots. 0: a rank has
 * failed, and `out` is not written. */
typedef void adder(const char *const *parts, int ranks, int64_t count, void *out);
int host_sum(const void *part, size_t bytes, int64_t count, adder *add, void *out);
void add_floats(const char *const *parts, int ranks, int64_t count, void *out);

/* report.c: what three runs have shown; fails where outputs differ by more than they may. */
void print_checks(const job *alone, const job *all, const job *again);
void print_times(const job *alone, const job *all);
void write_record(const job *alone, const job *all);

#ifdef __cplusplus
}
#endif

#endif
