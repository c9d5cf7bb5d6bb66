#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "block.h"

static void print(const char *sentence) { fprintf(stderr, "%s\n", sentence); }
void (*on_failure)(const char *sentence) = print;

void fail(const char *format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  on_failure(sentence);
  exit(1);
}

void *get_memory(size_t bytes) {
  void *memory = malloc(bytes);
  if (!memory) fail("no memory for %zu bytes", bytes);
  return memory;
}

double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *numbers, int count) {
  qsort(numbers, (size_t)count, sizeof *numbers, ascending);
  return numbers[count / 2];
}

float *random_tokens(const block_shape *shape, int64_t tokens) {
  int64_t count = tokens * shape->hidden;
  float *out = get_memory((size_t)count * sizeof *out);
  random_numbers(out, count, -1.732f, 1.732f, 7); /* variance 1 */
  return out;
}

/* How far two blocks may be apart that have the same weights (quantised, or exactly what they dequantise to) and round
 * in different places. Rounding errors are independent of each other, so their squares add up; all are relative, in the
 * Euclidean norm of a tensor.
 *
 * Rounding to a type with the half step u is off by up to u, evenly: its mean square is r2 = u^2 / 3. A linear layer
 * rounds weights to the type of the activations at most once, and its output once. It sums K products in fp32, where
 * the partial sum after j of them is about sqrt(j / K) of the whole: K additions make K / 6 * 2^-48. So one layer has
 * l2 = 2 r2 + K / 6 * 2^-48, and as its weights are random it hands on the relative error of its input as it is.
 *
 * Along the block: norm r2, layer l2, rotation r2. Attention: an error e of queries and keys of variance 1 is an error
 * of sqrt(2) e of the scores, so of the weights of the values, and the values have theirs: times 3, and 2 r2 for
 * weights and output. Layer l2, norm r2, layer l2. SwiGLU: the errors of both factors count about alike: times 2, and
 * r2. Layer l2. The two residual sums only dilute all this. In total 19 r2 + 11 l2, twice that for two blocks, and 3
 * times the root for every `about`. A wrong layer is off by 0.1 to 1.
 *
 * On several ranks the outputs of o and of down are sums of as many parts. Rounding the parts counts about as much as
 * rounding the whole once; ranks - 1 additions round again, r2 each at most. SwiGLU counts those of o twice: 3 r2 for
 * every addition. */
double difference_bound(const block_shape *shape, lpgemm_dtype_t type, int ranks) {
  double u = type == LPGEMM_F16 ? 0x1p-11 : 0x1p-24, r2 = u * u / 3.0;
  double l2 = 2.0 * r2 + fmax((double)shape->ffn, (double)(shape->heads * HEAD)) / 6.0 * 0x1p-48;
  return 3.0 * sqrt(2.0 * (19.0 * r2 + 11.0 * l2) + 3.0 * (ranks - 1) * r2);
}

double relative_difference(const float *got, const float *want, int64_t count) {
  double squares = 0.0, norm = 0.0;
  for (int64_t i = 0; i < count; i++) {
    double d = (double)got[i] - (double)want[i];
    squares += d * d;
    norm += (double)want[i] * (double)want[i];
  }
  return sqrt(squares / norm);
}

double difference(const block_shape *shape, lpgemm_dtype_t type, const float *got, const float *want, int64_t tokens,
                  int ranks) {
  double relative = relative_difference(got, want, tokens * shape->hidden);
  double bound = difference_bound(shape, type, ranks);
  if (!(relative <= bound)) fail("outputs differ by %.1e, rounding explains %.1e", relative, bound); /* NaN fails */
  return relative;
}
