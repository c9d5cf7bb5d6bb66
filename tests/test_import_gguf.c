/* GGUF: blocks of every type against the formulas of docs/formats.md, written here one weight at a time, and against
 * the values that ggml computed; export as the inverse of import; and what is refused. */
#include <math.h>

#include "import/gguf.h"
#include "import/iq.h"
#include "layouts/ggml.h"
#include "sample.h"
#include "test.h"

static lpgemm_handle_t handle;

/* ---- the value of column j of a block, from docs/formats.md ---- */

static double half(const uint8_t *at) {
  return sample_code_value(LPGEMM_F16, (uint32_t)at[0] | (uint32_t)at[1] << 8, NULL);
}
static uint32_t get32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static int bit_of(const uint8_t *at, int i) { return at[i / 8] >> i % 8 & 1; }
static int nibble(const uint8_t *at, int j, int n) { return j < n ? at[j] & 15 : at[j - n] >> 4; }
static double e2m1(int code) { return sample_code_value(LPGEMM_FLOAT(2, 1), (uint32_t)code, NULL); }
static const int iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static double q4_0(const uint8_t *b, int j) { return (nibble(b + 2, j, 16) - 8) * half(b); }
static double q4_1(const uint8_t *b, int j) { return nibble(b + 4, j, 16) * half(b) + half(b + 2); }
static double q5_0(const uint8_t *b, int j) { return (nibble(b + 6, j, 16) + 16 * bit_of(b + 2, j) - 16) * half(b); }
static double q5_1(const uint8_t *b, int j) {
  return (nibble(b + 8, j, 16) + 16 * bit_of(b + 4, j)) * half(b) + half(b + 2);
}
static double q8_0(const uint8_t *b, int j) { return (int8_t)b[2 + j] * half(b); }
static double iq4_nl(const uint8_t *b, int j) { return iq4_table[nibble(b + 2, j, 16)] * half(b); }
static double mxfp4(const uint8_t *b, int j) {
  return b[0] == 255 ? (double)NAN : ldexp(e2m1(nibble(b + 1, j, 16)), b[0] - 127);
}
static double nvfp4(const uint8_t *b, int j) {
  uint32_t s = b[j / 16] & 0x7fu;
  return s == 0x7f ? 0.0 : e2m1(nibble(b + 4 + 8 * (j / 16), j % 16, 8)) * sample_code_value(LPGEMM_E4M3, s, NULL);
}
static double q1_0(const uint8_t *b, int j) { return bit_of(b + 2, j) ? half(b) : -half(b); }
static double q2_0(const uint8_t *b, int j) { return ((b[2 + j / 4] >> 2 * (j % 4) & 3) - 1) * half(b); }

static int plane2(const uint8_t *qs, int j) { return qs[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3; }
static double q2_k(const uint8_t *b, int j) {
  int s = b[j / 16];
  return half(b + 80) * (s & 15) * plane2(b + 16, j) - half(b + 82) * (s >> 4);
}
static double q3_k(const uint8_t *b, int j) {
  const uint8_t *a = b + 96;
  int i = j / 16, s = (a[i % 8] >> i / 8 * 4 & 15) | (a[8 + i % 4] >> i / 4 * 2 & 3) << 4;
  return (plane2(b + 32, j) + 4 * (b[j % 32] >> j / 32 & 1) - 4) * half(b + 108) * (s - 32);
}
static double with_minimum(const uint8_t *b, int i, int q) {
  const uint8_t *a = b + 4;
  int s = i < 4 ? a[i] & 63 : (a[4 + i] & 15) | a[i - 4] >> 6 << 4;
  int m = i < 4 ? a[4 + i] & 63 : a[4 + i] >> 4 | a[i] >> 6 << 4;
  return half(b) * s * q - half(b + 2) * m;
}
static double q4_k(const uint8_t *b, int j) {
  return with_minimum(b, j / 32, nibble(b + 16 + j / 64 * 32, j % 64, 32));
}
static double q5_k(const uint8_t *b, int j) {
  int high = b[16 + j % 32] >> j / 32 & 1;
  return with_minimum(b, j / 32, nibble(b + 48 + j / 64 * 32, j % 64, 32) + 16 * high);
}
static double q6_k(const uint8_t *b, int j) {
  int q = (b[j / 128 * 64 + j % 64] >> j % 128 / 64 * 4 & 15) | plane2(b + 128, j) << 4;
  return (q - 32) * half(b + 208) * (int8_t)b[192 + j / 16];
}
static double iq4_xs(const uint8_t *b, int j) {
  int i = j / 32, h = b[2] | b[3] << 8, s = ((b[4 + i / 2] >> i % 2 * 4 & 15) | (h >> 2 * i & 3) << 4) - 32;
  return iq4_table[nibble(b + 8 + 16 * i, j % 32, 16)] * half(b) * s;
}
static double tq2_0(const uint8_t *b, int j) { return (plane2(b, j) - 1) * half(b + 64); }
static double tq1_0(const uint8_t *b, int j) {
  static const int powers[5] = {1, 3, 9, 27, 81};
  int byte = j < 160 ? b[j % 32] : j < 240 ? b[32 + j % 16] : b[48 + j % 4];
  int place = j < 160 ? j / 32 : j < 240 ? (j - 160) / 16 : (j - 240) / 4;
  return (((byte * powers[place] & 255) * 3 >> 8) - 1) * half(b + 52);
}

/* A sign of eight of which seven are stored. */
static int sign7(uint32_t seven, int i) {
  int parity = 0;
  for (int s = 0; s < 7; s++) parity ^= (int)(seven >> s & 1);
  return (i < 7 ? (int)(seven >> i & 1) : parity) ? -1 : 1;
}
static int digit2(const uint16_t *grid, int index, int j) { return grid[index] >> 2 * (j % 8) & 3; }
static int digit3(const uint16_t *grid, int index, int j) { return grid[index] >> 3 * (j % 4) & 7; }
static const int iq2_magnitude[4] = {8, 25, 43, 0};

static double iq2_xxs(const uint8_t *b, int j) {
  const uint8_t *group = b + 2 + 8 * (j / 32);
  uint32_t t = get32(group + 4);
  int l = j / 8 % 4, magnitude = iq2_magnitude[digit2(lpgemm_i_grid_iq2_xxs, group[l], j)];
  return magnitude * sign7(t >> 7 * l & 127, j % 8) * (2.0 * (t >> 28) + 1) * half(b) / 8;
}
static double iq2_xs(const uint8_t *b, int j) {
  int q = b[2 + j / 8 * 2] | b[3 + j / 8 * 2] << 8, s = b[66 + j / 32] >> j / 16 % 2 * 4 & 15;
  return iq2_magnitude[digit2(lpgemm_i_grid_iq2_xs, q & 511, j)] * sign7((uint32_t)q >> 9, j % 8) * (2 * s + 1) *
         half(b) / 8;
}
static double iq2_s(const uint8_t *b, int j) {
  int v = j / 8, index = b[2 + v] + 256 * (b[66 + v / 4] >> 2 * (v % 4) & 3), s = b[74 + j / 32] >> j / 16 % 2 * 4 & 15;
  int sign = bit_of(b + 34, j) ? -1 : 1;
  return iq2_magnitude[digit2(lpgemm_i_grid_iq2_s, index, j)] * sign * (2 * s + 1) * half(b) / 8;
}
static double iq3_xxs(const uint8_t *b, int j) {
  static const int magnitude[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  uint32_t t = get32(b + 66 + 4 * (j / 32));
  return magnitude[digit3(lpgemm_i_grid_iq3_xxs, b[2 + j / 4], j)] * sign7(t >> 7 * (j / 8 % 4) & 127, j % 8) *
         (2.0 * (t >> 28) + 1) * half(b) / 4;
}
static double iq3_s(const uint8_t *b, int j) {
  int index = b[2 + j / 4] + 256 * bit_of(b + 66, j / 4), s = b[106 + j / 64] >> j / 32 % 2 * 4 & 15;
  int magnitude = 2 * digit3(lpgemm_i_grid_iq3_s, index, j) + 1;
  return magnitude * (bit_of(b + 74, j) ? -1 : 1) * (2 * s + 1) * half(b);
}
static double iq1_s(const uint8_t *b, int j) {
  int v = j / 8, h = b[34 + j / 32 * 2] | b[35 + j / 32 * 2] << 8;
  int trit = digit2(lpgemm_i_grid_iq1, b[2 + v] + 256 * (h >> 3 * (v % 4) & 7), j) - 1;
  return (trit + (h >> 15 ? -0.125 : 0.125)) * (2 * (h >> 12 & 7) + 1) * half(b);
}
static double iq1_m(const uint8_t *b, int j) {
  const uint8_t *a = b + 48;
  int v = j / 8, i = j / 16, h = b[32 + v / 2] >> 4 * (v % 2);
  int trit = digit2(lpgemm_i_grid_iq1, b[v] + 256 * (h & 7), j) - 1;
  int s = (a[i / 4 * 2] | a[i / 4 * 2 + 1] << 8) >> 3 * (i % 4) & 7;
  uint8_t d[2] = {(uint8_t)(a[1] >> 4 | (a[3] & 0xf0)), (uint8_t)(a[5] >> 4 | (a[7] & 0xf0))};
  return (trit + (h & 8 ? -0.125 : 0.125)) * (2 * s + 1) * half(d);
}

typedef struct kind {
  const char *name;
  int number, block, bytes;
  int lossless;
  double (*value)(const uint8_t *block, int j);
} kind;

static const kind kinds[] = {
    {"q4_0", 2, 32, 18, 1, q4_0},         {"q4_1", 3, 32, 20, 1, q4_1},         {"q5_0", 6, 32, 22, 1, q5_0},
    {"q5_1", 7, 32, 24, 1, q5_1},         {"q8_0", 8, 32, 34, 1, q8_0},         {"q2_k", 10, 256, 84, 1, q2_k},
    {"q3_k", 11, 256, 110, 1, q3_k},      {"q4_k", 12, 256, 144, 1, q4_k},      {"q5_k", 13, 256, 176, 1, q5_k},
    {"q6_k", 14, 256, 210, 1, q6_k},      {"iq2_xxs", 16, 256, 66, 0, iq2_xxs}, {"iq2_xs", 17, 256, 74, 0, iq2_xs},
    {"iq3_xxs", 18, 256, 98, 0, iq3_xxs}, {"iq1_s", 19, 256, 50, 0, iq1_s},     {"iq4_nl", 20, 32, 18, 1, iq4_nl},
    {"iq3_s", 21, 256, 110, 0, iq3_s},    {"iq2_s", 22, 256, 82, 0, iq2_s},     {"iq4_xs", 23, 256, 136, 1, iq4_xs},
    {"iq1_m", 29, 256, 56, 0, iq1_m},     {"tq1_0", 34, 256, 54, 0, tq1_0},     {"tq2_0", 35, 256, 66, 1, tq2_0},
    {"mxfp4", 39, 32, 17, 1, mxfp4},      {"nvfp4", 40, 64, 36, 1, nvfp4},      {"q1_0", 41, 128, 18, 1, q1_0},
    {"q2_0", 42, 64, 18, 1, q2_0},
};
enum { KINDS = (int)(sizeof kinds / sizeof kinds[0]) };

static int has_grid(const kind *type) { return strncmp(type->name, "iq", 2) == 0 && !type->lossless; }

static const kind *kind_of(const char *name) {
  for (int i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  return NULL;
}

/* ---- matrices of random blocks ---- */

/* A matrix, or a stack of them, as it lies in a file, with what the import calls need. */
typedef struct matrix {
  const kind *type;
  int64_t experts, n, k;
  uint8_t *blocks;
  lpgemm_tensor_t tensors[2]; /* the second: a scale */
  float scale[8];
  lpgemm_import_t import;
} matrix;

static void make_matrix(matrix *m, const kind *type, int64_t experts, int64_t n, int64_t k) {
  memset(m, 0, sizeof *m);
  m->type = type;
  m->experts = experts;
  m->n = n;
  m->k = k;
  size_t bytes = (size_t)(experts * n * (k / type->block)) * (size_t)type->bytes;
  m->blocks = test_alloc(bytes);
  for (size_t i = 0; i < bytes; i++) m->blocks[i] = (uint8_t)(test_random() >> 32);
  lpgemm_tensor_t weight = {"weight", LPGEMM_GGML((uint32_t)type->number), experts > 1 ? 3 : 2, {0}, m->blocks, bytes};
  weight.shape[0] = experts > 1 ? experts : n;
  weight.shape[1] = experts > 1 ? n : k;
  weight.shape[2] = experts > 1 ? k : 0;
  m->tensors[0] = weight;
  m->import.size = sizeof m->import;
  m->import.format = LPGEMM_FORMAT_GGUF;
  m->import.tensors = m->tensors;
  m->import.count = 1;
}

/* Bytes that ggml never writes mean nothing: NVFP4's scales have no sign. */
static void drop_signs_of_scales(matrix *m) {
  if (m->type->number != 40) return;
  for (int64_t i = 0; i < m->experts * m->n * (m->k / 64); i++) {
    for (int s = 0; s < 4; s++) m->blocks[i * 36 + s] &= 0x7f;
  }
}

static void add_scale(matrix *m, int64_t count) {
  for (int i = 0; i < count; i++) m->scale[i] = (float)test_uniform(0.001, 3.0);
  lpgemm_tensor_t scale = {"scale", LPGEMM_F32, 1, {count}, m->scale, (size_t)count * 4};
  m->tensors[1] = scale;
  m->import.count = 2;
}

static int same(float got, double want) { return isnan(want) ? isnan(got) : got == (float)want; }

/* Every value of weights made of rows n0.., columns k0.. of an expert, to the bit (but for the sign of zero). Products
 * with minima are exact in fp64: they are whole multiples of 2^-24 below 2^28. */
static void check_weights(const matrix *m, lpgemm_weights_t weights, int64_t expert, int64_t n0, int64_t k0,
                          double scale) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  int64_t rows = info.desc.n, columns = info.desc.k;
  float *out = test_alloc((size_t)(rows * columns) * sizeof *out);
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, out, 0), LPGEMM_SUCCESS);
  test_wait();
  int wrong = 0;
  for (int64_t i = 0; i < rows * columns && !wrong; i++) {
    int64_t n = expert * m->n + n0 + i / columns, k = k0 + i % columns;
    const uint8_t *block = m->blocks + (n * (m->k / m->type->block) + k / m->type->block) * m->type->bytes;
    double want = m->type->value(block, (int)(k % m->type->block)) * scale;
    wrong = !same(out[i], want);
    if (wrong) {
      test_fail(__FILE__, __LINE__, "weight (%lld, %lld) is %a, not %a", (long long)(n0 + i / columns), (long long)k,
                (double)out[i], want);
    }
  }
  test_free(out);
}

static lpgemm_weights_t import_one(const matrix *m) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_import_desc(&m->import, 1, &desc), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_weights(handle, &m->import, 1, NULL, 0, &weights), LPGEMM_SUCCESS);
  return weights;
}

/* ---- import ---- */

static void random_blocks(const kind *type) {
  if (!test_case("import_gguf/random/%s", type->name)) return;
  matrix m;
  make_matrix(&m, type, 1, 83, type->block * (type->block < 256 ? 12 : 4));
  lpgemm_weights_t weights = import_one(&m);
  if (weights) check_weights(&m, weights, 0, 0, 0, 1.0);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(m.blocks);
}

/* Every index of every grid, in each of the two or four places that a vector may have. */
static void every_index(const kind *type) {
  if (!test_case("import_gguf/indices/%s", type->name)) return;
  matrix m;
  make_matrix(&m, type, 1, 64, 256 * 32); /* 65536 vectors or more, of 2048 at most */
  lpgemm_weights_t weights = import_one(&m);
  if (weights) check_weights(&m, weights, 0, 0, 0, 1.0);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(m.blocks);
}

static void slices(const kind *type) {
  if (!test_case("import_gguf/slices/%s", type->name)) return;
  matrix m;
  make_matrix(&m, type, 3, 90, type->block * 6);
  m.import.expert = 2;
  m.import.n0 = 17;
  m.import.n1 = 85;
  m.import.k0 = type->block;
  m.import.k1 = type->block * 4;
  add_scale(&m, 3);
  m.scale[2] = 0.5f; /* so that values times it stay exact */
  lpgemm_weights_t weights = import_one(&m);
  if (weights) check_weights(&m, weights, 2, 17, type->block, 0.5);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(m.blocks);
}

/* The tables are what ggml has: hashes (64-bit FNV-1a) of the entries, one byte each, as its Python package gives them.
 */
static void grids(void) {
  static const struct {
    const char *name;
    const uint16_t *words;
    int count, bits;
    int digit[8];
    uint64_t hash;
  } grid[] = {
      {"iq2_xxs", lpgemm_i_grid_iq2_xxs, 256, 2, {8, 25, 43}, 0xbb4ee025b5ac6e8eu},
      {"iq2_xs", lpgemm_i_grid_iq2_xs, 512, 2, {8, 25, 43}, 0xc9b1ee61e79909bdu},
      {"iq2_s", lpgemm_i_grid_iq2_s, 1024, 2, {8, 25, 43}, 0x123edd38a3b62b90u},
      {"iq3_xxs", lpgemm_i_grid_iq3_xxs, 256, 3, {4, 12, 20, 28, 36, 44, 52, 62}, 0xdfa5dc83d6a155d5u},
      {"iq3_s", lpgemm_i_grid_iq3_s, 512, 3, {1, 3, 5, 7, 9, 11, 13, 15}, 0xfa37020c25b44829u},
      {"iq1", lpgemm_i_grid_iq1, 2048, 2, {-1, 0, 1}, 0x6703ed863501ae2eu},
  };
  for (int g = 0; g < 6; g++) {
    if (!test_case("import_gguf/grids/%s", grid[g].name)) continue;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < grid[g].count; i++) {
      CHECK(i == 0 || grid[g].words[i] > grid[g].words[i - 1]);
      for (int j = 0; j < (grid[g].bits == 2 ? 8 : 4); j++) {
        int digit = grid[g].words[i] >> grid[g].bits * j & ((1 << grid[g].bits) - 1);
        hash = (hash ^ (uint8_t)grid[g].digit[digit]) * 0x100000001b3u;
      }
    }
    CHECK(hash == grid[g].hash);
  }
}

/* ---- the values that ggml computed ---- */

/* Compares with n x k little-endian fp32 numbers of a file. */
static void check_expected(const char *name, lpgemm_weights_t weights, int64_t numbers) {
  char path[256];
  snprintf(path, sizeof path, "tests/golden/formats/%s.w.f32", name);
  float *want = test_alloc((size_t)numbers * sizeof *want), *got = test_alloc((size_t)numbers * sizeof *got);
  FILE *file = fopen(path, "rb");
  CHECK(file && fread(want, sizeof *want, (size_t)numbers, file) == (size_t)numbers);
  if (file) fclose(file);
  CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F32, got, 0), LPGEMM_SUCCESS);
  test_wait();
  int64_t i = 0;
  while (i < numbers && same(got[i], (double)want[i])) i++;
  if (i < numbers) {
    test_fail(__FILE__, __LINE__, "number %lld is %a, not %a", (long long)i, (double)got[i], (double)want[i]);
  }
  test_free(want);
  test_free(got);
}

/* Blocks by ggml's own quantiser, or random bits under plausible scales. */
static void golden(const kind *type, const char *blocks) {
  if (!test_case("import_gguf/golden/%s/%s", type->name, blocks)) return;
  char name[64];
  snprintf(name, sizeof name, "gguf-%s-%s", type->name, blocks);
  lpgemm_file_t file = NULL;
  lpgemm_tensor_t tensor = {0};
  CHECK_STATUS(lpgemm_file_open("tests/golden/formats/all_types.gguf", &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_find(file, name, &tensor), LPGEMM_SUCCESS);
  tensor.name = "weight";
  lpgemm_import_t part = {.size = sizeof part};
  part.format = LPGEMM_FORMAT_GGUF;
  part.tensors = &tensor;
  part.count = 1;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_import_weights(handle, &part, 1, NULL, 0, &weights), LPGEMM_SUCCESS);
  if (weights) check_expected(name, weights, tensor.shape[0] * tensor.shape[1]);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
}

/* What reads files and what reads blocks agree about the types. */
static void tables(void) {
  static const struct {
    int number;
    const char *name;
    int block, bytes;
  } in_files[] = {
#define TYPE(number, name, block, bytes) {number, name, block, bytes},
      LPG_GGML_TYPES(TYPE)
#undef TYPE
  };
  int read = 0;
  if (!test_case("import_gguf/tables")) return;
  for (size_t i = 0; i < sizeof in_files / sizeof in_files[0]; i++) {
    const kind *type = kind_of(in_files[i].name);
    const lpg_ggml *known = lpgemm_i_ggml(in_files[i].number);
    CHECK(known && (known->ops != NULL) == (type != NULL));
    if (!type || !known) continue;
    read++;
    CHECK_INT(type->number, in_files[i].number);
    CHECK_INT(known->block, in_files[i].block);
    CHECK_INT(known->bytes, in_files[i].bytes);
    CHECK_INT((known->ops->write != NULL), type->lossless);
  }
  CHECK_INT(read, KINDS);
}

/* ---- export ---- */

static void check_export(const matrix *m, lpgemm_weights_t weights) {
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_export_size(weights, m->type->number, &bytes), LPGEMM_SUCCESS);
  CHECK_INT(bytes, m->tensors[0].bytes);
  uint8_t *out = test_alloc(bytes);
  CHECK_STATUS(lpgemm_export(handle, weights, m->type->number, out, bytes), LPGEMM_SUCCESS);
  size_t i = 0;
  while (i < bytes && out[i] == m->blocks[i]) i++;
  if (i < bytes) {
    test_fail(__FILE__, __LINE__, "byte %zu of block %zu is %02x, not %02x", i % (size_t)m->type->bytes,
              i / (size_t)m->type->bytes, out[i], m->blocks[i]);
  }
  CHECK_STATUS(lpgemm_export(handle, weights, m->type->number, out, bytes - 1), LPGEMM_BUFFER_TOO_SMALL);
  CHECK_STATUS(lpgemm_export(handle, weights, m->type->number, NULL, bytes), LPGEMM_NULL_POINTER);
  test_free(out);
}

static void round_trip(const kind *type) {
  if (!test_case("import_gguf/export/%s", type->name)) return;
  static const int64_t shapes[][2] = {{1, 1}, {16, 2}, {53, 5}, {257, 3}};
  for (int i = 0; i < 4; i++) {
    matrix m;
    make_matrix(&m, type, 1, shapes[i][0], type->block * shapes[i][1]);
    drop_signs_of_scales(&m);
    if (type->number == 40 && i % 2) add_scale(&m, 1);
    lpgemm_weights_t weights = import_one(&m);
    if (weights) check_export(&m, weights);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    test_free(m.blocks);
  }
}

/* More rows than are exported at once: 4 MiB of codes are a band. */
static void many_bands(void) {
  if (!test_case("import_gguf/export/bands")) return;
  matrix m;
  make_matrix(&m, kind_of("q4_k"), 1, 70, 1 << 17);
  lpgemm_weights_t weights = import_one(&m);
  if (weights) check_export(&m, weights);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(m.blocks);
}

/* Weights that never were blocks: what is exported and imported again is the same. */
static void own_weights(void) {
  if (!test_case("import_gguf/export/own")) return;
  lpgemm_weight_desc_t desc = sample_desc_q4k(37, 512);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t weights = sample_pack(handle, &s), again = NULL;
  matrix m;
  make_matrix(&m, kind_of("q4_k"), 1, 37, 512);
  CHECK_STATUS(lpgemm_export(handle, weights, 12, m.blocks, m.tensors[0].bytes), LPGEMM_SUCCESS);
  again = import_one(&m);
  lpgemm_weights_info_t first = {.size = sizeof first}, second = {.size = sizeof second};
  CHECK_STATUS(lpgemm_weights_info(weights, &first), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(again, &second), LPGEMM_SUCCESS);
  CHECK(first.payload_hash == second.payload_hash);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(again), LPGEMM_SUCCESS);
  sample_free(&s);
  test_free(m.blocks);
}

/* Packs a sample of the description and wants the export refused with a sentence that has these words. */
static void refuse_export(const lpgemm_weight_desc_t *desc, int number, lpgemm_status_t status, const char *words) {
  sample s;
  sample_make(&s, desc);
  if (desc->scale_type == LPGEMM_I8) { /* whatever was drawn, one is too large */
    memset(s.part[LPGEMM_PART_SCALES], 33, s.part_bytes[LPGEMM_PART_SCALES]);
    sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
  }
  lpgemm_weights_t weights = sample_pack(handle, &s);
  size_t bytes = 1 << 16;
  uint8_t *out = test_alloc(bytes);
  CHECK_STATUS(lpgemm_export(handle, weights, number, out, bytes), status);
  if (!strstr(lpgemm_last_error(), words)) {
    test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", lpgemm_last_error(), words);
  }
  test_free(out);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  sample_free(&s);
}

static void no_export(void) {
  if (!test_case("import_gguf/export/refused")) return;
  lpgemm_weight_desc_t q4_0 = sample_desc(20, 64, LPGEMM_UINT(4), 32, LPGEMM_F16), d;
  q4_0.zero = LPGEMM_ZERO_CONSTANT;
  q4_0.zero_constant = 8;
  refuse_export(&q4_0, 8, LPGEMM_NOT_SUPPORTED, "desc.type of these weights is u4, but Q8_0 has i8");
  refuse_export(&q4_0, 12, LPGEMM_NOT_SUPPORTED, "desc.scale_type of these weights is f16, but Q4_K has u6");
  refuse_export(&q4_0, 34, LPGEMM_NOT_SUPPORTED, "TQ1_0 was expanded");
  refuse_export(&q4_0, 16, LPGEMM_NOT_SUPPORTED, "IQ2_XXS was expanded");
  refuse_export(&q4_0, 31, LPGEMM_INVALID_TYPE, "GGUF type 31 (Q4_0_4_4) was removed from GGUF");
  refuse_export(&q4_0, 1, LPGEMM_INVALID_TYPE, "GGUF type 1 (F16) is no quantised matrix");
  refuse_export(&q4_0, -1, LPGEMM_INVALID_TYPE, "GGUF type -1");
  d = q4_0;
  d.group_k = 64;
  refuse_export(&d, 2, LPGEMM_NOT_SUPPORTED, "desc.group_k of these weights is 64, but Q4_0 has 32");
  d = q4_0;
  d.scale_type = LPGEMM_BF16;
  refuse_export(&d, 2, LPGEMM_NOT_SUPPORTED, "desc.scale_type of these weights is bf16, but Q4_0 has f16");
  d = q4_0;
  d.zero_constant = 7.5f;
  refuse_export(&d, 2, LPGEMM_NOT_SUPPORTED, "desc.zero_constant of these weights is 7.5, but Q4_0 has 8");
  d = q4_0;
  d.global_scale = 0.25f;
  refuse_export(&d, 2, LPGEMM_NOT_SUPPORTED, "desc.global_scale of these weights is 0.25");
  d = q4_0;
  d.k = 80;
  refuse_export(&d, 2, LPGEMM_NOT_SUPPORTED, "80 columns, but Q4_0 has blocks of 32");
  d = sample_desc(20, 64, LPGEMM_CODEBOOK(4), 32, LPGEMM_F16);
  refuse_export(&d, 20, LPGEMM_NOT_SUPPORTED, "desc.codebook[0] of these weights is -1.9, but IQ4_NL has -127");
  d = sample_desc(20, 256, LPGEMM_UINT(3), 16, LPGEMM_I8);
  d.super_k = 256;
  d.super_scale_type = LPGEMM_F16;
  d.zero = LPGEMM_ZERO_CONSTANT;
  d.zero_constant = 4;
  refuse_export(&d, 11, LPGEMM_NOT_SUPPORTED, "row 0, columns from 0: a scale is outside what Q3_K can hold");
}

/* ---- refusals of the import ---- */

static void refuse(const matrix *m, lpgemm_status_t status, const char *words) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_import_desc(&m->import, 1, &desc), status);
  CHECK_STATUS(lpgemm_import_weights(handle, &m->import, 1, NULL, 0, &weights), status);
  CHECK(!weights);
  if (!strstr(lpgemm_last_error(), words)) {
    test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", lpgemm_last_error(), words);
  }
}

static void refused_types(void) {
  static const struct {
    uint32_t number;
    const char *words;
  } types[] = {{0, "F32"},         {4, "Q4_2"},        {5, "Q4_3"},          {9, "Q8_1"},           {15, "Q8_K"},
               {30, "BF16"},       {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},     {33, "Q4_0_8_8"},      {36, "IQ4_NL_4_4"},
               {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {43, "GGUF type 43"}, {255, "GGUF type 255"}};
  for (int i = 0; i < 14; i++) {
    if (!test_case("import_gguf/types/%u", types[i].number)) continue;
    matrix m;
    make_matrix(&m, kind_of("q4_0"), 1, 20, 64);
    m.tensors[0].type = LPGEMM_GGML(types[i].number);
    refuse(&m, LPGEMM_INVALID_TYPE, types[i].words);
    test_free(m.blocks);
  }
}

static void refusals(void) {
  if (!test_case("import_gguf/refused")) return;
  matrix m;
  make_matrix(&m, kind_of("q6_k"), 4, 20, 512);
  const lpgemm_tensor_t good = m.tensors[0];
  lpgemm_tensor_t *t = &m.tensors[0];
  t->name = "qweight";
  refuse(&m, LPGEMM_INVALID_ARGUMENT, "weight");
  *t = good;
  t->type = LPGEMM_U8;
  refuse(&m, LPGEMM_INVALID_TYPE, "weight is u8");
  *t = good;
  t->bytes--;
  refuse(&m, LPGEMM_INVALID_SIZE,
         "weight has 33599 bytes, but 4 x 20 x 512 of Q6_K, 210 bytes for 256 columns, need 33600");
  *t = good;
  t->bytes++;
  refuse(&m, LPGEMM_INVALID_SIZE, "33601");
  *t = good;
  t->shape[2] = 500;
  refuse(&m, LPGEMM_INVALID_SIZE, "500 columns, but Q6_K has blocks of 256");
  *t = good;
  t->shape[1] = -20;
  refuse(&m, LPGEMM_INVALID_SIZE, "");
  *t = good;
  t->shape[0] = t->shape[1] = t->shape[2] = INT64_C(1) << 40;
  refuse(&m, LPGEMM_SIZE_OVERFLOW, "");
  *t = good;
  t->dims = 1;
  refuse(&m, LPGEMM_INVALID_SIZE, "weight has 1 dimension");
  *t = good;
  t->data = NULL;
  refuse(&m, LPGEMM_NULL_POINTER, "weight has no data");
  *t = good;
  m.import.expert = 4;
  refuse(&m, LPGEMM_INVALID_ARGUMENT, "expert is 4, but weight has 4 matrices");
  m.import.expert = -1;
  refuse(&m, LPGEMM_INVALID_ARGUMENT, "expert is -1");
  m.import.expert = 1;
  add_scale(&m, 3);
  refuse(&m, LPGEMM_INVALID_SIZE, "scale");
  add_scale(&m, 4);
  m.scale[1] = 0.0f;
  refuse(&m, LPGEMM_CORRUPT_DATA, "scale is 0");
  m.scale[1] = INFINITY;
  refuse(&m, LPGEMM_CORRUPT_DATA, "scale is inf");
  m.scale[1] = 1.0f;
  m.tensors[1].type = LPGEMM_F64;
  refuse(&m, LPGEMM_INVALID_TYPE, "scale");
  test_free(m.blocks);
}

void suite_import_gguf(void) {
  handle = sample_handle();
  tables();
  grids();
  for (int i = 0; i < KINDS; i++) random_blocks(&kinds[i]);
  for (int i = 0; i < KINDS; i++) {
    if (has_grid(&kinds[i])) every_index(&kinds[i]);
  }
  for (int i = 0; i < KINDS; i++) slices(&kinds[i]);
  for (int i = 0; i < KINDS; i++) {
    int no_quantiser = kinds[i].number == 41 || kinds[i].number == 42; /* types that are newer than the vectors */
    if (!no_quantiser) golden(&kinds[i], "quantised");
    if (!no_quantiser && !has_grid(&kinds[i])) golden(&kinds[i], "bits");
  }
  for (int i = 0; i < KINDS; i++) {
    if (kinds[i].lossless) round_trip(&kinds[i]);
  }
  many_bands();
  own_weights();
  no_export();
  refused_types();
  refusals();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
