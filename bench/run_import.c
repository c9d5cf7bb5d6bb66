/* lpgemm_import_weights(): tensors of a checkpoint in the machine's memory become packed weights there. Bytes are those
 * of the tensors, read, and of the packed matrix, written; the limit is a copy of so many. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

enum { TENSORS = 4, SEED = 53, GROUP = 128, BLOCK = 128 };

typedef struct importing {
  const bench_machine *machine;
  const bench_case *c;
  lpgemm_import_t part;
  lpgemm_tensor_t tensor[TENSORS];
  void *there[TENSORS], *here[TENSORS]; /* the data on the machine, and on the host; small ones are on the host only */
  void *packed;
  size_t packed_bytes;
  lpgemm_weights_t weights;
} importing;

/* ---- tensors ---- */

static bench_error add(importing *p, const char *name, lpgemm_dtype_t type, size_t bytes, int64_t rows,
                       int64_t columns) {
  const size_t i = p->part.count++;
  p->tensor[i] = (lpgemm_tensor_t){.name = name, .type = type, .dims = 2, .shape = {rows, columns}, .bytes = bytes};
  BENCH_TRY(p->machine->allocate(bytes, &p->there[i]));
  p->tensor[i].data = p->there[i];
  return p->machine->fill(LPGEMM_U8, p->there[i], (int64_t)bytes, SEED + i);
}

static bench_error add_numbers(importing *p, const char *name, lpgemm_dtype_t type, int bits, int64_t rows,
                               int64_t columns) {
  return add(p, name, type, (size_t)(rows * columns * bits / 8), rows, columns);
}

/* A small one, on the host. */
static bench_error add_here(importing *p, const char *name, lpgemm_dtype_t type, int64_t numbers) {
  const size_t i = p->part.count++, bytes = (size_t)numbers * 4;
  p->tensor[i] = (lpgemm_tensor_t){.name = name, .type = type, .dims = 1, .shape = {numbers}, .bytes = bytes};
  p->here[i] = calloc(1, bytes);
  BENCH_CHECK(p->here[i], "out of memory");
  p->tensor[i].data = p->here[i];
  return NULL;
}

/* Columns dealt out to the groups in a random order. */
static void draw_groups(int32_t *group_of, int64_t k) {
  for (int64_t i = 0; i < k; i++) group_of[i] = (int32_t)(i / GROUP);
  uint64_t state = SEED;
  for (int64_t i = k - 1; i > 0; i--) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const int64_t j = (int64_t)((state >> 33) % (uint64_t)(i + 1));
    const int32_t group = group_of[i];
    group_of[i] = group_of[j], group_of[j] = group;
  }
}

static bench_error make_gptq(importing *p, int64_t n, int64_t k, int in_order) {
  p->part.format = LPGEMM_FORMAT_GPTQ;
  BENCH_TRY(add_numbers(p, "qweight", LPGEMM_I32, 32, k / 8, n));
  BENCH_TRY(add_numbers(p, "qzeros", LPGEMM_I32, 32, k / GROUP, n / 8));
  BENCH_TRY(add_numbers(p, "scales", LPGEMM_F16, 16, k / GROUP, n));
  if (!in_order) return NULL;
  BENCH_TRY(add_here(p, "g_idx", LPGEMM_I32, k));
  draw_groups(p->here[p->part.count - 1], k);
  return NULL;
}

static bench_error make_awq(importing *p, int64_t n, int64_t k) {
  p->part.format = LPGEMM_FORMAT_AWQ;
  BENCH_TRY(add_numbers(p, "qweight", LPGEMM_I32, 32, k, n / 8));
  BENCH_TRY(add_numbers(p, "qzeros", LPGEMM_I32, 32, k / GROUP, n / 8));
  return add_numbers(p, "scales", LPGEMM_F16, 16, k / GROUP, n);
}

static bench_error make_nvfp4(importing *p, int64_t n, int64_t k) {
  p->part.format = LPGEMM_FORMAT_NVFP4;
  BENCH_TRY(add_numbers(p, "weight_packed", LPGEMM_U8, 8, n, k / 2));
  BENCH_TRY(add_numbers(p, "weight_scale", LPGEMM_E4M3, 8, n, k / 16));
  BENCH_TRY(add_here(p, "weight_global_scale", LPGEMM_F32, 1));
  *(float *)p->here[p->part.count - 1] = 3.0f;
  return NULL;
}

static bench_error make_fp8(importing *p, int64_t n, int64_t k) {
  p->part.format = LPGEMM_FORMAT_INT8_FP8;
  BENCH_TRY(add_numbers(p, "weight", LPGEMM_E4M3, 8, n, k));
  return add_numbers(p, "weight_scale_inv", LPGEMM_F32, 32, n / BLOCK, k / BLOCK);
}

static const struct {
  const char *name;
  int number, columns, bytes; /* of a block */
} blocks[] = {{"q4_k", 12, 256, 144},   {"q6_k", 14, 256, 210},   {"q8_0", 8, 32, 34},
              {"iq4_xs", 23, 256, 136}, {"iq2_xxs", 16, 256, 66}, {"q4_0", 2, 32, 18}};

static bench_error make_tensors(importing *p) {
  const int64_t n = p->c->desc.n, k = p->c->desc.k;
  const char *format = p->c->format;
  BENCH_CHECK(n % 256 == 0 && k % 256 == 0, "an import needs multiples of 256 rows and columns");
  if (strcmp(format, "gptq") == 0) return make_gptq(p, n, k, 0);
  if (strcmp(format, "gptq-order") == 0) return make_gptq(p, n, k, 1);
  if (strcmp(format, "awq") == 0) return make_awq(p, n, k);
  if (strcmp(format, "nvfp4") == 0) return make_nvfp4(p, n, k);
  if (strcmp(format, "fp8") == 0) return make_fp8(p, n, k);
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
    if (strcmp(format, blocks[i].name) != 0) continue;
    p->part.format = LPGEMM_FORMAT_GGUF;
    const size_t bytes = (size_t)(n * (k / blocks[i].columns) * blocks[i].bytes);
    return add(p, "weight", LPGEMM_GGML((uint32_t)blocks[i].number), bytes, n, k);
  }
  return bench_fail("'%s' is no format that is timed", format);
}

/* ---- the case ---- */

static bench_error import(void *context, int64_t i) {
  importing *p = context;
  (void)i;
  BENCH_LPGEMM(lpgemm_weights_destroy(p->weights));
  p->weights = NULL;
  BENCH_LPGEMM(lpgemm_import_weights(p->machine->handle, &p->part, 1, p->packed, p->packed_bytes, &p->weights));
  return NULL;
}

static bench_error hash_of(lpgemm_weights_t weights, uint64_t *hash) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  BENCH_LPGEMM(lpgemm_weights_info(weights, &info));
  *hash = info.payload_hash;
  return NULL;
}

/* The host makes the same of the same tensors. */
static bench_error check(importing *p, lpgemm_handle_t host) {
  lpgemm_tensor_t tensor[TENSORS];
  lpgemm_import_t part = p->part;
  lpgemm_weights_t want = NULL;
  uint64_t a = 0, b = 0;
  part.tensors = tensor;
  for (size_t i = 0; i < part.count; i++) {
    tensor[i] = p->tensor[i];
    if (p->here[i]) continue;
    p->here[i] = malloc(tensor[i].bytes);
    BENCH_CHECK(p->here[i], "out of memory");
    BENCH_TRY(p->machine->copy(p->here[i], p->there[i], tensor[i].bytes));
    tensor[i].data = p->here[i];
  }
  BENCH_TRY(hash_of(p->weights, &a));
  BENCH_LPGEMM(lpgemm_import_weights(host, &part, 1, NULL, 0, &want));
  bench_error error = hash_of(want, &b);
  lpgemm_weights_destroy(want);
  BENCH_TRY(error);
  BENCH_CHECK(a == b, "the payload's hash is %016llx, and the host's %016llx", (unsigned long long)a,
              (unsigned long long)b);
  return NULL;
}

static bench_error run(importing *p, bench_result *r) {
  const lpgemm_config_t on_host = {.size = sizeof on_host, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_handle_t host = NULL;
  BENCH_TRY(make_tensors(p));
  BENCH_LPGEMM(lpgemm_import_desc(&p->part, 1, &desc));
  BENCH_LPGEMM(lpgemm_packed_size(&desc, &p->packed_bytes));
  BENCH_TRY(p->machine->allocate(p->packed_bytes, &p->packed));
  r->bytes = (double)p->packed_bytes;
  for (size_t i = 0; i < p->part.count; i++) r->bytes += (double)p->tensor[i].bytes;
  r->limit_us = r->bytes / p->machine->copy_gbps * 1e-3;
  snprintf(r->checked, sizeof r->checked, "hash of what the host packs");
  BENCH_TRY(p->machine->time_call(import, p, 1, &r->time));
  BENCH_LPGEMM(lpgemm_create(&host, &on_host));
  bench_error error = check(p, host);
  lpgemm_destroy(host);
  return error;
}

bench_error bench_run_import(const bench_machine *machine, const bench_case *c, bench_result *r) {
  importing p = {.machine = machine, .c = c, .part = {.size = sizeof p.part}};
  p.part.tensors = p.tensor;
  snprintf(r->kernel, sizeof r->kernel, "%s", bench_operation_name(c->operation));
  bench_error error = run(&p, r);
  lpgemm_weights_destroy(p.weights);
  machine->release(p.packed);
  for (int i = 0; i < TENSORS; i++) {
    machine->release(p.there[i]);
    free(p.here[i]);
  }
  return error;
}
