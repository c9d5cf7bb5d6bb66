/* What is timed, and what came out. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include <math.h>

#include "common.h"

typedef enum bench_operation {
  BENCH_GEMM,     /* lpgemm_run() in a CUDA graph */
  BENCH_BLAS,     /* the baseline alone: cuBLAS, or OpenBLAS on the CPU backend */
  BENCH_PACK,     /* lpgemm_pack_weights() from memory of the backend's kind */
  BENCH_UNPACK,   /* lpgemm_unpack_weights() */
  BENCH_CALL,     /* what lpgemm_run() costs the host, without a graph */
  BENCH_CHOOSE,   /* what it costs the host to choose a kernel for a problem that the handle has not seen */
  BENCH_REGRET,   /* the automatic choice beside every kernel that may be chosen */
  BENCH_QUANTIZE, /* lpgemm_quantize_activations(), n rows of k columns */
  BENCH_PREPARE,  /* lpgemm_prepare_x() */
  BENCH_IMPORT,   /* lpgemm_import_weights() from memory of the backend's kind */
  BENCH_EXPERTS,  /* lpgemm_run_experts(): desc is that of an expert's gate and up */
  BENCH_TOKEN     /* all linear layers of a model in a CUDA graph: desc is that of a layer's gate and up */
} bench_operation;

/* How tokens choose their experts: evenly, by Zipf's law, or all the same ones. */
typedef enum bench_routing { BENCH_UNIFORM, BENCH_ZIPF, BENCH_SAME } bench_routing;

typedef struct bench_case {
  char name[160];   /* unique in its suite */
  char shape[64];   /* as the suite names it */
  char weights[64]; /* "u4 g128 f16 z8" */
  bench_operation operation;
  int64_t m;
  lpgemm_weight_desc_t desc; /* with n and k */
  lpgemm_dtype_t x_type, y_type;
  int64_t x_gap;          /* elements between two rows of X */
  int32_t experts, top_k; /* EXPERTS; 0 otherwise */
  int32_t qkv, layers;    /* TOKEN; 0 otherwise */
  bench_routing routing;
  lpgemm_x_scale_t x_scale_mode;
  int batch_invariant;
  int gives_prepared;               /* GEMM: X was prepared for the kernel before */
  char kernel[64];                  /* "" = automatic, else a family or a full name */
  lpgemm_dtype_t baseline;          /* type of the dense baseline's weights and activations, 0 = no baseline */
  int threads;                      /* CPU backend: 0 = all */
  lpgemm_code_layout_t code_layout; /* PACK */
  char format[64];                  /* IMPORT: run_import.c has them */
  lpgemm_dtype_t out_type;          /* UNPACK, QUANTIZE */
  int64_t seed;                     /* REGRET: what the case was drawn with, 0 = it was written */
  double within;                    /* REGRET: kernels are tried up to so many times the least estimate */
  int tune;                         /* REGRET: tune as well, and say what is chosen then */
  int64_t draw;                     /* number of a drawn case, 0 = it was written */
  const char *use;                  /* of a drawn case: "usual" or "other" kinds of weights; else "" */
  int checks_samples;               /* GEMM: sampled outputs only, and not all by the slow kernel */
} bench_case;

/* Microseconds of one launch: the median over the replays of a burst, or over the rounds at the clock of sustained
 * work. */
typedef struct bench_time {
  double us, us_min, us_max;
  int replays;         /* of the burst, or of the window that counts */
  int64_t launches;    /* in one replay */
  double nodes;        /* of the CUDA graph, a launch; 0 = there was no graph */
  double mhz, watts;   /* SM clock and power meanwhile; 0 = not known */
  int rounds, settled; /* 0 rounds = a burst; settled: of the rounds, those whose last two windows agree */
} bench_time;

/* NAN for a number that is 0 where it is not known. */
static inline double bench_known(double value) { return value > 0 ? value : (double)NAN; }

/* Seconds that a case took. */
typedef struct bench_spent {
  double weights, check, time, baseline;
} bench_spent;

enum { BENCH_CANDIDATES = 32 };

/* A kernel that may be chosen. */
typedef struct bench_candidate {
  char name[64];
  double estimate, us; /* us < 0: not timed */
  int replays;         /* 1: tried, and so slow that that was enough */
} bench_candidate;

/* What the kernels that may be chosen took. */
typedef struct bench_regret {
  char best[64], tuned[64]; /* the fastest, and the choice after lpgemm_autotune(); "" = not tuned */
  double best_us, tuned_us; /* NAN: not known */
  int tried, skipped;       /* kernels; skipped: estimated too slow */
  bench_candidate kernel[BENCH_CANDIDATES];
  int kernels;
} bench_regret;

typedef struct bench_result {
  char error[512]; /* "" = right; a case that is wrong has no time */
  char kernel[64], family[32];
  char checked[96]; /* how */
  char plan[256];   /* of a product: how the kernel is launched */
  bench_time time;
  bench_spent spent;
  double bytes;            /* what must move through memory at least; NAN: does not matter */
  double limit_us;         /* NAN: not known */
  bench_time baseline;     /* us is NAN: no baseline */
  char baseline_note[256]; /* why there is none */
  bench_regret regret;
  double rms_error;   /* of the sampled outputs, relative to their root mean square */
  double named, most; /* EXPERTS: experts that have tokens, and tokens of the one with most; means */
} bench_result;

static inline double bench_efficiency(const bench_result *r) { return r->limit_us / r->time.us; }
static inline double bench_ratio(const bench_result *r) { return r->baseline.us / r->time.us; }
static inline double bench_regret_of(const bench_result *r) { return r->time.us / r->regret.best_us; }
static inline double bench_tuned_regret_of(const bench_result *r) { return r->regret.tuned_us / r->regret.best_us; }
static inline double bench_gbps(const bench_result *r) { return r->bytes / r->time.us * 1e-3; }
double bench_tflops(const bench_case *c, const bench_result *r);

/* The name of an operation in suites and records. */
const char *bench_operation_name(bench_operation operation);

#endif
