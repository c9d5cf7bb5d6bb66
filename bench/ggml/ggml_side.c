#include "ggml_side.h"

#include <ctype.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ggml_side {
  ggml_backend_t backend;
  ggml_backend_buffer_t buffer; /* of the weights */
  struct ggml_context *weights_context;
  struct ggml_tensor **weights;
  int copies, repacked;
  int64_t n, k;
  struct ggml_context *context; /* of X and the graphs for so many rows */
  ggml_backend_buffer_t x_buffer;
  struct ggml_tensor *x, *y;
  struct ggml_cgraph **graph; /* of a copy each */
};

const char *ggml_side_version(void) {
  static char text[256];
  typedef struct ggml_backend_feature *features_of(ggml_backend_reg_t);
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
  features_of *get = NULL;
  void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
  memcpy(&get, &found, sizeof get);
  snprintf(text, sizeof text, "ggml %s:", ggml_version());
  for (struct ggml_backend_feature *f = get ? get(reg) : NULL; f && f->name; f++) {
    const size_t used = strlen(text);
    if (strcmp(f->value, "1") == 0) snprintf(text + used, sizeof text - used, " %s", f->name);
  }
  return text;
}

int ggml_side_number(const char *type) {
  for (int i = 0; i < GGML_TYPE_COUNT; i++) {
    const char *name = ggml_type_name((enum ggml_type)i);
    size_t at = 0;
    if (!name) continue;
    while (name[at] && tolower((unsigned char)name[at]) == type[at]) at++;
    if (!name[at] && !type[at]) return i;
  }
  return -1;
}

static enum ggml_type type_of(const char *type) { return (enum ggml_type)ggml_side_number(type); }

size_t ggml_side_bytes(const char *type, int64_t n, int64_t k) { return (size_t)n * ggml_row_size(type_of(type), k); }

void ggml_side_quantize(const char *type, const float *w, int64_t n, int64_t k, void *blocks) {
  ggml_quantize_chunk(type_of(type), w, blocks, 0, n, k, NULL);
}

void ggml_side_row(const char *type, const void *blocks, int64_t k, int64_t row, float *out) {
  const char *at = (const char *)blocks + (size_t)row * ggml_row_size(type_of(type), k);
  ggml_get_type_traits(type_of(type))->to_float(at, out, k);
}

/* The first buffer type that repacks this type; NULL: none does. */
static ggml_backend_buffer_type_t repacking_type(const struct ggml_tensor *w) {
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  ggml_backend_dev_get_extra_bufts_t get = NULL;
  void *found =
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts");
  memcpy(&get, &found, sizeof get);
  const struct ggml_init_params params = {.mem_size = 8 * ggml_tensor_overhead(), .no_alloc = true};
  for (ggml_backend_buffer_type_t *type = get ? get(device) : NULL; type && *type; type++) {
    struct ggml_context *context = ggml_init(params);
    struct ggml_tensor *trial = ggml_new_tensor_2d(context, w->type, w->ne[0], w->ne[1]);
    struct ggml_tensor *x = ggml_new_tensor_2d(context, GGML_TYPE_F32, w->ne[0], 1);
    struct ggml_tensor *product = ggml_mul_mat(context, trial, x);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(*type, 0);
    trial->buffer = buffer;
    const bool takes = ggml_backend_dev_supports_op(device, product);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    if (takes) return *type;
  }
  return NULL;
}

static void be_quiet(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level >= GGML_LOG_LEVEL_WARN) fputs(text, stderr);
}

ggml_side *ggml_side_create(const char *type, int64_t n, int64_t k, const void *blocks, int copies, int threads) {
  ggml_side *side = calloc(1, sizeof *side);
  side->weights = calloc((size_t)copies, sizeof(struct ggml_tensor *));
  side->graph = calloc((size_t)copies, sizeof(struct ggml_cgraph *));
  side->copies = copies;
  side->n = n;
  side->k = k;
  ggml_log_set(be_quiet, NULL);
  side->backend = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(side->backend, threads);
  const struct ggml_init_params params = {.mem_size = (size_t)(copies + 1) * ggml_tensor_overhead(), .no_alloc = true};
  side->weights_context = ggml_init(params);
  for (int i = 0; i < copies; i++) side->weights[i] = ggml_new_tensor_2d(side->weights_context, type_of(type), k, n);
  ggml_backend_buffer_type_t where = repacking_type(side->weights[0]);
  side->repacked = where != NULL;
  if (!where) where = ggml_backend_get_default_buffer_type(side->backend);
  side->buffer = ggml_backend_alloc_ctx_tensors_from_buft(side->weights_context, where);
  if (!side->buffer) return NULL;
  for (int i = 0; i < copies; i++) ggml_backend_tensor_set(side->weights[i], blocks, 0, ggml_side_bytes(type, n, k));
  return side;
}

static void drop_x(ggml_side *side) {
  if (side->x_buffer) ggml_backend_buffer_free(side->x_buffer);
  if (side->context) ggml_free(side->context);
  side->x_buffer = NULL;
  side->context = NULL;
}

void ggml_side_destroy(ggml_side *side) {
  drop_x(side);
  ggml_backend_buffer_free(side->buffer);
  ggml_free(side->weights_context);
  ggml_backend_free(side->backend);
  free(side->weights);
  free(side->graph);
  free(side);
}

int ggml_side_repacked(const ggml_side *side) { return side->repacked; }

void ggml_side_set_x(ggml_side *side, int64_t m, const float *x) {
  drop_x(side);
  const size_t copies = (size_t)side->copies;
  const struct ggml_init_params params = {
      .mem_size = (2 * copies + 8) * ggml_tensor_overhead() + copies * ggml_graph_overhead_custom(8, false),
      .no_alloc = true};
  side->context = ggml_init(params);
  side->x = ggml_new_tensor_2d(side->context, GGML_TYPE_F32, side->k, m);
  side->y = ggml_mul_mat(side->context, side->weights[0], side->x);
  for (int i = 0; i < side->copies; i++) {
    struct ggml_tensor *y = i == 0 ? side->y : ggml_mul_mat(side->context, side->weights[i], side->x);
    side->graph[i] = ggml_new_graph_custom(side->context, 8, false);
    ggml_build_forward_expand(side->graph[i], y);
  }
  side->x_buffer = ggml_backend_alloc_ctx_tensors(side->context, side->backend);
  ggml_backend_tensor_set(side->x, x, 0, (size_t)(m * side->k) * sizeof *x);
}

void ggml_side_run(ggml_side *side, int copy, int64_t m) {
  if (side->x->ne[1] != m || ggml_backend_graph_compute(side->backend, side->graph[copy]) != GGML_STATUS_SUCCESS) {
    fputs("ggml-compare: ggml has not computed the graph\n", stderr);
    exit(1);
  }
}

const float *ggml_side_y(const ggml_side *side, int64_t m) {
  (void)m;
  return side->y->data;
}
