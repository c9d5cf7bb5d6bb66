/* How fast a case could be at best. */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include "case.h"

/* The bytes that a case must move at least, each read or written once.
 * gemm: ceil(N K b / 8) + the source's scales and zeros + X + Y. blas: the same with dense weights.
 * pack and unpack: the source and the packed matrix, or the packed matrix and the output. */
double bench_ideal_bytes(const bench_case *c);

/* The limit of a product in microseconds: max(1.3 + bytes / B, 1.5 + 2 M N K / T), where B is the read bandwidth that
 * was measured in the same run in GB/s, and T 900 TFLOP/s for 16- and 32-bit activations, 1700 for 8 bits, 15,000 for
 * fewer. For pack and unpack it is bytes / B, with B the copy bandwidth. NAN if the bandwidth is, and for the host's
 * cost of a call. */
double bench_limit_us(const bench_case *c, double gbps);

#endif
