/* Checkpoints and sources of every kind in GPU memory: the GPU makes the bytes that the host makes, whole, in slices,
 * joined and in pieces, and unpacks to the same numbers. */
#include <cuda_runtime_api.h>

#include "../checkpoint.h"
#include "../golden_case.h"
#include "../sample.h"
#include "../test.h"
#include "gpu.h"
#include "layouts/packed.h"

static lpgemm_handle_t cpu, gpu;

static lpgemm_handle_t make_handle(lpgemm_backend_t backend) {
  lpgemm_config_t config = {.size = sizeof config, .backend = backend};
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  return handle;
}

/* ---- the same bytes, the same numbers ---- */

static lpgemm_weights_info_t info_of(lpgemm_weights_t weights) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  return info;
}

static void check_equal(lpgemm_weights_t want, lpgemm_weights_t got, const char *what) {
  if (!want || !got) return;
  size_t a_size = 0, b_size = 0;
  uint8_t *a = sample_blob(cpu, want, &a_size), *b = sample_blob(gpu, got, &b_size);
  CHECK_INT(info_of(got).backend, LPGEMM_BACKEND_CUDA);
  CHECK_INT(a_size, b_size);
  CHECK(info_of(want).payload_hash == info_of(got).payload_hash);
  for (size_t i = 0; i < a_size && a_size == b_size; i++) {
    if (a[i] == b[i]) continue;
    const lpgemm_weight_desc_t d = info_of(want).desc;
    test_fail(__FILE__, __LINE__, "%s, %s %lld x %lld: byte %zu of %zu is 0x%02x, not 0x%02x", what,
              lpgemm_dtype_name(d.type), (long long)d.n, (long long)d.k, i, a_size, b[i], a[i]);
    break;
  }
  test_free(a);
  test_free(b);
}

/* Unpacks into GPU memory with a gap after each row, which must not change. */
static void check_unpacked(lpgemm_weights_t want, lpgemm_weights_t got, lpgemm_dtype_t type) {
  if (!want || !got) return;
  const lpgemm_weight_desc_t d = info_of(want).desc;
  const int64_t columns = d.x_k ? d.x_k : d.k, ld = columns + 3;
  const size_t element = (size_t)lpgemm_dtype_bits(type) / 8, bytes = (size_t)(d.n * ld) * element;
  uint8_t *a = malloc(bytes + 1), *b = malloc(bytes + 1), *out = gpu_alloc(bytes, 0xCD);
  if (!a || !b) abort();
  memset(a, 0xCD, bytes);
  CHECK_STATUS(lpgemm_unpack_weights(cpu, want, type, a, ld), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(gpu, got, type, out, ld), LPGEMM_SUCCESS);
  gpu_read(b, out, bytes);
  for (size_t i = 0; i < bytes; i++) {
    if (a[i] == b[i]) continue;
    test_fail(__FILE__, __LINE__, "as %s: byte %zu of (%lld, %lld) is 0x%02x, not 0x%02x", lpgemm_dtype_name(type),
              i % element, (long long)(i / element) / ld, (long long)(i / element) % ld, b[i], a[i]);
    break;
  }
  free(a);
  free(b);
  gpu_free(out);
}

static void check_all_unpacked(lpgemm_weights_t want, lpgemm_weights_t got) {
  static const lpgemm_dtype_t types[] = {LPGEMM_U8, LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16};
  for (int i = 0; i < 4; i++) check_unpacked(want, got, types[i]);
}

/* ---- tensors, some on the GPU ---- */

/* Those that are large, which need not lie on the host. */
static int may_be_on_gpu(const lpgemm_tensor_t *t, lpgemm_format_t format) {
  static const char *const names[] = {"qweight",
                                      "qzeros",
                                      "scales",
                                      "weight_packed",
                                      "weight",
                                      "weight_zero_point",
                                      "blocks",
                                      "_blocks",
                                      "W_q",
                                      "_scales",
                                      "weight.absmax",
                                      "weight.nested_absmax",
                                      "weight.nested_quant_map"};
  int64_t numbers = 1;
  for (int i = 0; i < t->dims; i++) numbers *= t->shape[i];
  if (strncmp(t->name, "weight_scale", 12) == 0) return numbers > 1 && strcmp(t->name, "weight_scale_2") != 0;
  if (strcmp(t->name, "scale") == 0 || strcmp(t->name, "zero") == 0) return format == LPGEMM_FORMAT_HQQ;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(t->name, names[i]) == 0) return 1;
  }
  return 0;
}

enum { MOST_TENSORS = 16 };

typedef enum place { ON_GPU, SHIFTED, SCALES_ON_HOST, ON_HOST, PLACES } place;

typedef struct placed {
  lpgemm_import_t import;
  lpgemm_tensor_t tensor[MOST_TENSORS];
  void *gpu[MOST_TENSORS], *host[MOST_TENSORS];
} placed;

static void put(placed *p, const lpgemm_import_t *from, place where) {
  memset(p, 0, sizeof *p);
  p->import = *from;
  p->import.tensors = p->tensor;
  for (size_t i = 0; i < from->count; i++) {
    const lpgemm_tensor_t *t = &from->tensors[i];
    const size_t shift = where == SHIFTED ? 1 + test_random() % 15 : 0;
    const int is_codes = i == 0 || strstr(t->name, "weight") == t->name;
    p->tensor[i] = *t;
    if (may_be_on_gpu(t, from->format) && where != ON_HOST && (where != SCALES_ON_HOST || is_codes)) {
      p->gpu[i] = gpu_alloc(t->bytes + shift, 0xff);
      GPU(cudaMemcpy((char *)p->gpu[i] + shift, t->data, t->bytes, cudaMemcpyDefault));
      p->tensor[i].data = (char *)p->gpu[i] + shift;
    } else {
      p->host[i] = malloc(t->bytes + 1);
      if (!p->host[i]) abort();
      memcpy(p->host[i], t->data, t->bytes);
      p->tensor[i].data = p->host[i];
    }
  }
}

static void take_away(placed *p) {
  for (int i = 0; i < MOST_TENSORS; i++) {
    gpu_free(p->gpu[i]);
    free(p->host[i]);
  }
}

static lpgemm_weights_t import_by(lpgemm_handle_t handle, const lpgemm_import_t *parts, size_t count) {
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_import_weights(handle, parts, count, NULL, 0, &weights), LPGEMM_SUCCESS);
  return weights;
}

enum { MOST_PARTS = 3 };

/* The parts from one place against the host. */
static void check_import(const lpgemm_import_t *parts, size_t count, place where, int unpack) {
  static const char *const places[] = {"on the GPU", "at odd addresses", "scales on the host", "on the host"};
  placed p[MOST_PARTS];
  lpgemm_import_t there[MOST_PARTS];
  for (size_t i = 0; i < count; i++) {
    put(&p[i], &parts[i], where);
    there[i] = p[i].import;
  }
  lpgemm_weights_t want = import_by(cpu, parts, count), got = import_by(gpu, there, count);
  for (size_t i = 0; i < count; i++) take_away(&p[i]);
  check_equal(want, got, places[where]);
  if (unpack) check_all_unpacked(want, got);
  CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(got), LPGEMM_SUCCESS);
}

/* ---- golden vectors ---- */

static void golden_vectors(void) {
  for (size_t i = 0; i < golden_case_count; i++) {
    const golden_case *g = &golden_cases[i];
    char path[256];
    lpgemm_file_t file = NULL;
    lpgemm_tensor_t tensors[GOLDEN_TENSORS];
    if (!test_case("import_device/golden/%s", g->name)) continue;
    snprintf(path, sizeof path, "tests/golden/formats/%s.safetensors", g->name);
    CHECK_STATUS(lpgemm_file_open(path, &file), LPGEMM_SUCCESS);
    if (!file) continue;
    lpgemm_import_t part = {.size = sizeof part, .format = g->format, .bits = g->bits, .group_k = g->group};
    part.tensors = tensors, part.count = (size_t)golden_tensors(file, g->format, tensors);
    for (int where = 0; where < PLACES; where++) check_import(&part, 1, (place)where, where == ON_GPU);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  }
}

/* Every tensor of blocks of the file, quantised ones and random bits. */
static void golden_blocks(void) {
  lpgemm_file_t file = NULL;
  size_t count = 0;
  if (!test_case("import_device/golden/gguf")) return;
  CHECK_STATUS(lpgemm_file_open("tests/golden/formats/all_types.gguf", &file), LPGEMM_SUCCESS);
  if (!file) return;
  CHECK_STATUS(lpgemm_file_counts(file, &count, NULL), LPGEMM_SUCCESS);
  for (size_t i = 0; i < count; i++) {
    lpgemm_tensor_t tensor;
    lpgemm_weight_desc_t desc = {.size = sizeof desc};
    CHECK_STATUS(lpgemm_file_tensor(file, i, &tensor), LPGEMM_SUCCESS);
    if (LPGEMM_DTYPE_KIND(tensor.type) != LPGEMM_KIND_GGML) continue;
    tensor.name = "weight";
    const lpgemm_import_t part = {sizeof part, LPGEMM_FORMAT_GGUF, &tensor, 1};
    if (lpgemm_import_desc(&part, 1, &desc) != LPGEMM_SUCCESS) continue;
    check_import(&part, 1, ON_GPU, 1);
    check_import(&part, 1, SHIFTED, 0);
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
}

/* ---- random ones ---- */

static void *random_bytes(size_t bytes, unsigned mask, unsigned low) {
  uint8_t *data = malloc(bytes + 1);
  if (!data) abort();
  for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)((test_random() & mask) | low);
  return data;
}

static checkpoint_spec larger(const checkpoint_spec *spec, int64_t rows, int64_t columns) {
  checkpoint_spec s = *spec;
  s.n *= rows, s.k *= columns;
  return s;
}

static void check_whole(const checkpoint_spec *spec) {
  checkpoint c;
  const checkpoint_spec large = larger(spec, 16, 9); /* several chunks of columns, many row tiles */
  checkpoint_make(&c, spec);
  for (int where = 0; where < PLACES; where++) check_import(&c.import, 1, (place)where, where == ON_GPU);
  checkpoint_free(&c);
  checkpoint_make(&c, &large);
  check_import(&c.import, 1, ON_GPU, 0);
  checkpoint_free(&c);
}

static void check_slices(const checkpoint_spec *spec) {
  checkpoint c;
  const checkpoint_spec s = larger(spec, 1, 6);
  checkpoint_make(&c, &s);
  const int64_t unit = s.group > 0 ? s.group : 1, groups = s.k / unit;
  for (int round = 0; round < 6; round++) {
    c.import.n0 = test_between(0, s.n - 1);
    c.import.n1 = round % 2 ? 0 : test_between(c.import.n0 + 1, s.n);
    c.import.k0 = round < 2 ? 0 : test_between(0, groups - 1) * unit;
    c.import.k1 = round % 3 ? 0 : test_between(c.import.k0 / unit + 1, groups) * unit;
    check_import(&c.import, 1, ON_GPU, 1);
  }
  checkpoint_free(&c);
}

/* Parts that end with row tiles, and parts that do not. */
static void check_joined(const checkpoint_spec *spec) {
  checkpoint c[MOST_PARTS];
  lpgemm_import_t parts[MOST_PARTS];
  for (int i = 0; i < MOST_PARTS; i++) {
    checkpoint_make(&c[i], spec);
    if (i && spec->flags & ORDERED) { /* parts of one X have one order */
      const char *name = spec->kind == CHECKPOINT_GPTQ ? "g_idx" : "weight_g_idx";
      lpgemm_tensor_t *to = checkpoint_tensor(&c[i], name);
      memcpy((void *)(uintptr_t)to->data, checkpoint_tensor(&c[0], name)->data, to->bytes);
    }
    parts[i] = c[i].import;
  }
  check_import(parts, MOST_PARTS, ON_GPU, 0);
  parts[0].n1 = spec->n / 32 * 16;
  parts[1].n0 = 3, parts[1].n1 = 3 + 16;
  check_import(parts, MOST_PARTS, ON_GPU, 1);
  for (int i = 0; i < MOST_PARTS; i++) checkpoint_free(&c[i]);
}

static void check_pieces(const checkpoint_spec *spec) {
  checkpoint c;
  placed p;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t got = NULL;
  checkpoint_make(&c, spec);
  put(&p, &c.import, ON_GPU);
  lpgemm_weights_t want = import_by(cpu, &c.import, 1);
  CHECK_STATUS(lpgemm_import_desc(&p.import, 1, &desc), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_create(gpu, &desc, NULL, 0, &got), LPGEMM_SUCCESS);
  const int64_t step = desc.group_n ? desc.group_n : 32;
  for (int64_t row = (spec->n - 1) / step * step; row >= 0; row -= step) { /* the last one first */
    p.import.n0 = row, p.import.n1 = row + step < spec->n ? row + step : spec->n;
    CHECK_STATUS(lpgemm_import_rows(gpu, got, 0, row, &p.import), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_weights_finish(gpu, got), LPGEMM_SUCCESS);
  take_away(&p);
  check_equal(want, got, "in pieces");
  CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(got), LPGEMM_SUCCESS);
  checkpoint_free(&c);
}

static void random_checkpoints(void) {
  static const struct {
    const char *name;
    void (*check)(const checkpoint_spec *spec);
  } checks[] = {{"whole", check_whole}, {"slices", check_slices}, {"joined", check_joined}, {"pieces", check_pieces}};
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
    for (int s = 0; s < checkpoint_spec_count; s++) {
      if (!test_case("import_device/%s/%s", checks[i].name, checkpoint_specs[s].name)) continue;
      checks[i].check(&checkpoint_specs[s]);
    }
  }
}

/* ---- whole tiles only, which have kernels of their own ---- */

/* Rows and columns of the file from one tile's edge to another's. */
static void check_tiles(lpgemm_import_t *import, int64_t n, int64_t k, int64_t rows, int64_t columns) {
  check_import(import, 1, ON_GPU, 0);
  check_import(import, 1, SHIFTED, 0);
  for (int round = 0; round < 4; round++) {
    import->n0 = test_between(0, n / rows - 1) * rows;
    import->n1 = test_between(import->n0 / rows + 1, n / rows) * rows;
    import->k0 = round == 0 ? 0 : test_between(0, k / columns - 1) * columns;
    import->k1 = test_between(import->k0 / columns + 1, k / columns) * columns;
    check_import(import, 1, ON_GPU, 0);
  }
}

static void whole_nibbles(void) {
  static const checkpoint_spec specs[] = {{"gptq", CHECKPOINT_GPTQ, 208, 2176, 64, 4, 0},
                                          {"gptq-row", CHECKPOINT_GPTQ, 16, 4160, 0, 4, V2},
                                          {"gptq-order", CHECKPOINT_GPTQ, 48, 8832, 64, 4, ORDERED},
                                          {"gptq-order-short", CHECKPOINT_GPTQ, 40, 1056, 32, 4, ORDERED},
                                          {"awq", CHECKPOINT_AWQ, 272, 2304, 128, 4, 0},
                                          {"awq-row", CHECKPOINT_AWQ, 32, 4160, 0, 4, 0}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    checkpoint c;
    if (!test_case("import_device/tiles/%s", specs[i].name)) continue;
    checkpoint_make(&c, &specs[i]);
    check_tiles(&c.import, specs[i].n, specs[i].k, 16, specs[i].group ? specs[i].group : specs[i].k);
    checkpoint_free(&c);
  }
}

/* Random bits: scales too, of which some are infinite or NaN. */
static void whole_blocks(void) {
  static const struct {
    const char *name;
    uint32_t type;
    int64_t bytes;
  } types[] = {{"iq2_xxs", 16, 66}, {"iq2_xs", 17, 74}};
  static const int64_t blocks[] = {1, 16, 19, 40};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (!test_case("import_device/tiles/%s", types[i].name)) continue;
    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
      const int64_t n = 48, k = blocks[b] * 256;
      lpgemm_tensor_t tensor = {.name = "weight", .type = LPGEMM_GGML(types[i].type), .dims = 2, .shape = {n, k}};
      tensor.bytes = (size_t)(n * blocks[b] * types[i].bytes);
      void *data = random_bytes(tensor.bytes, 0xff, 0);
      tensor.data = data;
      lpgemm_import_t part = {.size = sizeof part, .format = LPGEMM_FORMAT_GGUF, .tensors = &tensor, .count = 1};
      check_tiles(&part, n, k, 16, 256);
      free(data);
    }
  }
}

/* ---- sources of version 2 ---- */

typedef struct arrays {
  lpgemm_weight_desc_t desc;
  lpgemm_weight_source_t source; /* on the host */
  int64_t source_rows;
} arrays;

/* Numbers of a type, none of them NaN or infinite: the top byte of a float is 0x20 to 0x3f. */
static void *random_numbers(lpgemm_dtype_t type, int64_t count, size_t *bytes) {
  const int bits = lpgemm_dtype_bits(type);
  *bytes = (size_t)count * (size_t)((bits + 7) / 8);
  if (bits < 8) return random_bytes(*bytes, (1u << bits) - 1u, 0);
  if (bits == 8)
    return random_bytes(*bytes,
                        type == LPGEMM_E8M0 ? 0x1f
                        : type == LPGEMM_U8 ? 1
                                            : 0x77,
                        type == LPGEMM_E8M0 ? 0x60 : 0);
  uint8_t *data = random_bytes(*bytes, 0xff, 0);
  for (size_t i = (size_t)bits / 8 - 1; i < *bytes; i += (size_t)bits / 8) data[i] = (uint8_t)((data[i] & 0x1f) | 0x20);
  return data;
}

static int32_t *random_order(int64_t from, int64_t count) {
  int32_t *order = malloc((size_t)(from + 1) * sizeof *order);
  if (!order) abort();
  for (int64_t i = 0; i < from; i++) order[i] = (int32_t)i;
  for (int64_t i = 0; i < count && from > 1; i++) {
    const int64_t j = test_between(i, from - 1);
    const int32_t at = order[i];
    order[i] = order[j], order[j] = at;
  }
  return order;
}

static void make_source(arrays *a, const lpgemm_weight_desc_t *desc, lpgemm_code_layout_t layout, lpgemm_order_t order,
                        int in_order) {
  lpgemm_weight_source_t *s = &a->source;
  memset(a, 0, sizeof *a);
  a->desc = *desc;
  *s = (lpgemm_weight_source_t){.size = sizeof *s, .code_layout = layout, .order = order};
  const int64_t n = desc->n, k = desc->k, x_k = desc->x_k ? desc->x_k : k, group_n = desc->group_n ? desc->group_n : 1;
  const int bits = lpgemm_dtype_bits(desc->type);
  a->source_rows = in_order ? n + 2 * group_n : n;
  s->codes_ld = x_k + test_between(0, 9);
  const int64_t codes = (a->source_rows - 1) * s->codes_ld + x_k;
  s->codes_bytes = layout == LPGEMM_CODES_BITS ? (size_t)(codes * bits + 7) / 8 : (size_t)codes;
  s->codes = random_bytes(s->codes_bytes, layout == LPGEMM_CODES_BITS ? 0xff : (1u << bits) - 1u, 0);
  const int64_t rows = (a->source_rows + group_n - 1) / group_n;
  const int64_t groups = desc->group_k ? (k + desc->group_k - 1) / desc->group_k : 1;
  const int64_t supers = desc->super_k ? (k + desc->super_k - 1) / desc->super_k : 1;
  s->scales_ld = (order == LPGEMM_ROW_MAJOR ? groups : rows) + test_between(0, 3);
  s->super_ld = (order == LPGEMM_ROW_MAJOR ? supers : rows) + test_between(0, 3);
  const int64_t many = s->scales_ld * (order == LPGEMM_ROW_MAJOR ? rows : groups);
  const int64_t few = s->super_ld * (order == LPGEMM_ROW_MAJOR ? rows : supers);
  if (desc->scale_type) s->scales = random_numbers(desc->scale_type, many, &s->scales_bytes);
  if (desc->zero_type) s->zeros = random_numbers(desc->zero_type, many, &s->zeros_bytes);
  if (desc->super_scale_type) s->super_scales = random_numbers(desc->super_scale_type, few, &s->super_scales_bytes);
  if (desc->super_zero_type) s->super_zeros = random_numbers(desc->super_zero_type, few, &s->super_zeros_bytes);
  if (desc->row_scales) s->row_scales = random_numbers(LPGEMM_F32, a->source_rows, &s->row_scales_bytes);
  if (desc->columns) {
    s->column_order = random_order(x_k, k);
    s->column_order_bytes = (size_t)k * sizeof(int32_t);
  }
  if (in_order) { /* whole blocks of group_n rows anywhere, and any rows of one block in each */
    const int64_t blocks = a->source_rows / group_n;
    int32_t *block = random_order(blocks, blocks), *row = malloc((size_t)n * sizeof *row);
    if (!row) abort();
    for (int64_t i = 0; i < n; i++) row[i] = (int32_t)(block[i / group_n] * group_n + test_between(0, group_n - 1));
    free(block);
    s->row_order = row;
    s->row_order_bytes = (size_t)n * sizeof *row;
  }
}

static void free_source(const lpgemm_weight_source_t *s) {
  const void *all[] = {s->codes,       s->scales,     s->zeros,        s->super_scales,
                       s->super_zeros, s->row_scales, s->column_order, s->row_order};
  for (int i = 0; i < 8; i++) free((void *)(uintptr_t)all[i]);
}

typedef struct source_on_gpu {
  lpgemm_weight_source_t source;
  void *memory[6];
} source_on_gpu;

static source_on_gpu copy_source(const lpgemm_weight_source_t *from) {
  source_on_gpu p = {.source = *from};
  const void **arrays[] = {&p.source.codes,        &p.source.scales,      &p.source.zeros,
                           &p.source.super_scales, &p.source.super_zeros, &p.source.row_scales};
  const size_t bytes[] = {from->codes_bytes,        from->scales_bytes,      from->zeros_bytes,
                          from->super_scales_bytes, from->super_zeros_bytes, from->row_scales_bytes};
  for (int i = 0; i < 6; i++) {
    p.memory[i] = gpu_copy(*arrays[i], bytes[i]);
    *arrays[i] = p.memory[i];
  }
  return p;
}

static void free_copy(source_on_gpu *p) {
  for (int i = 0; i < 6; i++) gpu_free(p->memory[i]);
}

/* The rows from `first` on of a row-major source in its own order. */
static lpgemm_weight_source_t rows_from(const lpgemm_weight_source_t *from, const lpgemm_weight_desc_t *d,
                                        int64_t first) {
  lpgemm_weight_source_t s = *from;
  const int64_t line = first / (d->group_n ? d->group_n : 1);
  const lpgemm_dtype_t types[] = {LPGEMM_U8,           d->scale_type,      d->zero_type,
                                  d->super_scale_type, d->super_zero_type, d->row_scales};
  const void **arrays[] = {&s.codes, &s.scales, &s.zeros, &s.super_scales, &s.super_zeros, &s.row_scales};
  size_t *bytes[] = {&s.codes_bytes,        &s.scales_bytes,      &s.zeros_bytes,
                     &s.super_scales_bytes, &s.super_zeros_bytes, &s.row_scales_bytes};
  const int64_t lines[] = {first * s.codes_ld, line * s.scales_ld, line * s.scales_ld,
                           line * s.super_ld,  line * s.super_ld,  first};
  for (int i = 0; i < 6; i++) {
    const size_t skipped = (size_t)lines[i] * (size_t)((lpgemm_dtype_bits(types[i]) + 7) / 8);
    if (!*arrays[i]) continue;
    *arrays[i] = (const char *)*arrays[i] + skipped;
    *bytes[i] -= skipped;
  }
  return s;
}

static void check_source_pieces(const arrays *a, const lpgemm_weight_source_t *source, lpgemm_weights_t want,
                                const char *what) {
  lpgemm_weights_t got = NULL;
  const int64_t n = a->desc.n, step = a->desc.group_n ? a->desc.group_n : 16;
  CHECK_STATUS(lpgemm_weights_create(gpu, &a->desc, NULL, 0, &got), LPGEMM_SUCCESS);
  for (int64_t row = (n - 1) / step * step; row >= 0; row -= step) {
    const lpgemm_weight_source_t piece = rows_from(source, &a->desc, row);
    CHECK_STATUS(lpgemm_pack_rows(gpu, got, 0, row, row + step < n ? step : n - row, &piece), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_weights_finish(gpu, got), LPGEMM_SUCCESS);
  check_equal(want, got, what);
  CHECK_STATUS(lpgemm_weights_destroy(got), LPGEMM_SUCCESS);
}

static void check_source(const lpgemm_weight_desc_t *desc, lpgemm_code_layout_t layout, lpgemm_order_t order,
                         int in_order) {
  arrays a;
  lpgemm_weights_t want = NULL, got = NULL, from_host = NULL;
  make_source(&a, desc, layout, order, in_order);
  source_on_gpu p = copy_source(&a.source);
  CHECK_STATUS(lpgemm_pack_weights(cpu, desc, &a.source, NULL, 0, &want), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_pack_weights(gpu, desc, &p.source, NULL, 0, &got), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_pack_weights(gpu, desc, &a.source, NULL, 0, &from_host), LPGEMM_SUCCESS);
  check_equal(want, got, "from the GPU");
  check_equal(want, from_host, "from the host");
  if (desc->n * desc->k < 1 << 20) check_all_unpacked(want, got);
  if (!in_order && layout == LPGEMM_CODES_BYTES && order == LPGEMM_ROW_MAJOR) {
    check_source_pieces(&a, &p.source, want, "in pieces from the GPU");
    check_source_pieces(&a, &a.source, want, "in pieces from the host");
  }
  free_copy(&p);
  free_source(&a.source);
  CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(got), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(from_host), LPGEMM_SUCCESS);
}

/* Kind i of scales and zeros, and of what is new in version 2. */
static lpgemm_weight_desc_t make_desc(lpgemm_dtype_t type, int i) {
  static const lpgemm_dtype_t scales[] = {LPGEMM_F16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_UINT(4), LPGEMM_UINT(6),
                                          LPGEMM_I8,  0};
  lpgemm_weight_desc_t d = sample_desc(test_between(1, 130), test_between(1, 2500), type, 0, scales[i % 7]);
  const int two_levels = i % 7 >= 3 && i % 7 <= 5;
  d.group_k = test_between(two_levels, 5) * 16;
  if (two_levels) d.super_k = d.group_k * test_between(0, 3), d.super_scale_type = i % 2 ? LPGEMM_F16 : LPGEMM_F32;
  if (i % 3 == 1) d.zero = LPGEMM_ZERO_PER_GROUP, d.zero_type = i % 2 ? LPGEMM_U8 : LPGEMM_F16;
  if (i % 3 == 2) d.zero = LPGEMM_ZERO_MINIMUM, d.zero_type = two_levels ? LPGEMM_UINT(6) : LPGEMM_BF16;
  if (i % 3 == 2 && two_levels) d.super_zero_type = LPGEMM_F16;
  if (i % 2) d.columns = LPGEMM_COLUMNS_ORDERED;
  if (i % 4 == 3) d.x_k = d.k + test_between(0, 300);
  if (i / 2 % 2) d.row_scales = LPGEMM_F32;
  if (i / 4 % 2 && (d.scale_type || d.zero_type)) d.group_n = 16 * test_between(1, 4);
  return d;
}

static void sources(void) {
  for (int t = 0; t < SAMPLE_TYPES; t++) {
    const lpgemm_dtype_t type = sample_type(t);
    if (!test_case("import_device/pack/%s", lpgemm_dtype_name(type))) continue;
    for (int i = t % 3; i < 28; i += 3) {
      lpgemm_weight_desc_t desc = make_desc(type, i);
      if (lpgemm_dtype_bits(type) && (type >> 16) == LPGEMM_KIND_CODEBOOK) {
        for (int c = 0; c < 1 << lpgemm_dtype_bits(type); c++) desc.codebook[c] = (float)(c * c) - 7.5f;
      }
      check_source(&desc, i / 3 % 2 ? LPGEMM_CODES_BITS : LPGEMM_CODES_BYTES,
                   i / 6 % 2 ? LPGEMM_COLUMN_MAJOR : LPGEMM_ROW_MAJOR, i % 5 == 4);
    }
  }
}

/* A host source of several bands. */
static void large_source(void) {
  if (!test_case("import_device/pack/large")) return;
  lpgemm_weight_desc_t desc = sample_desc(12400, 8192, LPGEMM_U8, 128, LPGEMM_F16);
  desc.row_scales = LPGEMM_F32;
  check_source(&desc, LPGEMM_CODES_BYTES, LPGEMM_ROW_MAJOR, 0);
  desc.columns = LPGEMM_COLUMNS_ORDERED, desc.group_n = 128;
  check_source(&desc, LPGEMM_CODES_BITS, LPGEMM_COLUMN_MAJOR, 1);
}

/* ---- refusals ---- */

/* A code that is too wide is named with the row and column of the source, whatever the orders. */
static void refused_codes(void) {
  if (!test_case("import_device/refused")) return;
  for (int round = 0; round < 8; round++) {
    lpgemm_weight_desc_t desc = sample_desc(70, 300, LPGEMM_UINT(5), 32, LPGEMM_F16);
    desc.columns = round % 2 ? LPGEMM_COLUMNS_ORDERED : LPGEMM_COLUMNS_PLAIN;
    arrays a;
    make_source(&a, &desc, LPGEMM_CODES_BYTES, LPGEMM_ROW_MAJOR, round / 2 % 2);
    for (int i = 0; i < 3; i++) {
      uint8_t *codes = (uint8_t *)(uintptr_t)a.source.codes;
      const int64_t row = test_between(0, 69), at = a.source.row_order ? a.source.row_order[row] : row;
      codes[at * a.source.codes_ld + test_between(0, 299)] |= 0x40;
    }
    source_on_gpu p = copy_source(&a.source);
    lpgemm_weights_t none = NULL;
    char words[512];
    CHECK_STATUS(lpgemm_pack_weights(cpu, &desc, &a.source, NULL, 0, &none), LPGEMM_INVALID_CODE);
    snprintf(words, sizeof words, "%s", lpgemm_last_error());
    CHECK_STATUS(lpgemm_pack_weights(gpu, &desc, &p.source, NULL, 0, &none), LPGEMM_INVALID_CODE);
    if (strcmp(words, lpgemm_last_error()) != 0) {
      test_fail(__FILE__, __LINE__, "\"%s\" on the GPU, \"%s\" on the host", lpgemm_last_error(), words);
    }
    free_copy(&p);
    free_source(&a.source);
  }
}

void suite_import_device(void) {
  cpu = make_handle(LPGEMM_BACKEND_CPU);
  gpu = make_handle(LPGEMM_BACKEND_CUDA);
  if (!cpu || !gpu) return;
  golden_vectors();
  golden_blocks();
  random_checkpoints();
  whole_nibbles();
  whole_blocks();
  sources();
  large_source();
  refused_codes();
  CHECK_STATUS(lpgemm_destroy(cpu), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(gpu), LPGEMM_SUCCESS);
}
