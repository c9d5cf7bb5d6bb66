/* One multiplication with all of its data, for the tests of lpgemm_run(): random or exact operands in buffers with
 * canaries, the expected result, and running it by any kernel. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "lpgemm.h"

typedef struct problem_spec {
  lpgemm_weight_desc_t desc;
  int64_t m;
  lpgemm_dtype_t x_type, y_type;
  lpgemm_dtype_t bias_type; /* 0 = no bias */
  lpgemm_x_scale_t x_scale_mode;
  lpgemm_dtype_t quantize_x;
  lpgemm_activation_t activation;
  float alpha, beta;
  int pad_x, pad_y, pad_c, pad_codes; /* leading dimensions beyond the least */
  int misaligned;                     /* every buffer starts one element past an alignment */
  int in_place;                       /* C is Y */
  int not_finite;                     /* one row of X gets a NaN, one an Inf, one a -Inf, as far as there are rows */
  int no_workspace;                   /* none, where the kernel does without: X that is not aligned lies as it is */
  int exact;                          /* small integers and powers of two: every partial sum is exact in fp32 */
  lpgemm_order_t order;
  lpgemm_code_layout_t code_layout;
} problem_spec;

typedef struct problem {
  problem_spec spec;
  lpgemm_weight_source_t source;
  lpgemm_weights_t weights;
  lpgemm_run_args_t args; /* change it before problem_expect() to vary the call */
  void *x, *y, *c, *bias, *x_scale;
  double *want, *bound, *rounded, *fixed, *summed; /* [m][n] */
} problem;

/* Draws the operands and packs the weights; 0 if that failed, which fails the case. */
int problem_make(problem *p, lpgemm_handle_t handle, const problem_spec *spec);

/* The same, but some problems get what only blobs of version 2 have: an order of columns, factors of rows, rows that
 * share scales. */
int problem_make_drawn(problem *p, lpgemm_handle_t handle, const problem_spec *spec);

/* Packs the weights again, after the test changed the source. */
void problem_repack(problem *p, lpgemm_handle_t handle);

/* Puts a NaN or an infinity at a place of an array; E4M3 has only NaN, integers have neither and stay. */
void problem_put(lpgemm_dtype_t type, void *array, int64_t at, double not_finite);

/* Fills want and bound from args by the reference. */
void problem_expect(problem *p);

/* Runs args into a poisoned Y with a poisoned workspace of just the size that the library asks for, or without one.
 * kernel may be NULL. */
lpgemm_status_t problem_run(problem *p, lpgemm_handle_t handle, const char *kernel);

/* "what: u4 g128 f16 ... x f16 ...": the name of a kernel and of the problem, for messages. */
const char *problem_title(const problem *p, const char *what);

/* Fails the case unless Y is as expected and the columns between n and ldy are untouched. what: a kernel, whose bound
 * counts; of NULL, and of words, which have no dot, that of automatic choice. */
void problem_check(const problem *p, const char *what);

/* Fails the case unless a second run gives the same bits. */
void problem_check_again(problem *p, lpgemm_handle_t handle, const char *kernel);

/* Fails the case unless, with batch_invariant, some rows run alone give the bits that they have in the whole. */
void problem_check_alone(problem *p, lpgemm_handle_t handle, const char *kernel);

/* Bytes of Y from row 0 to the last row's end. */
size_t problem_y_bytes(const problem *p);

void problem_free(problem *p);

/* Every weight type. */
enum { PROBLEM_TYPES = 54 };
const lpgemm_dtype_t *problem_types(void);

/* The kernels that the backend under test runs on this machine, without those for stacks of experts alone; returns how
 * many. */
enum { PROBLEM_KERNELS = 512 };
int problem_kernels(const char *names[PROBLEM_KERNELS]);

/* 1 if the backend under test runs it on this machine, those for stacks too. */
int problem_has_kernel(const char *kernel);

/* Runs and checks the problem, twice, by all of them that can; returns how many of those are of a family, or of another
 * one, which may be NULL. */
int problem_check_by_all(problem *p, lpgemm_handle_t handle, const char *family, const char *other);

/* Gives a problem of weights of few bits what the bits and lookup kernels take: groups, scales, zeros, few rows. */
void problem_suit_chunks(problem_spec *spec);

/* Gives a problem the weights, the type of X and the number of rows that the kernel takes. */
void problem_suit(problem_spec *spec, const char *kernel);
int problem_takes_any_x(const char *kernel);

/* A handle of the backend under test; threads are the CPU's. */
lpgemm_handle_t problem_handle(int threads);

#endif
