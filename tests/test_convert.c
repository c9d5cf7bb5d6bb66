/* lpgemm-convert as a user starts it: toy models of the golden vectors and mixtures of experts that the test writes,
 * joins, slices, refusals; OUT is read again by the library and compared with formulas or with the vectors. */
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint.h"
#include "checkpoints.h"
#include "layouts/number.h"
#include "program.h"
#include "test.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static lpgemm_handle_t handle;

/* ---- matrices of OUT ---- */

typedef struct matrix {
  float *w; /* [n][k], k: of X */
  int64_t n, k;
} matrix;

/* A matrix of a container, mapped and viewed where it lies. */
static matrix load(const char *out, const char *name) {
  matrix m = {NULL, 0, 0};
  lpgemm_file_t file = NULL;
  lpgemm_tensor_t t;
  lpgemm_weights_t weights = NULL;
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_file_open(out, &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_find(file, name, &t), LPGEMM_SUCCESS);
  if (file && lpgemm_file_find(file, name, &t) == LPGEMM_SUCCESS) {
    CHECK(t.type == LPGEMM_BLOB);
    CHECK_STATUS(lpgemm_deserialize(handle, t.data, t.bytes, LPGEMM_LOAD_VIEW, &weights), LPGEMM_SUCCESS);
  }
  if (weights) {
    CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
    m.n = info.desc.n, m.k = info.desc.x_k ? info.desc.x_k : info.desc.k;
    m.w = malloc((size_t)(m.n * m.k) * sizeof *m.w + 1);
    CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, m.w, 0), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  return m;
}

static int entries(const char *out) {
  lpgemm_file_t file = NULL;
  size_t count = 0;
  CHECK_STATUS(lpgemm_file_open(out, &file), LPGEMM_SUCCESS);
  if (file) CHECK_STATUS(lpgemm_file_counts(file, &count, NULL), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  return (int)count;
}

/* Whether OUT has an entry of this name, and of which type. */
static lpgemm_dtype_t type_in(const char *out, const char *name) {
  lpgemm_file_t file = NULL;
  lpgemm_tensor_t t = {0};
  CHECK_STATUS(lpgemm_file_open(out, &file), LPGEMM_SUCCESS);
  const int found = file && lpgemm_file_find(file, name, &t) == LPGEMM_SUCCESS;
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  return found ? t.type : 0;
}

static void check_same(const matrix *a, int64_t a_row, int64_t a_column, const matrix *b, int64_t b_row,
                       int64_t b_column, int64_t rows, int64_t columns) {
  if (!a->w || !b->w) return;
  CHECK(a_row + rows <= a->n && b_row + rows <= b->n && a_column + columns <= a->k && b_column + columns <= b->k);
  for (int64_t i = 0; i < rows && a_row + i < a->n && b_row + i < b->n; i++) {
    CHECK(memcmp(a->w + (a_row + i) * a->k + a_column, b->w + (b_row + i) * b->k + b_column,
                 (size_t)columns * sizeof *a->w) == 0);
  }
}

/* ---- toy models ---- */

static const struct {
  const char *name, *path, *line; /* line: of the list, without blanks */
  int entries;
} toys[] = {
    {"gptq", "model-gptq", "model.layers.0.mlp.down_proj GPTQ 64 x 128 5.12 u4 g32 f16, zeros u8, ordered 6144", 21},
    {"compressed-tensors", "model-compressed-tensors",
     "model.layers.1.self_attn.k_proj pack-quantized 32 x 64 4.56 u4 g32 bf16, zero 8 2048", 21},
    {"gguf", "model-gguf/model.gguf", "blk.0.attn_v GGUF q5_0 32 x 64 5.50 u5 g32 f16, zero 16 6400", 20},
};

/* Runs of blanks become one. */
static void squeeze(char *text) {
  char *to = text;
  for (const char *s = text; *s; s++) {
    if (*s != ' ' || s[1] != ' ') *to++ = *s;
  }
  *to = 0;
}

static void check_expected(const char *model, const char *out) {
  char path[256];
  lpgemm_file_t file = NULL;
  size_t count = 0;
  snprintf(path, sizeof path, "%s%.*s/expected.safetensors", FORMATS, (int)strcspn(model, "/"), model);
  CHECK_STATUS(lpgemm_file_open(path, &file), LPGEMM_SUCCESS);
  if (file) CHECK_STATUS(lpgemm_file_counts(file, &count, NULL), LPGEMM_SUCCESS);
  CHECK_INT(count, 14);
  for (size_t i = 0; i < count; i++) {
    lpgemm_tensor_t want = {0};
    CHECK_STATUS(lpgemm_file_tensor(file, i, &want), LPGEMM_SUCCESS);
    matrix m = load(out, want.name);
    CHECK(m.w && m.n == want.shape[0] && m.k == want.shape[1]);
    for (int64_t j = 0; m.w && j < m.n * m.k; j++) { /* 0 may have another sign */
      float value;
      memcpy(&value, (const uint8_t *)want.data + 4 * j, sizeof value);
      CHECK(m.w[j] == value);
    }
    free(m.w);
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
}

static void check_toy(int i) {
  char out[128], command[512];
  if (!test_case("convert/toy/%s", toys[i].name)) return;
  folder f = folder_make();
  snprintf(out, sizeof out, "%s", folder_path(&f, "out.lpg"));
  snprintf(command, sizeof command, "convert --list %s%s", FORMATS, toys[i].path);
  program_check(command, 0, "14 matrices of ");
  squeeze(program_output);
  if (!strstr(program_output, toys[i].line))
    test_fail(__FILE__, __LINE__, "no %s in: %s", toys[i].line, program_output);
  snprintf(command, sizeof command, "convert --json --list %s%s", FORMATS, toys[i].path);
  program_check_json(command, 0, "\"matrices\": 14, \"not_read\": 0");
  snprintf(command, sizeof command, "convert %s%s %s", FORMATS, toys[i].path, out);
  program_check(command, 0, "14 matrices packed");
  CHECK_INT(entries(out), toys[i].entries);
  check_expected(toys[i].path, out);
  snprintf(command, sizeof command, "convert --check %s%s %s", FORMATS, toys[i].path, out);
  program_check(command, 0, "14 matrices with 73728 weights");
  snprintf(command, sizeof command, "convert --check --json --threads 1 %s%s %s", FORMATS, toys[i].path, out);
  program_check_json(command, 0, "\"same\": true, \"matrices\": 14");
  snprintf(command, sizeof command, "convert %s%s %s", FORMATS, toys[i].path, out);
  program_check(command, 1, "is there already");
  snprintf(command, sizeof command, "convert --json --force %s%s %s --threads 2", FORMATS, toys[i].path, out);
  program_check_json(command, 0, "\"matrices\": 14");
  CHECK_INT(folder_count(&f), 1);
  folder_remove(&f);
}

/* ---- models that the test writes ---- */

static const char *stored_name(lpgemm_dtype_t type) {
  static const struct {
    lpgemm_dtype_t type;
    const char *name;
  } names[] = {{LPGEMM_I32, "I32"}, {LPGEMM_F16, "F16"},      {LPGEMM_BF16, "BF16"},
               {LPGEMM_F32, "F32"}, {LPGEMM_U8, "U8"},        {LPGEMM_I8, "I8"},
               {LPGEMM_I64, "I64"}, {LPGEMM_E4M3, "F8_E4M3"}, {LPGEMM_E8M0, "F8_E8M0"}};
  for (int i = 0; i < COUNT(names); i++) {
    if (names[i].type == type) return names[i].name;
  }
  test_fail(__FILE__, __LINE__, "safetensors have no %s", lpgemm_dtype_name(type));
  return "U8";
}

static void add_tensor(safetensors *s, const char *name, const lpgemm_tensor_t *t) {
  char shape[128] = "[";
  for (int i = 0; i < t->dims; i++) {
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? "," : "", (long long)t->shape[i]);
  }
  snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "]");
  safetensors_add(s, name, stored_name(t->type), shape, t->bytes);
  memcpy(s->data.bytes + s->data.size - t->bytes, t->data, t->bytes);
}

/* The tensors of a layer; `c` lives until the case is over. */
static void add_layer(safetensors *s, const char *layer, char separator, const checkpoint *c) {
  char name[256];
  for (size_t i = 0; i < c->import.count; i++) {
    snprintf(name, sizeof name, "%s%c%s", layer, separator, c->tensor[i].name);
    add_tensor(s, name, &c->tensor[i]);
  }
}

static void add_dense(safetensors *s, const char *name, int64_t n, int64_t k) {
  char shape[64];
  snprintf(shape, sizeof shape, "[%lld,%lld]", (long long)n, (long long)k);
  safetensors_add(s, name, "F16", shape, (size_t)(n * k) * 2);
}

static void save(const folder *f, safetensors *s, const char *config) {
  buffer b = safetensors_end(s);
  folder_write(f, "model.safetensors", b.bytes, b.size);
  buffer_free(&b);
  if (config) folder_text(f, "config.json", config);
}

static const char gptq_config[] =
    "{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"desc_act\": false, "
    "\"checkpoint_format\": \"gptq\"}}";
static const char awq_config[] =
    "{\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"version\": \"gemm\"}}";

/* Rows of a matrix of OUT by the formula of the format; `row` is the first of the checkpoint's. */
static void check_formula(const char *out, const char *name, const checkpoint *c, int64_t row, int64_t rows) {
  matrix m = load(out, name);
  CHECK(m.w && m.n == rows && m.k == c->spec.k);
  for (int64_t i = 0; m.w && i < rows && m.k == c->spec.k; i++) {
    for (int64_t k = 0; k < m.k; k++) CHECK(m.w[i * m.k + k] == (float)checkpoint_value(c, row + i, k));
  }
  free(m.w);
}

static void check_command(int want, const char *part, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void check_command(int want, const char *part, const char *format, ...) {
  char command[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  program_check(command, want, part);
}

/* Converts and checks with the same options. */
static void convert(const folder *f, const char *out, const char *options) {
  check_command(0, "packed", "convert %s %s --force %s", f->path, out, options);
  check_command(0, "are those of", "convert --check %s %s %s", f->path, out, options);
}

/* ---- mixtures of experts ---- */

/* Experts one by one, as Mixtral (GPTQ here) or Qwen and DeepSeek (AWQ) name them, with a router and a shared expert.
 */
static void check_experts(int mixtral) {
  enum { EXPERTS = 3 };
  static const char *const parts[2][3] = {{"gate_proj", "up_proj", "down_proj"}, {"w1", "w3", "w2"}};
  const checkpoint_spec spec = {"toy", mixtral ? CHECKPOINT_GPTQ : CHECKPOINT_AWQ, 64, 96, 32, 4, 0};
  const checkpoint_spec down = {"toy", mixtral ? CHECKPOINT_GPTQ : CHECKPOINT_AWQ, 96, 64, 32, 4, 0};
  const char *prefix = mixtral ? "model.layers.0.block_sparse_moe" : "model.layers.0.mlp";
  static checkpoint c[EXPERTS + 1][3];
  char layer[256], other[32], out[128];
  if (!test_case("convert/experts/%s", mixtral ? "mixtral" : "qwen")) return;
  folder f = folder_make(), g = folder_make();
  safetensors s = {0};
  snprintf(layer, sizeof layer, "%s.gate.weight", prefix);
  add_dense(&s, layer, EXPERTS, 96);
  for (int e = 0; e <= EXPERTS; e++) {
    for (int p = 0; p < 3; p++) {
      checkpoint_make(&c[e][p], p == 2 ? &down : &spec);
      snprintf(other, sizeof other, "experts.%d", e);
      snprintf(layer, sizeof layer, "%s.%s.%s", prefix, e < EXPERTS ? other : "shared_expert", parts[mixtral][p]);
      add_layer(&s, layer, '.', &c[e][p]);
    }
  }
  save(&f, &s, mixtral ? gptq_config : awq_config);
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  convert(&f, out, "");
  CHECK_INT(entries(out), 3 * (EXPERTS + 1) + 1);
  for (int e = 0; e < EXPERTS; e++) {
    for (int p = 0; p < 3; p++) {
      snprintf(layer, sizeof layer, "%s.experts.%d.%s", prefix, e, parts[mixtral][p]);
      check_formula(out, layer, &c[e][p], 0, c[e][p].spec.n);
    }
  }
  convert(&f, out, "--join gate-up --slice 1/2");
  CHECK_INT(entries(out), 2 * (EXPERTS + 1) + 1);
  snprintf(layer, sizeof layer, "%s.experts.2.%s", prefix, mixtral ? "w13" : "gate_up_proj");
  matrix m = load(out, layer);
  snprintf(layer, sizeof layer, "%s.experts.2.%s", prefix, parts[mixtral][2]);
  matrix d = load(out, layer);
  CHECK(m.w && m.n == 64 && m.k == 96 && d.w && d.n == 96 && d.k == 32);
  for (int64_t i = 0; m.w && d.w && i < 32; i++) {
    for (int64_t k = 0; k < 96; k++) {
      CHECK(m.w[i * 96 + k] == (float)checkpoint_value(&c[2][0], 32 + i, k));
      CHECK(m.w[(32 + i) * 96 + k] == (float)checkpoint_value(&c[2][1], 32 + i, k));
      CHECK(d.w[k * 32 + i] == (float)checkpoint_value(&c[2][2], k, 32 + i));
    }
  }
  free(m.w);
  free(d.w);
  for (int e = 0; e <= EXPERTS; e++) {
    for (int p = 0; p < 3; p++) checkpoint_free(&c[e][p]);
  }
  folder_remove(&f);
  folder_remove(&g);
}

/* gpt-oss: stacks, gate and up taking turns. */
static void check_gpt_oss(void) {
  const checkpoint_spec spec = {"toy", CHECKPOINT_BLOCKS, 128, 64, 32, 4, 0},
                        down = {"toy", CHECKPOINT_BLOCKS, 64, 64, 32, 4, 0};
  checkpoint c, d;
  char out[128];
  if (!test_case("convert/experts/gpt-oss")) return;
  folder f = folder_make(), g = folder_make();
  safetensors s = {0};
  checkpoint_make(&c, &spec);
  checkpoint_make(&d, &down);
  add_layer(&s, "model.layers.0.mlp.experts.gate_up_proj", '_', &c);
  safetensors_add(&s, "model.layers.0.mlp.experts.gate_up_proj_bias", "BF16", "[3,128]", 768);
  add_layer(&s, "model.layers.0.mlp.experts.down_proj", '_', &d);
  save(&f, &s, "{\"quantization_config\": {\"quant_method\": \"mxfp4\"}}");
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  convert(&f, out, "");
  CHECK_INT(entries(out), 7);
  CHECK(type_in(out, "model.layers.0.mlp.experts.gate_up_proj_bias") == LPGEMM_BF16);
  for (int e = 0; e < 3; e++) {
    char name[128];
    c.import.expert = d.import.expert = e; /* whose formula it is */
    snprintf(name, sizeof name, "model.layers.0.mlp.experts.gate_up_proj.%d", e);
    check_formula(out, name, &c, 0, 128);
    snprintf(name, sizeof name, "model.layers.0.mlp.experts.down_proj.%d", e);
    check_formula(out, name, &d, 0, 64);
  }
  convert(&f, out, "--slice 1/2");
  c.import.expert = 1;
  check_formula(out, "model.layers.0.mlp.experts.gate_up_proj.1", &c, 64, 64); /* pairs from 32 on, as down's columns */
  checkpoint_free(&c);
  checkpoint_free(&d);
  folder_remove(&f);
  folder_remove(&g);
}

/* ---- GGUF ---- */

enum { Q8_0 = 8, Q8_0_BYTES = 34 };

/* A matrix, or a stack of matrices, of Q8_0 with random numbers; returns where its blocks lie in g->data. */
static size_t add_q8_0(gguf *g, const char *name, int dims, int64_t k, int64_t n, int64_t experts) {
  const uint64_t ne[] = {(uint64_t)k, (uint64_t)n, (uint64_t)experts};
  const size_t bytes = (size_t)(k / 32 * n * experts) * Q8_0_BYTES;
  gguf_add(g, name, dims, ne, Q8_0, bytes);
  uint8_t *blocks = g->data.bytes + g->data.size - bytes;
  for (size_t i = 0; i < bytes; i++) blocks[i] = (uint8_t)test_random();
  for (size_t i = 0; i < bytes; i += Q8_0_BYTES) blocks[i + 1] = (uint8_t)test_between(0x20, 0x40); /* f16 scales */
  return g->data.size - bytes;
}

static float q8_0_value(const uint8_t *blocks, int64_t k, int64_t row, int64_t column) {
  const uint8_t *block = blocks + (row * (k / 32) + column / 32) * Q8_0_BYTES;
  const float d = lpg_f16_to_f32((uint16_t)(block[0] | block[1] << 8));
  return d * (float)(int8_t)block[2 + column % 32];
}

static void check_q8_0(const char *out, const char *name, const uint8_t *blocks, int64_t k, int64_t n, int64_t row) {
  matrix m = load(out, name);
  CHECK(m.w && m.n == n && m.k == k);
  for (int64_t i = 0; m.w && i < n * k; i++) CHECK(m.w[i] == q8_0_value(blocks, k, row + i / k, i % k));
  free(m.w);
}

/* Experts in one tensor, and an embedding that is the output matrix too. */
static void check_gguf_experts(void) {
  enum { N = 64, K = 96, EXPERTS = 2, VOCABULARY = 64 };
  char path[128], out[128];
  if (!test_case("convert/experts/gguf")) return;
  folder f = folder_make();
  gguf g = {0};
  const size_t embedding = add_q8_0(&g, "token_embd.weight", 2, K, VOCABULARY, 1);
  const size_t gate = add_q8_0(&g, "blk.0.ffn_gate_exps.weight", 3, K, N, EXPERTS);
  const size_t up = add_q8_0(&g, "blk.0.ffn_up_exps.weight", 3, K, N, EXPERTS);
  const size_t down = add_q8_0(&g, "blk.0.ffn_down_exps.weight", 3, N, K, EXPERTS);
  uint8_t *data = malloc(g.data.size);
  memcpy(data, g.data.bytes, g.data.size);
  buffer b = gguf_end(&g);
  folder_write(&f, "model.gguf", b.bytes, b.size);
  buffer_free(&b);
  snprintf(path, sizeof path, "%s", folder_path(&f, "model.gguf"));
  snprintf(out, sizeof out, "%s", folder_path(&f, "out.lpg"));
  check_command(0, "7 matrices packed and 1 tensors", "convert %s %s", path, out);
  check_command(0, "7 matrices", "convert --check %s %s", path, out);
  CHECK(type_in(out, "token_embd.weight") == LPGEMM_GGML(Q8_0));
  check_q8_0(out, "output", data + embedding, K, VOCABULARY, 0);
  check_q8_0(out, "blk.0.ffn_gate_exps.1", data + gate, K, N, N);
  check_q8_0(out, "blk.0.ffn_up_exps.0", data + up, K, N, 0);
  check_q8_0(out, "blk.0.ffn_down_exps.1", data + down, N, K, K);
  check_command(0, "5 matrices", "convert --force --join gate-up --slice 0/2 %s %s", path, out);
  check_command(0, "5 matrices", "convert --check --join gate-up --slice 0/2 %s %s", path, out);
  matrix m = load(out, "blk.0.ffn_gate_up_exps.1"), o = load(out, "output");
  CHECK(m.n == N && m.k == K && o.n == VOCABULARY / 2);
  for (int64_t i = 0; m.w && i < N / 2; i++) {
    for (int64_t k = 0; k < K; k++) {
      CHECK(m.w[i * K + k] == q8_0_value(data + gate, K, N + i, k));
      CHECK(m.w[(N / 2 + i) * K + k] == q8_0_value(data + up, K, N + i, k));
    }
  }
  free(m.w);
  free(o.w);
  free(data);
  folder_remove(&f);
}

/* ---- joins and slices ---- */

static const char *const llama_layers[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                           "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                           "mlp.down_proj"};
enum { FIRST_OF_COLUMNS = 3, SECOND_OF_COLUMNS = 6 };

/* Two ranks beside the whole; of an ordered matrix a rank's columns are anywhere in X, and the others are 0. */
static void check_slices(const char *model, int ordered) {
  char whole[128], rank[2][128], name[128], path[128];
  if (!test_case("convert/slice/%s", model)) return;
  folder f = folder_make();
  snprintf(path, sizeof path, "%s%s", FORMATS, model);
  snprintf(whole, sizeof whole, "%s", folder_path(&f, "whole.lpg"));
  check_command(0, "packed", "convert %s %s", path, whole);
  for (int r = 0; r < 2; r++) {
    snprintf(rank[r], sizeof rank[r], "%s/rank-%d.lpg", f.path, r);
    check_command(0, "packed", "convert %s %s --slice %d/2", path, rank[r], r);
    check_command(0, "14 matrices with 36864 weights", "convert --check %s %s --slice %d/2", path, rank[r], r);
  }
  for (int l = 0; l < COUNT(llama_layers); l++) {
    snprintf(name, sizeof name, "model.layers.1.%s", llama_layers[l]);
    matrix all = load(whole, name), a = load(rank[0], name), b = load(rank[1], name);
    const int columns = l == FIRST_OF_COLUMNS || l == SECOND_OF_COLUMNS;
    if (!columns) {
      CHECK(a.n == all.n / 2 && b.n == all.n / 2);
      check_same(&all, 0, 0, &a, 0, 0, a.n, all.k);
      check_same(&all, a.n, 0, &b, 0, 0, b.n, all.k);
    } else if (ordered) {
      CHECK(a.k == all.k && b.k == all.k);
      for (int64_t i = 0; a.w && b.w && i < all.n * all.k; i++) {
        CHECK(a.w[i] == 0 || b.w[i] == 0);
        CHECK(a.w[i] + b.w[i] == all.w[i]);
      }
    } else {
      CHECK(a.k == all.k / 2 && b.k == all.k / 2);
      check_same(&all, 0, 0, &a, 0, 0, all.n, a.k);
      check_same(&all, 0, a.k, &b, 0, 0, all.n, b.k);
    }
    free(all.w), free(a.w), free(b.w);
  }
  check_command(1, "cannot be shared evenly among 3 ranks", "convert %s %s --force --slice 0/3", path, rank[0]);
  /* 4 heads of q and 2 of k and v, whose rows four ranks could share, but not whole */
  check_command(1, "the model's 2 heads of k and v cannot be shared evenly among 4 ranks",
                "convert %s %s --force --slice 0/4", path, rank[0]);
  folder_remove(&f);
}

/* Zeros of symmetric weights, stored as the config says, or as the other format would. */
static void check_zeros(void) {
  static const char *const formats[] = {"gptq", "gptq_v2"};
  static checkpoint c;
  const checkpoint_spec spec = {"toy", CHECKPOINT_GPTQ, 64, 96, 32, 4, 0};
  if (!test_case("convert/zeros")) return;
  checkpoint_make(&c, &spec);
  lpgemm_tensor_t *qzeros = checkpoint_tensor(&c, "qzeros");
  for (int i = 0; i < 6; i++) { /* all 7, all 8, or not all the same; by either format */
    char config[200], want[64];
    folder f = folder_make();
    safetensors s = {0};
    memset((void *)(uintptr_t)qzeros->data, i % 3 == 0 ? 0x77 : 0x88, qzeros->bytes);
    if (i % 3 == 2) *(uint8_t *)(uintptr_t)qzeros->data = 0x78;
    add_layer(&s, "model.layers.0.mlp.up_proj", '.', &c);
    snprintf(config, sizeof config,
             "{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, "
             "\"desc_act\": false, \"sym\": true, \"checkpoint_format\": \"%s\"}}",
             formats[i / 3]);
    save(&f, &s, config);
    const int is_other = i == 1 || i == 3;
    snprintf(want, sizeof want, "the model may be \"%s\"", formats[1 - i / 3]);
    check_command(0, is_other ? want : "matrices of", "convert --list %s", f.path);
    CHECK(is_other || !strstr(program_output, "may be"));
    folder_remove(&f);
  }
  checkpoint_free(&c);
}

static void check_joins(void) {
  static const char path[] = FORMATS "model-compressed-tensors";
  char apart[128], joined[128];
  if (!test_case("convert/join")) return;
  folder f = folder_make();
  snprintf(apart, sizeof apart, "%s", folder_path(&f, "apart.lpg"));
  snprintf(joined, sizeof joined, "%s", folder_path(&f, "joined.lpg"));
  check_command(0, "14 matrices", "convert %s %s", path, apart);
  check_command(0, "8 matrices", "convert %s %s --join qkv,gate-up", path, joined);
  check_command(0, "8 matrices", "convert --check %s %s --join gate-up,qkv", path, joined);
  matrix qkv = load(joined, "model.layers.1.self_attn.qkv_proj"), up = load(joined, "model.layers.0.mlp.gate_up_proj");
  static const char *const parts[] = {"model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.k_proj",
                                      "model.layers.1.self_attn.v_proj", "model.layers.0.mlp.gate_proj",
                                      "model.layers.0.mlp.up_proj"};
  int64_t row = 0;
  for (int i = 0; i < COUNT(parts); i++) {
    const matrix *whole = i < 3 ? &qkv : &up;
    if (i == 3) row = 0;
    matrix part = load(apart, parts[i]);
    check_same(whole, row, 0, &part, 0, 0, part.n, part.k);
    row += part.n;
    CHECK(i != 2 || row == qkv.n);
    CHECK(i != 4 || row == up.n);
    free(part.w);
  }
  free(qkv.w), free(up.w);
  /* other orders of columns, or other types, stay apart, and a line says so */
  check_command(0, "gate_up_proj stays apart: up_proj has another order of columns",
                "convert %smodel-gptq %s --force --join gate-up", FORMATS, joined);
  check_command(0, "blk.0.attn_qkv stays apart: ", "convert --list %smodel-gguf/model.gguf --join qkv", FORMATS);
  check_command(1, "give the options that it was made with", "convert --check %s %s --join qkv", path, apart);
  check_command(0, "8 matrices of", "convert --list --join qkv,gate-up %s", path);
  folder_remove(&f);
}

/* q, k and v, or gate and up, that the file has as one matrix: a rank gets its part of each. */
static void check_fused(void) {
  enum { Q = 64, KV = 32, FEED = 128, K = 64 };
  const checkpoint_spec specs[] = {{"toy", CHECKPOINT_GPTQ, Q + 2 * KV, K, 32, 4, 0},
                                   {"toy", CHECKPOINT_GPTQ, 64, Q, 32, 4, 0},
                                   {"toy", CHECKPOINT_GPTQ, 2 * FEED, K, 32, 4, 0},
                                   {"toy", CHECKPOINT_GPTQ, 64, FEED, 32, 4, 0},
                                   {"toy", CHECKPOINT_GPTQ, 96, K, 32, 4, 0}};
  static const char *const names[] = {"model.layers.0.self_attn.qkv_proj", "model.layers.0.self_attn.o_proj",
                                      "model.layers.0.mlp.gate_up_proj", "model.layers.0.mlp.down_proj",
                                      "model.layers.0.other"};
  checkpoint c[COUNT(specs)];
  char out[128];
  if (!test_case("convert/slice/fused")) return;
  folder f = folder_make(), g = folder_make();
  safetensors s = {0};
  for (int i = 0; i < COUNT(specs); i++) {
    checkpoint_make(&c[i], &specs[i]);
    add_layer(&s, names[i], '.', &c[i]);
  }
  save(&f, &s, gptq_config);
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  convert(&f, out, "--slice 1/2");
  matrix qkv = load(out, names[0]), up = load(out, names[2]);
  CHECK(qkv.n == (Q + 2 * KV) / 2 && up.n == FEED);
  for (int64_t k = 0; qkv.w && up.w && k < K; k++) {
    for (int64_t i = 0; i < qkv.n; i++) {
      const int64_t row = i < Q / 2 ? Q / 2 + i : i < Q / 2 + KV / 2 ? Q + KV / 2 + i - Q / 2 : Q + KV + i - Q / 2;
      CHECK(qkv.w[i * K + k] == (float)checkpoint_value(&c[0], row, k));
    }
    for (int64_t i = 0; i < up.n; i++) {
      const int64_t row = i < FEED / 2 ? FEED / 2 + i : FEED + i;
      CHECK(up.w[i * K + k] == (float)checkpoint_value(&c[2], row, k));
    }
  }
  free(qkv.w), free(up.w);
  check_formula(out, names[4], &c[4], 0, 96); /* whole */
  check_command(0, "model.layers.0.other is whole in every rank", "convert --list %s --slice 0/2", f.path);
  for (int i = 0; i < COUNT(specs); i++) checkpoint_free(&c[i]);
  folder_remove(&f);
  folder_remove(&g);
}

static void check_pattern(void) {
  static const char path[] = FORMATS "model-gptq";
  char out[128];
  if (!test_case("convert/layer")) return;
  folder f = folder_make();
  snprintf(out, sizeof out, "%s", folder_path(&f, "out.lpg"));
  check_command(0, "7 matrices packed and 2 tensors", "convert %s %s --layer '*.layers.1.*'", path, out);
  check_command(0, "7 matrices", "convert --check %s %s --layer '*.layers.1.*'", path, out);
  check_command(0, "2 matrices of", "convert --list %s --layer '*.q_proj'", path);
  check_command(1, "fits 'nothing*'", "convert --list %s --layer 'nothing*'", path);
  CHECK(type_in(out, "model.layers.1.self_attn.q_proj") == LPGEMM_BLOB);
  CHECK(type_in(out, "model.layers.1.input_layernorm.weight") == LPGEMM_F16);
  CHECK(type_in(out, "model.norm.weight") == 0);
  folder_remove(&f);
}

/* Biases and whatever else a layer has beside its matrix are copied; an order that the config denies is not. */
static void check_beside(void) {
  const checkpoint_spec spec = {"toy", CHECKPOINT_GPTQ, 64, 64, 32, 4, 0};
  checkpoint c;
  char out[128];
  if (!test_case("convert/beside")) return;
  folder f = folder_make(), g = folder_make();
  safetensors s = {0};
  checkpoint_make(&c, &spec);
  add_layer(&s, "a.q_proj", '.', &c);
  safetensors_add(&s, "a.q_proj.bias", "F16", "[64]", 128);
  safetensors_add(&s, "empty", "F32", "[0,3]", 0);
  save(&f, &s, gptq_config);
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  convert(&f, out, "");
  CHECK_INT(entries(out), 3);
  CHECK(type_in(out, "a.q_proj.bias") == LPGEMM_F16 && type_in(out, "empty") == LPGEMM_F32);
  check_formula(out, "a.q_proj", &c, 0, 64);
  checkpoint_free(&c);
  folder_remove(&f);
  folder_remove(&g);
}

/* ---- differences ---- */

static void flip(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  CHECK(file != NULL);
  if (!file) return;
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  const int byte = fgetc(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  fputc(byte ^ 16, file);
  fclose(file);
}

static void check_differences(void) {
  char out[128], model[128];
  if (!test_case("convert/check")) return;
  folder f = folder_make(), g = folder_make();
  buffer b = read_file(FORMATS "model-gptq/model.safetensors"), config = read_file(FORMATS "model-gptq/config.json");
  folder_write(&f, "model.safetensors", b.bytes, b.size);
  folder_write(&f, "config.json", config.bytes, config.size);
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  convert(&f, out, "");
  /* other weights in the model: the last tensors are of fp16, the first ones codes */
  snprintf(model, sizeof model, "%s", folder_path(&f, "model.safetensors"));
  uint64_t header = 0;
  memcpy(&header, b.bytes, 8);
  flip(model, (long)header + 8 + 4 * 128 + 40); /* in the first matrix, behind its g_idx */
  check_command(1, "weight [10][", "convert --check %s %s", f.path, out);
  CHECK(strstr(program_output, "by the format's formula") != NULL);
  flip(model, (long)header + 8 + 4 * 128 + 40);
  check_command(0, "are those of", "convert --check %s %s", f.path, out);
  flip(model, -2);
  check_command(1, "model.norm.weight has other bytes", "convert --check %s %s", f.path, out);
  flip(model, -2);
  flip(out, 4096 + 700); /* in the first matrix of OUT */
  check_command(1, "have changed since they were written", "convert --check %s %s", f.path, out);
  check_command(1, "No such", "convert --check %s %s/none.lpg", f.path, f.path);
  check_command(1, "is a container", "convert %s %s/again.lpg", out, f.path);
  buffer_free(&b);
  buffer_free(&config);
  folder_remove(&f);
  folder_remove(&g);
}

/* ---- what ends with one sentence ---- */

static void check_refused(const folder *f, const char *model, const char *part) {
  char out[128];
  const int before = folder_count(f);
  snprintf(out, sizeof out, "%s", folder_path(f, "out.lpg"));
  check_command(1, part, "convert %s %s", model, out);
  CHECK_INT(program_lines("lpgemm-convert: "), 1);
  CHECK_INT(program_lines(""), 1);
  CHECK_INT(folder_count(f), before);
}

/* Formats that are not read, by their tensors or their config. */
static void check_formats(void) {
  static const struct {
    const char *name, *tensor, *config, *part;
  } cases[] = {
      {"int8", "a.q_proj.SCB", NULL, "int8 of bitsandbytes"},
      {"exl2", "a.q_proj.q_weight", NULL, "EXL2"},
      {"exl3", "a.q_proj.trellis", NULL, "EXL3"},
      {"aqlm", "a.q_proj.codebooks", NULL, "AQLM"},
      {"torchao", "a.q_proj._weight_qdata", NULL, "torchao"},
      {"method", "a.q_proj.weight", "{\"quantization_config\": {\"quant_method\": \"vptq\"}}", "\"vptq\""},
      {"without-config", "a.q_proj.qweight", NULL, "config.json"},
  };
  for (int i = 0; i < COUNT(cases); i++) {
    if (!test_case("convert/refused/%s", cases[i].name)) continue;
    folder f = folder_make();
    safetensors s = {0};
    safetensors_add(&s, cases[i].tensor, "I32", "[16,16]", 1024);
    safetensors_add(&s, "a.q_proj.codes", "I32", "[16,16]", 1024);
    save(&f, &s, cases[i].config);
    check_refused(&f, f.path, cases[i].part);
    folder_remove(&f);
  }
}

/* --force replaces containers, and nothing else that a typing error could hit. */
static void check_overwriting(const folder *f) {
  char other[128], link[128];
  snprintf(other, sizeof other, "%s", folder_path(f, "other"));
  snprintf(link, sizeof link, "%s", folder_path(f, "link"));
  folder_text(f, "other", "a shard or a config");
  CHECK_INT(mkfifo(link, 0600), 0);
  check_command(1, "--force", "convert %s %s", FORMATS "model-gguf/model.gguf", other);
  check_command(1, "is no container", "convert %s %s --force", FORMATS "model-gguf/model.gguf", other);
  check_command(1, "is no container", "convert %s %s --force", FORMATS "model-gguf/model.gguf", link);
  folder_write(f, "other", "", 0);
  check_command(0, "packed", "convert %s %s --force", FORMATS "model-gguf/model.gguf", other);
  check_command(0, "packed", "convert %s %s --force", FORMATS "model-gguf/model.gguf", other);
  CHECK_INT(unlink(link), 0);
  CHECK_INT(symlink("nothing", link), 0); /* a name that is taken, too, and not only when all is packed */
  check_command(1, "is there already", "convert %s %s", FORMATS "model-gguf/model.gguf", link);
  CHECK_INT(unlink(link), 0);
  CHECK_INT(unlink(other), 0);
}

/* model.gguf with some bytes changed, cut or missing. */
static void check_hostile(void) {
  char path[128];
  if (!test_case("convert/hostile")) return;
  folder f = folder_make();
  buffer b = read_file(FORMATS "model-gguf/model.gguf");
  snprintf(path, sizeof path, "%s", folder_path(&f, "model.gguf"));
  const size_t cuts[] = {0, 3, 24, 100, 1000, b.size / 2, b.size - 1};
  for (int i = 0; i < COUNT(cuts); i++) {
    folder_write(&f, "model.gguf", b.bytes, cuts[i]);
    check_refused(&f, path, "model.gguf");
  }
  const uint8_t version = b.bytes[4];
  b.bytes[4] = 1;
  folder_write(&f, "model.gguf", b.bytes, b.size);
  check_refused(&f, path, "version 1");
  b.bytes[4] = 0, b.bytes[7] = version;
  folder_write(&f, "model.gguf", b.bytes, b.size);
  check_refused(&f, path, "big-endian");
  buffer_free(&b);
  folder_text(&f, "model.gguf", "no checkpoint at all, but longer than eight bytes");
  check_refused(&f, path, "model.gguf");
  check_command(1, "is a folder", "convert %s/model.gguf %s --force", FORMATS "model-gguf", f.path);
  check_command(1, "are the same file", "convert %s %s --force", FORMATS "model-gguf/model.gguf",
                FORMATS "model-gguf/../model-gguf/model.gguf");
  check_refused(&f, f.path, "has no .safetensors file");
  check_overwriting(&f);
  check_refused(&f, "/nowhere/at/all", "/nowhere/at/all");
  check_refused(&f, "/dev/null", "/dev/null");
  folder_remove(&f);
}

/* Starts a conversion that may write files of `most` bytes (0: any); what it says goes to `said`. */
static pid_t start(const char *model, const char *out, rlim_t most, const char *said) {
  char program[PROGRAM_PATH];
  if (!program_find("bin/lpgemm-convert", program)) return -1;
  fflush(stdout);
  const pid_t child = fork();
  if (child != 0) return child;
  const struct rlimit limit = {most, most};
  if (!freopen(said, "w", stderr) || (most && setrlimit(RLIMIT_FSIZE, &limit) != 0)) _exit(99);
  execl(program, program, model, out, (char *)NULL);
  _exit(98);
}

static int finish(pid_t child) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_said(const char *path, const char *part) {
  buffer b = read_file(path);
  buffer_add(&b, "", 1);
  CHECK(strstr((const char *)b.bytes, part) != NULL);
  CHECK(strchr((const char *)b.bytes, '\n') == (const char *)b.bytes + b.size - 2); /* one sentence */
  buffer_free(&b);
}

/* No room, and no folder. */
static void check_full(void) {
  static const char path[] = FORMATS "model-gptq";
  char out[128], said[128];
  if (!test_case("convert/full")) return;
  folder f = folder_make(), g = folder_make();
  check_command(1, "cannot be written", "convert %s /nowhere/at/all/out.lpg", path);
  snprintf(out, sizeof out, "%s", folder_path(&f, "out.lpg"));
  snprintf(said, sizeof said, "%s", folder_path(&g, "said"));
  CHECK_INT(finish(start(path, out, 40000, said)), 1);
  check_said(said, "cannot be written: File too large");
  CHECK_INT(folder_count(&f), 0);
  folder_remove(&f);
  folder_remove(&g);
}

/* Ended by a signal while it writes, it leaves nothing. The model is a large hole. */
static void check_interrupted(void) {
  enum { TENSORS = 256, TENSOR_BYTES = 8 << 20 };
  char model[128], out[128], said[128];
  if (!test_case("convert/interrupted")) return;
  folder f = folder_make(), g = folder_make(), h = folder_make();
  buffer header = {0}, b = {0};
  for (int64_t i = 0; i < TENSORS; i++) {
    buffer_format(&header, "%s\"t%lld\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%lld,%lld]}", i ? "," : "{",
                  (long long)i, TENSOR_BYTES, (long long)(i * TENSOR_BYTES), (long long)((i + 1) * TENSOR_BYTES));
  }
  buffer_text(&header, "}");
  buffer_number(&b, 8, header.size);
  buffer_add(&b, header.bytes, header.size);
  folder_write(&f, "model.safetensors", b.bytes, b.size);
  snprintf(model, sizeof model, "%s", folder_path(&f, "model.safetensors"));
  snprintf(out, sizeof out, "%s", folder_path(&g, "out.lpg"));
  snprintf(said, sizeof said, "%s", folder_path(&h, "said"));
  CHECK_INT(truncate(model, (off_t)b.size + (off_t)TENSORS * TENSOR_BYTES), 0);
  const pid_t child = start(f.path, out, 0, said);
  const struct timespec pause = {0, 1000000};
  for (int i = 0; i < 20000 && folder_count(&g) == 0; i++) nanosleep(&pause, NULL);
  CHECK_INT(folder_count(&g), 1); /* under another name */
  CHECK(access(out, F_OK) != 0);
  if (child > 0) kill(child, SIGTERM);
  CHECK_INT(finish(child), 1);
  check_said(said, "interrupted");
  CHECK_INT(folder_count(&g), 0);
  buffer_free(&header);
  buffer_free(&b);
  folder_remove(&f);
  folder_remove(&g);
  folder_remove(&h);
}

static void check_usage(void) {
  static const struct {
    const char *command, *part;
  } wrong[] = {
      {"convert", "MODEL is missing"},
      {"convert model", "OUT.lpg is missing"},
      {"convert model out more", "'more' is one word too many"},
      {"convert --list model out", "'out' is one word too many"},
      {"convert --list --check model", "exclude each other"},
      {"convert --check --force model out", "--force is for writing"},
      {"convert model out --join kv", "--join is 'kv'"},
      {"convert model out --slice 2", "--slice is '2'"},
      {"convert model out --slice 2/2", "RANK of --slice is '2'; it must be a whole number from 0 to 1"},
      {"convert model out --threads 0", "--threads is '0'"},
      {"convert model out --layer", "--layer has no value"},
      {"convert model out --bits 4", "'--bits' is no option"},
  };
  if (test_case("convert/help")) program_check("convert --help", 0, "usage: lpgemm-convert MODEL OUT.lpg");
  for (int i = 0; i < COUNT(wrong); i++) {
    if (!test_case("convert/wrong/%s", wrong[i].command)) continue;
    program_check(wrong[i].command, 2, wrong[i].part);
    CHECK(strstr(program_output, " --help lists the options."));
  }
}

void suite_convert(void) {
  const lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  if (lpgemm_create(&handle, &config) != LPGEMM_SUCCESS) return;
  for (int i = 0; i < COUNT(toys); i++) check_toy(i);
  for (int mixtral = 0; mixtral < 2; mixtral++) check_experts(mixtral);
  check_gpt_oss();
  check_gguf_experts();
  check_slices("model-compressed-tensors", 0);
  check_slices("model-gptq", 1);
  check_fused();
  check_zeros();
  check_joins();
  check_pattern();
  check_beside();
  check_differences();
  check_formats();
  check_hostile();
  check_full();
  check_interrupted();
  check_usage();
  lpgemm_destroy(handle);
}
