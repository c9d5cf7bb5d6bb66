/* A random packed matrix with everything that timing and checking it needs. */
#ifndef BENCH_WEIGHTS_H
#define BENCH_WEIGHTS_H

#include "machine.h"

enum { BENCH_PARTS = 5 }; /* scales, zeros, super scales, super zeros, by lpgemm_part_t from 1 */

typedef struct bench_weights {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source; /* in the machine's memory, codes one a byte */
  void *part[BENCH_PARTS];       /* the scales and zeros on the host, row-major */
  int32_t *order;                /* of columns, a random one; NULL: plain */
  size_t row_bytes[BENCH_PARTS]; /* of a row of them */
  lpgemm_weights_t *copy;        /* the packed matrix, `copies` times in different memory */
  int64_t copies;
  void *slab;  /* that memory */
  float *norm; /* of each row of the magnitudes that errors are relative to, in the machine's memory */
} bench_weights;

/* Draws codes, scales and zeros such that weights lie about in [-1, 1], in the machine's memory; packs nothing. */
bench_error bench_draw_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w);

/* Draws, packs, and copies the packed matrix until the copies have machine->rotate_bytes together; no norms. */
bench_error bench_rotate_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w);

/* The same with norms. */
bench_error bench_make_weights(const bench_machine *machine, const lpgemm_weight_desc_t *desc, bench_weights *w);

/* A row's weights in fp64, from its codes, drawn once more, and its scales and zeros. `codes` is scratch for k bytes.
 * Any number of threads may do this at once. */
void bench_weight_row(const bench_weights *w, int64_t row, uint8_t *codes, double *value);

void bench_free_weights(const bench_machine *machine, bench_weights *w);

#endif
