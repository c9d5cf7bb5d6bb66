/* lpgemm: mixed-precision matrix multiplication for inference engines.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * This header is the manual: read it from top to bottom. The files that it names are in the source tree.
 *
 * INTRODUCTION
 *
 * A layer of a language model multiplies activations by weights that never change:
 *
 *     Y[M,N] = activation(alpha * X[M,K] . W[N,K]^T + beta * C[M,N] + bias[N])
 *
 * X, C and Y are row-major with a leading dimension in elements. W is stored in 1 to 8 bits a weight, is packed
 * once by lpgemm_pack_weights() and is then multiplied as often as you like by lpgemm_run(). In cuBLAS's words
 * this is OP_T, OP_N with m = N, n = M, k = K: the memory of X, C and Y is the same.
 *
 * The shortest use, without any error handling:
 *
 *     lpgemm_handle_t handle;
 *     lpgemm_create(&handle, NULL);
 *     lpgemm_weight_desc_t desc = {.size = sizeof desc};
 *     desc.n = n; desc.k = k;
 *     desc.type = LPGEMM_UINT(4); desc.group_k = 128; desc.scale_type = LPGEMM_F16;
 *     desc.zero = LPGEMM_ZERO_CONSTANT; desc.zero_constant = 8;
 *     lpgemm_weight_source_t source = {.size = sizeof source};
 *     source.codes = codes;   source.codes_bytes = n * k;                one code a byte
 *     source.scales = scales; source.scales_bytes = n * (k / 128) * 2;   fp16, [n][k / 128]
 *     lpgemm_weights_t weights;
 *     lpgemm_pack_weights(handle, &desc, &source, NULL, 0, &weights);
 *     lpgemm_matmul(handle, weights, m, x, 0, y, 0);                     for every token
 *     lpgemm_weights_destroy(weights);
 *     lpgemm_destroy(handle);
 *
 * On a GPU give the handle a workspace before the first run, one for all layers, of the most bytes that any of them
 * asks for. Without it many rows take kernels that need none, which can be several times as slow:
 *
 *     size_t bytes;
 *     lpgemm_workspace_size(handle, weights, most_rows, NULL, &bytes);   64 MiB and copies of X at most
 *     lpgemm_set_workspace(handle, memory, bytes);                       memory from cudaMalloc()
 *
 * CONVENTIONS
 *
 * - Every function that can fail returns lpgemm_status_t; 0 is success. After a failure lpgemm_last_error() is one
 *   sentence that names the argument, its value and what would be right. After a failed check of arguments not one
 *   byte has been written to your memory, except where lpgemm_pack_weights() says so.
 * - Every struct starts with its size: `lpgemm_config_t c = {.size = sizeof c};` sets it and zeroes the rest (C++11:
 *   `lpgemm_config_t c{}; c.size = sizeof c;`), and zero means "the default" everywhere. A struct that is larger than
 *   the library knows is accepted while its unknown tail is zero. Reserved fields must be zero.
 * - Sizes and leading dimensions are int64_t and count elements. M, N and K may be 0. No size needs to be a
 *   multiple of anything, and a pointer needs only the alignment of its element type.
 * - The library never aborts, throws, or prints (unless LPGEMM_LOG or lpgemm_set_log() asks for it).
 *
 * THREADS, STREAMS, MEMORY
 *
 * A handle belongs to one thread at a time. Weights are immutable and may be shared by all handles, threads and
 * streams of the same backend and device. lpgemm_run() and the calls built on it work in stream order, allocate
 * nothing, synchronise nothing and may be captured into a CUDA graph; on the CPU backend they return when done.
 * After fork() the child may destroy handles that it had before, and must make its own to work with.
 *
 * ENVIRONMENT (read when a handle is made, and LPGEMM_CPU by calls without one, too)
 *
 *     LPGEMM_BACKEND=auto|cpu|cuda   overrides config.backend when that is LPGEMM_BACKEND_AUTO
 *     LPGEMM_KERNEL=name             forces one kernel wherever the call does not name one itself
 *     LPGEMM_CPU=word                uses no instruction set of the CPU beyond this one: base, avx2, avxvnni, avx512,
 *                                    vbmi, amx; on ARM base, neon, dotprod
 *     LPGEMM_TUNING_FILE=path        loads this tuning file into every new handle
 *     LPGEMM_LOG=off|error|dispatch|profile   prints to stderr, or where lpgemm_set_log() says. error: failures.
 *                                    dispatch: these, and every choice of a kernel, with the faster one that a larger
 *                                    workspace would allow. profile: failures, and a line of CSV a run, with kernel
 *                                    and microseconds: it waits for the device (of a captured stream no time)
 */
#ifndef LPGEMM_H
#define LPGEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------------
 * Version
 * ---------------------------------------------------------------------------------------------------------- */

#define LPGEMM_VERSION_MAJOR 0
#define LPGEMM_VERSION_MINOR 1
#define LPGEMM_VERSION_PATCH 0
#define LPGEMM_VERSION (LPGEMM_VERSION_MAJOR * 10000 + LPGEMM_VERSION_MINOR * 100 + LPGEMM_VERSION_PATCH)

/* The version of the library that is linked, to compare with LPGEMM_VERSION of the header. */
int lpgemm_version(void);

/* One line: version, backends, GPU architectures and CPU instruction sets that this build contains. */
const char *lpgemm_build_info(void);

/* ------------------------------------------------------------------------------------------------------------
 * Status
 * ---------------------------------------------------------------------------------------------------------- */

/* Values are stable. The tens say whose fault it is. */
typedef enum lpgemm_status {
  LPGEMM_SUCCESS = 0,

  LPGEMM_INVALID_ARGUMENT = 10, /* a value outside its domain */
  LPGEMM_NULL_POINTER = 11,     /* a pointer that is needed is NULL */
  LPGEMM_INVALID_TYPE = 12,     /* not a number format, or not one that fits here */
  LPGEMM_INVALID_HANDLE = 13,   /* not a live handle or not live weights */
  LPGEMM_INVALID_STRUCT = 14,   /* wrong size field, or a reserved field that is not zero */
  LPGEMM_INVALID_CODE = 15,     /* a weight code or zero code that its type cannot hold */

  LPGEMM_NOT_SUPPORTED = 20, /* legal, but no kernel of this build does it */
  LPGEMM_NO_BACKEND = 21,    /* the backend is not in this build, or this machine has no such device */
  LPGEMM_WRONG_DEVICE = 22,  /* weights and handle live on different backends or devices */

  LPGEMM_INVALID_SIZE = 30,        /* a negative size, or a leading dimension that is too small */
  LPGEMM_SIZE_OVERFLOW = 31,       /* sizes whose product cannot be addressed, or a sum that int32 cannot hold */
  LPGEMM_MISALIGNED = 32,          /* a pointer without the alignment that is needed */
  LPGEMM_BUFFER_TOO_SMALL = 33,    /* a buffer with fewer bytes than needed */
  LPGEMM_WORKSPACE_TOO_SMALL = 34, /* see lpgemm_workspace_size() */

  LPGEMM_CUDA_ERROR = 40, /* the CUDA runtime failed; the sentence holds its words */

  LPGEMM_CORRUPT_DATA = 50,     /* bytes that are not a packed matrix, or are damaged */
  LPGEMM_VERSION_MISMATCH = 51, /* written by another version of the format or of the library */
  LPGEMM_LAYOUT_MISMATCH = 52,  /* a layout that this build has no kernel for */

  LPGEMM_OUT_OF_MEMORY = 90,
  LPGEMM_IO_ERROR = 91,      /* a file that cannot be opened, read or written */
  LPGEMM_INTERNAL_ERROR = 92 /* a defect of the library: please report it */
} lpgemm_status_t;

/* The name of a status and what it means; never NULL, also for numbers that are no status. */
const char *lpgemm_status_string(lpgemm_status_t status);

/* The sentence about the last failed call of this thread, "" if there was none. Valid until the next failure. */
const char *lpgemm_last_error(void);

/* The log of the whole process: its level, until a handle is made under an LPGEMM_LOG, and a callback that gets lines
 * without their ends; NULL: stderr. Several threads may be in a callback at a time; what it calls of the library logs
 * nothing, and lpgemm_set_log() it may not call. When this returns, no thread is in the callback before. */
typedef enum lpgemm_log_level {
  LPGEMM_LOG_OFF = 0,
  LPGEMM_LOG_ERROR = 1,
  LPGEMM_LOG_DISPATCH = 2,
  LPGEMM_LOG_PROFILE = 3
} lpgemm_log_level_t;
typedef void (*lpgemm_log_t)(void *context, lpgemm_log_level_t level, const char *line);
lpgemm_status_t lpgemm_set_log(lpgemm_log_level_t level, lpgemm_log_t callback, void *context);

/* ------------------------------------------------------------------------------------------------------------
 * Number formats
 * ---------------------------------------------------------------------------------------------------------- */

/* One 32-bit code for every number format, made by the macros below; 0 is "none" or "the default". */
typedef uint32_t lpgemm_dtype_t;

#define LPGEMM_DTYPE_(kind, a, b) ((lpgemm_dtype_t)(((kind) << 16) | ((a) << 8) | (b)))
#define LPGEMM_DTYPE_KIND(type) ((type) >> 16)
enum {
  LPGEMM_KIND_UINT = 1,
  LPGEMM_KIND_INT = 2,
  LPGEMM_KIND_BIPOLAR = 3,
  LPGEMM_KIND_CODEBOOK = 4,
  LPGEMM_KIND_FLOAT = 5,
  LPGEMM_KIND_REAL = 6,
  LPGEMM_KIND_SCALE = 7,
  LPGEMM_KIND_STORED = 8, /* of tensors in files only */
  LPGEMM_KIND_GGML = 9
};

/* Weight types, 1 to 8 bits. A code is the number's bits, right-aligned in a byte, upper bits zero.
 *
 *   LPGEMM_UINT(b)      b = 1..8   0 .. 2^b - 1
 *   LPGEMM_INT(b)       b = 2..8   two's complement
 *   LPGEMM_BIPOLAR(b)   b = 1..8   every bit counts +2^i or -2^i: 2 * code - (2^b - 1), odd numbers only
 *   LPGEMM_CODEBOOK(b)  b = 1..4   desc.codebook[code]
 *   LPGEMM_FLOAT(e, m)  3 <= 1 + e + m <= 8, e >= 1: sign, e exponent bits with bias 2^(e-1) - 1, m mantissa
 *                       bits, subnormals; no infinities and no NaN, except that E4M3 is OCP's (0x7F and 0xFF are
 *                       NaN) and E5M2 is IEEE's (infinities and NaN)
 *
 * Ternary weights are LPGEMM_UINT(2) with a constant zero of 1. */
#define LPGEMM_UINT(bits) LPGEMM_DTYPE_(1, 0, bits)
#define LPGEMM_INT(bits) LPGEMM_DTYPE_(2, 0, bits)
#define LPGEMM_BIPOLAR(bits) LPGEMM_DTYPE_(3, 0, bits)
#define LPGEMM_CODEBOOK(bits) LPGEMM_DTYPE_(4, 0, bits)
#define LPGEMM_FLOAT(exponent, mantissa) LPGEMM_DTYPE_(5, exponent, mantissa)

/* Types of activations, outputs, scales and zeros. E8M0 is a power of two, 2^(code - 127); its code 255 is NaN. */
#define LPGEMM_F16 LPGEMM_DTYPE_(6, 5, 10)
#define LPGEMM_BF16 LPGEMM_DTYPE_(6, 8, 7)
#define LPGEMM_F32 LPGEMM_DTYPE_(6, 8, 23)
#define LPGEMM_E8M0 LPGEMM_DTYPE_(7, 8, 0)
#define LPGEMM_E4M3 LPGEMM_FLOAT(4, 3)
#define LPGEMM_E5M2 LPGEMM_FLOAT(5, 2)
#define LPGEMM_I8 LPGEMM_INT(8)
#define LPGEMM_I32 LPGEMM_INT(32)
#define LPGEMM_U8 LPGEMM_UINT(8)
#define LPGEMM_U16 LPGEMM_UINT(16)

/* Types that only tensors of files have. GGML: a block type of GGUF by its number; GGUF's plain types are F32, F16, ...
 * BLOB: a packed matrix in a container of lpgemm-convert. */
#define LPGEMM_I16 LPGEMM_INT(16)
#define LPGEMM_I64 LPGEMM_INT(64)
#define LPGEMM_U32 LPGEMM_UINT(32)
#define LPGEMM_U64 LPGEMM_UINT(64)
#define LPGEMM_F64 LPGEMM_DTYPE_(6, 11, 52)
#define LPGEMM_BOOL LPGEMM_DTYPE_(8, 0, 8)
#define LPGEMM_C64 LPGEMM_DTYPE_(8, 0, 64)
#define LPGEMM_BLOB LPGEMM_DTYPE_(8, 1, 8)
#define LPGEMM_E4M3FNUZ LPGEMM_DTYPE_(8, 2, 8)
#define LPGEMM_E5M2FNUZ LPGEMM_DTYPE_(8, 3, 8)
#define LPGEMM_GGML(number) LPGEMM_DTYPE_(9, 0, number)

/* "u4", "i8", "b2", "c4", "e3m2", "f16", "bf16", "f32", "e8m0", "i32", "u16" -> the code; also "fp16", "fp32", "half",
 * "float", "int8" and "uint4" style names. Anything else: LPGEMM_INVALID_TYPE, *type untouched. */
lpgemm_status_t lpgemm_dtype_parse(const char *text, lpgemm_dtype_t *type);

/* The name that lpgemm_dtype_parse() reads, "none" for 0, "invalid" for a number that is no type; for types that only
 * tensors of files have a name for messages ("i64", "blob", "ggml:q4_k"), which it does not read. Never NULL. */
const char *lpgemm_dtype_name(lpgemm_dtype_t type);

/* Bits of one number of this type; 0 for none, for types that only tensors have, and for a number that is no type. */
int lpgemm_dtype_bits(lpgemm_dtype_t type);

/* Fills the table of a known codebook: "nf4" (bitsandbytes NormalFloat4), "fp4" (bitsandbytes FP4), "iq4_nl"
 * (llama.cpp). All have 16 entries. */
lpgemm_status_t lpgemm_codebook_preset(const char *name, float table[16]);

/* ------------------------------------------------------------------------------------------------------------
 * Handle
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct lpgemm_handle *lpgemm_handle_t;

/* A cudaStream_t; it converts without a cast. NULL is the default stream. The CPU backend ignores it. */
typedef void *lpgemm_stream_t;

typedef enum lpgemm_backend {
  LPGEMM_BACKEND_AUTO = 0, /* CUDA if the build has it and the machine has a GPU for it, else the CPU */
  LPGEMM_BACKEND_CPU = 1,
  LPGEMM_BACKEND_CUDA = 2
} lpgemm_backend_t;

/* Threads of the caller's: runs task(work, i) for every i from 0 to count - 1, each once, in any order, on any threads
 * and as many at a time as it likes, and returns when all are done. context: config.parallel_context. */
typedef void (*lpgemm_task_t)(void *work, int64_t i);
typedef void (*lpgemm_parallel_for_t)(void *context, lpgemm_task_t task, void *work, int64_t count);

typedef struct lpgemm_config {
  size_t size;
  lpgemm_backend_t backend;
  int32_t device;              /* CUDA device number */
  int32_t num_threads;         /* CPU backend: threads of this handle; 0 = one a core */
  lpgemm_dtype_t default_type; /* x_type and y_type where a call leaves them 0; default LPGEMM_F16 */
  uint32_t reserved[3];
  /* appended since 0.1.0: a struct that ends here is accepted */
  lpgemm_parallel_for_t parallel_for; /* CPU backend: the handle starts no threads and works on the caller's, cut into
                                         at most num_threads tasks; NULL = threads of its own. A parallel_for that
                                         leaves out tasks, or does not wait, fails the call: INVALID_ARGUMENT. While it
                                         waits it may run other work, but none with this handle */
  void *parallel_context;
} lpgemm_config_t;

/* Makes a handle; config may be NULL. LPGEMM_NO_BACKEND if the backend that is asked for is not there. */
lpgemm_status_t lpgemm_create(lpgemm_handle_t *handle, const lpgemm_config_t *config);

/* Frees a handle (NULL is allowed). Weights outlive it. */
lpgemm_status_t lpgemm_destroy(lpgemm_handle_t handle);

/* 1 if a handle of this backend can be made on this machine, else 0. Never fails. */
int lpgemm_backend_available(lpgemm_backend_t backend);

/* The backend that a handle uses: LPGEMM_BACKEND_CPU or LPGEMM_BACKEND_CUDA; AUTO if the handle is invalid. */
lpgemm_backend_t lpgemm_get_backend(lpgemm_handle_t handle);

/* Its device, in the words of tuning files: "NVIDIA H200"; "" if the handle is invalid. Valid as long as the handle. */
const char *lpgemm_device_name(lpgemm_handle_t handle);

/* Later calls work on this stream. The workspace stays bound. */
lpgemm_status_t lpgemm_set_stream(lpgemm_handle_t handle, lpgemm_stream_t stream);

/* CPU backend: later calls use so many threads (0 = one a core), with results equal to the bit for the same kernel.
 * Each number of threads has its own choices of kernels and tuning; neither is lost. The CUDA backend ignores it. */
lpgemm_status_t lpgemm_set_num_threads(lpgemm_handle_t handle, int32_t num_threads);

/* Binds memory of the backend's kind, 256-byte aligned, until it is replaced; NULL, 0 unbinds. See
 * lpgemm_workspace_size(). Its content is never read before it is written: it needs no clearing. */
lpgemm_status_t lpgemm_set_workspace(lpgemm_handle_t handle, void *workspace, size_t bytes);

typedef enum lpgemm_pointer_mode { LPGEMM_POINTER_HOST = 0, LPGEMM_POINTER_DEVICE = 1 } lpgemm_pointer_mode_t;

/* Where alpha and beta lie in later calls. Device scalars are read when the work runs, host scalars at the call. */
lpgemm_status_t lpgemm_set_pointer_mode(lpgemm_handle_t handle, lpgemm_pointer_mode_t mode);

/* ------------------------------------------------------------------------------------------------------------
 * Weights: what they are
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct lpgemm_weights *lpgemm_weights_t;

typedef enum lpgemm_zero {
  LPGEMM_ZERO_NONE = 0,
  LPGEMM_ZERO_CONSTANT = 1,  /* zero_constant; need not be an integer (1.5 exists) */
  LPGEMM_ZERO_PER_GROUP = 2, /* a zero a group, of zero_type */
  LPGEMM_ZERO_MINIMUM = 3    /* an additive minimum a group, of zero_type */
} lpgemm_zero_t;

/* In which order columns are packed. ORDERED: packed column c is column column_order[c] of the source (GPTQ's
 * act-order: columns of a group become neighbours; groups are of packed columns). A run gathers X by the same order,
 * and lpgemm_unpack_weights() gives the order of the source: the caller never sees it. */
typedef enum lpgemm_columns { LPGEMM_COLUMNS_PLAIN = 0, LPGEMM_COLUMNS_ORDERED = 1 } lpgemm_columns_t;

/* What rows are. PAIRED: n is even, and rows i and n / 2 + i are gate and up of output i: a run has n / 2 outputs,
 *
 *     Y[m, i] = activation(alpha * gate + bias[i]) * (alpha * up + bias[n / 2 + i])
 *
 * without beta and C (lpgemm_gate_t has more). Sources, arrays and lpgemm_unpack_weights() have n rows, gates first. */
typedef enum lpgemm_rows { LPGEMM_ROWS_PLAIN = 0, LPGEMM_ROWS_PAIRED = 1 } lpgemm_rows_t;

/* The value of a weight is exact real arithmetic on what is stored:
 *
 *     w = (value(code) - zero) * scale * global_scale
 *     w = (value(code) * scale + minimum) * global_scale            with LPGEMM_ZERO_MINIMUM
 *
 * Groups: row n, columns k with the same k / group_k share scale and zero. group_k is a multiple of 16, or 0 for the
 * whole row; the last group of a row may be short. groups = group_k ? ceil(k / group_k) : 1.
 *
 * Two levels (llama.cpp's K-quants): with super_scale_type set,
 *
 *     scale = value(scale code)[n, k / group_k] * super_scale[n, k / super_k]
 *     minimum = value(minimum code)[n, k / group_k] * super_zero[n, k / super_k]
 *
 * where super_k is a multiple of group_k, or 0 for the whole row. llama.cpp subtracts its minima: negate dmin. */
typedef struct lpgemm_weight_desc {
  size_t size;
  int64_t n, k;              /* rows (outputs) and columns (inputs) */
  int64_t group_k;           /* multiple of 16; 0 = the whole row */
  int64_t super_k;           /* two levels only: multiple of group_k; 0 = the whole row */
  lpgemm_dtype_t type;       /* one of the weight types */
  lpgemm_dtype_t scale_type; /* F16, BF16, F32, E8M0, E4M3; 0 = no scales; two levels: UINT(4), UINT(6), I8, E4M3 */
  lpgemm_dtype_t super_scale_type; /* F16, BF16, F32; 0 = one level */
  lpgemm_zero_t zero;
  lpgemm_dtype_t zero_type; /* PER_GROUP: U8 or U16 (integers from 0 to 2^bits inclusive), F16, BF16, F32; MINIMUM:
                               F16, BF16, F32, or with super_zero_type UINT(4), UINT(6), I8, E4M3 */
  lpgemm_dtype_t super_zero_type; /* F16, BF16, F32; two-level minima only */
  float zero_constant;
  float global_scale; /* 0 = 1 */
  float codebook[16]; /* LPGEMM_CODEBOOK(b): the first 2^b entries, the others 0; all 0 only in queries */
  int32_t experts; /* 0 and 1: one matrix; up to 4096: a stack of so many matrices, each n x k, for lpgemm_run_grouped()
                      and lpgemm_run_experts(). Its experts may differ in global_scale and in nothing else of this */
  lpgemm_rows_t rows; /* PAIRED: n / 2 is a multiple of group_n */
  lpgemm_columns_t columns;
  lpgemm_dtype_t row_scales; /* F32: a factor a row, times all that is above; 0 = none */
  /* appended since 0.1.0: a struct that ends here is accepted */
  int64_t group_n; /* rows that share scales, zeros and minima: 0 = 1, or a multiple of 16 (FP8 blocks: 128); the last
                      of them may be fewer. Arrays of these have ceil(n / group_n) rows then */
  int64_t x_k;     /* ORDERED: columns of X and of the source, of which column_order names k: a rank's part of a matrix
                      that is cut by columns; 0 = k */
} lpgemm_weight_desc_t;

typedef enum lpgemm_code_layout {
  LPGEMM_CODES_BYTES = 0, /* one code a byte: code (n, k) is byte n * codes_ld + k */
  LPGEMM_CODES_BITS = 1   /* a dense bit stream: code (n, k) starts at bit (n * codes_ld + k) * bits, low bit first */
} lpgemm_code_layout_t;

typedef enum lpgemm_order {
  LPGEMM_ROW_MAJOR = 0,   /* [n][group], as in most checkpoints */
  LPGEMM_COLUMN_MAJOR = 1 /* [group][n], as in GPTQ and AWQ */
} lpgemm_order_t;

/* Where the parts of a weight matrix lie before packing. Every pointer comes with its byte count; the library reads no
 * byte beyond it. Host or device memory on the CUDA backend (beside arrays on the device those on the host are copied
 * there), host memory on the CPU backend. Scales and zeros of UINT(4) and UINT(6) come in bytes. */
typedef struct lpgemm_weight_source {
  size_t size;
  lpgemm_code_layout_t code_layout;
  lpgemm_order_t order; /* of all the arrays below but codes */
  const void *codes;
  size_t codes_bytes;
  int64_t codes_ld; /* codes from one row to the next; 0 = k (x_k, if the description has it) */
  const void *scales;
  size_t scales_bytes;
  const void *zeros; /* zeros or minima */
  size_t zeros_bytes;
  const void *super_scales;
  size_t super_scales_bytes;
  const void *super_zeros;
  size_t super_zeros_bytes;
  uint32_t reserved[4];
  /* appended since 0.1.0: a struct that ends here is accepted */
  const int32_t *column_order; /* ORDERED: [k], host memory: packed column c is the source's column column_order[c] */
  size_t column_order_bytes;
  const int32_t *row_order; /* [rows], host memory: packed row i is row row_order[i] of all arrays of the source, which
                               may have more rows (COLUMN_MAJOR then needs the leading dimensions below); NULL = i.
                               Rows that share scales must have shared them in the source */
  size_t row_order_bytes;
  const void *row_scales; /* F32 [n] */
  size_t row_scales_bytes;
  int64_t scales_ld, super_ld; /* numbers from one row (COLUMN_MAJOR: group) to the next, of scales and zeros, and of
                                  super scales and super zeros; 0 = dense */
} lpgemm_weight_source_t;

/* ------------------------------------------------------------------------------------------------------------
 * Weights: packing
 * ---------------------------------------------------------------------------------------------------------- */

/* Bytes of the packed matrix, or stack: about n * k * bits / 8 plus scales and zeros, one size for every backend. */
lpgemm_status_t lpgemm_packed_size(const lpgemm_weight_desc_t *desc, size_t *bytes);

/* Packs a matrix. The packed form serves every kernel and every M; its bytes do not depend on the backend.
 * memory: NULL lets the library allocate; otherwise memory of the backend's kind, 64-byte aligned (CUDA: 256), with at
 * least lpgemm_packed_size() bytes that outlives the weights and does not change. The source may be freed afterwards.
 * On the CUDA backend packing runs on the GPU with at most 64 MiB of scratch. A code that is too wide for its type
 * is refused with LPGEMM_INVALID_CODE; the content of memory is unspecified after that. */
lpgemm_status_t lpgemm_pack_weights(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc,
                                    const lpgemm_weight_source_t *source, void *memory, size_t memory_bytes,
                                    lpgemm_weights_t *weights);

/* Packing in pieces, for matrices whose codes should not all be in memory at once, for joined ones (q, k and v; gate
 * and up), and for stacks. lpgemm_weights_create() takes memory as lpgemm_pack_weights() does; then lpgemm_pack_rows()
 * packs rows first_row .. first_row + rows - 1 of an expert (0 for one matrix) from a source that has just these rows
 * (its column_order, needed with ORDERED, must be the same every time for an expert), in any order, each row once; a
 * piece begins and ends at a multiple of 16 rows (PAIRED: 8, counted in each half), and of group_n, or at the last row
 * (of a half); after a refusal its rows may be packed again. lpgemm_stack_expert() puts a packed matrix (a blob in host
 * memory, checked as by lpgemm_deserialize(); flags: 0 or LPGEMM_LOAD_SKIP_CHECKSUM) in the place of a whole expert.
 * lpgemm_weights_finish() completes headers and hashes, or says which rows are missing. Until then no other call but
 * lpgemm_weights_destroy() takes the weights, and one thread at a time. */
lpgemm_status_t lpgemm_weights_create(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, void *memory,
                                      size_t memory_bytes, lpgemm_weights_t *weights);
lpgemm_status_t lpgemm_pack_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                 int64_t rows, const lpgemm_weight_source_t *source);
lpgemm_status_t lpgemm_stack_expert(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, const void *bytes,
                                    size_t size, uint32_t flags);
lpgemm_status_t lpgemm_weights_finish(lpgemm_handle_t handle, lpgemm_weights_t weights);

/* The order for GPTQ's g_idx: group_of[c] is the group of column c. Columns of a group become neighbours and keep their
 * order. INVALID_ARGUMENT unless every group but the last has group_k columns. Pure, host memory. */
lpgemm_status_t lpgemm_column_order(const int32_t *group_of, int64_t k, int64_t group_k, int32_t *order);

typedef enum lpgemm_quantize_method {
  LPGEMM_QUANTIZE_ABSMAX = 0, /* the largest magnitude of a group becomes the largest code */
  LPGEMM_QUANTIZE_MINMAX = 1, /* smallest and largest value become smallest and largest code; needs zeros or minima */
  LPGEMM_QUANTIZE_MSE = 2     /* the clip of either that minimises the squared error */
} lpgemm_quantize_method_t;

/* Quantises finite real weights w[n][ldw] (F32, F16 or BF16; ldw = 0 means k) to the types of desc and packs them, as
 * lpgemm_pack_weights(). UINT without a zero or minima makes negative weights 0. desc.global_scale is used as given;
 * experts, rows, columns, row_scales and group_n must be 0. */
lpgemm_status_t lpgemm_quantize_weights(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc,
                                        lpgemm_quantize_method_t method, const void *w, lpgemm_dtype_t w_type,
                                        int64_t ldw, void *memory, size_t memory_bytes, lpgemm_weights_t *weights);

/* Frees weights (NULL is allowed), and their memory if the library allocated it. No work on them may be pending. */
lpgemm_status_t lpgemm_weights_destroy(lpgemm_weights_t weights);

typedef struct lpgemm_weights_info {
  size_t size;
  lpgemm_weight_desc_t desc;
  lpgemm_backend_t backend;
  int32_t device;
  uint32_t layout_id; /* src/layouts/FORMAT.md */
  const void *memory; /* the packed matrix, in memory of the backend's kind */
  size_t packed_bytes;
  uint64_t payload_hash; /* equal for equal content, on every machine */
} lpgemm_weights_info_t;

/* Describes weights. Set info->size first; with that of 0.1.0, whose desc was shorter, its struct is filled. */
lpgemm_status_t lpgemm_weights_info(lpgemm_weights_t weights, lpgemm_weights_info_t *info);

/* Unpacks to out[n][ldo] (a stack: [experts][n][ldo]): out_type U8 gives the codes as they came in, one a byte; F32,
 * F16 and BF16 give the exact value of each weight, rounded once. ORDERED columns come in the order of the source (x_k
 * of them, 0 where the matrix has none). ldo = 0 means k or x_k. Host or device memory on the CUDA backend. */
lpgemm_status_t lpgemm_unpack_weights(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_dtype_t out_type,
                                      void *out, int64_t ldo);

typedef enum lpgemm_part {
  LPGEMM_PART_SCALES = 1,
  LPGEMM_PART_ZEROS = 2,
  LPGEMM_PART_SUPER_SCALES = 3,
  LPGEMM_PART_SUPER_ZEROS = 4,
  LPGEMM_PART_ROW_SCALES = 5,  /* F32 [n] */
  LPGEMM_PART_COLUMN_ORDER = 6 /* int32_t [k] */
} lpgemm_part_t;

/* Gives back such an array exactly as it was packed, row-major and dense, in host memory; of a stack those of all
 * experts, one after the other. */
lpgemm_status_t lpgemm_unpack_part(lpgemm_handle_t handle, lpgemm_weights_t weights, lpgemm_part_t part, void *out,
                                   size_t out_bytes);

/* Slices over ranks (tensor parallelism). ROWS: each rank has some outputs (column-parallel); COLUMNS: each rank has
 * some inputs, and its Y is a part of a sum (row-parallel). */
typedef enum lpgemm_shard_by { LPGEMM_SHARD_ROWS = 0, LPGEMM_SHARD_COLUMNS = 1 } lpgemm_shard_by_t;
typedef struct lpgemm_shard {
  size_t size;
  lpgemm_shard_by_t by;
  int32_t rank, ranks;
  int64_t unit; /* rows or columns that stay together; 0 = 1. Groups always stay together */
  uint32_t reserved[4];
} lpgemm_shard_t;

/* The rank's part: its description, and its first row or column. Units are dealt out evenly, the first ranks have one
 * more; an empty part has n or k = 0. Pure. ORDERED weights are cut by columns in packed order; each part then reads
 * the whole of X, of which its order names its columns (desc.x_k). */
lpgemm_status_t lpgemm_shard_desc(const lpgemm_weight_desc_t *desc, const lpgemm_shard_t *shard,
                                  lpgemm_weight_desc_t *part, int64_t *first);

/* The rank's part of a source of the whole matrix, as pointers and leading dimensions for lpgemm_pack_weights(). Pure:
 * copies nothing. NOT_SUPPORTED where the part begins inside a byte of a bit stream. */
lpgemm_status_t lpgemm_shard_source(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source,
                                    const lpgemm_shard_t *shard, lpgemm_weight_source_t *part);

/* ------------------------------------------------------------------------------------------------------------
 * Weights: from a checkpoint
 * ---------------------------------------------------------------------------------------------------------- */

/* How a checkpoint arranges a matrix. docs/formats.md is the specification of each. */
typedef enum lpgemm_format {
  LPGEMM_FORMAT_GPTQ = 1,    /* qweight, qzeros, scales, g_idx; zeros stored less one (checkpoint_format "gptq") */
  LPGEMM_FORMAT_GPTQ_V2 = 2, /* the same, zeros as they are */
  LPGEMM_FORMAT_AWQ = 3,     /* version "gemm" */
  LPGEMM_FORMAT_AWQ_GEMV = 4,
  LPGEMM_FORMAT_AWQ_GEMV_FAST = 5,
  LPGEMM_FORMAT_PACK_QUANTIZED = 6, /* compressed-tensors: weight_packed, weight_scale, weight_shape, ... */
  LPGEMM_FORMAT_INT8_FP8 = 7, /* weight as I8 or E4M3, weight_scale or weight_scale_inv: a number, one a row, blocks */
  LPGEMM_FORMAT_NVFP4 = 8, /* weight_global_scale divides (compressed-tensors), weight_scale_2 multiplies (ModelOpt) */
  LPGEMM_FORMAT_MXFP = 9,  /* MXFP4, 6 and 8 of compressed-tensors; gpt-oss's blocks and scales */
  LPGEMM_FORMAT_BITSANDBYTES = 10, /* NF4 and FP4, nested too */
  LPGEMM_FORMAT_HQQ = 11,
  LPGEMM_FORMAT_BITNET = 12,     /* weight_scale divides (linear_class "bitlinear"); without one, 1 */
  LPGEMM_FORMAT_GGUF = 13,       /* one tensor, named "weight", of type LPGEMM_GGML(number); "scale" beside NVFP4 */
  LPGEMM_FORMAT_BITNET_AUTO = 14 /* weight_scale multiplies (linear_class "autobitlinear") */
} lpgemm_format_t;

/* A tensor as it lies in the file, in host or device memory. */
typedef struct lpgemm_tensor {
  const char *name;    /* what follows the layer's name: "qweight", "weight_scale", "g_idx" */
  lpgemm_dtype_t type; /* as stored; sub-byte types (FLOAT(2, 1)) count numbers, not bytes, in shape */
  int32_t dims;        /* 0 to 4 */
  int64_t shape[4];    /* in the file's order; GGUF: as other formats have it, rows first */
  const void *data;
  size_t bytes; /* must be what type and shape say */
} lpgemm_tensor_t;

/* One matrix of a checkpoint. */
typedef struct lpgemm_import {
  size_t size;
  lpgemm_format_t format;
  const lpgemm_tensor_t *tensors;
  size_t count;
  int32_t bits;    /* what the tensors cannot say; 0 = they do */
  int64_t group_k; /* 0 = K / groups of the shapes; set it where the last group is short */
  int64_t expert;  /* of a stack of experts [E][...]: which one; 0 for a plain matrix */
  int64_t n0, n1;  /* rows to take; n1 = 0: all */
  int64_t k0, k1;  /* columns to take, of the packed order; k1 = 0: all */
  uint32_t reserved[4];
} lpgemm_import_t;

/* What the parts, stacked along N, become. Set desc->size first. Pure: reads shapes, and small tensors (settings,
 * shapes, g_idx, global scales), which must lie in host memory. */
lpgemm_status_t lpgemm_import_desc(const lpgemm_import_t *parts, size_t count, lpgemm_weight_desc_t *desc);

/* Packs them: one matrix, or q, k and v, or gate and up, in one call. Parts must have one format, K, group and column
 * order; different global scales become row_scales. Memory as lpgemm_pack_weights(), of lpgemm_packed_size(desc) bytes.
 * Tensors may lie in host memory or, on the CUDA backend, in device memory; scratch of 64 MiB at most. */
lpgemm_status_t lpgemm_import_weights(lpgemm_handle_t handle, const lpgemm_import_t *parts, size_t count, void *memory,
                                      size_t memory_bytes, lpgemm_weights_t *weights);

/* The same for one part into weights of lpgemm_weights_create(), as lpgemm_pack_rows(): rows first_row ... are the
 * part's (n0 .. n1 of it). The description must be what lpgemm_import_desc() says of the part but for n, experts, rows,
 * row_scales and global_scale: an expert without row_scales gets the part's global scale, one for all of its rows. */
lpgemm_status_t lpgemm_import_rows(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t expert, int64_t first_row,
                                   const lpgemm_import_t *part);

/* Writes weights as GGUF blocks of type `ggml` (Q4_0 is 2, Q8_0 is 8, ...): n rows of k / block blocks, where the type
 * holds just these numbers; otherwise NOT_SUPPORTED says why. An import of GGUF blocks comes back byte for byte, but
 * for the sign bit of NVFP4's scales, which means nothing and comes back 0, and for types that are expanded (IQ1 to
 * IQ3, TQ1_0), which are refused. Blocks have no place for global_scale: only NVFP4 takes one, which then belongs into
 * the tensor beside the blocks. out is host memory. */
lpgemm_status_t lpgemm_export(lpgemm_handle_t handle, lpgemm_weights_t weights, int ggml, void *out, size_t out_bytes);
lpgemm_status_t lpgemm_export_size(lpgemm_weights_t weights, int ggml, size_t *bytes);

/* ------------------------------------------------------------------------------------------------------------
 * Checkpoint files
 *
 * safetensors (one file, or a model folder with its index and config.json), GGUF (split files too), and containers of
 * lpgemm-convert, mapped and not copied. Files may come from anywhere: every offset is checked, nothing is believed,
 * and what the library keeps of a file is at most the file's size and 64 MiB. Only a file that another program makes
 * shorter while it is open ends the program, as it does for every mapped file. No GPU and no handle is needed; a file
 * that is open may be used by many threads.
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct lpgemm_file *lpgemm_file_t;

/* path: a .safetensors file (and its config.json), a model folder, a .gguf file (the first, if split), a container. */
lpgemm_status_t lpgemm_file_open(const char *path, lpgemm_file_t *file);

/* The same for one file that is in memory, which outlives `file` and does not change. There is no config then. */
lpgemm_status_t lpgemm_file_parse(const void *bytes, size_t size, lpgemm_file_t *file);
lpgemm_status_t lpgemm_file_close(lpgemm_file_t file); /* NULL is allowed */

/* How many tensors it has, and how many quantised layers, those that are not read among them. A container has none: its
 * matrices are tensors of type BLOB, for lpgemm_deserialize(). Either pointer may be NULL. */
lpgemm_status_t lpgemm_file_counts(lpgemm_file_t file, size_t *tensors, size_t *layers);

/* Tensor i, in the file's order, with its whole name; or the one of this name. Data and names live as long as `file`.
 * Data need not be aligned. Of more than 4 dimensions the first ones have become one. */
lpgemm_status_t lpgemm_file_tensor(lpgemm_file_t file, size_t i, lpgemm_tensor_t *tensor);
lpgemm_status_t lpgemm_file_find(lpgemm_file_t file, const char *name, lpgemm_tensor_t *tensor);

/* The name of layer i ("model.layers.0.self_attn.q_proj"; an expert of a stack: "...experts.gate_up_proj.3"), and all
 * tensors and settings of the layer of a name, for lpgemm_import_weights(). Set import->size first. A layer's tensors
 * are those of its format; bias and input_scale are tensors of the file only. NOT_SUPPORTED, with what and why, for a
 * layer that is quantised in a way that is not read (bitsandbytes int8, EXL2, AQLM, torchao). */
lpgemm_status_t lpgemm_file_layer_name(lpgemm_file_t file, size_t i, const char **name);
lpgemm_status_t lpgemm_file_layer(lpgemm_file_t file, const char *name, lpgemm_import_t *import);

/* Heads of attention that the model says it has, and those of k and v, by its config.json or GGUF's metadata; 0 where
 * nothing says it, or it differs by layer. A rank of tensor parallelism has whole heads. Either pointer may be NULL. */
lpgemm_status_t lpgemm_file_heads(lpgemm_file_t file, int64_t *heads, int64_t *kv_heads);

/* Reads tensor i of a container and compares it with its hash: CORRUPT_DATA if a byte has changed. */
lpgemm_status_t lpgemm_file_check(lpgemm_file_t file, size_t i);

/* Writes a container: weights and plain tensors under their names, in the order of the calls. It is written beside
 * path, and gets that name at lpgemm_container_finish(), whole; lpgemm_container_destroy() without that removes what
 * was written. overwrite 0: a file that is there already is an IO_ERROR. After a call that failed while it wrote, only
 * lpgemm_container_destroy() helps. docs/formats.md has the bytes. */
typedef struct lpgemm_container *lpgemm_container_t;
lpgemm_status_t lpgemm_container_create(const char *path, int overwrite, lpgemm_container_t *container);
lpgemm_status_t lpgemm_container_add_weights(lpgemm_container_t container, const char *name, lpgemm_handle_t handle,
                                             lpgemm_weights_t weights);
lpgemm_status_t lpgemm_container_add_tensor(lpgemm_container_t container, const lpgemm_tensor_t *tensor);
lpgemm_status_t lpgemm_container_finish(lpgemm_container_t container);
lpgemm_status_t lpgemm_container_destroy(lpgemm_container_t container); /* NULL is allowed */

/* ------------------------------------------------------------------------------------------------------------
 * Weights: files
 *
 * A packed matrix is one relocatable, self-describing blob: write its bytes to a file, map them back, run on them.
 * src/layouts/FORMAT.md is its specification. A stack is the blobs of its experts one after the other, and nothing
 * else: these calls take one as they take a blob, whose size says how many experts it has.
 * ---------------------------------------------------------------------------------------------------------- */

/* Copies the blob (info.packed_bytes) to host memory. */
lpgemm_status_t lpgemm_serialize(lpgemm_handle_t handle, lpgemm_weights_t weights, void *buffer, size_t buffer_bytes);

/* Checks host bytes: LPGEMM_SUCCESS only if they are exactly one intact blob that this library can run. Pure: needs no
 * handle, never writes, never reads beyond size, safe on hostile files. */
lpgemm_status_t lpgemm_validate(const void *bytes, size_t size);

enum {
  LPGEMM_LOAD_COPY = 0,         /* copies from host memory into new memory of the backend's kind */
  LPGEMM_LOAD_VIEW = 1,         /* uses the bytes where they are: memory of the backend's own kind, 64-byte aligned
                                   (CUDA: 256; a mapped file is), which outlives the weights and does not change */
  LPGEMM_LOAD_SKIP_CHECKSUM = 2 /* checks headers and orders of columns only: for files that you trust */
};

/* Makes weights of a blob, after the checks of lpgemm_validate(). flags: LPGEMM_LOAD_... */
lpgemm_status_t lpgemm_deserialize(lpgemm_handle_t handle, const void *bytes, size_t size, uint32_t flags,
                                   lpgemm_weights_t *weights);

/* Weights for the length of a call: a view, as LPGEMM_LOAD_VIEW with LPGEMM_LOAD_SKIP_CHECKSUM, in storage of the
 * caller's (LPGEMM_WEIGHTS_BYTES, aligned as uint64_t). It loads nothing: lpgemm_prepare() does, once for a header.
 * lpgemm_weights_destroy() ends it. header: the first LPGEMM_HEADER_BYTES of the blob (of each expert's, in turn), in
 * host memory, checked and believed: nothing waits, and a stream may be captured; NULL: those of the blob, and CUDA
 * waits. Bytes must be there before a run is enqueued: CUDA kernels read them while the kernel ahead still runs. */
enum { LPGEMM_HEADER_BYTES = 512, LPGEMM_WEIGHTS_BYTES = 1024 };
lpgemm_status_t lpgemm_weights_from_blob(lpgemm_handle_t handle, const void *header, size_t header_bytes,
                                         const void *bytes, size_t size, void *storage, size_t storage_bytes,
                                         lpgemm_weights_t *weights);

/* ------------------------------------------------------------------------------------------------------------
 * Run
 * ---------------------------------------------------------------------------------------------------------- */

typedef enum lpgemm_activation {
  LPGEMM_ACTIVATION_NONE = 0,
  LPGEMM_ACTIVATION_RELU = 1,
  LPGEMM_ACTIVATION_GELU_ERF = 2,
  LPGEMM_ACTIVATION_GELU_TANH = 3,
  LPGEMM_ACTIVATION_SILU = 4
} lpgemm_activation_t;

typedef enum lpgemm_x_scale {
  LPGEMM_X_SCALE_NONE = 0,
  LPGEMM_X_SCALE_TENSOR = 1, /* x = value(X) * x_scale[0] */
  LPGEMM_X_SCALE_ROW = 2     /* x = value(X)[m, k] * x_scale[m] */
} lpgemm_x_scale_t;

/* How closely the result follows exact arithmetic, with y64 computed in fp64 from what is stored:
 *
 *   EXACT  |y - y64| <= eps(Y) |y64| + (a few K 2^-23 + eps(X)) sum |x||w|: products of the stored numbers, fp32
 *          accumulation (int32 for integer times integer), at most one rounding of each scaled weight to X's type, one
 *          rounding at the end. What automatic choice uses. docs/numerics.md has what some kernels add: codebooks under
 *          scales of groups may be rounded twice; fp8 X counts with eps(X) = 2^-8 where its products are added in fp8;
 *          weights of 1 and 2 bits may meet X in P = 24 and 22 bits: 2^(1-P) max |x| sum |w| more for 128 columns.
 *   FAST   may use 8-bit lookup tables and shorter fixed point: relative errors from 1e-4 to 2.5e-2 (docs/lut.md).
 *          The error is one of X times codes, so weights that are all 0 may give small noise instead of 0. */
typedef enum lpgemm_level { LPGEMM_LEVEL_EXACT = 0, LPGEMM_LEVEL_FAST = 1 } lpgemm_level_t;

/* More about the pairs of PAIRED weights: gate = min(gate, limit), up = min(max(up, -limit), limit), after their bias;
 * SILU is g / (1 + exp(-alpha g)); and what the activation of gate is multiplied by is up + up_offset. */
typedef struct lpgemm_gate {
  size_t size;
  float alpha;     /* SILU only; 0 = 1. gpt-oss: 1.702 */
  float limit;     /* 0 = none. gpt-oss: 7 */
  float up_offset; /* gpt-oss: 1 */
  uint32_t reserved[3];
} lpgemm_gate_t;

typedef struct lpgemm_run_args {
  size_t size;
  lpgemm_weights_t weights;
  int64_t m;

  const void *x;         /* [m][ldx] */
  int64_t ldx;           /* 0 = k, or x_k where the weights have it: X has that many columns then */
  lpgemm_dtype_t x_type; /* F16, BF16, F32, I8, E4M3, E5M2, or UINT, INT, BIPOLAR of 1 to 8 bits, one a byte (INT
                            sign-extended, the others right-aligned codes); 0 = the handle's default */
  void *y;               /* [m][ldy]; must not overlap x, though rows of both may take turns */
  int64_t ldy;           /* 0 = n; PAIRED: n / 2 */
  lpgemm_dtype_t y_type; /* F16, BF16, F32; I32 for integer X times integer weights without scales; 0 = default */

  const float *alpha; /* NULL = 1. alpha = 0 reads neither X nor W */
  const float *beta;  /* NULL = 0. beta = 0 never reads C */
  const void *c;      /* [m][ldc] of y_type; may be y itself with ldc = ldy */
  int64_t ldc;        /* 0 = n */

  const void *bias;         /* [n] or NULL; of lpgemm_run_grouped() [experts][n] */
  lpgemm_dtype_t bias_type; /* F16, BF16, F32; 0 = y_type */
  lpgemm_activation_t activation;

  const float *x_scale; /* 8-bit and narrower X only; memory of the backend's kind */
  lpgemm_x_scale_t x_scale_mode;

  lpgemm_dtype_t quantize_x; /* an integer of 1 to 8 bits or E4M3: quantise 16- or 32-bit X inside to that, a scale a
                                row, in the workspace; 0 = no */
  const void *prepared_x;    /* from lpgemm_prepare_x() of the same x, beside x; NULL = none */
  size_t prepared_x_bytes;

  lpgemm_level_t level;
  int32_t batch_invariant;   /* 1: a row's bits do not depend on m, its place or the other rows */
  const char *kernel;        /* forces a kernel by its name; NULL = automatic */
  const lpgemm_gate_t *gate; /* PAIRED weights only; NULL = zeros */
  uint32_t reserved[2];
  /* appended since 0.1.0: a struct that ends here is accepted */
  int64_t n_begin, n_end; /* CPU backend: computes these rows of W alone, into the same columns of Y, with the bits that
                             they have in the whole; both 0 = all. Multiples of 16, and of group_n, or n as the end;
                             PLAIN rows only.
                             For callers who are on several threads: each with a handle of its own, and its slice */
} lpgemm_run_args_t;

/* Multiplies. With int32 output alpha and beta must be 0 or 1, zeros are integers of magnitude 256 or less, and there
 * is no bias, activation or scale. Products whose sum int32 could not hold are refused with LPGEMM_SIZE_OVERFLOW; C is
 * added modulo 2^32. x must be a good pointer even where alpha = 0. A row of X with Inf or NaN never touches other
 * rows. The same call on the same device gives the same bits every time. */
lpgemm_status_t lpgemm_run(lpgemm_handle_t handle, const lpgemm_run_args_t *args);

/* The everyday form: Y = X . W^T, X and Y of the handle's default type. ldx = 0 means k, ldy = 0 means n. */
lpgemm_status_t lpgemm_matmul(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m, const void *x, int64_t ldx,
                              void *y, int64_t ldy);

/* Workspace with which lpgemm_run() may take the fastest kernel for any call with these weights and at most m_max rows;
 * monotone in m_max, and beyond copies of X at most 64 MiB. With less it takes kernels that need less and may be
 * several times as slow (LPGEMM_LOG=dispatch says where); only quantize_x, a forced kernel and, on the CUDA backend or
 * with more than 2^19 columns, ORDERED weights cannot do without and fail with LPGEMM_WORKSPACE_TOO_SMALL. args gives
 * types and options, such as a forced kernel (weights, m and data pointers are ignored); NULL: the handle's defaults.
 * An ldx that is no multiple of 16 bytes adds room for a copy of X. Often 0 for up to 16 rows, and on the CPU. */
lpgemm_status_t lpgemm_workspace_size(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m_max,
                                      const lpgemm_run_args_t *args, size_t *bytes);

/* Loads every kernel that these weights may take with up to m_max rows (at least those), so that the first run may be
 * captured. Packing and lpgemm_deserialize() have done it already; needed only for weights that another handle made. */
lpgemm_status_t lpgemm_prepare(lpgemm_handle_t handle, lpgemm_weights_t weights, int64_t m_max);

/* ------------------------------------------------------------------------------------------------------------
 * Activations
 * ---------------------------------------------------------------------------------------------------------- */

/* Quantises x[m][ldx] (F16, BF16, F32) to out[m][ldo], one number a byte, with scale[m] (mode ROW) or scale[0]
 * (TENSOR), so that x is about value(out) * scale. out_type is E4M3 or UINT, INT or BIPOLAR of 1 to 8 bits, laid out as
 * x_type of lpgemm_run() has them. The largest magnitude becomes the largest number: 448 for E4M3, 2^(b-1) - 1 for
 * INT(b), whose least code is not used, 2^b - 1 for UINT(b) and BIPOLAR(b). UINT is for X that is nowhere negative:
 * negative numbers become 0, and the largest number counts. A row of zeros gets scale 1, with BIPOLAR, which has no
 * zero, scale 0. A row with Inf or NaN gets a NaN scale. Both backends write the same bytes. */
lpgemm_status_t lpgemm_quantize_activations(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x,
                                            lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type, void *out,
                                            int64_t ldo, float *scale, lpgemm_x_scale_t mode);

/* CPU backend: makes of X once what several matrices read that multiply the same X (q, k and v; gate and up): bytes or
 * tables for the kernel that args would run with, X as quantize_x has it, and X in the order of the columns of ORDERED
 * weights. lpgemm_run() takes it as args.prepared_x beside x, which has to be what it was then. Results are the same
 * bits as without, and so are the choice of a kernel and the workspace. What weights cannot use of it (another kernel,
 * level or order of columns) the run makes for itself; what is of another m, type or number of columns of X is refused.
 * args: as for that run; y, c, bias and what belongs to them is not read. prepared: 64-byte aligned, may lie neither
 * in x nor between the first and the last element of y. Any handle may read it, and any number of them at a time. */
lpgemm_status_t lpgemm_prepared_x_size(lpgemm_handle_t handle, const lpgemm_run_args_t *args, size_t *bytes);
lpgemm_status_t lpgemm_prepare_x(lpgemm_handle_t handle, const lpgemm_run_args_t *args, void *prepared,
                                 size_t prepared_bytes);

/* Rewrites integer quantisation as bipolar (APT-LLM, section III-A): the same weights are
 * (bipolar(code ^ *code_xor) - *bipolar_zero) * *bipolar_scale. type is UINT(b) or INT(b). Nothing is lost where
 * 2 * zero plus a small integer is an fp32 number, as it is for integers and halves. */
lpgemm_status_t lpgemm_int_to_bipolar(lpgemm_dtype_t type, float scale, float zero, lpgemm_dtype_t *bipolar_type,
                                      float *bipolar_scale, float *bipolar_zero, uint8_t *code_xor);

/* ------------------------------------------------------------------------------------------------------------
 * Experts
 *
 * A mixture of experts is a stack of up matrices (mostly gate and up as pairs) and one of down matrices. Each token (a
 * row of X) names top_k experts; each of its places among them is a slot. lpgemm_run_experts() is the whole layer, from
 * the router's indices and weights to Y. docs/experts.md has the meaning in full.
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct lpgemm_route_args {
  size_t size;
  int64_t m;            /* tokens; m * top_k is at most 2^31 - 1 */
  int32_t top_k;        /* 1 to 64 */
  int32_t experts;      /* of the stacks: 1 to 4096 */
  int32_t first_expert; /* index e of `expert` is expert e - first_expert of the stacks */
  uint32_t reserved;
  const int32_t *expert; /* [m][top_k]. Slots whose index the stacks do not have are left out: -1, other ranks' */
  const float *weight;   /* [m][top_k]; NULL = 1. Not read where the slot is left out */
} lpgemm_route_args_t;

/* Sorts the slots by expert, those of an expert by token and place. routing: memory of the backend's kind, 256-byte
 * aligned, of lpgemm_route_size() bytes, cleared or not; good for any number of calls with the same arguments. */
lpgemm_status_t lpgemm_route_size(lpgemm_handle_t handle, int64_t m_max, int32_t top_k, int32_t experts, size_t *bytes);
lpgemm_status_t lpgemm_route(lpgemm_handle_t handle, const lpgemm_route_args_t *args, void *routing,
                             size_t routing_bytes);

/* Where parts of a routing lie, for engines that send slots to other GPUs; nothing is read. Set view->size first. */
typedef struct lpgemm_routing_view {
  size_t size;
  const int32_t *offsets;  /* [experts + 1]: the sorted slots of expert e are offsets[e] .. offsets[e + 1] - 1 */
  const int32_t *token;    /* [m * top_k]: of a sorted slot; -1 from offsets[experts] on */
  const int32_t *position; /* [m][top_k]: where a slot was sorted to, -1 if it was left out */
  const int32_t *left_out; /* [1]: how many slots were */
} lpgemm_routing_view_t;
lpgemm_status_t lpgemm_routing_view(lpgemm_handle_t handle, const lpgemm_route_args_t *args, const void *routing,
                                    lpgemm_routing_view_t *view);

/* A product with a stack: rows offsets[e] .. offsets[e + 1] - 1 of X and Y (and C) meet expert e. args->m is the number
 * of rows that X and Y have room for; rows of Y that no expert has stay as they are. Offsets are taken as if each were
 * clamped to what lies between the one before and m. With `row`, row i of X is row row[i] of args->x, which has x_rows;
 * a row that is not there counts as zeros, of BIPOLAR as codes 0 (x_scale goes with args->x). prepared_x and slices are
 * refused. With `row`, quantize_x or ORDERED weights it needs the workspace that lpgemm_workspace_size() says for
 * max(m, x_rows); one matrix, which is a stack of one, needs m rows of X more for `row`. */
typedef struct lpgemm_groups {
  size_t size;
  const int32_t *offsets; /* [experts + 1]; memory of the backend's kind, as `row` */
  const int32_t *row;     /* [m] or NULL */
  int64_t x_rows;         /* 0 = m */
  uint32_t reserved[4];
} lpgemm_groups_t;
lpgemm_status_t lpgemm_run_grouped(lpgemm_handle_t handle, const lpgemm_run_args_t *args,
                                   const lpgemm_groups_t *groups);

/* A layer: Y[t] = beta * C[t] + sum over j of weight[t, j] * down_e(h_e(X[t])), e = expert[t, j] - first_expert. h is
 * rounded to X's type if that is F16, BF16 or F32, else to Y's, or BF16 where Y is F32. down's rows are rounded to Y's
 * type (on a GPU with few tokens not at all), then added up in fp32 in a fixed order, and the sum is rounded once. An
 * expert that a token does not name never touches it, whatever it holds. */
typedef struct lpgemm_experts_args {
  size_t size;
  lpgemm_weights_t up;   /* a stack; PAIRED: h = activation(gate) * up; PLAIN: h = activation(up) */
  lpgemm_weights_t down; /* a stack of as many experts, PLAIN rows; its k (x_k) is the number of outputs of up */
  const lpgemm_route_args_t *route;
  const void *routing; /* what lpgemm_route() made of *route (unchecked: another makes Y wrong); NULL: made inside */
  size_t routing_bytes;
  const void *x; /* [m][ldx]; x, y, routing and the workspace may not overlap */
  int64_t ldx;   /* 0 = k (x_k) of up */
  lpgemm_dtype_t x_type;
  void *y;               /* [m][ldy]; every row is written, also those of tokens without an expert */
  int64_t ldy;           /* 0 = n of down */
  lpgemm_dtype_t y_type; /* F16, BF16, F32 */
  const float *beta;     /* NULL = 0, as lpgemm_run() */
  const void *c;         /* [m][ldc] of y_type; may be y itself with ldc = ldy */
  int64_t ldc;
  const void *up_bias, *down_bias; /* [experts][n] or NULL */
  lpgemm_dtype_t bias_type;        /* 0 = y_type */
  lpgemm_activation_t activation;  /* of up, or of its gates */
  const lpgemm_gate_t *gate;       /* PAIRED up only */
  const float *x_scale;
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_dtype_t quantize_x, quantize_h; /* 0 = no; as quantize_x of lpgemm_run() */
  lpgemm_level_t level;
  int32_t batch_invariant;             /* 1: a token's bits do not depend on m, its place or the other tokens */
  const char *up_kernel, *down_kernel; /* names; NULL = automatic */
  uint32_t reserved[4];
} lpgemm_experts_args_t;
lpgemm_status_t lpgemm_run_experts(lpgemm_handle_t handle, const lpgemm_experts_args_t *args);

/* Workspace with which the fastest form may be taken for up to m_max tokens; monotone in m_max. It is needed on both
 * backends. With less, tokens are taken in chunks of a multiple of 256 that fit; where 256 (or m) do not,
 * lpgemm_run_experts() fails with LPGEMM_WORKSPACE_TOO_SMALL. Pointers in args other than weights and route need not be
 * real, nor those in route; m of route is ignored. */
lpgemm_status_t lpgemm_experts_workspace(lpgemm_handle_t handle, int64_t m_max, const lpgemm_experts_args_t *args,
                                         size_t *bytes);

/* lpgemm_explain() for a layer: its sizes, chunks and kernels, and what was expected of routing. */
lpgemm_status_t lpgemm_explain_experts(lpgemm_handle_t handle, const lpgemm_experts_args_t *args, char *text,
                                       size_t text_bytes);

/* ------------------------------------------------------------------------------------------------------------
 * In place of cuBLAS
 *
 * cuBLAS's argument order and cuBLAS's numeric values, column-major, A being packed weights: m = N, n = M, k = K. Only
 * transa = OP_T (1) and transb = OP_N (0) exist for packed weights; others are LPGEMM_NOT_SUPPORTED. lda and Atype are
 * ignored. alpha and beta follow lpgemm_set_pointer_mode().
 * ---------------------------------------------------------------------------------------------------------- */

enum {
  LPGEMM_OP_N = 0,
  LPGEMM_OP_T = 1,
  LPGEMM_CUDA_R_32F = 0,
  LPGEMM_CUDA_R_16F = 2,
  LPGEMM_CUDA_R_8I = 3,
  LPGEMM_CUDA_R_32I = 10,
  LPGEMM_CUDA_R_16BF = 14,
  LPGEMM_CUDA_R_8F_E4M3 = 28,
  LPGEMM_CUDA_R_8F_E5M2 = 29,
  LPGEMM_COMPUTE_16F = 64,
  LPGEMM_COMPUTE_32F = 68,
  LPGEMM_COMPUTE_32I = 72
};

/* cublasHgemm: half everywhere, alpha and beta too; accumulates in fp32. */
lpgemm_status_t lpgemm_hgemm(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                             lpgemm_weights_t A, int lda, const void *B, int ldb, const void *beta, void *C, int ldc);

/* cublasGemmEx: alpha and beta are half for COMPUTE_16F, int32 for COMPUTE_32I, else float. algo is ignored. */
lpgemm_status_t lpgemm_gemm_ex(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                               lpgemm_weights_t A, int Atype, int lda, const void *B, int Btype, int ldb,
                               const void *beta, void *C, int Ctype, int ldc, int compute_type, int algo);

/* cublasGemmStridedBatchedEx. A is an array of packed matrices; strideA counts matrices: 0 = all use A[0], 1 = A[i]. */
lpgemm_status_t lpgemm_gemm_strided_batched_ex(lpgemm_handle_t handle, int transa, int transb, int m, int n, int k,
                                               const void *alpha, const lpgemm_weights_t *A, int Atype, int lda,
                                               int64_t strideA, const void *B, int Btype, int ldb, int64_t strideB,
                                               const void *beta, void *C, int Ctype, int ldc, int64_t strideC,
                                               int batch_count, int compute_type, int algo);

/* ------------------------------------------------------------------------------------------------------------
 * Which kernel
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct lpgemm_kernel_info {
  size_t size;
  const char *name;   /* family.weights.activations.tile.arch: docs/kernels/README.md has the grammar */
  const char *family; /* reference, blocked, generic, ... */
  lpgemm_backend_t backend;
  int32_t arch;      /* CUDA: compute capability * 10; CPU: 0 */
  int32_t available; /* 1: this machine can run it */
} lpgemm_kernel_info_t;

/* Writes up to capacity records and the number of kernels in this build to *count. list may be NULL if capacity is 0.
 * Set list[i].size first. */
lpgemm_status_t lpgemm_list_kernels(lpgemm_kernel_info_t *list, size_t capacity, size_t *count);

/* Writes the chosen kernel, after a line that says so if X is copied first, and why each other one was not chosen, as
 * lines of text, one of which says the runner-up; cuts at text_bytes, always ends with 0. If no kernel can do it, or
 * not the forced one, the first line says why, with the run's status. Pointers other than weights need not be real. */
lpgemm_status_t lpgemm_explain(lpgemm_handle_t handle, const lpgemm_run_args_t *args, char *text, size_t text_bytes);

/* LPGEMM_SUCCESS if some kernel of this handle's device multiplies such weights by x_type to y_type; otherwise the
 * status that pack or run would return, and the reason in lpgemm_last_error(). */
lpgemm_status_t lpgemm_supports(lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, lpgemm_dtype_t x_type,
                                lpgemm_dtype_t y_type, int64_t m);

/* The same without a handle, for one that lpgemm_create() would make of config (NULL: the defaults). */
lpgemm_status_t lpgemm_device_supports(const lpgemm_config_t *config, const lpgemm_weight_desc_t *desc,
                                       lpgemm_dtype_t x_type, lpgemm_dtype_t y_type, int64_t m);

typedef struct lpgemm_autotune_options {
  size_t size;
  double seconds;                                       /* stop after about this long; 0 = 10 */
  const lpgemm_run_args_t *args;                        /* types and options; NULL = the handle's defaults */
  void (*progress)(void *context, int done, int total); /* NULL = none */
  void *context;
} lpgemm_autotune_options_t;

/* Times the kernels that automatic choice may take on these weights, for each row count, and remembers the best in the
 * handle; the one that it would take anyway comes first, so that a row count cut short is no worse for it. Allocates
 * and synchronises; not for capture. options may be NULL. */
lpgemm_status_t lpgemm_autotune(lpgemm_handle_t handle, lpgemm_weights_t weights, const int64_t *rows, size_t count,
                                const lpgemm_autotune_options_t *options);

/* A text file, one line a measured choice. Loading takes the lines that name a kernel of this build for this device and
 * library version, counts them in *used and the others in *refused (either may be NULL; why is in lpgemm_last_error()),
 * and fails only if the file cannot be read or is no tuning file. */
lpgemm_status_t lpgemm_tuning_save(lpgemm_handle_t handle, const char *path);
lpgemm_status_t lpgemm_tuning_load(lpgemm_handle_t handle, const char *path, int *used, int *refused);
lpgemm_status_t lpgemm_tuning_clear(lpgemm_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* LPGEMM_H */
