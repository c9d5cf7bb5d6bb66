/* CUDA: one device, one stream, graphs, cuBLAS where it is installed. */
#include <stdio.h>
#include <stdlib.h>

#include "../tests/ref/gemm_ref.h"
#include "bandwidth.h"
#include "clock.h"
#include "cublas.h"
#include "device.h"
#include "graph_timer.h"
#include "host_timer.h"
#include "machine.h"
#include "nvml.h"

static cudaStream_t stream;

static bench_error bandwidth(bench_machine *machine) {
  return bench_bandwidth(stream, &machine->read_gbps, &machine->copy_gbps);
}

static bench_error use_threads(bench_machine *machine, int threads) {
  (void)machine;
  BENCH_CHECK(threads == 0, "threads are for the CPU backend");
  return NULL;
}

static bench_error allocate(size_t bytes, void **memory) {
  BENCH_CUDA(cudaMalloc(memory, bytes + 1));
  return NULL;
}

static void release(void *memory) { cudaFree(memory); }

static size_t available(void) {
  size_t left = 0, total;
  return cudaMemGetInfo(&left, &total) == cudaSuccess ? left : 0;
}

static bench_error copy(void *to, const void *from, size_t bytes) {
  BENCH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  BENCH_CUDA(cudaStreamSynchronize(stream));
  return NULL;
}

static bench_error copy_in_order(void *to, const void *from, size_t bytes) {
  BENCH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  return NULL;
}

static bench_error poison(void *memory, size_t bytes) {
  BENCH_CUDA(cudaMemsetAsync(memory, 0xff, bytes, stream));
  return NULL;
}

static bench_error synchronize(void) {
  BENCH_CUDA(cudaStreamSynchronize(stream));
  return NULL;
}

static bench_error fill(lpgemm_dtype_t type, void *memory, int64_t count, uint64_t seed) {
  BENCH_CUDA(bench_device_fill(type, memory, count, seed, stream));
  return synchronize();
}

static bench_error time_launches(bench_launch launch, void *context, int64_t rotation, bench_time *time) {
  return bench_graph_time(stream, launch, context, rotation, time);
}

static bench_error time_calls(bench_launch launch, void *context, int64_t rotation, bench_time *time) {
  return bench_host_time(launch, context, rotation, synchronize, time);
}

static bench_error time_quickly(bench_launch launch, void *context, int64_t rotation, double enough_us,
                                bench_time *time) {
  return bench_graph_time_quickly(stream, launch, context, rotation, enough_us, time);
}

static bench_error time_host(bench_launch launch, void *context, bench_time *time) {
  return bench_host_cost(launch, context, synchronize, time);
}

static bench_error time_sustained(const bench_program *program, int programs, double turn_seconds, bench_time *time) {
  return bench_graph_time_sustained(stream, program, programs, turn_seconds, time);
}

static bench_error row_norms(lpgemm_dtype_t type, const void *matrix, int64_t rows, int64_t columns, int64_t ld,
                             float *out) {
  float value[256];
  void *table;
  for (int i = 0; i < 256; i++) {
    uint8_t code = (uint8_t)i;
    value[i] = ref_bytes(type) == 1 ? (float)ref_load(type, &code, 0) : 0.0f;
  }
  BENCH_TRY(allocate(sizeof value, &table));
  bench_error error = copy(table, value, sizeof value);
  cudaError_t status =
      error ? cudaSuccess : bench_device_row_norms(type, matrix, rows, columns, ld, table, out, stream);
  if (!error) error = synchronize();
  release(table);
  BENCH_CUDA(status);
  return error;
}

static bench_error compare(const bench_comparison *comparison, int64_t *bad) {
  void *counter;
  unsigned long long count = 0;
  BENCH_TRY(allocate(sizeof count, &counter));
  bench_error error = copy(counter, &count, sizeof count);
  cudaError_t status = error ? cudaSuccess : bench_device_compare(comparison, counter, stream);
  if (!error) error = copy(&count, counter, sizeof count);
  release(counter);
  BENCH_CUDA(status);
  *bad = (int64_t)count;
  return error;
}

/* NVML may number GPUs in another order than CUDA does, and knows them by their addresses too. */
static bench_error open_nvml(bench_machine *machine) {
  char pci[32];
  BENCH_CUDA(cudaDeviceGetPCIBusId(pci, sizeof pci, 0));
  bench_error error = bench_nvml_open(pci, machine->driver, sizeof machine->driver);
  snprintf(machine->settled_by, sizeof machine->settled_by, "%s%s", error ? "time: " : "SM clock", error ? error : "");
  return NULL;
}

static bench_error describe(bench_machine *machine) {
  struct cudaDeviceProp properties;
  int number = 0;
  BENCH_CUDA(cudaGetDeviceProperties(&properties, 0));
  BENCH_CUDA(cudaRuntimeGetVersion(&number));
  snprintf(machine->device, sizeof machine->device, "%.90s", properties.name);
  BENCH_TRY(open_nvml(machine));
  snprintf(machine->runtime, sizeof machine->runtime, "CUDA %d.%d, cuBLAS %s", number / 1000, number / 10 % 100,
           bench_cublas_version());
  return NULL;
}

/* Without cuBLAS the cases still run; bench_cublas_multiply() then says why there is no baseline. */
bench_error bench_open_cuda(bench_machine *machine) {
  *machine = (bench_machine){.backend = LPGEMM_BACKEND_CUDA,
                             .reference = "generic",
                             .blas = "cuBLAS",
                             .rotate_bytes = (size_t)1 << 30,
                             .turn_seconds = BENCH_MOST_SECONDS,
                             .bandwidth = bandwidth,
                             .use_threads = use_threads,
                             .allocate = allocate,
                             .release = release,
                             .available = available,
                             .copy = copy,
                             .copy_in_order = copy_in_order,
                             .poison = poison,
                             .fill = fill,
                             .synchronize = synchronize,
                             .time = time_launches,
                             .time_call = time_calls,
                             .time_quickly = time_quickly,
                             .time_host = time_host,
                             .time_sustained = time_sustained,
                             .row_norms = row_norms,
                             .compare = compare,
                             .multiply = bench_cublas_multiply};
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CUDA};
  BENCH_CUDA(cudaSetDevice(0));
  BENCH_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bench_error error = bench_cublas_open(stream);
  if (error) fprintf(stderr, "lpgemm-bench: %s\n", error);
  BENCH_TRY(describe(machine));
  BENCH_LPGEMM(lpgemm_create(&machine->handle, &config));
  BENCH_LPGEMM(lpgemm_set_stream(machine->handle, stream));
  return NULL;
}
