/* A prefill and decode steps inside CUDA graphs: by lpgemm, and by cuBLAS in fp16 where there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_cuda.h"

enum { TOKENS = CUDA_PREFILL + CUDA_STEPS, PREFILLS = 8, WARM = 3, REPEATS = 9 };

typedef struct result {
  double prefill_us, step_us;
  float *out; /* [TOKENS][hidden] */
} result;

/* ---- one of the two blocks ---- */

/* The work of a prefill, or of one decode step and what leads to the next one. */
typedef struct work {
  const block *b;
  int64_t m;
  const void *in;
  void *out;
} work;

static void do_work(void *context) {
  const work *w = context;
  block_forward(w->b, w->m);
  if (w->m == 1) next_token(w->b, w->in, w->out, CUDA_PREFILL, CUDA_STEPS);
}

static void start_at(const block *b, const float *tokens, int32_t position, int64_t count) {
  b->on->set_position(b, position);
  b->on->upload(b->x, tokens + position * b->shape.hidden, count * b->shape.hidden);
}

/* Microseconds of a replay: the median of some repetitions, each from the same tokens at the same position. */
static double time_graph(const block *b, cudaGraphExec_t graph, const float *tokens, int32_t position, int64_t count,
                         int times) {
  double us[REPEATS];
  for (int i = -WARM; i < REPEATS; i++) {
    start_at(b, tokens, position, count);
    double once = replay(graph, times);
    if (i >= 0) us[i] = once;
  }
  return median(us, REPEATS);
}

static result run(const block *b, const float *tokens) {
  int64_t hidden = b->shape.hidden, prefill = CUDA_PREFILL * hidden, steps = CUDA_STEPS * hidden;
  void *in = b->on->allocate((size_t)steps * b->on->bytes), *out = b->on->allocate((size_t)steps * b->on->bytes);
  result r = {.out = get_memory((size_t)(prefill + steps) * sizeof(float))};
  b->on->upload(in, tokens + prefill, steps);

  start_at(b, tokens, 0, CUDA_PREFILL);
  cudaGraphExec_t graph = capture(do_work, &(work){b, CUDA_PREFILL, NULL, NULL});
  r.prefill_us = time_graph(b, graph, tokens, 0, CUDA_PREFILL, PREFILLS); /* all but the first take what came out */
  start_at(b, tokens, 0, CUDA_PREFILL);
  replay(graph, 1);
  b->on->download(r.out, b->x, prefill);
  CUDA(cudaGraphExecDestroy(graph));

  start_at(b, tokens, CUDA_PREFILL, 1);
  graph = capture(do_work, &(work){b, 1, in, out});
  r.step_us = time_graph(b, graph, tokens, CUDA_PREFILL, 1, CUDA_STEPS);
  b->on->download(r.out + prefill, out, steps);
  CUDA(cudaGraphExecDestroy(graph));

  b->on->release(in);
  b->on->release(out);
  return r;
}

/* ---- both ---- */

/* What no comparison with cuBLAS shows, as both blocks share everything but the products: that the first tokens come
 * out as on the CPU, and the steps as the same tokens at once, which takes the other kernel for attention. */
static void check_machine(const block *b, const float *tokens, const result *ours, const float *cpu_outputs) {
  int64_t prefill = CUDA_PREFILL * b->shape.hidden, steps = CUDA_STEPS * b->shape.hidden;
  float *at_once = get_memory((size_t)steps * sizeof *at_once);
  start_at(b, tokens, CUDA_PREFILL, CUDA_STEPS);
  block_forward(b, CUDA_STEPS);
  b->on->download(at_once, b->x, steps);
  printf("  first tokens against the CPU's %.1e, steps against all of them at once %.1e\n",
         difference(&b->shape, b->on->type, ours->out, cpu_outputs, CPU_PREFILL + CPU_STEPS, 1),
         difference(&b->shape, b->on->type, ours->out + prefill, at_once, CUDA_STEPS, 1));
  free(at_once);
}

static void print(const char *name, const result *r) {
  printf("  %-12s prefill of %d: %8.1f us, %9.0f tokens/s    step: %7.1f us, %7.0f tokens/s\n", name, CUDA_PREFILL,
         r->prefill_us, CUDA_PREFILL / r->prefill_us * 1e6, r->step_us, 1e6 / r->step_us);
}

static void print_kernels(const block *b) {
  const linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  lpgemm_run_args_t args = {.size = sizeof args, .x_type = b->on->type, .y_type = b->on->type};
  for (int i = 0; i < 4; i++) {
    char many[64], one[64]; /* they start with the kernel's name; what does not fit is cut off */
    args.weights = layers[i]->weights;
    args.m = CUDA_PREFILL;
    TRY(lpgemm_explain(b->handle, &args, many, sizeof many));
    args.m = 1;
    TRY(lpgemm_explain(b->handle, &args, one, sizeof one));
    printf("  %5lld x %5lld: prefill by %.*s, steps by %.*s\n", (long long)layers[i]->n, (long long)layers[i]->k,
           (int)strcspn(many, ":"), many, (int)strcspn(one, ":"), one);
  }
}

static void run_beside(block *b, const float *tokens, const result *ours) {
  linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  int64_t prefill = CUDA_PREFILL * b->shape.hidden;
  for (int i = 0; i < 4; i++) {
    layers[i]->dense = b->on->allocate((size_t)(layers[i]->n * layers[i]->k) * b->on->bytes);
    TRY(lpgemm_unpack_weights(b->handle, layers[i]->weights, b->on->type, layers[i]->dense, 0));
  }
  b->multiply = cublas_multiply;
  result theirs = run(b, tokens);
  b->multiply = block_multiply;
  print("cuBLAS fp16", &theirs);
  printf("  times as fast: prefill %.2f, step %.2f; difference: prefill %.1e, steps %.1e\n",
         theirs.prefill_us / ours->prefill_us, theirs.step_us / ours->step_us,
         difference(&b->shape, b->on->type, ours->out, theirs.out, CUDA_PREFILL, 1),
         difference(&b->shape, b->on->type, ours->out + prefill, theirs.out + prefill, CUDA_STEPS, 1));
  for (int i = 0; i < 4; i++) b->on->release(layers[i]->dense);
  free(theirs.out);
}

static size_t packed_bytes(const block *b) {
  const linear *layers[] = {&b->qkv, &b->o, &b->gate_up, &b->down};
  size_t bytes = 0;
  for (int i = 0; i < 4; i++) {
    lpgemm_weights_info_t info = {.size = sizeof info};
    TRY(lpgemm_weights_info(layers[i]->weights, &info));
    bytes += info.packed_bytes;
  }
  return bytes;
}

void run_cuda(const block_shape *shape, int bits, const float *cpu_outputs) {
  struct cudaDeviceProp device;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CUDA};
  block b = {.on = &machine_cuda, .model = *shape, .rows = CUDA_PREFILL, .context = TOKENS};
  CUDA(cudaGetDeviceProperties(&device, config.device));
  if (!cuda_stream) CUDA(cudaStreamCreateWithFlags(&cuda_stream, cudaStreamNonBlocking));
  TRY(lpgemm_create(&b.handle, &config));
  TRY(lpgemm_set_stream(b.handle, cuda_stream));
  block_open(&b, bits);

  printf("%s, u%d: tokens/s of one block alone (Llama 3 8B has 32), weights of %.1f MB, L2 cache of %.1f MB\n",
         device.name, bits, (double)packed_bytes(&b) / 1e6, (double)device.l2CacheSize / 1e6);
  print_kernels(&b);
  float *tokens = random_tokens(shape, TOKENS);
  result ours = run(&b, tokens);
  print("lpgemm", &ours);
  check_machine(&b, tokens, &ours, cpu_outputs);
  if (cublas_open()) {
    run_beside(&b, tokens, &ours);
  } else {
    printf("  cuBLAS is not here: nothing to compare with\n");
  }

  free(ours.out);
  free(tokens);
  block_close(&b);
  TRY(lpgemm_destroy(b.handle));
}
