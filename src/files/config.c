/* Configs of checkpoints -> settings of a layer. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "pattern.h"

enum { TEXT = 512 };

lpgemm_status_t lpgemm_i_refuse_layer(lpg_memory *memory, const char **refusal, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return lpgemm_i_keep_text(memory, text, strlen(text), refusal);
}

/* ---- reading ---- */

static lpgemm_status_t read_json(lpgemm_file_t file, const char *folder, const char *name, lpg_json *value) {
  char path[LPG_FILE_PATH + 64];
  *value = (lpg_json){0};
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (!lpgemm_i_exists(path)) return LPGEMM_SUCCESS;
  lpg_map *map;
  LPG_TRY(lpgemm_i_add_map(file, path, &map));
  LPG_CHECK(map->size <= LPG_MOST_JSON, LPGEMM_SIZE_OVERFLOW, "%.300s has %zu bytes; a config has 100 MiB at most",
            path, map->size);
  return lpgemm_i_json_check(path, (const char *)map->bytes, map->size, value);
}

/* Small letters, and nothing that a terminal would obey: it may stand in a message. */
static void make_small(char *text) {
  for (char *c = text; *c; c++) {
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c | 32);
    if ((uint8_t)*c < ' ' || *c == 0x7f) *c = '?';
  }
}

static lpg_method method_of(const char *name) {
  static const struct {
    const char *name;
    lpg_method method;
  } methods[] = {{"gptq", LPG_METHOD_GPTQ},
                 {"awq", LPG_METHOD_AWQ},
                 {"auto-round", LPG_METHOD_AUTO_ROUND},
                 {"auto_round", LPG_METHOD_AUTO_ROUND},
                 {"intel/auto-round", LPG_METHOD_AUTO_ROUND},
                 {"compressed-tensors", LPG_METHOD_COMPRESSED_TENSORS},
                 {"fp8", LPG_METHOD_FP8},
                 {"fbgemm_fp8", LPG_METHOD_FP8},
                 {"modelopt", LPG_METHOD_MODELOPT},
                 {"modelopt_fp4", LPG_METHOD_MODELOPT},
                 {"modelopt_mixed", LPG_METHOD_MODELOPT},
                 {"bitnet", LPG_METHOD_BITNET},
                 {"bitsandbytes", LPG_METHOD_SELF_DESCRIBING},
                 {"hqq", LPG_METHOD_SELF_DESCRIBING},
                 {"mxfp4", LPG_METHOD_SELF_DESCRIBING}};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    if (strcmp(name, methods[i].name) == 0) return methods[i].method;
  }
  return LPG_METHOD_OTHER;
}

void lpgemm_i_use_config(lpg_config *config, lpg_json quantization, const char *method) {
  config->quantization = quantization;
  const lpg_json named = lpgemm_i_json_member(quantization, "quant_method");
  if (lpgemm_i_json_text(named, config->method_name, sizeof config->method_name) < 0) {
    snprintf(config->method_name, sizeof config->method_name, "%s", method);
  }
  make_small(config->method_name);
  config->method = method_of(config->method_name);
}

static int64_t integer(lpg_json object, const char *name, int64_t otherwise) {
  int64_t value;
  return lpgemm_i_json_integer(lpgemm_i_json_member(object, name), &value) ? value : otherwise;
}

/* Of a model of text and images, those of the text. */
static void read_heads(lpgemm_file_t file, lpg_json root) {
  const lpg_json text = lpgemm_i_json_member(root, "text_config");
  const lpg_json model = lpgemm_i_json_kind(text) == '{' ? text : root;
  const int64_t heads = integer(model, "num_attention_heads", 0), kv = integer(model, "num_key_value_heads", 0);
  file->heads = heads > 0 ? heads : 0;
  file->kv_heads = kv > 0 ? kv : 0;
}

lpgemm_status_t lpgemm_i_read_config(lpgemm_file_t file, const char *folder, lpg_config *config) {
  static const struct {
    const char *file, *member, *method; /* method: what it is where it does not say */
  } others[] = {{"hf_quant_config.json", "quantization", "modelopt"},
                {"quantize_config.json", NULL, "gptq"},
                {"quant_config.json", NULL, "awq"}};
  *config = (lpg_config){.memory = &file->memory, .steps = LPG_CONFIG_STEPS};
  if (!folder) return LPGEMM_SUCCESS;
  lpg_json root;
  LPG_TRY(read_json(file, folder, "config.json", &root));
  read_heads(file, root);
  const lpg_json places[] = {
      lpgemm_i_json_member(root, "quantization_config"),
      lpgemm_i_json_member(root, "compression_config"), /* of old compressed-tensors */
      lpgemm_i_json_member(lpgemm_i_json_member(root, "text_config"), "quantization_config"), /* text and images */
  };
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    if (lpgemm_i_json_kind(places[i]) != '{') continue;
    lpgemm_i_use_config(config, places[i], i == 1 ? "compressed-tensors" : "none");
    return LPGEMM_SUCCESS;
  }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    LPG_TRY(read_json(file, folder, others[i].file, &root));
    if (others[i].member) root = lpgemm_i_json_member(root, others[i].member);
    if (lpgemm_i_json_kind(root) != '{') continue;
    lpgemm_i_use_config(config, root, others[i].method);
    return LPGEMM_SUCCESS;
  }
  return LPGEMM_SUCCESS;
}

/* ---- looking into it ---- */

/* A word in small letters, "" if it is not there. */
static void word(lpg_json object, const char *name, char *text, size_t size) {
  if (lpgemm_i_json_text(lpgemm_i_json_member(object, name), text, size) < 0) *text = 0;
  make_small(text);
}

/* group_size of -1 or null, and of nothing: the whole row, or what the shapes say. */
static int64_t group_of(lpg_json object, const char *name, int64_t otherwise) {
  const int64_t group = integer(object, name, otherwise);
  return group > 0 ? group : 0;
}

/* A pattern as a message may show it. */
static const char *printable(const char *pattern, char shown[TEXT]) {
  snprintf(shown, TEXT, "%s", pattern);
  for (char *c = shown; *c; c++) {
    if ((uint8_t)*c < ' ' || *c == 0x7f) *c = '?';
  }
  return shown;
}

static lpgemm_status_t matches(lpg_config *config, const char *pattern, const char *layer, lpg_pattern_mode mode,
                               int *yes) {
  char shown[TEXT];
  const int found = lpgemm_i_pattern(pattern, layer, mode, &config->steps);
  LPG_CHECK(found != -1, LPGEMM_NOT_SUPPORTED,
            "the config has a pattern that is not understood, or too long: \"%.200s\"; write the layers' names instead",
            printable(pattern, shown));
  LPG_CHECK(found != -2, LPGEMM_NOT_SUPPORTED,
            "the config's patterns take too long for the layers of this model; the last one is \"%.200s\"",
            printable(pattern, shown));
  *yes = found;
  return LPGEMM_SUCCESS;
}

/* Whether a list of layers that are not quantised names just this one. The lists mean different things to different
 * programs, parts of names among them; so an entry counts only if it is the whole name, or a pattern that says so. */
static lpgemm_status_t is_listed(lpg_config *config, const char *list, const char *layer, int *listed) {
  char text[TEXT];
  lpg_json value;
  *listed = 0;
  lpg_json walk = lpgemm_i_json_walk(lpgemm_i_json_member(config->quantization, list));
  while (!*listed && lpgemm_i_json_next(&walk, NULL, &value)) {
    if (lpgemm_i_json_text(value, text, sizeof text) < 0) continue;
    *listed = strcmp(text, layer) == 0;
    if (strncmp(text, "re:", 3) == 0) LPG_TRY(matches(config, text + 3, layer, LPG_PATTERN_MATCH, listed));
  }
  return LPGEMM_SUCCESS;
}

/* A layer whose tensors are quantised, and of which the config says that it is not. */
static lpgemm_status_t refuse_listed(lpg_config *config, const char *layer, lpg_settings *settings) {
  static const char *const lists[] = {"ignore", "modules_to_not_convert"};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    int listed;
    LPG_TRY(is_listed(config, lists[i], layer, &listed));
    if (listed) {
      return lpgemm_i_refuse_layer(config->memory, &settings->refusal,
                                   "the config has it in \"%s\", but its tensors are quantised; one of them is wrong",
                                   lists[i]);
    }
  }
  return LPGEMM_SUCCESS;
}

/* ---- qweight ---- */

/* GPTQModel's "dynamic": patterns of layers, each with settings of its own ("+:") or none ("-:"); the first counts. */
static lpgemm_status_t find_dynamic(lpg_config *config, const char *layer, lpg_json *own, int *dense) {
  char text[TEXT];
  lpg_json key, value;
  *dense = 0;
  lpg_json walk = lpgemm_i_json_walk(lpgemm_i_json_member(config->quantization, "dynamic"));
  while (lpgemm_i_json_next(&walk, &key, &value)) {
    int yes = 0;
    if (lpgemm_i_json_text(key, text, sizeof text) < 0) continue;
    const int sign = strncmp(text, "-:", 2) == 0 ? -1 : strncmp(text, "+:", 2) == 0;
    LPG_TRY(matches(config, text + (sign ? 2 : 0), layer, LPG_PATTERN_MATCH, &yes));
    if (!yes) continue;
    *dense = sign < 0;
    if (sign >= 0) *own = value;
    return LPGEMM_SUCCESS;
  }
  return LPGEMM_SUCCESS;
}

/* AutoRound's "extra_config": layers by name or, if there are special characters in it, by pattern. */
static lpgemm_status_t find_extra(lpg_config *config, const char *layer, lpg_json *own) {
  char text[TEXT];
  lpg_json key, value, extra = lpgemm_i_json_member(config->quantization, "extra_config");
  *own = lpgemm_i_json_member(extra, layer);
  if (own->at) return LPGEMM_SUCCESS;
  for (lpg_json walk = lpgemm_i_json_walk(extra); lpgemm_i_json_next(&walk, &key, &value);) {
    int yes = 0;
    if (lpgemm_i_json_text(key, text, sizeof text) < 0 || !strpbrk(text, "*+?^$()[]{}|\\")) continue;
    LPG_TRY(matches(config, text, layer, LPG_PATTERN_SEARCH, &yes));
    if (!yes) continue;
    *own = value;
    return LPGEMM_SUCCESS;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t gptq_format(lpg_config *config, lpg_settings *s) {
  char format[TEXT];
  word(config->quantization, "checkpoint_format", format, sizeof format);
  if (!*format) word(config->quantization, "format", format, sizeof format);
  s->format = strcmp(format, "gptq_v2") == 0 ? LPGEMM_FORMAT_GPTQ_V2 : LPGEMM_FORMAT_GPTQ;
  if (lpgemm_i_json_kind(lpgemm_i_json_member(config->quantization, "is_marlin_format")) == 't') {
    snprintf(format, sizeof format, "marlin");
  }
  if (!*format || strcmp(format, "gptq") == 0 || s->format == LPGEMM_FORMAT_GPTQ_V2) return LPGEMM_SUCCESS;
  return lpgemm_i_refuse_layer(
      config->memory, &s->refusal,
      "checkpoint_format is \"%.60s\"; \"gptq\" and \"gptq_v2\" are read: save the model as one of them", format);
}

static lpgemm_status_t awq_format(lpg_config *config, lpg_settings *s) {
  char version[TEXT], backend[TEXT];
  word(config->quantization, "version", version, sizeof version);
  word(config->quantization, "backend", backend, sizeof backend);
  s->format = LPGEMM_FORMAT_AWQ;
  if (strcmp(version, "gemv") == 0) s->format = LPGEMM_FORMAT_AWQ_GEMV;
  if (strcmp(version, "gemv_fast") == 0) s->format = LPGEMM_FORMAT_AWQ_GEMV_FAST;
  if (strcmp(backend, "llm-awq") == 0) {
    return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                                 "backend is \"llm-awq\"; \"autoawq\" is read: convert the model with AutoAWQ");
  }
  if (!*version || strcmp(version, "gemm") == 0 || s->format != LPGEMM_FORMAT_AWQ) return LPGEMM_SUCCESS;
  return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                               "version is \"%.60s\"; \"gemm\", \"gemv\" and \"gemv_fast\" are read", version);
}

static lpgemm_status_t auto_round_format(lpg_config *config, lpg_settings *s) {
  char packing[TEXT];
  word(config->quantization, "packing_format", packing, sizeof packing);
  if (!*packing) word(config->quantization, "backend", packing, sizeof packing);
  s->format = strstr(packing, "auto_awq") ? LPGEMM_FORMAT_AWQ : LPGEMM_FORMAT_GPTQ;
  if (strstr(packing, "auto_awq") || strstr(packing, "auto_gptq")) return LPGEMM_SUCCESS;
  return lpgemm_i_refuse_layer(
      config->memory, &s->refusal,
      "packing_format is \"%.60s\"; \"auto_round:auto_gptq\" and \"auto_round:auto_awq\" are read: "
      "export the model as one of them",
      packing);
}

lpgemm_status_t lpgemm_i_config_qweight(lpg_config *config, const char *layer, lpg_settings *s) {
  const lpg_json all = config->quantization;
  lpg_json own = {0};
  int dense = 0;
  *s = (lpg_settings){0};
  switch (config->method) {
    case LPG_METHOD_GPTQ:
      LPG_TRY(gptq_format(config, s));
      LPG_TRY(find_dynamic(config, layer, &own, &dense));
      break;
    case LPG_METHOD_AWQ: LPG_TRY(awq_format(config, s)); break;
    case LPG_METHOD_AUTO_ROUND:
      LPG_TRY(auto_round_format(config, s));
      LPG_TRY(find_extra(config, layer, &own));
      dense = integer(own, "bits", 0) >= 16;
      break;
    case LPG_METHOD_NONE:
      return lpgemm_i_refuse_layer(
          config->memory, &s->refusal,
          "it has qweight, and whether that is GPTQ or AWQ only a config says; put the model's "
          "config.json beside the file");
    default:
      return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                                   "quant_method is \"%s\", whose qweight is not read; gptq, awq and auto-round are",
                                   config->method_name);
  }
  s->bits = (int32_t)integer(own, "bits", integer(all, "bits", integer(all, "w_bit", 0)));
  s->group_k = group_of(own, "group_size", integer(all, "group_size", integer(all, "q_group_size", 0)));
  lpg_json order = lpgemm_i_json_member(own, "desc_act");
  if (!order.at) order = lpgemm_i_json_member(all, "desc_act");
  s->without_order = lpgemm_i_json_kind(order) == 'f';
  if (dense && !s->refusal) {
    return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                                 "the config says that it is not quantised, but its tensors are; one of them is wrong");
  }
  return s->refusal ? LPGEMM_SUCCESS : refuse_listed(config, layer, s);
}

/* ---- compressed-tensors ---- */

/* Whether one of a group's targets is this layer: by name or pattern, or with `classes` by the class Linear. */
static lpgemm_status_t is_target(lpg_config *config, lpg_json group, const char *layer, int classes, int *yes) {
  char text[TEXT];
  lpg_json value;
  *yes = 0;
  lpg_json walk = lpgemm_i_json_walk(lpgemm_i_json_member(group, "targets"));
  while (!*yes && lpgemm_i_json_next(&walk, NULL, &value)) {
    if (lpgemm_i_json_text(value, text, sizeof text) < 0) continue;
    if (classes) {
      *yes = strcmp(text, "Linear") == 0;
    } else if (strncmp(text, "re:", 3) == 0) {
      LPG_TRY(matches(config, text + 3, layer, LPG_PATTERN_MATCH, yes));
    } else {
      *yes = strcmp(text, layer) == 0;
    }
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t find_group(lpg_config *config, const char *layer, lpg_json *group) {
  const lpg_json groups = lpgemm_i_json_member(config->quantization, "config_groups");
  *group = (lpg_json){0};
  for (int classes = 0; classes < 2; classes++) {
    lpg_json value;
    for (lpg_json walk = lpgemm_i_json_walk(groups); lpgemm_i_json_next(&walk, NULL, &value);) {
      int yes;
      LPG_TRY(is_target(config, value, layer, classes, &yes));
      if (!yes) continue;
      *group = value;
      return LPGEMM_SUCCESS;
    }
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_format_t compressed_format(const char *name) {
  static const struct {
    const char *name;
    lpgemm_format_t format;
  } formats[] = {{"pack-quantized", LPGEMM_FORMAT_PACK_QUANTIZED}, {"int-quantized", LPGEMM_FORMAT_INT8_FP8},
                 {"float-quantized", LPGEMM_FORMAT_INT8_FP8},      {"naive-quantized", LPGEMM_FORMAT_INT8_FP8},
                 {"nvfp4-pack-quantized", LPGEMM_FORMAT_NVFP4},    {"mxfp4-pack-quantized", LPGEMM_FORMAT_MXFP},
                 {"mxfp6-pack-quantized", LPGEMM_FORMAT_MXFP},     {"mxfp8-quantized", LPGEMM_FORMAT_MXFP}};
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (strcmp(name, formats[i].name) == 0) return formats[i].format;
  }
  return (lpgemm_format_t)0;
}

/* Blocks of rows and columns, [128, 128]: one number says both. */
static lpgemm_status_t read_blocks(lpg_config *config, lpg_json blocks, lpg_settings *s) {
  int64_t sides[2] = {0, 0};
  int count = 0;
  lpg_json value;
  if (lpgemm_i_json_kind(blocks) != '[') return LPGEMM_SUCCESS;
  for (lpg_json walk = lpgemm_i_json_walk(blocks); lpgemm_i_json_next(&walk, NULL, &value); count++) {
    if (count < 2 && !lpgemm_i_json_integer(value, &sides[count])) sides[count] = 0;
  }
  s->group_k = sides[1];
  if (count == 2 && sides[0] == sides[1] && sides[0] > 0) return LPGEMM_SUCCESS;
  return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                               "its scales belong to blocks of %lld rows and %lld columns; only square blocks are read",
                               (long long)sides[0], (long long)sides[1]);
}

static lpgemm_status_t compressed(lpg_config *config, const char *layer, lpg_settings *s) {
  char format[TEXT];
  lpg_json group;
  LPG_TRY(find_group(config, layer, &group));
  if (!group.at) {
    return lpgemm_i_refuse_layer(config->memory, &s->refusal, "no target in config_groups of the config means it");
  }
  word(group, "format", format, sizeof format);
  if (!*format) word(config->quantization, "format", format, sizeof format);
  s->format = compressed_format(format);
  if (!s->format) {
    return lpgemm_i_refuse_layer(
        config->memory, &s->refusal,
        "format is \"%.60s\", which is not read; pack-quantized, int-, float- and naive-quantized, "
        "nvfp4-, mxfp4- and mxfp6-pack-quantized and mxfp8-quantized are",
        format);
  }
  const lpg_json weights = lpgemm_i_json_member(group, "weights");
  s->bits = (int32_t)integer(weights, "num_bits", 0);
  s->group_k = group_of(weights, "group_size", 0);
  LPG_TRY(read_blocks(config, lpgemm_i_json_member(weights, "block_structure"), s));
  return s->refusal ? LPGEMM_SUCCESS : refuse_listed(config, layer, s);
}

lpgemm_status_t lpgemm_i_config_packed(lpg_config *config, const char *layer, lpg_settings *s) {
  *s = (lpg_settings){0};
  if (config->method == LPG_METHOD_COMPRESSED_TENSORS) return compressed(config, layer, s);
  if (config->method == LPG_METHOD_NONE) return LPGEMM_SUCCESS; /* tensors may be enough */
  return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                               "it has weight_packed, but quant_method is \"%s\"; compressed-tensors is expected",
                               config->method_name);
}

lpgemm_status_t lpgemm_i_config_scaled(lpg_config *config, const char *layer, lpg_settings *s) {
  *s = (lpg_settings){0};
  switch (config->method) {
    case LPG_METHOD_COMPRESSED_TENSORS: return compressed(config, layer, s);
    case LPG_METHOD_FP8:
      LPG_TRY(read_blocks(config, lpgemm_i_json_member(config->quantization, "weight_block_size"), s));
      return s->refusal ? LPGEMM_SUCCESS : refuse_listed(config, layer, s);
    case LPG_METHOD_NONE:
    case LPG_METHOD_MODELOPT: return LPGEMM_SUCCESS;
    default:
      return lpgemm_i_refuse_layer(
          config->memory, &s->refusal,
          "it has a weight of 8 bits with scales, but quant_method is \"%s\"; fp8, fbgemm_fp8, "
          "modelopt and compressed-tensors are read",
          config->method_name);
  }
}

lpgemm_status_t lpgemm_i_config_bitnet(lpg_config *config, lpg_settings *s) {
  char linear[TEXT];
  word(config->quantization, "linear_class", linear, sizeof linear);
  const int multiplies = strcmp(linear, "autobitlinear") == 0;
  *s = (lpg_settings){.format = multiplies ? LPGEMM_FORMAT_BITNET_AUTO : LPGEMM_FORMAT_BITNET, .bits = 2};
  if (!*linear || multiplies || strcmp(linear, "bitlinear") == 0) return LPGEMM_SUCCESS;
  return lpgemm_i_refuse_layer(config->memory, &s->refusal,
                               "linear_class is \"%.60s\"; \"bitlinear\" and \"autobitlinear\" are read", linear);
}
