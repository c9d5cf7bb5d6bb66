/* Times launches inside a CUDA graph, as an inference engine runs them. */
#ifndef BENCH_GRAPH_TIMER_H
#define BENCH_GRAPH_TIMER_H

#include <cuda_runtime_api.h>

#include "machine.h"

#define BENCH_CUDA(call)                                                                                   \
  do {                                                                                                     \
    cudaError_t bench_cuda_error_ = (call);                                                                \
    BENCH_CHECK(bench_cuda_error_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(bench_cuda_error_)); \
  } while (0)

/* A burst. Captures enough launches for about 10 ms into one graph, at least `rotation` of them unless they are long,
 * so that each reads memory that no cache has kept; warms up; replays the graph between two events. The time of a
 * launch is a replay's time by its launches, the median over the replays. What a launch puts into the stream is
 * captured as it is, programmatic dependent launches too. */
bench_error bench_graph_time(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                             bench_time *time);

/* The same in a hurry, in graphs of 2 ms: machine.h. */
bench_error bench_graph_time_quickly(cudaStream_t stream, bench_launch launch, void *context, int64_t rotation,
                                     double enough_us, bench_time *time);

/* The same graphs replayed without a gap, one program after the other, each until its clock is steady: clock.h. One or
 * two programs. */
bench_error bench_graph_time_sustained(cudaStream_t stream, const bench_program *program, int programs,
                                       double turn_seconds, bench_time *time);

#endif
