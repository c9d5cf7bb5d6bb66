/* Stacks of experts for tests: a sample an expert, packed into one object. */
#ifndef TEST_STACK_H
#define TEST_STACK_H

#include "sample.h"

enum { STACK_MOST = 64 };

typedef struct stack {
  lpgemm_weight_desc_t desc; /* of the stack */
  int experts;
  sample expert[STACK_MOST]; /* their descriptions have experts = 0 and their own global scale */
  lpgemm_weights_t weights;
} stack;

/* Scales of a sample such that weights are about `size` and no sum is large: sums of k products of numbers around 1
 * are about size * sqrt(k). */
void stack_tame(sample *s, double size);

/* Draws the experts and packs them: expert after expert in a random order, in one piece or in several, some as blobs.
 * own_scales: every expert has another global scale. A failure fails the open case. */
void stack_make(stack *s, lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, double size, int own_scales);

/* Packs what is drawn (again, after the test changed it). */
void stack_pack(stack *s, lpgemm_handle_t handle);
void stack_free(stack *s);

/* Rows [first, first + rows) of a sample's source, row-major and dense; a piece of PAIRED rows lies in one half. */
lpgemm_weight_source_t stack_rows(const sample *s, int64_t first, int64_t rows);

#endif
