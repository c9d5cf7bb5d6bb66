#include "seeds_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ggml.h"

/* ---- bytes ---- */

static uint8_t bytes[8192];
static size_t used;

static void add(const void *from, size_t size) {
  if (used + size > sizeof bytes) abort();
  memcpy(bytes + used, from, size);
  used += size;
}

static void number(int width, uint64_t value) {
  for (int i = 0; i < width; i++) {
    const uint8_t byte = (uint8_t)(value >> 8 * i);
    add(&byte, 1);
  }
}

static void string(const char *text) {
  number(8, strlen(text));
  add(text, strlen(text));
}

/* Writes what was added, and begins anew. */
static void save(const char *directory, const char *fuzzer, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s/%s", directory, fuzzer, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, used, file) != used || fclose(file) != 0) {
    fprintf(stderr, "seeds: cannot write %s\n", path);
    exit(1);
  }
  used = 0;
}

static void save_number(const char *directory, const char *fuzzer, int which) {
  char name[32];
  snprintf(name, sizeof name, "seed-%d", which);
  save(directory, fuzzer, name);
}

/* ---- safetensors: names of every sort of layer, and the shapes of known attacks ---- */

#define T(name, dtype, shape, begin, end) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

static const char *const headers[] = {
    "{" T("a.qweight", "I32", "4,8", 0, 128) "," T("a.scales", "F16", "1,8", 128, 144) "}",
    "{" T("a.weight_packed", "U8", "8,16", 0, 128) "," T("a.weight_scale", "U8", "8,1", 128, 136) "}",
    "{" T("a.weight", "F8_E4M3", "2,8,8", 0, 128) "," T("a.weight_scale_inv", "F32", "2,1,1", 128, 136) "}",
    "{" T("a.weight", "U8", "8,8", 0, 64) "," T("a.weight_scale", "F8_E4M3", "8,1", 64, 72) "," T(
        "a.weight_scale_2", "F32", "", 72, 76) "}",
    "{" T("m.gate_up_proj_blocks", "U8", "3,4,1,16", 0, 192) "," T("m.gate_up_proj_scales", "U8", "3,4,1", 192,
                                                                   204) "}",
    "{" T("a.weight", "U8", "32,1", 0, 32) "," T("a.weight.absmax", "F32", "1", 32, 36) "," T(
        "a.weight.quant_state.bitsandbytes__nf4", "U8", "2", 36, 38) "}",
    "{" T("a.W_q", "U8", "8,8", 0, 64) "," T("a.scale", "F16", "8,1", 64, 80) "," T("a.SCB", "F32", "1", 80, 84) "," T(
        "a.codebooks", "F16", "1", 84, 86) "," T("a.codes", "I8", "1", 86, 87) "}",
    "{" T("a", "F32", "4294967296,4294967296", 0, 0) "}",
    "{" T("a", "U8", "4294967297,4294967297,1", 0, 1) "}",
    "{" T("a", "F64", "72057594037927936", 0, 0) "}",
    "{" T("a", "U8", "6", 0, 6) "," T("b", "U8", "4", 4, 8) "}",
    "{" T("a", "U8", "8", 0, 8) "," T("b", "U8", "0", 4, 4) "}",
    "{" T("\\u00e4\\ud83d\\ude00", "F4", "1,1,1,2,4", 0, 4) ",\"__metadata__\":{\"format\":\"pt\"}}  ",
    "{\"a\":[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]}",
};
static const size_t data_bytes[] = {144, 136, 136, 76, 204, 38, 87, 0, 1, 0, 8, 8, 4, 0};

static void safetensors(const char *directory) {
  static const uint8_t zeros[256];
  for (int i = 0; i < (int)(sizeof headers / sizeof headers[0]); i++) {
    number(8, strlen(headers[i]));
    add(headers[i], strlen(headers[i]));
    add(zeros, data_bytes[i]);
    save_number(directory, "fuzz_safetensors", i);
  }
}

/* What its tensors say of themselves, and with which numbers: small, so that there are many runs of it. */
static const char nested_state[] =
    "{\"quant_type\": \"nf4\", \"blocksize\": 32, \"dtype\": \"float16\", \"shape\": [18, 64], "
    "\"nested_blocksize\": 16, \"nested_dtype\": \"float32\", \"nested_offset\": 4.25e-2}";
static const char plain_state[] =
    "{\"quant_type\": \"fp4\", \"blocksize\": 32, \"dtype\": \"bfloat16\", \"shape\": [2, 48]}";

/* A nested matrix of two row tiles, and one whose blocks cross rows. */
static void bitsandbytes(const char *directory) {
  static const struct {
    const char *name, *type, *state; /* state: its bytes; NULL: numbers */
    int count, bytes;                /* bytes: of a number */
  } tensors[] = {{"a.weight", "U8", NULL, 18 * 64 / 2, 1},
                 {"a.weight.absmax", "U8", NULL, 36, 1},
                 {"a.weight.nested_absmax", "F32", NULL, 3, 4},
                 {"a.weight.nested_quant_map", "F32", NULL, 256, 4},
                 {"a.weight.quant_map", "F32", NULL, 16, 4},
                 {"a.weight.quant_state.bitsandbytes__nf4", "U8", nested_state, sizeof nested_state - 1, 1},
                 {"b.weight", "U8", NULL, 2 * 48 / 2, 1},
                 {"b.weight.absmax", "F32", NULL, 3, 4},
                 {"b.weight.quant_map", "F32", NULL, 16, 4},
                 {"b.weight.quant_state.bitsandbytes__fp4", "U8", plain_state, sizeof plain_state - 1, 1}};
  enum { COUNT = sizeof tensors / sizeof tensors[0] };
  char header[2048] = "{";
  int length = 1, end = 0;
  for (int i = 0; i < COUNT; i++) {
    const int begin = end;
    end += tensors[i].count * tensors[i].bytes;
    length += snprintf(header + length, sizeof header - (size_t)length,
                       "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "",
                       tensors[i].name, tensors[i].type, tensors[i].count, begin, end);
  }
  header[length++] = '}';
  number(8, (uint64_t)length);
  add(header, (size_t)length);
  for (int i = 0; i < COUNT; i++) {
    if (tensors[i].state) add(tensors[i].state, (size_t)tensors[i].count);
    for (int j = 0; !tensors[i].state && j < tensors[i].count; j++) {
      float value = (float)(j % 17 + 1) / 8.0f;
      uint32_t bits = (uint32_t)j * 37;
      if (tensors[i].bytes == 4) memcpy(&bits, &value, sizeof bits);
      number(tensors[i].bytes, bits);
    }
  }
  save(directory, "fuzz_safetensors", "bitsandbytes.safetensors");
}

/* ---- GGUF ---- */

typedef struct shape {
  const char *name;
  uint32_t dims, type;
  uint64_t ne[4], offset;
} shape;

/* A good one, and then one wrong thing at a time. */
static const shape shapes[][2] = {
    {{"blk.0.attn_q.weight", 2, 2, {32, 4}, 0}, {"blk.0.attn_q.scale", 1, 0, {1}, 96}},
    {{"blk.0.ffn_up_exps.weight", 3, 12, {256, 1, 2}, 0}, {"b", 1, 30, {4}, 288}},
    {{"a", 2, 0, {UINT64_C(1) << 32, UINT64_C(1) << 32}, 0}, {"b", 1, 0, {1}, 0}},
    {{"a", 2, 12, {256, (UINT64_C(1) << 56) / 144}, 0}, {"b", 1, 0, {1}, 0}},
    {{"a", 1, 0, {UINT64_MAX}, 0}, {"a", 1, 0, {1}, 0}},
    {{"a", 1, 0, {8}, 0}, {"b", 1, 0, {8}, 16}},
    {{"a", 1, 0, {8}, UINT64_MAX - 31}, {"b", 1, 0, {8}, 4}},
    {{"a_exps.weight", 3, 2, {0, 1, UINT64_C(1) << 40}, 0}, {"b", 4, 99, {8, 1, 1, 1}, 0}},
};

static void gguf(const char *directory) {
  static const uint8_t zeros[512];
  for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
    add("GGUF", 4);
    number(4, i == 6 ? 1 : i == 7 ? 0x03000000 : 3);
    number(8, i == 4 ? UINT64_MAX : 2);
    number(8, 3);
    string("general.alignment");
    number(4, 4);
    number(4, i == 5 ? 1u << 31 : 32);
    string("tokenizer.ggml.tokens");
    number(4, 9);
    number(4, 8);
    number(8, i == 3 ? UINT64_C(1) << 61 : 2);
    string("a");
    string("b");
    string("split.count");
    number(4, 2);
    number(2, i == 2 ? 3 : 1);
    for (int t = 0; t < 2; t++) {
      const shape *s = &shapes[i][t];
      string(s->name);
      number(4, s->dims);
      for (uint32_t d = 0; d < s->dims; d++) number(8, s->ne[d]);
      number(4, s->type);
      number(8, s->offset);
    }
    add(zeros, (32 - used % 32) % 32 + 320);
    save_number(directory, "fuzz_gguf", i);
  }
}

static void pad(size_t alignment) {
  while (used % alignment) number(1, 0);
}

/* Two matrices of each block type alone, since small files are tried far oftener than a large one with all of them. */
static void gguf_types(const char *directory) {
  enum { ROWS = 3, EXPERTS = 2, FIRST = 100 };
#define TYPE(number, name, columns, bytes) {number, columns, ROWS * EXPERTS * (bytes)},
  static const struct { uint32_t type, columns, bytes; } types[] = {LPG_GGML_TYPES(TYPE)};
#undef TYPE
  for (uint32_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    add("GGUF", 4);
    number(4, 3);
    number(8, 2);
    number(8, 0);
    string("a.weight");
    number(4, 3);
    number(8, types[i].columns);
    number(8, ROWS);
    number(8, EXPERTS);
    number(4, types[i].type);
    number(8, 0);
    string("a.scale");
    number(4, 1);
    number(8, 1);
    number(4, 0);
    number(8, (types[i].bytes + 31) / 32 * 32);
    pad(32);
    for (uint32_t b = 0; b < types[i].bytes; b++) number(1, b * 37 + i);
    pad(32);
    number(4, 0x3f800000); /* 1, the only one that most types can give back */
    save_number(directory, "fuzz_gguf", FIRST + (int)i);
  }
}

/* ---- configs ---- */

static const char *const configs[] = {
    "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"desc_act\":true,\"checkpoint_format\":\"gptq_v2\","
    "\"dynamic\":{\"-:lm_head\":{},\"+:model\\\\.layers\\\\.[1-9]\\\\..*(up|gate)_proj$\":{\"bits\":8,\"group_size\":-"
    "1}}}",
    "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":64,\"version\":\"GEMV_FAST\",\"modules_to_not_convert\":["
    "\"a\"]}",
    "{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:auto_awq\",\"bits\":4,\"extra_config\":{"
    "\".*\\\\.(?:1?\\\\d|2[0-3])\\\\.\":{\"bits\":8},\"lm_head\":{\"bits\":16}}}",
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"ignore\":[\"re:^(?!.*mlp).*head\"],"
    "\"config_groups\":{\"a\":{\"targets\":[\"re:.*self_attn.{1,2}[qkv]\\\\w+\"],\"weights\":{\"num_bits\":8}},"
    "\"b\":{\"targets\":[\"Linear\"],\"format\":\"float-quantized\",\"weights\":{\"block_structure\":[128,128]}}}}",
    "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,64]}",
    "{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\"}",
    "{\"quant_method\":\"gptq\",\"dynamic\":{\"((((((.*)*)*)*)*)*)*x\":{},\"(((.{60}){60}){60}){60}\":{}}}",
};

void seeds_files(const char *directory) {
  safetensors(directory);
  bitsandbytes(directory);
  gguf(directory);
  gguf_types(directory);
  for (int i = 0; i < (int)(sizeof configs / sizeof configs[0]); i++) {
    add(configs[i], strlen(configs[i]));
    save_number(directory, "fuzz_config", i);
  }
}

lpgemm_status_t seeds_container(const char *path, lpgemm_handle_t handle, lpgemm_weights_t weights) {
  static const uint8_t data[6];
  lpgemm_container_t container;
  lpgemm_tensor_t t = {.name = "norm", .type = LPGEMM_F16, .dims = 1, .shape = {3}, .data = data, .bytes = sizeof data};
  lpgemm_status_t status = lpgemm_container_create(path, 1, &container);
  if (status != LPGEMM_SUCCESS) return status;
  status = lpgemm_container_add_tensor(container, &t);
  if (status == LPGEMM_SUCCESS) status = lpgemm_container_add_weights(container, "a", handle, weights);
  if (status == LPGEMM_SUCCESS) status = lpgemm_container_finish(container);
  lpgemm_container_destroy(container);
  return status;
}
