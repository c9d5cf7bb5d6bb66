/* Work in a CUDA graph, and how long it takes. */
#include "block_cuda.h"

cudaStream_t cuda_stream;
void (*cuda_waiting)(void);

void cuda_wait(void) {
  cudaError_t state;
  while ((state = cudaStreamQuery(cuda_stream)) == cudaErrorNotReady) {
    if (cuda_waiting) cuda_waiting();
  }
  CUDA(state);
}

/* The position of the tokens is in memory, so one graph serves every step. A first run before the capture loads the
 * kernels of the examples, and those of cuBLAS and NCCL; lpgemm has loaded its own in lpgemm_prepare(). */
cudaGraphExec_t capture(void (*work)(void *context), void *context) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  work(context);
  CUDA(cudaStreamBeginCapture(cuda_stream, cudaStreamCaptureModeThreadLocal));
  work(context);
  CUDA(cudaStreamEndCapture(cuda_stream, &graph));
  CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaGraphUpload(exec, cuda_stream));
  return exec;
}

double time_calls(void (*work)(void *), void *context, int times) {
  cudaEvent_t start, stop;
  float ms;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  CUDA(cudaEventRecord(start, cuda_stream));
  for (int i = 0; i < times; i++) work(context);
  CUDA(cudaEventRecord(stop, cuda_stream));
  cuda_wait();
  CUDA(cudaEventElapsedTime(&ms, start, stop));
  CUDA(cudaEventDestroy(start));
  CUDA(cudaEventDestroy(stop));
  return 1e3 * (double)ms / times;
}

static void launch(void *graph) { CUDA(cudaGraphLaunch(graph, cuda_stream)); }

double replay(cudaGraphExec_t graph, int times) { return time_calls(launch, graph, times); }
