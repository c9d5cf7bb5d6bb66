/* Checkpoints: what lpgemm makes of the tensors of a file is what the format's own library computes from them. Golden
 * vectors come from those libraries; larger ones are random words and a formula for one weight, written a second time
 * here. Then slices, joins and pieces, and everything that can be wrong with the tensors. */
#include <math.h>

#include "checkpoint.h"
#include "compare.h"
#include "golden_case.h"
#include "test.h"

static lpgemm_handle_t handle;

static float *unpack(lpgemm_weights_t weights, int64_t n, int64_t k) {
  float *w = test_alloc((size_t)(n * k) * sizeof *w);
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, w, 0), LPGEMM_SUCCESS);
  return w;
}

/* The values of parts as fp32, NULL if they are refused; sizes into *n and *k. */
static float *import_values(const lpgemm_import_t *parts, size_t count, int64_t *n, int64_t *k) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights;
  CHECK_STATUS(lpgemm_import_desc(parts, count, &desc), LPGEMM_SUCCESS);
  lpgemm_status_t status = lpgemm_import_weights(handle, parts, count, NULL, 0, &weights);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (status != LPGEMM_SUCCESS) return NULL;
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  CHECK_INT(info.desc.n, desc.n);
  CHECK_INT(info.desc.k, desc.k);
  *n = desc.n, *k = desc.k;
  float *w = unpack(weights, desc.n, desc.x_k ? desc.x_k : desc.k);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  return w;
}

/* ---- golden vectors ---- */

enum { GOLDEN_BYTES = 1 << 19 };

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static int is_close(float got, float want, const golden_case *g) {
  uint32_t a = bits_of(got), b = bits_of(want);
  if (g->round == LPGEMM_BF16) a = (a + 0x7fff + (a >> 16 & 1)) & 0xffff0000u;
  if (((a | b) & 0x7fffffffu) == 0 || (isnan(got) && isnan(want))) return 1;
  return (a > b ? a - b : b - a) <= (uint32_t)g->ulp;
}

static float *read_golden(const char *name, int64_t *numbers) {
  char path[256];
  snprintf(path, sizeof path, "tests/golden/formats/%s.w.f32", name);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  *numbers = 0;
  if (!file) return NULL;
  float *want = test_alloc(GOLDEN_BYTES);
  *numbers = (int64_t)fread(want, sizeof *want, GOLDEN_BYTES / sizeof *want, file);
  fclose(file);
  return want;
}

static void check_golden(const golden_case *g) {
  char path[256];
  lpgemm_file_t file;
  lpgemm_tensor_t tensors[GOLDEN_TENSORS];
  int64_t numbers, n, k, done = 0;
  float *want = read_golden(g->name, &numbers);
  snprintf(path, sizeof path, "tests/golden/formats/%s.safetensors", g->name);
  lpgemm_status_t status = lpgemm_file_open(path, &file);
  CHECK_STATUS(status, LPGEMM_SUCCESS);
  if (status != LPGEMM_SUCCESS || !want) return;
  lpgemm_import_t part = {.size = sizeof part, .format = g->format, .bits = g->bits, .group_k = g->group};
  part.tensors = tensors, part.count = (size_t)golden_tensors(file, g->format, tensors);
  for (part.expert = 0; done < numbers; part.expert++) { /* a stack: one matrix under the other */
    float *got = import_values(&part, 1, &n, &k);
    if (!got) break;
    for (int64_t i = 0; i < n * k; i++) {
      if (done + i < numbers && is_close(got[i], want[done + i], g)) continue;
      test_fail(__FILE__, __LINE__, "weight (%lld, %lld) of matrix %lld is %.9g, not %.9g", (long long)(i / k),
                (long long)(i % k), (long long)part.expert, (double)got[i], (double)want[done + i]);
      break;
    }
    test_free(got);
    done += n * k;
  }
  CHECK_INT(done, numbers);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  test_free(want);
}

static void golden_vectors(void) {
  for (size_t i = 0; i < golden_case_count; i++) {
    if (test_case("import/golden/%s", golden_cases[i].name)) check_golden(&golden_cases[i]);
  }
}

/* ---- toy models: every layer that the file names, q, k and v as one ---- */

/* To the bit, but for the sign of a zero. */
static int are_equal(const float *a, const float *b, int64_t count) {
  int64_t i = 0;
  while (i < count && (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))) i++;
  return i == count;
}

/* The expected values of a layer, under its name; NULL if there are none. */
static const float *expected_of(lpgemm_file_t expected, const char *layer, int64_t numbers) {
  char name[256];
  lpgemm_tensor_t t;
  if (lpgemm_file_find(expected, layer, &t) != LPGEMM_SUCCESS) {
    snprintf(name, sizeof name, "%s.weight", layer);
    CHECK_STATUS(lpgemm_file_find(expected, name, &t), LPGEMM_SUCCESS);
  }
  CHECK_INT(t.bytes, numbers * 4);
  return t.bytes == (size_t)numbers * 4 ? t.data : NULL;
}

static void check_model(const char *path, const char *folder) {
  char name[256], at[256];
  lpgemm_file_t file, expected;
  size_t layers;
  snprintf(at, sizeof at, "tests/golden/formats/%s", path);
  CHECK_STATUS(lpgemm_file_open(at, &file), LPGEMM_SUCCESS);
  snprintf(at, sizeof at, "tests/golden/formats/%s/expected.safetensors", folder);
  CHECK_STATUS(lpgemm_file_open(at, &expected), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(file, NULL, &layers), LPGEMM_SUCCESS);
  CHECK(layers > 0);
  for (size_t i = 0; i < layers; i++) {
    static const char *const joined[] = {"q_proj", "k_proj", "v_proj"};
    const char *layer;
    lpgemm_import_t parts[3] = {{.size = sizeof parts[0]}, {.size = sizeof parts[0]}, {.size = sizeof parts[0]}};
    int64_t n, k, row = 0;
    CHECK_STATUS(lpgemm_file_layer_name(file, i, &layer), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_file_layer(file, layer, &parts[0]), LPGEMM_SUCCESS);
    float *got = import_values(parts, 1, &n, &k);
    const float *want = got ? expected_of(expected, layer, n * k) : NULL;
    CHECK(want && are_equal(got, want, n * k));
    test_free(got);
    const size_t stem = strlen(layer) - 6;
    if (strcmp(layer + stem, joined[0]) != 0 || parts[0].format == LPGEMM_FORMAT_GGUF) continue;
    for (int j = 0; j < 3; j++) {
      snprintf(name, sizeof name, "%.*s%s", (int)stem, layer, joined[j]);
      CHECK_STATUS(lpgemm_file_layer(file, name, &parts[j]), LPGEMM_SUCCESS);
    }
    lpgemm_weight_desc_t desc = {.size = sizeof desc};
    if (lpgemm_import_desc(parts, 3, &desc) == LPGEMM_NOT_SUPPORTED) continue; /* each has an order of its own */
    got = import_values(parts, 3, &n, &k);
    for (int j = 0; j < 3; j++) {
      CHECK_STATUS(lpgemm_import_desc(&parts[j], 1, &desc), LPGEMM_SUCCESS);
      snprintf(name, sizeof name, "%.*s%s", (int)stem, layer, joined[j]);
      want = expected_of(expected, name, desc.n * k);
      CHECK(want && are_equal(got + row * k, want, desc.n * k));
      row += desc.n;
    }
    CHECK_INT(row, n);
    test_free(got);
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(expected), LPGEMM_SUCCESS);
}

static void toy_models(void) {
  if (test_case("import/model/gptq")) check_model("model-gptq", "model-gptq");
  if (test_case("import/model/compressed-tensors")) {
    check_model("model-compressed-tensors", "model-compressed-tensors");
  }
  if (test_case("import/model/gguf")) check_model("model-gguf/model.gguf", "model-gguf");
}

/* ---- random ones, whole and cut ---- */

/* Rows n0 .. and columns of the file, in the order in which they are packed, against the formula. */
static void check_values(const checkpoint *c, const float *got, int64_t n0, int64_t n, int64_t k) {
  for (int64_t i = 0; i < n * k; i++) {
    const float want = (float)checkpoint_value(c, n0 + i / k, i % k);
    if (got[i] == want || (isnan(got[i]) && isnan(want))) continue;
    test_fail(__FILE__, __LINE__, "weight (%lld, %lld) is %.9g, not %.9g", (long long)(n0 + i / k), (long long)(i % k),
              (double)got[i], (double)want);
    return;
  }
}

static void check_whole(const checkpoint_spec *spec) {
  checkpoint c;
  int64_t n, k;
  checkpoint_make(&c, spec);
  float *got = import_values(&c.import, 1, &n, &k);
  CHECK_INT(n, spec->n);
  CHECK_INT(k, spec->k);
  if (got) check_values(&c, got, 0, n, k);
  test_free(got);
  checkpoint_free(&c);
}

/* Rows anywhere: a few, some bands, the last one. */
static void check_rows(const checkpoint_spec *spec) {
  checkpoint c;
  checkpoint_make(&c, spec);
  for (int round = 0; round < 6; round++) {
    int64_t n, k;
    c.import.n0 = round == 0 ? spec->n - 1 : test_between(0, spec->n - 1);
    c.import.n1 = round == 1 ? 0 : test_between(c.import.n0 + 1, spec->n);
    float *got = import_values(&c.import, 1, &n, &k);
    CHECK_INT(n, (c.import.n1 ? c.import.n1 : spec->n) - c.import.n0);
    if (got) check_values(&c, got, c.import.n0, n, k);
    test_free(got);
  }
  checkpoint_free(&c);
}

/* Columns between edges of groups. A slice of an ordered matrix unpacks to all columns of the file, 0 where the slice
 * has none: the slices add up to the whole. */
static void check_columns(const checkpoint_spec *spec) {
  checkpoint c;
  checkpoint_make(&c, spec);
  const int64_t group = spec->group > 0 ? spec->group : 16, groups = (spec->k + group - 1) / group;
  const int64_t cut = groups / 2 * group;
  int64_t n, k, first = 0;
  float *sum = calloc((size_t)(spec->n * spec->k), sizeof *sum);
  for (int half = 0; half < 2; half++, first += k) {
    c.import.k0 = half ? cut : 0, c.import.k1 = half ? 0 : cut;
    float *got = import_values(&c.import, 1, &n, &k);
    if (!got) break;
    CHECK_INT(k, half ? spec->k - cut : cut);
    const int64_t ld = spec->flags & ORDERED ? spec->k : k, from = spec->flags & ORDERED ? 0 : first;
    for (int64_t i = 0; i < n * ld; i++) sum[i / ld * spec->k + from + i % ld] += got[i];
    test_free(got);
  }
  check_values(&c, sum, 0, spec->n, spec->k);
  free(sum);
  checkpoint_free(&c);
}

/* import_rows() in pieces makes the bytes that import_weights() makes. */
static void check_pieces(const checkpoint_spec *spec) {
  checkpoint c;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t whole, pieces;
  size_t bytes;
  checkpoint_make(&c, spec);
  CHECK_STATUS(lpgemm_import_desc(&c.import, 1, &desc), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_packed_size(&desc, &bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_weights(handle, &c.import, 1, NULL, 0, &whole), LPGEMM_SUCCESS);
  uint8_t *memory = test_alloc(bytes), *a = test_alloc(bytes), *b = test_alloc(bytes);
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, memory, bytes, &pieces), LPGEMM_SUCCESS);
  const int64_t step = desc.group_n ? desc.group_n : 48;
  for (int64_t row = (spec->n - 1) / step * step; row >= 0; row -= step) { /* the last one first */
    c.import.n0 = row, c.import.n1 = row + step < spec->n ? row + step : spec->n;
    CHECK_STATUS(lpgemm_import_rows(handle, pieces, 0, row, &c.import), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_weights_finish(handle, pieces), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_serialize(handle, whole, a, bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_serialize(handle, pieces, b, bytes), LPGEMM_SUCCESS);
  CHECK(memcmp(a, b, bytes) == 0);
  CHECK_STATUS(lpgemm_validate(b, bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(whole), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(pieces), LPGEMM_SUCCESS);
  test_free(memory), test_free(a), test_free(b);
  checkpoint_free(&c);
}

/* Three parts one under the other, with scales of their own, cut so that seams lie anywhere. */
static void check_joined(const checkpoint_spec *spec) {
  checkpoint c[3];
  lpgemm_import_t parts[3];
  int64_t n, k, row = 0;
  for (int i = 0; i < 3; i++) {
    checkpoint_make(&c[i], spec);
    if (i && spec->flags & ORDERED) { /* parts of one X have one order */
      const char *name = spec->kind == CHECKPOINT_GPTQ ? "g_idx" : "weight_g_idx";
      lpgemm_tensor_t *to = checkpoint_tensor(&c[i], name);
      memcpy((void *)(uintptr_t)to->data, checkpoint_tensor(&c[0], name)->data, to->bytes);
    }
    parts[i] = c[i].import;
  }
  parts[1].n0 = 5, parts[1].n1 = spec->n - 6;
  float *got = import_values(parts, 3, &n, &k);
  CHECK_INT(n, 3 * spec->n - 11);
  for (int i = 0; i < 3 && got; i++) {
    const int64_t rows = (parts[i].n1 ? parts[i].n1 : spec->n) - parts[i].n0;
    check_values(&c[i], got + row * k, parts[i].n0, rows, k);
    row += rows;
  }
  test_free(got);
  for (int i = 0; i < 3; i++) checkpoint_free(&c[i]);
}

enum { EXPERTS = 2 };

/* An expert after the other, last first: gates and ups of a stack of pairs (in_pairs), ups before gates and gates in
 * two pieces, or one part each; with factors of rows where two parts of an expert have scales of their own. */
static void check_stack(const checkpoint_spec *spec, int in_pairs) {
  checkpoint c[EXPERTS][2];
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights = NULL;
  const int64_t n = spec->n, k = spec->k;
  int has_scales = 0;
  for (int i = 0; i < EXPERTS * 2; i++) {
    checkpoint_make(&c[i / 2][i % 2], spec);
    has_scales |= c[i / 2][i % 2].global != 1.0f;
    if (i % 2 == 0 || !(spec->flags & ORDERED)) continue;
    const char *name = spec->kind == CHECKPOINT_GPTQ ? "g_idx" : "weight_g_idx";
    lpgemm_tensor_t *to = checkpoint_tensor(&c[i / 2][1], name);
    memcpy((void *)(uintptr_t)to->data, checkpoint_tensor(&c[i / 2][0], name)->data, to->bytes);
  }
  CHECK_STATUS(lpgemm_import_desc(&c[0][0].import, 1, &desc), LPGEMM_SUCCESS);
  desc.experts = EXPERTS;
  if (in_pairs) {
    desc.n = 2 * n;
    desc.rows = LPGEMM_ROWS_PAIRED;
    if (has_scales) desc.row_scales = LPGEMM_F32, desc.global_scale = 0;
  }
  if (in_pairs && desc.group_n && n % desc.group_n) { /* halves of blocks: no pairs */
    CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &weights), LPGEMM_INVALID_ARGUMENT);
  } else {
    const int64_t unit = desc.group_n ? desc.group_n : in_pairs ? 8 : 16, cut = n / 2 / unit * unit;
    CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &weights), LPGEMM_SUCCESS);
    for (int e = EXPERTS - 1; e >= 0; e--) {
      lpgemm_import_t part = c[e][1].import;
      if (in_pairs) CHECK_STATUS(lpgemm_import_rows(handle, weights, e, n, &part), LPGEMM_SUCCESS);
      part = c[e][0].import;
      part.n0 = cut;
      CHECK_STATUS(lpgemm_import_rows(handle, weights, e, cut, &part), LPGEMM_SUCCESS);
      part.n0 = 0, part.n1 = cut;
      if (cut) CHECK_STATUS(lpgemm_import_rows(handle, weights, e, 0, &part), LPGEMM_SUCCESS);
    }
    CHECK_STATUS(lpgemm_weights_finish(handle, weights), LPGEMM_SUCCESS);
    float *got = test_alloc((size_t)(EXPERTS * desc.n * k) * sizeof *got);
    CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, got, 0), LPGEMM_SUCCESS);
    for (int e = 0; e < EXPERTS; e++) {
      check_values(&c[e][0], got + e * desc.n * k, 0, n, k);
      if (in_pairs) check_values(&c[e][1], got + (e * desc.n + n) * k, 0, n, k);
    }
    test_free(got);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  }
  for (int i = 0; i < EXPERTS * 2; i++) checkpoint_free(&c[i / 2][i % 2]);
}

static void check_experts(const checkpoint_spec *spec) {
  check_stack(spec, 0);
  check_stack(spec, 1);
}

static void random_checkpoints(void) {
  static const struct {
    const char *name;
    void (*check)(const checkpoint_spec *spec);
  } checks[] = {{"whole", check_whole},   {"rows", check_rows},     {"columns", check_columns},
                {"pieces", check_pieces}, {"joined", check_joined}, {"experts", check_experts}};
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
    for (int s = 0; s < checkpoint_spec_count; s++) {
      if (test_case("import/%s/%s", checks[i].name, checkpoint_specs[s].name)) checks[i].check(&checkpoint_specs[s]);
    }
  }
}

void suite_import(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 2};
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  golden_vectors();
  toy_models();
  random_checkpoints();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
