#include "bandwidth.h"

#include "device.h"
#include "graph_timer.h"

enum { SEED = 41, CHUNK = 32 << 10, CTAS_AN_SM = 8 };
static const size_t bytes = (size_t)2 << 30;

typedef struct traffic {
  cudaStream_t stream;
  char *memory;
  unsigned ctas;
  void *sink;
} traffic;

static bench_error read_all(void *context, int64_t i) {
  const traffic *t = context;
  (void)i;
  BENCH_CUDA(bench_device_read(t->memory, bytes, t->ctas, t->sink, t->stream));
  return NULL;
}

static bench_error copy_half(void *context, int64_t i) {
  const traffic *t = context;
  (void)i;
  BENCH_CUDA(cudaMemcpyAsync(t->memory, t->memory + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice, t->stream));
  return NULL;
}

static bench_error copy_half_by_kernel(void *context, int64_t i) {
  const traffic *t = context;
  (void)i;
  BENCH_CUDA(bench_device_copy(t->memory, t->memory + bytes / 2, bytes / 2, t->ctas, t->stream));
  return NULL;
}

/* The better of two shapes of reading: a CTA a chunk, and as many CTAs as run at once; and of three ways of
 * copying: the driver's, and a kernel in both shapes. */
static bench_error measure(traffic *t, double *read_gbps, double *copy_gbps) {
  bench_time chunks, resident, copy, copy_chunks, copy_resident;
  int device, sms;
  BENCH_CUDA(cudaGetDevice(&device));
  BENCH_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  BENCH_CUDA(bench_device_fill(LPGEMM_F32, t->memory, (int64_t)(bytes / 4), SEED, t->stream));
  t->ctas = (unsigned)(bytes / CHUNK);
  BENCH_TRY(bench_graph_time(t->stream, read_all, t, 1, &chunks));
  BENCH_TRY(bench_graph_time(t->stream, copy_half_by_kernel, t, 1, &copy_chunks));
  t->ctas = (unsigned)sms * CTAS_AN_SM;
  BENCH_TRY(bench_graph_time(t->stream, read_all, t, 1, &resident));
  BENCH_TRY(bench_graph_time(t->stream, copy_half_by_kernel, t, 1, &copy_resident));
  BENCH_TRY(bench_graph_time(t->stream, copy_half, t, 1, &copy));
  if (copy_chunks.us < copy.us) copy = copy_chunks;
  if (copy_resident.us < copy.us) copy = copy_resident;
  *read_gbps = (double)bytes / (chunks.us < resident.us ? chunks.us : resident.us) * 1e-3;
  *copy_gbps = (double)bytes / copy.us * 1e-3;
  return NULL;
}

bench_error bench_bandwidth(cudaStream_t stream, double *read_gbps, double *copy_gbps) {
  traffic t = {.stream = stream};
  void *memory = NULL;
  BENCH_CUDA(cudaMalloc(&memory, bytes + 256));
  t.memory = memory;
  t.sink = t.memory + bytes;
  bench_error error = measure(&t, read_gbps, copy_gbps);
  cudaFree(memory);
  return error;
}
