/* Checkpoint files: what the golden vectors, the toy models and made-up models contain, and what their layers are. */
#include "checkpoints.h"
#include "files/json.h"
#include "files/pattern.h"
#include "test.h"

/* ---- looking at a file ---- */

static void must_open(const char *path, lpgemm_file_t *file) {
  *file = NULL;
  CHECK_STATUS(lpgemm_file_open(path, file), LPGEMM_SUCCESS);
}

static size_t layer_count(lpgemm_file_t file) {
  size_t layers = 0;
  CHECK_STATUS(lpgemm_file_counts(file, NULL, &layers), LPGEMM_SUCCESS);
  return layers;
}

/* The layer has this format and settings, and its tensors' names are those listed, with a blank after each. */
static void check_layer(lpgemm_file_t file, const char *name, lpgemm_format_t format, int bits, int64_t group,
                        int64_t expert, const char *tensors) {
  lpgemm_import_t import = {.size = sizeof import};
  char names[1024] = "";
  CHECK_STATUS(lpgemm_file_layer(file, name, &import), LPGEMM_SUCCESS);
  CHECK_INT(import.format, format);
  CHECK_INT(import.bits, bits);
  CHECK_INT(import.group_k, group);
  CHECK_INT(import.expert, expert);
  for (size_t i = 0; i < import.count; i++) {
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", import.tensors[i].name);
  }
  if (strcmp(names, tensors) != 0) {
    test_fail(__FILE__, __LINE__, "%s has the tensors %s, not %s", name, names, tensors);
  }
}

static void check_refused(lpgemm_file_t file, const char *name, const char *word) {
  lpgemm_import_t import = {.size = sizeof import};
  CHECK_STATUS(lpgemm_file_layer(file, name, &import), LPGEMM_NOT_SUPPORTED);
  if (!strstr(lpgemm_last_error(), word) || !strstr(lpgemm_last_error(), name)) {
    test_fail(__FILE__, __LINE__, "\"%s\" does not say %s and %s", lpgemm_last_error(), name, word);
  }
}

/* ---- the golden vectors ---- */

static void text_of(lpg_json object, const char *name, char *text, size_t size) {
  if (lpgemm_i_json_text(lpgemm_i_json_member(object, name), text, size) < 0) *text = 0;
}

static int64_t integer_of(lpg_json object, const char *name) {
  int64_t value = 0;
  return lpgemm_i_json_integer(lpgemm_i_json_member(object, name), &value) ? value : 0;
}

/* torch's words of the manifest. */
static lpgemm_dtype_t torch_type(const char *name) {
  static const struct {
    const char *name;
    lpgemm_dtype_t type;
  } types[] = {{"int32", LPGEMM_I32},         {"int64", LPGEMM_I64},     {"int16", LPGEMM_I16},
               {"int8", LPGEMM_I8},           {"uint8", LPGEMM_U8},      {"bool", LPGEMM_U8},
               {"float16", LPGEMM_F16},       {"bfloat16", LPGEMM_BF16}, {"float32", LPGEMM_F32},
               {"float8_e4m3fn", LPGEMM_E4M3}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(name, types[i].name) == 0) return types[i].type;
  }
  test_fail(__FILE__, __LINE__, "the manifest has the type %s", name);
  return 0;
}

/* Types, shapes and places of all tensors, against the manifest and the text of the file's own header. */
static void check_tensors(lpgemm_file_t file, lpg_json tensors, const buffer *bytes, const uint8_t *base) {
  char name[256], type[32], entry[300];
  lpg_json key, value, part, side;
  size_t count = 0, have;
  for (lpg_json walk = lpgemm_i_json_walk(tensors); lpgemm_i_json_next(&walk, &key, &value); count++) {
    lpgemm_tensor_t t = {0};
    lpgemm_i_json_text(key, name, sizeof name);
    CHECK_STATUS(lpgemm_file_find(file, name, &t), LPGEMM_SUCCESS);
    lpg_json parts = lpgemm_i_json_walk(value);
    lpgemm_i_json_next(&parts, NULL, &part);
    lpgemm_i_json_text(part, type, sizeof type);
    CHECK_INT(t.type, torch_type(type));
    lpgemm_i_json_next(&parts, NULL, &part);
    int dims = 0;
    for (lpg_json sides = lpgemm_i_json_walk(part); lpgemm_i_json_next(&sides, NULL, &side); dims++) {
      int64_t n = -1;
      CHECK(lpgemm_i_json_integer(side, &n) && t.shape[dims] == n);
    }
    CHECK_INT(t.dims, dims);
    /* "name":{..."data_offsets":[a,b]}, as text */
    uint64_t header = 0;
    memcpy(&header, bytes->bytes, 8);
    char *text = calloc(1, (size_t)header + 1);
    memcpy(text, bytes->bytes + 8, (size_t)header);
    snprintf(entry, sizeof entry, "\"%s\":", name);
    const char *at = strstr(text, entry);
    const char *offsets = at ? strstr(at, "\"data_offsets\":[") : NULL;
    CHECK(offsets != NULL);
    if (offsets) {
      char *after;
      const unsigned long long begin = strtoull(offsets + 16, &after, 10), end = strtoull(after + 1, NULL, 10);
      CHECK((const uint8_t *)t.data == base + 8 + header + begin && t.bytes == end - begin);
      CHECK(t.data && memcmp(t.data, bytes->bytes + 8 + header + begin, t.bytes) == 0);
    }
    free(text);
  }
  CHECK_STATUS(lpgemm_file_counts(file, &have, NULL), LPGEMM_SUCCESS);
  CHECK_INT(have, count);
}

/* What a config would say of a case; returns the format that the layer has then. */
static lpgemm_format_t make_config(const char *format, lpg_json params, char *config, size_t size) {
  char text[64];
  const int bits = (int)integer_of(params, "bits"), group = (int)integer_of(params, "group");
  *config = 0;
  if (strncmp(format, "gptq", 4) == 0) {
    text_of(params, "checkpoint_format", text, sizeof text);
    snprintf(config, size,
             "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":%d,\"group_size\":%d,"
             "\"checkpoint_format\":\"%s\"}}",
             bits, group, *text ? text : "gptq");
    return strcmp(text, "gptq_v2") == 0 ? LPGEMM_FORMAT_GPTQ_V2 : LPGEMM_FORMAT_GPTQ;
  }
  if (strncmp(format, "awq", 3) == 0) {
    text_of(params, "version_", text, sizeof text);
    snprintf(config, size,
             "{\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":%d,\"version\":\"%s\"}}",
             group, text);
    return strcmp(text, "gemm") == 0   ? LPGEMM_FORMAT_AWQ
           : strcmp(text, "gemv") == 0 ? LPGEMM_FORMAT_AWQ_GEMV
                                       : LPGEMM_FORMAT_AWQ_GEMV_FAST;
  }
  if (strncmp(format, "compressed-tensors ", 19) == 0) {
    format += 19;
    snprintf(
        config, size,
        "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"%s\",\"ignore\":[\"lm_head\"],"
        "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":%d,\"group_size\":%d}}}}}",
        format, bits, group);
    return strcmp(format, "pack-quantized") == 0         ? LPGEMM_FORMAT_PACK_QUANTIZED
           : strcmp(format, "nvfp4-pack-quantized") == 0 ? LPGEMM_FORMAT_NVFP4
           : strncmp(format, "mxfp", 4) == 0             ? LPGEMM_FORMAT_MXFP
                                                         : LPGEMM_FORMAT_INT8_FP8;
  }
  if (strncmp(format, "bitnet", 6) == 0) {
    snprintf(config, size,
             "{\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\"}}");
    return LPGEMM_FORMAT_BITNET_AUTO;
  }
  if (strncmp(format, "fp8", 3) == 0) return LPGEMM_FORMAT_INT8_FP8;
  if (strncmp(format, "modelopt", 8) == 0) return LPGEMM_FORMAT_NVFP4;
  if (strncmp(format, "gpt-oss", 7) == 0) return LPGEMM_FORMAT_MXFP;
  if (strncmp(format, "bnb", 3) == 0) return LPGEMM_FORMAT_BITSANDBYTES;
  if (strncmp(format, "hqq", 3) == 0) return LPGEMM_FORMAT_HQQ;
  test_fail(__FILE__, __LINE__, "the manifest has the format %s", format);
  return (lpgemm_format_t)0;
}

/* The vector as the only file of a model whose config says what the manifest says. */
static void check_in_folder(const char *format, lpg_json params, const buffer *bytes) {
  char config[1024];
  lpgemm_file_t file = NULL;
  const char *name = NULL;
  const lpgemm_format_t want = make_config(format, params, config, sizeof config);
  folder f = folder_make();
  folder_write(&f, "model.safetensors", bytes->bytes, bytes->size);
  if (*config) folder_text(&f, "config.json", config);
  must_open(f.path, &file);
  lpgemm_import_t import = {.size = sizeof import};
  CHECK_STATUS(lpgemm_file_layer_name(file, 0, &name), LPGEMM_SUCCESS);
  if (name) CHECK_STATUS(lpgemm_file_layer(file, name, &import), LPGEMM_SUCCESS);
  CHECK_INT(import.format, want);
  CHECK_INT(layer_count(file), strncmp(format, "gpt-oss", 7) == 0 ? 2 : 1);
  const int64_t group = integer_of(params, "group");
  if (want != LPGEMM_FORMAT_HQQ && want != LPGEMM_FORMAT_NVFP4 && *config) {
    CHECK_INT(import.bits, want >= LPGEMM_FORMAT_BITNET ? 2 : integer_of(params, "bits"));
    CHECK_INT(import.group_k, group > 0 ? group : 0);
  }
  /* every tensor of the file is the layer's, with what follows its name */
  size_t tensors = 0;
  lpgemm_file_counts(file, &tensors, NULL);
  CHECK(import.count == tensors || (want == LPGEMM_FORMAT_NVFP4 && import.count + 1 == tensors)); /* input_scale */
  for (size_t i = 0; i < import.count; i++) {
    char whole[256];
    lpgemm_tensor_t t = {0};
    const int stack = strncmp(format, "gpt-oss", 7) == 0;
    snprintf(whole, sizeof whole, "%.*s%c%s", (int)strlen(name) - 2 * stack, name, stack ? '_' : '.',
             import.tensors[i].name);
    CHECK_STATUS(lpgemm_file_find(file, whole, &t), LPGEMM_SUCCESS);
    CHECK(t.data == import.tensors[i].data && t.type == import.tensors[i].type);
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  folder_remove(&f);
}

static void golden_vectors(void) {
  buffer manifest = read_file(FORMATS "manifest.json");
  lpg_json root, one;
  CHECK_STATUS(lpgemm_i_json_check("manifest", (const char *)manifest.bytes, manifest.size, &root), LPGEMM_SUCCESS);
  int cases = 0;
  lpg_json walk = lpgemm_i_json_walk(lpgemm_i_json_member(root, "cases"));
  for (; lpgemm_i_json_next(&walk, NULL, &one); cases++) {
    char id[128], format[128], name[128], path[256];
    text_of(one, "case", id, sizeof id);
    if (!test_case("files/golden/%s", id)) continue;
    text_of(one, "format", format, sizeof format);
    text_of(one, "file", name, sizeof name);
    snprintf(path, sizeof path, FORMATS "%s", name);
    buffer bytes = read_file(path);
    lpgemm_file_t opened, parsed = NULL;
    must_open(path, &opened);
    CHECK_STATUS(lpgemm_file_parse(bytes.bytes, bytes.size, &parsed), LPGEMM_SUCCESS);
    if (strncmp(format, "gguf", 4) == 0) {
      text_of(one, "tensor", name, sizeof name);
      check_layer(opened, name, LPGEMM_FORMAT_GGUF, 0, 0, 0, "weight ");
      lpgemm_tensor_t t = {0};
      CHECK_STATUS(lpgemm_file_find(parsed, name, &t), LPGEMM_SUCCESS);
      CHECK(t.dims == 2 && t.shape[0] == integer_of(one, "n") && t.shape[1] == integer_of(one, "k"));
      for (char *c = format; *c; c++) *c |= *c >= 'A' && *c <= 'Z' ? 32 : 0;
      CHECK(strncmp(lpgemm_dtype_name(t.type), "ggml:", 5) == 0);
      CHECK(strcmp(lpgemm_dtype_name(t.type) + 5, format + 5) == 0);
    } else {
      check_tensors(parsed, lpgemm_i_json_member(one, "tensors"), &bytes, bytes.bytes);
      check_in_folder(format, lpgemm_i_json_member(one, "params"), &bytes);
    }
    CHECK_STATUS(lpgemm_file_close(opened), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_file_close(parsed), LPGEMM_SUCCESS);
    buffer_free(&bytes);
  }
  buffer_free(&manifest);
  if (test_case("files/golden/all")) CHECK_INT(cases, 81);
}

/* ---- the toy models ---- */

/* `expected` has just the layers' names. */
static void check_toy(const char *model, const char *expected, lpgemm_format_t format, int bits, int64_t group,
                      const char *tensors, size_t want_tensors) {
  lpgemm_file_t file, values;
  size_t count = 0, dense = 0;
  must_open(model, &file);
  must_open(expected, &values);
  CHECK_STATUS(lpgemm_file_counts(values, &count, NULL), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(file, &dense, NULL), LPGEMM_SUCCESS);
  CHECK_INT(layer_count(file), count);
  CHECK_INT(dense, want_tensors);
  for (size_t i = 0; i < count; i++) {
    lpgemm_tensor_t t = {0};
    CHECK_STATUS(lpgemm_file_tensor(values, i, &t), LPGEMM_SUCCESS);
    check_layer(file, t.name, format, bits, group, 0, tensors);
    const char *name = NULL;
    lpgemm_import_t import = {.size = sizeof import};
    CHECK_STATUS(lpgemm_file_layer_name(file, i, &name), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_file_layer(file, name, &import), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(values), LPGEMM_SUCCESS);
}

static void toy_models(void) {
  if (test_case("files/toy/gptq")) {
    check_toy(FORMATS "model-gptq", FORMATS "model-gptq/expected.safetensors", LPGEMM_FORMAT_GPTQ, 4, 32,
              "qweight qzeros scales g_idx ", 63);
    /* the file alone: the config beside it counts */
    check_toy(FORMATS "model-gptq/model.safetensors", FORMATS "model-gptq/expected.safetensors", LPGEMM_FORMAT_GPTQ, 4,
              32, "qweight qzeros scales g_idx ", 63);
  }
  if (test_case("files/toy/compressed-tensors")) {
    check_toy(FORMATS "model-compressed-tensors", FORMATS "model-compressed-tensors/expected.safetensors",
              LPGEMM_FORMAT_PACK_QUANTIZED, 4, 32, "weight_packed weight_scale weight_shape ", 49);
  }
  if (test_case("files/toy/gguf")) {
    check_toy(FORMATS "model-gguf/model.gguf", FORMATS "model-gguf/expected.safetensors", LPGEMM_FORMAT_GGUF, 0, 0,
              "weight ", 20);
    lpgemm_file_t file;
    must_open(FORMATS "model-gguf/model.gguf", &file);
    lpgemm_tensor_t t = {0};
    CHECK_STATUS(lpgemm_file_find(file, "blk.0.ffn_down.weight", &t), LPGEMM_SUCCESS);
    CHECK(t.type == LPGEMM_GGML(39) && t.shape[0] == 64 && t.shape[1] == 128 && t.bytes == 64 * 128 / 32 * 17);
    CHECK_STATUS(lpgemm_file_find(file, "blk.1.attn_norm.weight", &t), LPGEMM_SUCCESS);
    CHECK(t.type == LPGEMM_F32 && t.dims == 1 && t.shape[0] == 64);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    folder f = folder_make(); /* a folder with nothing but a GGUF says what to do */
    buffer bytes = read_file(FORMATS "model-gguf/model.gguf");
    folder_write(&f, "model.gguf", bytes.bytes, bytes.size);
    CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_IO_ERROR);
    CHECK(strstr(lpgemm_last_error(), ".gguf") != NULL);
    buffer_free(&bytes);
    folder_remove(&f);
  }
}

/* ---- made-up models ---- */

static void add_gptq(safetensors *s, const char *layer) {
  static const char *const parts[4][3] = {
      {"qweight", "I32", "[4,8]"}, {"qzeros", "I32", "[1,1]"}, {"scales", "F16", "[1,8]"}, {"g_idx", "I32", "[32]"}};
  static const size_t bytes[4] = {128, 4, 16, 128};
  char name[128];
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s.%s", layer, parts[i][0]);
    safetensors_add(s, name, parts[i][1], parts[i][2], bytes[i]);
  }
}

static void add_packed(safetensors *s, const char *layer) {
  char name[128];
  snprintf(name, sizeof name, "%s.weight_packed", layer);
  safetensors_add(s, name, "I32", "[8,4]", 128);
  snprintf(name, sizeof name, "%s.weight_scale", layer);
  safetensors_add(s, name, "BF16", "[8,1]", 16);
  snprintf(name, sizeof name, "%s.weight_shape", layer);
  safetensors_add(s, name, "I64", "[2]", 16);
}

/* The tensors and a config.json as a folder; opens it. */
static lpgemm_file_t open_made_up(folder *f, safetensors *s, const char *config) {
  lpgemm_file_t file;
  buffer b = safetensors_end(s);
  *f = folder_make();
  folder_write(f, "model.safetensors", b.bytes, b.size);
  if (config) folder_text(f, "config.json", config);
  must_open(f->path, &file);
  buffer_free(&b);
  return file;
}

static void close_made_up(folder *f, lpgemm_file_t file) {
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  folder_remove(f);
}

static void experts(void) {
  folder f;
  if (test_case("files/experts/safetensors")) {
    safetensors s = {0};
    safetensors_add(&s, "model.embed_tokens.weight", "F16", "[8,32]", 512);
    static const char *const layers[] = {"model.layers.0.self_attn.qkv_proj",
                                         "model.layers.0.block_sparse_moe.experts.0.w1",
                                         "model.layers.0.block_sparse_moe.experts.1.w3",
                                         "model.layers.0.mlp.experts.7.gate_proj",
                                         "model.layers.0.mlp.shared_expert.up_proj",
                                         "model.layers.0.mlp.shared_experts.down_proj"};
    for (int i = 0; i < 6; i++) add_gptq(&s, layers[i]);
    safetensors_add(&s, "model.layers.0.self_attn.qkv_proj.bias", "F16", "[8]", 16);
    safetensors_add(&s, "model.layers.0.block_sparse_moe.gate.weight", "F16", "[2,32]", 128);
    /* of another model, but tensors say what they are */
    safetensors_add(&s, "model.layers.1.mlp.experts.gate_up_proj_blocks", "U8", "[3,4,1,16]", 192);
    safetensors_add(&s, "model.layers.1.mlp.experts.gate_up_proj_scales", "U8", "[3,4,1]", 12);
    safetensors_add(&s, "model.layers.1.mlp.experts.gate_up_proj_bias", "BF16", "[3,4]", 24);
    lpgemm_file_t file =
        open_made_up(&f, &s,
                     "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,"
                     "\"modules_to_not_convert\":[\"gate\",\"lm_head\"]}}");
    CHECK_INT(layer_count(file), 9);
    for (int i = 0; i < 6; i++) {
      const char *name = NULL;
      check_layer(file, layers[i], LPGEMM_FORMAT_GPTQ, 4, 32, 0, "qweight qzeros scales g_idx ");
      CHECK_STATUS(lpgemm_file_layer_name(file, (size_t)i, &name), LPGEMM_SUCCESS);
      CHECK(name && strcmp(name, layers[i]) == 0);
    }
    check_layer(file, "model.layers.1.mlp.experts.gate_up_proj.0", LPGEMM_FORMAT_MXFP, 4, 32, 0, "blocks scales ");
    check_layer(file, "model.layers.1.mlp.experts.gate_up_proj.2", LPGEMM_FORMAT_MXFP, 4, 32, 2, "blocks scales ");
    lpgemm_import_t import = {.size = sizeof import};
    CHECK_STATUS(lpgemm_file_layer(file, "model.layers.1.mlp.experts.gate_up_proj.3", &import),
                 LPGEMM_INVALID_ARGUMENT);
    close_made_up(&f, file);
  }
  if (test_case("files/experts/gguf")) {
    gguf g = {0};
    gguf_add(&g, "blk.0.ffn_gate_exps.weight", 3, (uint64_t[]){256, 4, 3}, 12, 3 * 4 * 144);
    gguf_add(&g, "blk.0.attn_q.weight", 2, (uint64_t[]){64, 4}, 40, 4 * 36);
    gguf_add(&g, "blk.0.attn_q.scale", 1, (uint64_t[]){1}, 0, 4);
    gguf_add(&g, "blk.0.ffn_gate_inp.weight", 2, (uint64_t[]){32, 3}, 0, 384);
    gguf_add(&g, "rope_freqs.weight", 1, (uint64_t[]){32}, 0, 128);
    buffer b = gguf_end(&g);
    lpgemm_file_t file = NULL;
    CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
    CHECK_INT(layer_count(file), 4);
    for (int64_t e = 0; e < 3; e++) {
      char name[64];
      snprintf(name, sizeof name, "blk.0.ffn_gate_exps.%d", (int)e);
      check_layer(file, name, LPGEMM_FORMAT_GGUF, 0, 0, e, "weight ");
    }
    check_layer(file, "blk.0.attn_q", LPGEMM_FORMAT_GGUF, 0, 0, 0, "weight scale ");
    lpgemm_tensor_t t = {0};
    CHECK_STATUS(lpgemm_file_tensor(file, 0, &t), LPGEMM_SUCCESS);
    CHECK(t.dims == 3 && t.shape[0] == 3 && t.shape[1] == 4 && t.shape[2] == 256 && *(const uint8_t *)t.data == 1);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    buffer_free(&b);
  }
}

static void settings_by_layer(void) {
  folder f;
  if (test_case("files/settings/dynamic")) {
    safetensors s = {0};
    add_gptq(&s, "model.layers.0.mlp.up_proj");
    add_gptq(&s, "model.layers.1.mlp.up_proj");
    add_gptq(&s, "model.layers.2.mlp.up_proj");
    add_gptq(&s, "lm_head");
    lpgemm_file_t file = open_made_up(
        &f, &s,
        "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"desc_act\":false,"
        "\"checkpoint_format\":\"gptq_v2\",\"dynamic\":{\"-:lm_head\":{},"
        "\"+:model\\\\.layers\\\\.[1-9]\\\\..*up_proj\":{\"bits\":8,\"group_size\":-1},\".*\\\\.2\\\\.\":{\"bits\":3}}}"
        "}");
    check_layer(file, "model.layers.0.mlp.up_proj", LPGEMM_FORMAT_GPTQ_V2, 4, 32, 0, "qweight qzeros scales ");
    check_layer(file, "model.layers.1.mlp.up_proj", LPGEMM_FORMAT_GPTQ_V2, 8, 0, 0, "qweight qzeros scales ");
    check_layer(file, "model.layers.2.mlp.up_proj", LPGEMM_FORMAT_GPTQ_V2, 8, 0, 0, "qweight qzeros scales ");
    check_refused(file, "lm_head", "not quantised");
    close_made_up(&f, file);
  }
  if (test_case("files/settings/config_groups")) {
    safetensors s = {0};
    add_packed(&s, "model.layers.0.self_attn.q_proj");
    add_packed(&s, "model.layers.0.mlp.down_proj");
    add_packed(&s, "model.layers.1.mlp.down_proj");
    add_packed(&s, "lm_head");
    safetensors_add(&s, "model.layers.0.self_attn.v_proj.weight", "F8_E4M3", "[8,32]", 256);
    safetensors_add(&s, "model.layers.0.self_attn.v_proj.weight_scale", "F32", "[1]", 4);
    safetensors_add(&s, "model.layers.0.self_attn.v_proj.input_scale", "F32", "[1]", 4);
    lpgemm_file_t file = open_made_up(
        &f, &s,
        "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"mixed-precision\","
        "\"ignore\":[\"re:.*router\",\"lm_head\"],\"config_groups\":{"
        "\"a\":{\"targets\":[\"Linear\"],\"format\":\"pack-quantized\",\"weights\":{\"num_bits\":4,\"group_size\":32}},"
        "\"b\":{\"targets\":[\"re:.*(down|up)_proj$\"],\"format\":\"pack-quantized\",\"weights\":{\"num_bits\":8,"
        "\"group_size\":null}},"
        "\"c\":{\"targets\":[\"model.layers.0.self_attn.v_proj\"],\"format\":\"float-quantized\",\"weights\":{"
        "\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\"}}}}}");
    const char *parts = "weight_packed weight_scale weight_shape ";
    check_layer(file, "model.layers.0.self_attn.q_proj", LPGEMM_FORMAT_PACK_QUANTIZED, 4, 32, 0, parts);
    check_layer(file, "model.layers.0.mlp.down_proj", LPGEMM_FORMAT_PACK_QUANTIZED, 8, 0, 0, parts);
    check_layer(file, "model.layers.1.mlp.down_proj", LPGEMM_FORMAT_PACK_QUANTIZED, 8, 0, 0, parts);
    check_layer(file, "model.layers.0.self_attn.v_proj", LPGEMM_FORMAT_INT8_FP8, 8, 0, 0, "weight weight_scale ");
    check_refused(file, "lm_head", "ignore");
    CHECK_INT(layer_count(file), 5);
    close_made_up(&f, file);
  }
  if (test_case("files/settings/auto-round")) {
    static const char *const packings[] = {"auto_round:auto_gptq", "auto_round:auto_awq", "auto_round:llm_compressor"};
    for (int i = 0; i < 3; i++) {
      char config[512];
      safetensors s = {0};
      add_gptq(&s, "model.layers.0.mlp.up_proj");
      add_gptq(&s, "model.layers.0.mlp.down_proj");
      snprintf(config, sizeof config,
               "{\"quantization_config\":{\"quant_method\":\"auto-round\",\"bits\":4,\"group_size\":128,"
               "\"packing_format\":\"%s\",\"extra_config\":{\"model.layers.0.mlp.down_proj\":{\"bits\":8,"
               "\"group_size\":32}}}}",
               packings[i]);
      lpgemm_file_t file = open_made_up(&f, &s, config);
      const char *parts = i ? "qweight qzeros scales " : "qweight qzeros scales g_idx ";
      if (i < 2) {
        check_layer(file, "model.layers.0.mlp.up_proj", i ? LPGEMM_FORMAT_AWQ : LPGEMM_FORMAT_GPTQ, 4, 128, 0, parts);
        check_layer(file, "model.layers.0.mlp.down_proj", i ? LPGEMM_FORMAT_AWQ : LPGEMM_FORMAT_GPTQ, 8, 32, 0, parts);
      } else {
        check_refused(file, "model.layers.0.mlp.up_proj", "packing_format");
      }
      close_made_up(&f, file);
    }
  }
  if (test_case("files/settings/fp8")) {
    static const struct {
      const char *config, *scale, *shape;
      size_t bytes;
      int64_t group;
    } cases[] = {
        {"\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]", "weight_scale_inv", "[1,1]", 4, 128},
        {"\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"", "weight_scale", "[]", 4, 0},
        {"\"quant_method\":\"fbgemm_fp8\"", "weight_scale", "[8,1]", 32, 0},
        {"\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"", "weight_scale", "[]", 4, 0},
    };
    for (int i = 0; i < 4; i++) {
      char config[256], name[64], parts[64];
      safetensors s = {0};
      safetensors_add(&s, "a.b.weight", "F8_E4M3", "[8,32]", 256);
      snprintf(name, sizeof name, "a.b.%s", cases[i].scale);
      safetensors_add(&s, name, "F32", cases[i].shape, cases[i].bytes);
      safetensors_add(&s, "a.b.input_scale", "F32", "[]", 4);
      snprintf(config, sizeof config, "{\"quantization_config\":{%s}}", cases[i].config);
      snprintf(parts, sizeof parts, "weight %s ", cases[i].scale);
      lpgemm_file_t file = open_made_up(&f, &s, config);
      check_layer(file, "a.b", LPGEMM_FORMAT_INT8_FP8, 0, cases[i].group, 0, parts);
      close_made_up(&f, file);
    }
  }
  if (test_case("files/settings/legacy")) {
    lpgemm_file_t file;
    safetensors s = {0};
    add_gptq(&s, "model.layers.0.mlp.up_proj");
    buffer b = safetensors_end(&s);
    f = folder_make();
    folder_write(&f, "gptq_model-4bit-128g.safetensors", b.bytes, b.size);
    folder_text(&f, "config.json", "{\"model_type\":\"llama\"}");
    folder_text(&f, "quantize_config.json", "{\"bits\":4,\"group_size\":128,\"desc_act\":true}");
    must_open(f.path, &file);
    check_layer(file, "model.layers.0.mlp.up_proj", LPGEMM_FORMAT_GPTQ, 4, 128, 0, "qweight qzeros scales g_idx ");
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    folder_write(&f, "second.safetensors", b.bytes, b.size);
    CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_IO_ERROR);
    buffer_free(&b);
    folder_remove(&f);
    CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_IO_ERROR);
  }
  if (test_case("files/settings/bitnet")) {
    for (int i = 0; i < 3; i++) {
      safetensors s = {0};
      safetensors_add(&s, "a.b.weight", "U8", "[2,32]", 64);
      safetensors_add(&s, "a.b.weight_scale", "BF16", "[1]", 2);
      lpgemm_file_t file = open_made_up(
          &f, &s,
          i == 0   ? "{\"quantization_config\":{\"quant_method\":\"bitnet\"}}"
          : i == 1 ? "{\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\"}}"
                   : NULL);
      if (i < 2) {
        check_layer(file, "a.b", i ? LPGEMM_FORMAT_BITNET_AUTO : LPGEMM_FORMAT_BITNET, 2, 0, 0, "weight weight_scale ");
      } else {
        check_refused(file, "a.b", "linear_class");
      }
      close_made_up(&f, file);
    }
  }
}

static void not_read(void) {
  static const struct {
    const char *suffix, *other, *word;
  } kinds[] = {
      {"SCB", "weight", "bitsandbytes"},    {"q_weight", "q_scale", "EXL2"}, {"trellis", "suh", "EXL3"},
      {"codebooks", "codes", "AQLM"},       {"Qidxs", "SU", "QuIP#"},        {"_weight_qdata", "bias", "torchao"},
      {"qweight", "scales", "config.json"}, {"weight_packed", "x", "bits"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (!test_case("files/not_read/%s", kinds[i].suffix)) continue;
    char name[64];
    folder f;
    safetensors s = {0};
    snprintf(name, sizeof name, "a.b.%s", kinds[i].suffix);
    safetensors_add(&s, name, "I32", "[2,4]", 32);
    snprintf(name, sizeof name, "a.b.%s", kinds[i].other);
    safetensors_add(&s, name, "I8", "[2,4]", 8);
    lpgemm_file_t file = open_made_up(&f, &s, NULL);
    CHECK_INT(layer_count(file), 1);
    check_refused(file, "a.b", kinds[i].word);
    close_made_up(&f, file);
  }
  if (test_case("files/not_read/method")) {
    safetensors s = {0};
    lpgemm_file_t file = NULL;
    safetensors_add(&s, "a.b.weight", "BF16", "[2,4]", 16);
    buffer b = safetensors_end(&s);
    folder f = folder_make();
    folder_write(&f, "model.safetensors", b.bytes, b.size);
    folder_text(&f, "config.json", "{\"quantization_config\":{\"quant_method\":\"torchao\"}}");
    CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_NOT_SUPPORTED);
    CHECK(file == NULL && strstr(lpgemm_last_error(), "torchao"));
    folder_text(&f, "config.json", "{}");
    must_open(f.path, &file);
    CHECK_INT(layer_count(file), 0);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    buffer_free(&b);
    folder_remove(&f);
  }
}

/* ---- split GGUF ---- */

static void split_part(const folder *f, int number, int count, int64_t said) {
  gguf g = {0};
  char name[64], tensor[32];
  gguf_pair(&g, "split.no", 2, 2, (uint64_t)said);
  gguf_pair(&g, "split.count", 2, 2, (uint64_t)count);
  gguf_pair(&g, "split.tensors.count", 5, 4, (uint64_t)count);
  snprintf(tensor, sizeof tensor, "blk.%d.ffn_up.weight", number);
  gguf_add(&g, tensor, 2, (uint64_t[]){32, 2}, 2, 36);
  buffer b = gguf_end(&g);
  snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", number + 1, count);
  folder_write(f, name, b.bytes, b.size);
  buffer_free(&b);
}

static void split_files(void) {
  if (!test_case("files/split")) return;
  lpgemm_file_t file = NULL;
  folder f = folder_make();
  for (int i = 0; i < 3; i++) split_part(&f, i, 3, i);
  must_open(folder_path(&f, "m-00001-of-00003.gguf"), &file);
  CHECK_INT(layer_count(file), 3);
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "blk.%d.ffn_up", i);
    check_layer(file, name, LPGEMM_FORMAT_GGUF, 0, 0, 0, "weight ");
  }
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "m-00002-of-00003.gguf"), &file), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "first") != NULL);
  buffer b = read_file(folder_path(&f, "m-00001-of-00003.gguf"));
  CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_NOT_SUPPORTED);
  folder_write(&f, "renamed.gguf", b.bytes, b.size);
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "renamed.gguf"), &file), LPGEMM_INVALID_ARGUMENT);
  buffer_free(&b);
  split_part(&f, 2, 3, 1); /* says that it is another part */
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "m-00001-of-00003.gguf"), &file), LPGEMM_CORRUPT_DATA);
  folder_write(&f, "m-00003-of-00003.gguf", "no", 2);
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "m-00001-of-00003.gguf"), &file), LPGEMM_CORRUPT_DATA);
  folder_remove(&f);
}

/* ---- patterns ---- */

static void patterns(void) {
  if (!test_case("files/patterns")) return;
  static const struct {
    const char *pattern, *text;
    lpg_pattern_mode mode;
    int want;
  } cases[] = {
      {"a.c", "abcd", LPG_PATTERN_MATCH, 1},
      {"a.c", "xabc", LPG_PATTERN_MATCH, 0},
      {"a.c", "xabc", LPG_PATTERN_SEARCH, 1},
      {"a.c", "abcd", LPG_PATTERN_WHOLE, 0},
      {"a.c$", "abc", LPG_PATTERN_MATCH, 1},
      {"a.c$", "abcd", LPG_PATTERN_MATCH, 0},
      {".*\\.mlp\\.", "model.mlp.up", LPG_PATTERN_MATCH, 1},
      {".*\\.mlp\\.", "modelxmlp.up", LPG_PATTERN_MATCH, 0},
      {".*(q|k|v|o|gate|up|down)_proj$", "x.down_proj", LPG_PATTERN_MATCH, 1},
      {".*(q|k|v|o|gate|up|down)_proj$", "x.lm_proj", LPG_PATTERN_MATCH, 0},
      {"model\\.layers\\.(?:1?\\d|2[0-3])\\.", "model.layers.17.x", LPG_PATTERN_MATCH, 1},
      {"model\\.layers\\.(?:1?\\d|2[0-3])\\.", "model.layers.24.x", LPG_PATTERN_MATCH, 0},
      {"^(?!.*vision).*proj", "text.q_proj", LPG_PATTERN_MATCH, 1},
      {"^(?!.*vision).*proj", "vision.q_proj", LPG_PATTERN_MATCH, 0},
      {"x(?=yz)y", "xyz", LPG_PATTERN_MATCH, 1},
      {"x(?=yz)y", "xyy", LPG_PATTERN_MATCH, 0},
      {"(ab){2,3}", "ababab", LPG_PATTERN_WHOLE, 1},
      {"(ab){2,3}", "ab", LPG_PATTERN_WHOLE, 0},
      {"(ab){2,3}", "abababab", LPG_PATTERN_WHOLE, 0},
      {"a{2,}", "aaaa", LPG_PATTERN_WHOLE, 1},
      {"a{2}b", "aab", LPG_PATTERN_WHOLE, 1},
      {"[^0-9]+", "abc", LPG_PATTERN_WHOLE, 1},
      {"[^0-9]+", "ab1", LPG_PATTERN_WHOLE, 0},
      {"[\\w.]+", "a.b_c9", LPG_PATTERN_WHOLE, 1},
      {"\\bup\\b", "mlp.up.x", LPG_PATTERN_SEARCH, 1},
      {"\\bup\\b", "mlp.upx", LPG_PATTERN_SEARCH, 0},
      {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", LPG_PATTERN_MATCH, 0},
      {"(?P<n>a)b", "ab", LPG_PATTERN_WHOLE, 1},
      {"", "", LPG_PATTERN_WHOLE, 1},
      {"a|", "", LPG_PATTERN_WHOLE, 1},
      {"a??b", "b", LPG_PATTERN_WHOLE, 1},
      {"(a)\\1", "aa", LPG_PATTERN_MATCH, -1},
      {"(a", "a", LPG_PATTERN_MATCH, -1},
      {"a)", "a", LPG_PATTERN_MATCH, -1},
      {"[a", "a", LPG_PATTERN_MATCH, -1},
      {"*a", "a", LPG_PATTERN_MATCH, -1},
      {"a{999}", "a", LPG_PATTERN_MATCH, -1},
      {"(?<=a)b", "ab", LPG_PATTERN_MATCH, -1},
      {"a\\", "a", LPG_PATTERN_MATCH, -1},
      {"((((((a{60}){60}){60}){60}){60}){60})", "a", LPG_PATTERN_MATCH, -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t steps = 1 << 20;
    const int got = lpgemm_i_pattern(cases[i].pattern, cases[i].text, cases[i].mode, &steps);
    if (got != cases[i].want) {
      test_fail(__FILE__, __LINE__, "%s on %s gave %d, not %d", cases[i].pattern, cases[i].text, got, cases[i].want);
    }
  }
  int64_t few = 10;
  CHECK_INT(lpgemm_i_pattern("(a*)*b", "aaaaaaaaaaaaaaa", LPG_PATTERN_MATCH, &few), -2);
}

/* ---- misuse ---- */

static void misuse(void) {
  if (!test_case("files/misuse")) return;
  lpgemm_file_t file = NULL, closed;
  lpgemm_tensor_t t;
  lpgemm_import_t import = {.size = sizeof import};
  const char *name;
  CHECK_STATUS(lpgemm_file_open(NULL, &file), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_file_open("", &file), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_file_open("/nowhere/at/all", &file), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_file_open("/dev/null", &file), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_file_open(FORMATS "model-gguf/model.gguf", NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_file_parse(NULL, 0, &file), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_file_parse("", 0, &file), LPGEMM_CORRUPT_DATA);
  CHECK(file == NULL);
  CHECK_STATUS(lpgemm_file_close(NULL), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(NULL, NULL, NULL), LPGEMM_NULL_POINTER);
  must_open(FORMATS "model-gguf/model.gguf", &file);
  CHECK_STATUS(lpgemm_file_counts(file, NULL, NULL), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_tensor(file, 20, &t), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_file_tensor(file, 0, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_file_find(file, "nothing", &t), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_file_find(file, NULL, &t), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_file_layer_name(file, 14, &name), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_file_layer(file, "blk.0.attn_norm", &import), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_file_layer(file, "blk.0.attn_q", NULL), LPGEMM_NULL_POINTER);
  import.size = 8;
  CHECK_STATUS(lpgemm_file_layer(file, "blk.0.attn_q", &import), LPGEMM_INVALID_STRUCT);
  CHECK_STATUS(lpgemm_file_check(file, 0), LPGEMM_NOT_SUPPORTED);
  closed = file;
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_close(closed), LPGEMM_INVALID_HANDLE);
  CHECK_STATUS(lpgemm_file_tensor(closed, 0, &t), LPGEMM_INVALID_HANDLE);
}

void suite_files(void);

void suite_files(void) {
  golden_vectors();
  toy_models();
  experts();
  settings_by_layer();
  not_read();
  split_files();
  patterns();
  misuse();
}
