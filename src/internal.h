/* What the parts of the library say to one another: the device, the problem, the call, handles and weights.
 *
 * Types are lpg_*; functions that another file calls are lpgemm_i_*, so that every global symbol has the prefix. */
#ifndef LPG_INTERNAL_H
#define LPG_INTERNAL_H

#include "layouts/packed.h"
#include "lpgemm.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device a handle works on; dispatch is tested with made-up ones ---- */

enum { LPG_ISA_BASE = 0, LPG_ISA_AVX2 = 1, LPG_ISA_AVX512 = 2 };

typedef struct lpg_device {
  lpgemm_backend_t backend;
  int32_t index;
  char name[64];         /* "Intel(R) Xeon(R) ...", "NVIDIA H200": the key of tuning files, without tabs */
  int32_t arch;          /* CUDA: 10 * major + minor; CPU: 0 */
  int32_t isa;           /* CPU: the widest LPG_ISA_ it runs */
  int32_t units;         /* SMs, or threads of the handle */
  int64_t shared_memory; /* CUDA: bytes a block may use */
} lpg_device;

/* ---- the problem: all that the choice of a kernel depends on, no pointers to data ---- */

typedef struct lpg_problem {
  const lpg_plan *plan;
  uint32_t scale_span; /* of the weights' content; 255 when only a description is known */
  int64_t m;
  lpgemm_dtype_t x_type, y_type;
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_level_t level;
  int batch_invariant;
  int tables; /* X comes as lookup tables */
} lpg_problem;

/* ---- the call: a problem with its data, as a kernel gets it; everything is checked and defaults are resolved ---- */

typedef struct lpg_pool lpg_pool;

typedef struct lpg_call {
  lpg_problem problem;
  int skip_product;                     /* alpha is 0: neither X nor W may be read */
  const uint8_t *section[LPG_SECTIONS]; /* the weights' sections, NULL where absent */
  const void *x;
  int64_t ldx;
  const float *x_scale; /* NULL with LPGEMM_X_SCALE_NONE */
  const void *tables;
  void *y;
  int64_t ldy;
  const void *c; /* NULL if beta is 0 on the host */
  int64_t ldc;
  float alpha, beta;                       /* values, unless the pointers below are set */
  const float *device_alpha, *device_beta; /* CUDA, pointer mode DEVICE */
  const void *bias;                        /* or NULL */
  lpgemm_dtype_t bias_type;
  lpgemm_activation_t activation;
  void *workspace; /* at least what the kernel's workspace function asks for */
  const lpg_device *device;
  lpgemm_stream_t stream; /* CUDA */
  lpg_pool *pool;         /* CPU */
} lpg_call;

/* ---- tuning results of a handle; src/dispatch/tuning.c ---- */

typedef struct lpg_tuning lpg_tuning;

/* ---- the objects behind the public handles ---- */

struct lpgemm_handle {
  lpg_device device;
  lpgemm_dtype_t default_type;
  lpgemm_stream_t stream;
  void *workspace;
  size_t workspace_bytes;
  lpgemm_pointer_mode_t pointer_mode;
  lpg_pool *pool; /* CPU backend */
  lpg_tuning *tuning;
  char forced_kernel[96]; /* LPGEMM_KERNEL, "" = none */
};

struct lpgemm_weights {
  lpg_plan plan;
  lpg_content content;
  lpgemm_backend_t backend;
  int32_t device;
  uint8_t *memory;  /* the blob, in memory of the backend's kind */
  void *allocation; /* what to free, NULL if the memory is the caller's */
};

/* ---- live objects: a handle that was destroyed, or never was one, is recognised without touching it ---- */

typedef enum lpg_object { LPG_OBJECT_HANDLE = 1, LPG_OBJECT_WEIGHTS = 2 } lpg_object;

lpgemm_status_t lpgemm_i_live_add(const void *object, lpg_object kind);
void lpgemm_i_live_remove(const void *object);
int lpgemm_i_is_live(const void *object, lpg_object kind);

/* Status INVALID_HANDLE with a sentence unless the object is live. */
lpgemm_status_t lpgemm_i_check_handle(lpgemm_handle_t handle);
lpgemm_status_t lpgemm_i_check_weights(lpgemm_weights_t weights);

/* ---- arguments ---- */

/* Copies a caller's struct over a zeroed one: refuses a size below `smallest`, and a non-zero tail beyond what the
 * library knows. Every public struct starts with its size. */
lpgemm_status_t lpgemm_i_copy_struct(void *to, size_t known, size_t smallest, const void *from, const char *name);

#ifdef __cplusplus
}
#endif

#endif
