/* What the parts of the library say to one another: the device, the problem, the call, handles and weights.
 *
 * Types are lpg_*; functions that another file calls are lpgemm_i_*, so that every global symbol has the prefix. */
#ifndef LPG_INTERNAL_H
#define LPG_INTERNAL_H

#include "layouts/packed.h"
#include "lpgemm.h"
#include "plan.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device a handle works on; dispatch is tested with made-up ones ---- */

/* Instruction sets, as bits of a set: what came later does not include all that came before. A processor has a bit only
 * with those that it stands on (src/cpu/device.c), so a kernel names one. */
enum {
  LPG_ISA_BASE = 0,
  LPG_ISA_AVX2 = 1 << 0,    /* with FMA and F16C */
  LPG_ISA_AVX512 = 1 << 1,  /* F, BW, DQ and VL */
  LPG_ISA_VBMI = 1 << 2,    /* of AVX-512, with VNNI and GFNI */
  LPG_ISA_AMX = 1 << 3,     /* tiles of bf16 */
  LPG_ISA_AVXVNNI = 1 << 4, /* VPDPBUSD without AVX-512 */
  LPG_ISA_NEON = 1 << 0,    /* of ARM */
  LPG_ISA_DOTPROD = 1 << 1  /* of ARM: SDOT */
};
enum { LPG_CLUSTER_SIZES = 4, LPG_CLUSTER_MOST = 8 }; /* of blocks: powers of two, and the most */

struct lpg_device {
  lpgemm_backend_t backend;
  int32_t index;
  char name[64];         /* "Intel(R) Xeon(R) ...", "NVIDIA H200": the key of tuning files, without tabs */
  int32_t arch;          /* CUDA: 10 * major + minor; CPU: 0 */
  int32_t isa;           /* CPU: the set of LPG_ISA_ that it runs */
  int32_t sms;           /* CUDA */
  int32_t threads;       /* CPU: of the handle */
  int64_t shared_memory; /* CUDA: bytes a block may use */
  /* CUDA, 9.0 and later: clusters of so many blocks that run at once when every block fills an SM; else 0. */
  int32_t clusters[LPG_CLUSTER_MOST + 1];
  const lpg_rates *rates; /* CUDA; NULL: a GPU that the table does not have */
};

/* From the device's name and architecture: src/kernels/plan/rates.c has the table. */
void lpgemm_i_set_rates(lpg_device *device);

/* ---- activations: who adds one to lpgemm.h and forgets a place does not compile ---- */

#define LPG_ACTIVATIONS(NAME) NAME(NONE) NAME(RELU) NAME(GELU_ERF) NAME(GELU_TANH) NAME(SILU)

#define LPG_ACTIVATION_ONE_(name) +1
enum { LPG_ACTIVATION_COUNT = 0 LPG_ACTIVATIONS(LPG_ACTIVATION_ONE_) }; /* each place that computes them asserts it */

/* No default: the compiler objects to a member of the enum that the list does not have. */
#define LPG_ACTIVATION_CASE_(name) case LPGEMM_ACTIVATION_##name:
static inline int lpg_is_activation(lpgemm_activation_t activation) {
  switch (activation) { LPG_ACTIVATIONS(LPG_ACTIVATION_CASE_) return 1; }
  return 0;
}

/* The product of a layer of experts' token form (kernels/plan/fan.h), or none of them. */
typedef enum lpg_fan { LPG_FAN_NONE, LPG_FAN_OUT, LPG_FAN_IN } lpg_fan;

/* ---- the problem: all that the choice of a kernel depends on, no pointers to data ---- */

struct lpg_problem {
  const lpg_packed *weights;
  uint32_t scale_span; /* of the weights' content; 255 when only a description is known */
  int64_t m;
  lpgemm_dtype_t x_type, y_type;
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_level_t level;
  int batch_invariant;
  /* A stack: rows of X are dealt out to so many experts by lpg_call.offsets, which the host cannot read; m is the
   * number of rows that X and Y have room for. 0: one matrix. slots: rows that are dealt out at most; top_k: of a
   * token, 0 where nobody says. */
  int32_t experts, top_k;
  int64_t slots;
  int paired;                     /* rows of W are pairs of gate and up: a row of Y has half as many numbers */
  lpgemm_activation_t activation; /* of pairs; 0 otherwise */
  int x_unaligned;                /* X's rows do not begin at multiples of 16 bytes: TMA cannot read them */
  lpg_fan fan;                    /* m is the number of tokens then, whatever X and Y have rows for */
  size_t workspace;               /* bytes that a kernel may use: without them it is not chosen */
};

/* ---- the call: a problem with its data, as a kernel gets it; everything is checked and defaults are resolved ---- */

typedef struct lpg_pool lpg_pool;

/* What becomes of a pair: activation(min(gate, limit)) * (min(max(up, -limit), limit) + up_offset), where SILU is
 * g / (1 + exp(-alpha g)). NaN stays NaN. */
typedef struct lpg_gate {
  float alpha, limit, up_offset; /* 1, infinity and 0 where the caller says nothing */
} lpg_gate;

typedef struct lpg_call {
  lpg_problem problem;
  int skip_product;                     /* alpha is 0: neither X nor W may be read */
  const uint8_t *section[LPG_SECTIONS]; /* the weights' sections, NULL where absent */
  const float *row_scales;              /* [n_padded], what the sums of a row of W are multiplied by; NULL: 1 */
  const void *x;
  int64_t ldx;
  int gathers;          /* 1: X has the caller's order of columns, and the kernel, whose plan says so, gathers it */
  const float *x_scale; /* NULL with LPGEMM_X_SCALE_NONE */
  const void *made_x;   /* what the kernel's x_form made of X before the call; NULL: nothing */
  void *y;
  int64_t ldy;
  const void *c; /* NULL if beta is 0 on the host */
  int64_t ldc;
  float alpha, beta;                      /* values, unless the pointers below are set */
  const void *device_alpha, *device_beta; /* CUDA, pointer mode DEVICE: of scalar_type; NULL = the value above */
  lpgemm_dtype_t scalar_type;             /* F32; F16 and I32 for the calls in place of cuBLAS */
  const void *bias;                       /* or NULL */
  lpgemm_dtype_t bias_type;
  lpgemm_activation_t activation;
  lpg_gate gate; /* of problem.paired */
  /* Of problem.experts: rows offsets[e] .. offsets[e + 1] - 1 of X, Y and C meet expert e, in memory of the backend's
   * kind; lpg_offset() says how far they are believed. Expert e's header is at blob + e * stride, its sections lie as
   * much further than section[], row_scales as well; its bias at number e * bias_stride. Its global scale is
   * lpg_expert_scale(header): desc.global_scale is not read. */
  const int32_t *offsets;
  const uint8_t *blob;
  uint64_t stride;
  int64_t bias_stride;
  void *workspace; /* at least what the kernel's workspace function asks for */
  const lpg_device *device;
  lpgemm_stream_t stream; /* CUDA */
  lpg_pool *pool;         /* CPU */
  const lpg_planned *planned;
  /* Of problem.experts, for kernels with LPG_K_BY_ROW: row i of X is row x_row[i] of x, which has x_rows; a number
   * beyond these counts as a row of zeros. NULL: rows come in order. */
  const int32_t *x_row;
  int64_t x_rows;
  int offsets_final; /* 1: the kernel ahead in the stream, which may still run, has not written offsets */
} lpg_call;

/* What a kernel makes of X alone before it multiplies: bytes, tables. Several products with one X may share it
 * (lpgemm_prepare_x()). Calls of one form and variant that have the same X, in the same order of columns, make the same
 * bytes of it. */
typedef struct lpg_x_form {
  int32_t (*variant)(const lpg_problem *problem);
  size_t (*bytes)(const lpg_problem *problem);
  lpgemm_status_t (*make)(const lpg_call *call, void *made); /* 64-byte aligned; of the call X alone is there */
} lpg_x_form;

/* ---- what a handle remembers of its last problems: choosing a kernel and planning its launch take microseconds ----
 */

enum { LPG_REMEMBERED = 64, LPG_LOADED = 1024 };

typedef struct lpg_remembered {
  uint64_t tuning;           /* the version of the tuning results */
  lpg_problem problem;       /* its weights may be gone */
  lpgemm_weight_desc_t desc; /* of them: all that the choice depends on, so that weights of one description share it */
  const struct lpg_kernel *kernel;
  lpg_planned planned;
} lpg_remembered;

/* ---- tuning results of a handle; src/dispatch/tuning.c ---- */

typedef struct lpg_tuning lpg_tuning;

/* ---- what a backend does: one table each, src/cpu/backend.c and the CUDA one; arguments are checked ---- */

typedef struct lpg_source lpg_source; /* src/pack/pack.h */
typedef struct lpg_joined lpg_joined; /* src/import/import.h */
typedef struct lpg_route lpg_route;   /* src/experts/routing.h, with the two below */
typedef struct lpg_gather lpg_gather;
typedef struct lpg_combine lpg_combine;

typedef struct lpg_backend {
  /* Describes device `index`; LPGEMM_NO_BACKEND with a sentence if it is not there. threads: CPU only. */
  lpgemm_status_t (*open)(int32_t index, int32_t threads, lpg_device *device);
  /* Make the device current for the calling thread, and what was current before it again. NULL: nothing to do. */
  lpgemm_status_t (*enter)(int32_t device, int32_t *before);
  void (*leave)(int32_t device, int32_t before);
  /* Loads what a run may launch besides the kernel that multiplies. NULL: nothing to load. */
  lpgemm_status_t (*prepare)(void);
  /* 256-byte aligned memory of the backend's kind. */
  lpgemm_status_t (*allocate)(int32_t device, size_t bytes, void **memory);
  void (*release)(int32_t device, void *memory);
  /* 1 if a kernel of the backend can read `memory` in place. */
  int (*can_read)(int32_t device, const void *memory);
  lpgemm_status_t (*copy_in)(lpgemm_handle_t handle, void *to, const void *from_host, size_t bytes);
  lpgemm_status_t (*copy_out)(lpgemm_handle_t handle, void *to_host, const void *from, size_t bytes);
  /* 1 if memory of the backend's kind holds what memory of the host does. */
  int (*equals)(lpgemm_handle_t handle, const void *memory, const void *host, size_t bytes);
  lpgemm_status_t (*synchronize)(lpgemm_handle_t handle);
  /* 1 while the handle's stream is captured, when it cannot be waited for. NULL: never. */
  int (*is_capturing)(lpgemm_handle_t handle);
  /* A blob is begun, gets its rows, with the column order in place, and is finished (src/pack/pack.h). */
  lpgemm_status_t (*begin)(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob);
  lpgemm_status_t (*pack_rows)(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_source *source,
                               int64_t first_row, uint8_t *blob, lpg_content *content);
  /* The same for rows of a checkpoint whose tensors lie in memory of the backend's kind. *done is 0 afterwards if they
   * do not, or are not what the backend reads: then the host does it. NULL: the host always does. */
  lpgemm_status_t (*import_rows)(lpgemm_handle_t handle, const lpg_packed *packed, const lpg_joined *joined,
                                 int64_t first_row, uint8_t *blob, lpg_content *content, int *done);
  /* Rows that were packed as a plain matrix `own` become one half (0: gates, 1: ups) of a paired one, from output
   * `output` on, a multiple of 8. */
  lpgemm_status_t (*pair_rows)(lpgemm_handle_t handle, const lpg_packed *own, const uint8_t *rows,
                               const lpg_packed *packed, int half, int64_t output, uint8_t *blob);
  lpgemm_status_t (*finish)(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob, lpg_content *content);
  lpgemm_status_t (*quantize)(lpgemm_handle_t handle, const lpg_packed *packed, lpgemm_quantize_method_t method,
                              const void *w, lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob, lpg_content *content);
  lpgemm_status_t (*unpack)(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                            lpgemm_dtype_t out_type, void *out, int64_t ldo);
  lpgemm_status_t (*unpack_part)(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                                 lpg_section_id id, void *out);
  lpgemm_status_t (*quantize_activations)(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x,
                                          lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type, void *out,
                                          int64_t ldo, float *scale, lpgemm_x_scale_t mode);
  /* Brings the columns of m rows of X into an order, which is memory of the backend's kind: out[i][j] = x[i][order[j]]
   * for the desc.k columns of the weights and an X of x_k, rows of out ldo apart. Elements of 1, 2 or 4 bytes. */
  lpgemm_status_t (*gather)(lpgemm_handle_t handle, const lpg_packed *packed, int64_t m, const void *x,
                            lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out, int64_t ldo);
  /* Copies X of a call to rows of desc.k columns without gaps. NULL: no kernel is the faster for it. */
  lpgemm_status_t (*align)(lpgemm_handle_t handle, const lpg_call *call, void *copy);
  /* Mixtures of experts, in stream order: src/experts/routing.h says what each must do. A product with a stack is not
   * among them: a kernel whose record has LPG_K_GROUPED is launched with lpg_call.offsets. by_expert: the host can read
   * those, and each expert's rows are a run of their own. */
  lpgemm_status_t (*route)(lpgemm_handle_t handle, const lpg_route *route);
  lpgemm_status_t (*gather_rows)(lpgemm_handle_t handle, const lpg_gather *gather);
  lpgemm_status_t (*combine)(lpgemm_handle_t handle, const lpg_combine *combine);
  int by_expert;
} lpg_backend;

extern const lpg_backend lpgemm_i_cpu_backend;
extern const lpg_backend lpgemm_i_cuda_backend; /* in builds with LPG_HAVE_CUDA */

/* The table of CPU or CUDA, NULL if this build does not contain it. */
const lpg_backend *lpgemm_i_backend(lpgemm_backend_t backend);

/* ---- the objects behind the public handles ---- */

enum { LPG_HANDLE_SCRATCH = 8192, LPG_ORDERED_BYTES = 2 << 20 };

struct lpgemm_handle {
  lpg_device device;
  const lpg_backend *backend;
  lpgemm_dtype_t default_type;
  lpgemm_stream_t stream;
  void *workspace;
  size_t workspace_bytes;
  lpgemm_pointer_mode_t pointer_mode;
  void *scratch;   /* CUDA backend: LPG_HANDLE_SCRATCH bytes of device memory for packing to report in */
  lpg_pool *pool;  /* CPU backend */
  void *ordered_x; /* CPU backend: LPG_ORDERED_BYTES for rows of X in the order of columns, where the workspace has no
                      room for them; not touched, so no memory of the machine's, before the first such run */
  lpg_tuning *tuning;
  const char *forced_kernel;  /* LPGEMM_KERNEL; NULL: none */
  int is_prepared;            /* backend->prepare() was called */
  uint8_t loaded[LPG_LOADED]; /* 1: a kernel of the registry that was loaded for this handle; loading takes long */
  lpg_remembered remembered[LPG_REMEMBERED];
};

struct lpgemm_weights {
  uint64_t desc_hash; /* of packed.desc */
  lpg_packed packed;
  lpg_content content;
  lpgemm_backend_t backend;
  int32_t device;
  uint8_t *memory;           /* the blob, in memory of the backend's kind */
  void *allocation;          /* what to free, NULL if the memory is the caller's */
  int in_storage;            /* 1: this object too is memory of the caller's */
  struct lpg_pieces *pieces; /* which rows are packed; NULL: all, and the blob is finished */
};

/* ---- making weights: open, fill the memory, then publish or release ---- */

lpgemm_status_t lpgemm_i_open_weights(lpgemm_handle_t handle, const lpg_packed *packed, void *memory,
                                      lpgemm_weights_t *out);
void lpgemm_i_release_weights(lpgemm_weights_t weights);
/* Publishes weights whose filling ended with `status`, or releases them. */
lpgemm_status_t lpgemm_i_close_weights(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_status_t status,
                                       lpgemm_weights_t *out);

/* What lpgemm_pack_rows() consists of, for rows that come from elsewhere: that the rows may be packed, and are not yet;
 * the order, which is put in place with the first rows and compared with the others'; and, when the rows are in the
 * blob, that they are. One thread at a time, while any number of them packs. */
lpgemm_status_t lpgemm_i_check_rows(lpgemm_weights_t weights, int64_t expert, int64_t first_row, int64_t rows);
lpgemm_status_t lpgemm_i_take_order(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert,
                                    const int32_t *order);
void lpgemm_i_add_rows(lpgemm_weights_t weights, int64_t expert, int64_t first_row, int64_t rows,
                       const lpg_content *content);

/* The global scale of an expert that has rows from elsewhere: with the first of them it is any, then it is that. */
lpgemm_status_t lpgemm_i_take_scale(lpgemm_weights_t weights, int64_t expert, float global_scale);

/* Packs rows of a piece, rows from .. from + rows - 1 of it, into rows first_row and following of a blob. */
typedef lpgemm_status_t lpg_pack_fn(lpgemm_handle_t handle, const lpg_packed *packed, int64_t first_row, uint8_t *blob,
                                    int64_t from, int64_t rows, lpg_content *content, void *context);

/* Has a piece packed into an expert: at once, or, where rows are pairs, in bands of which each becomes a part of one of
 * the halves. */
lpgemm_status_t lpgemm_i_pack_piece(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                    int64_t rows, lpg_pack_fn *pack, void *context, lpg_content *content);

/* Where an expert's blob begins. */
static inline uint8_t *lpg_blob_of_expert(lpgemm_weights_t weights, int64_t expert) {
  return weights->memory + (uint64_t)expert * weights->packed.total_bytes;
}

/* Alignment of a blob in memory of the caller's: of vectors on the CPU, of what cudaMalloc() gives and TMA wants on a
 * GPU. */
static inline uintptr_t lpg_blob_align(const lpg_device *device) {
  return device->backend == LPGEMM_BACKEND_CPU ? 64 : 256;
}

/* Chooses a kernel for weights and a problem with them, or finds what was chosen before. */
lpgemm_status_t lpgemm_i_remember(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                  lpg_remembered **found);

/* Kernel and plan for a run: what was chosen before for this problem and this forced name (NULL or "": none), or chosen
 * anew, as always where choices are logged. own: room for a plan. */
lpgemm_status_t lpgemm_i_choose_for_run(lpgemm_handle_t handle, lpgemm_weights_t weights, const lpg_problem *problem,
                                        const char *forced, lpg_planned *own, const struct lpg_kernel **kernel,
                                        const lpg_planned **planned);

/* The handle's device, made current for work on it and given back after it. */
lpgemm_status_t lpgemm_i_enter(lpgemm_handle_t handle, int32_t *before);
void lpgemm_i_leave(lpgemm_handle_t handle, int32_t before);

/* ---- live objects: a handle that was destroyed, or never was one, is recognised without touching it ---- */

/* PIECES: weights that are not finished. CONTAINER: one that is written. */
typedef enum lpg_object {
  LPG_OBJECT_HANDLE = 1,
  LPG_OBJECT_WEIGHTS = 2,
  LPG_OBJECT_PIECES = 3,
  LPG_OBJECT_FILE = 4,
  LPG_OBJECT_CONTAINER = 5
} lpg_object;

lpgemm_status_t lpgemm_i_live_add(const void *object, lpg_object kind);
/* 1 if the object was live: of two racing destroyers one wins. What it held may be freed then, but the object itself
 * goes to lpgemm_i_retire(), so that its address does not come back at once as another's. */
int lpgemm_i_live_remove(const void *object, lpg_object kind);
int lpgemm_i_is_live(const void *object, lpg_object kind);

/* Frees `object` (from malloc) after some more have been retired. */
void lpgemm_i_retire(void *object);

/* Status INVALID_HANDLE with a sentence unless the object is live. */
lpgemm_status_t lpgemm_i_check_handle(lpgemm_handle_t handle);
lpgemm_status_t lpgemm_i_check_weights(lpgemm_weights_t weights);

/* The same for weights that are being packed, on the handle's device. */
lpgemm_status_t lpgemm_i_check_pieces(lpgemm_handle_t handle, lpgemm_weights_t weights);

/* Live objects that are on the same device; and both. */
lpgemm_status_t lpgemm_i_check_device(lpgemm_handle_t handle, lpgemm_weights_t weights);
lpgemm_status_t lpgemm_i_check_pair(lpgemm_handle_t handle, lpgemm_weights_t weights);

/* Bits of one number of a tensor of a file; 0 for block types of GGUF and for a number that is no type. No call takes
 * a type for which lpgemm_dtype_bits() says 0. */
int lpgemm_i_stored_bits(lpgemm_dtype_t type);

/* ---- arguments ---- */

/* Copies a caller's struct, which starts with its size: refuses a size below `least`, what it had in 0.1.0, and a
 * non-zero tail beyond what the library knows. Fields that the caller's struct does not have read as zero. */
lpgemm_status_t lpgemm_i_copy_struct(void *to, size_t known, size_t least, const void *from, const char *name);

/* What the structs had in 0.1.0. */
#define LPG_LEAST_CONFIG offsetof(lpgemm_config_t, parallel_for)
#define LPG_LEAST_RUN_ARGS offsetof(lpgemm_run_args_t, n_begin)

/* Refuses a reserved field that is not zero. */
lpgemm_status_t lpgemm_i_check_reserved(const uint32_t *reserved, int count, const char *name);

/* The most elements of a matrix with its gaps: so many of any type can be addressed. */
#define LPG_MOST_ELEMENTS (INT64_C(1) << 58)

/* Refuses a leading dimension below the columns (their name is `what`), or one that so many rows cannot have. */
lpgemm_status_t lpgemm_i_check_ld(const char *name, int64_t ld, const char *what, int64_t columns, int64_t rows);

/* Refuses a number of rows that is negative or more than there may be. */
lpgemm_status_t lpgemm_i_check_m_max(int64_t m_max);

/* Copies and checks a description and makes its plan. */
lpgemm_status_t lpgemm_i_read_desc(const lpgemm_weight_desc_t *desc, lpg_packed *packed);

/* ---- running ---- */

/* alpha and beta as a call brings them: NULL is the default. */
typedef struct lpg_scalars {
  const void *alpha, *beta;
  lpgemm_dtype_t type; /* F32, F16 or I32 */
} lpg_scalars;

/* Checks types, options and sizes of a run, no pointers, and describes it. */
lpgemm_status_t lpgemm_i_describe(lpgemm_handle_t handle, const lpgemm_run_args_t *args, lpg_problem *problem);

/* lpgemm_supports() for a handle that need not be live, nor have memory, threads or tuning. */
lpgemm_status_t lpgemm_i_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                  lpgemm_dtype_t y_type, int64_t m);

/* A slice of rows of W, args.n_begin .. n_end (src/slice.c): checks it, with both 0 resolved to all, and makes a
 * checked and filled call of all rows one of these. `part` describes their weights while the call runs. */
lpgemm_status_t lpgemm_i_check_slice(lpgemm_handle_t handle, const lpg_packed *packed, lpgemm_run_args_t *args);
void lpgemm_i_slice(lpg_call *call, int64_t begin, int64_t end, lpg_packed *part);

/* LPGEMM_LOG=profile: what a call takes, with the waits that this needs; otherwise these do nothing. */
lpgemm_status_t lpgemm_i_profile_start(lpgemm_handle_t handle, double *start);
lpgemm_status_t lpgemm_i_profile_end(lpgemm_handle_t handle, const lpg_problem *problem, const char *kernel,
                                     double start);

/* lpgemm_run() with scalars of any type; with check_only, all the checks and the choice but no work. */
lpgemm_status_t lpgemm_i_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args, const lpg_scalars *scalars,
                             int check_only);

#ifdef __cplusplus
}
#endif

#endif
