/* How a kernel will be launched, in the same words for every family, and the planner that finds it. */
#ifndef LPG_PLAN_H
#define LPG_PLAN_H

#include "lpgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lpg_problem lpg_problem;
typedef struct lpg_device lpg_device;
typedef struct lpg_planner lpg_planner;
typedef struct lpg_rates lpg_rates;

/* ---- the plan ---- */

typedef struct lpg_launch {
  int32_t tile_n, tile_m;        /* a work tile: rows of W by rows of X */
  int32_t split_k, multicast;    /* CTAs of a cluster that cut K, and that share an operand */
  int32_t clusters, at_once;     /* clusters of the grid, and how many of them the GPU runs at once */
  int64_t work_tiles;            /* of all clusters; a persistent grid takes several in turn */
  int32_t passes;                /* launches: passes over M, or chunks of N */
  int32_t threads, shared_bytes; /* of a CTA */
  int32_t stages;                /* of the ring in shared memory; 0: it has none */
  int16_t gathers;               /* 1: the kernel brings the columns of X into the weights' order itself */
  int16_t streams;               /* 1: stream-K, clusters share the last work tiles by k blocks */
  int32_t mode; /* how scales meet weights, a word of the planner's modes; -1: the family has one way */
  double us;    /* estimated microseconds of the call */
} lpg_launch;

/* With the family's own plan, which goes to the kernel as it is. */
enum { LPG_PLAN_WORDS = 40 };
typedef struct lpg_planned {
  lpg_launch launch;
  int32_t words[LPG_PLAN_WORDS];
} lpg_planned;

/* ---- the planner: one const record a family and variant, in NAME_plan.c ---- */

/* What tile() and cut() answer: a candidate, none under this number, or none from here on. */
enum { LPG_CANDIDATE, LPG_HOLE, LPG_NO_MORE };

/* What a family spends its time on, for explain(): which instruction multiplies, and how often a weight is
 * dequantised. */
typedef enum lpg_mma { LPG_MMA_NONE, LPG_MMA_SYNC_F16, LPG_WGMMA_F16, LPG_WGMMA_8, LPG_MMA_B1, LPG_WGMMA_B1 } lpg_mma;
typedef enum lpg_dequant { LPG_DEQUANT_NEVER, LPG_DEQUANT_ONCE, LPG_DEQUANT_PER_TILE } lpg_dequant;

struct lpg_planner {
  /* NULL, or why the problem is not for it, beyond the sets of its record: a sentence of a fixed set. */
  const char *(*refuses)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);
  /* NULL, or why only a name or a tuning result may take it. */
  const char *(*automatic)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);
  /* What all candidates share; what those of work tile i share; candidate i of it, with its cost in nanoseconds. least:
   * the lowest cost so far, to leave out what cannot win; HUGE_VAL while nothing fits. */
  void (*begin)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, void *state);
  int (*tile)(const lpg_problem *problem, const lpg_device *device, int i, void *state);
  int (*cut)(const lpg_problem *problem, const lpg_device *device, int i, double least, void *state, void *plan,
             double *ns);
  /* Places things in shared memory; 0: they do not fit. */
  int (*lay_out)(const lpg_device *device, const void *state, void *plan);
  /* The launch of the candidate that won, with the estimate of the whole call. */
  void (*finish)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device, const void *plan,
                 double ns, lpg_launch *launch);
  /* Bytes; monotone in m. */
  size_t (*workspace)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);
  /* NULL, or bytes beyond these with which it may be faster; monotone in m. */
  size_t (*more_workspace)(const lpg_planner *self, const lpg_problem *problem, const lpg_device *device);
  const char *no_plan;      /* the reason if no candidate fits */
  const char *const *modes; /* words of lpg_launch.mode */
  int32_t state_bytes, plan_bytes;
  lpg_mma mma;
  lpg_dequant dequantises;
  /* the variant: */
  int32_t tile_n, tile_m;
  lpgemm_dtype_t type; /* of the operands that are multiplied */
  int32_t wgmma;
  int32_t parts;    /* gemm: of K, which every plan must have; 0: any number */
  const void *cost; /* CPU: a row of src/cpu/cost.h */
};

/* The cheapest candidate that fits, or the reason why there is none. Refusals are not asked. Of equals the first wins.
 */
const char *lpgemm_i_plan(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device,
                          lpg_planned *best);

/* "work tile 128 x 64, split-K 2, ...": the plan in words; and what the time of reading, dequantising and multiplying
 * alone would be. Both cut at `bytes`. */
void lpgemm_i_describe_plan(const lpg_planner *planner, const lpg_launch *launch, char *text, size_t bytes);
void lpgemm_i_describe_bounds(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device,
                              const lpg_launch *launch, char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
