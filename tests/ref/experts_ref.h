/* The reference for pairs of rows and for mixtures of experts, in fp64, written from the manual alone: one slot after
 * the other, no sorting, no stack. */
#ifndef EXPERTS_REF_H
#define EXPERTS_REF_H

#include "lpgemm.h"

/* What a pair becomes: activation(min(gate, limit)) * (min(max(up, -limit), limit) + up_offset). gate may be NULL. */
double ref_pair(lpgemm_activation_t activation, const lpgemm_gate_t *gate, double g, double u);

/* How far a pair of type y_type may be from that, if gate and up were off by so much before. */
double ref_pair_bound(lpgemm_activation_t activation, const lpgemm_gate_t *gate, lpgemm_dtype_t y_type, double g,
                      double g_off, double u, double u_off);

/* ref_gemm() for a matrix of any rows: y[m][outputs] and its bound, before the last rounding. args->bias has n numbers,
 * and desc->experts does not count. rounds: the kernel may round scaled weights to X's type, as some for GPUs do. */
void ref_product(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source, const lpgemm_run_args_t *args,
                 int rounds, double *y, double *bound);

/* The experts of a layer: descriptions with their own global scales, and sources. */
typedef struct ref_expert {
  lpgemm_weight_desc_t up_desc, down_desc;
  lpgemm_weight_source_t up, down;
} ref_expert;

/* y[m][n of down] and its bound: what lpgemm_run_experts() should give for args, whose stacks, kernels and routing are
 * not looked at; pointers are the host's. The bound: what h may be off, and what rounding it costs, by the magnitudes
 * of down's weights; what down's product may be off, and its rounding to Y's type; both by the router's weights; and
 * the sum of the slots in fp32. */
void ref_experts(const ref_expert *experts, const lpgemm_experts_args_t *args, int rounds, double *y, double *bound);

#endif
