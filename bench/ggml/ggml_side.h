/* What compare.c needs of ggml, so that one file alone includes its headers. */
#ifndef BENCH_GGML_SIDE_H
#define BENCH_GGML_SIDE_H

#include <stddef.h>
#include <stdint.h>

/* Version, and the instruction sets that it was built for. */
const char *ggml_side_version(void);

/* Types go by their names in lower case. The number of one, -1: there is none. */
int ggml_side_number(const char *type);
size_t ggml_side_bytes(const char *type, int64_t n, int64_t k);
void ggml_side_quantize(const char *type, const float *w, int64_t n, int64_t k, void *blocks);
void ggml_side_row(const char *type, const void *blocks, int64_t k, int64_t row, float *out);

/* Copies of a matrix, repacked where ggml's CPU backend does that. NULL: memory is short. */
typedef struct ggml_side ggml_side;
ggml_side *ggml_side_create(const char *type, int64_t n, int64_t k, const void *blocks, int copies, int threads);
void ggml_side_destroy(ggml_side *side);
int ggml_side_repacked(const ggml_side *side);

/* Sets m rows of X, with the graphs that multiply them; run multiplies them by a copy. */
void ggml_side_set_x(ggml_side *side, int64_t m, const float *x);
void ggml_side_run(ggml_side *side, int copy, int64_t m);
const float *ggml_side_y(const ggml_side *side, int64_t m);

#endif
