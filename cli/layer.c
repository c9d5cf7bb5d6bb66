#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

void cli_layer_start(cli_layer *layer) {
  memset(layer, 0, sizeof *layer);
  layer->desc.size = sizeof layer->desc;
}

typedef struct type_list {
  const char *names; /* for a sentence */
  lpgemm_dtype_t types[8];
  size_t count;
  int integers; /* integers of 1 to 8 bits too */
} type_list;

static const type_list scales = {
    "f16, bf16, f32, e8m0, e4m3 or none", {0, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E8M0, LPGEMM_E4M3}, 6, 0};
static const type_list zeros = {"a number, a type of zeros (u8, u16, f16, bf16, f32) or none",
                                {0, LPGEMM_U8, LPGEMM_U16, LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32},
                                6,
                                0};
static const type_list inputs = {"f16, bf16, f32, e4m3, e5m2, u1..u8, i2..i8 or b1..b8",
                                 {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_E4M3, LPGEMM_E5M2},
                                 5,
                                 1};
static const type_list outputs = {"f16, bf16, f32 or i32", {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32, LPGEMM_I32}, 4, 0};

static int is_in(const type_list *list, lpgemm_dtype_t type) {
  for (size_t i = 0; i < list->count; i++) {
    if (type == list->types[i]) return 1;
  }
  uint32_t kind = LPGEMM_DTYPE_KIND(type);
  return list->integers && kind >= LPGEMM_KIND_UINT && kind <= LPGEMM_KIND_BIPOLAR && lpgemm_dtype_bits(type) <= 8;
}

static lpgemm_dtype_t read_type(const char *option, const char *text, const type_list *list) {
  lpgemm_dtype_t type;
  if (lpgemm_dtype_parse(text, &type) != LPGEMM_SUCCESS || !is_in(list, type)) {
    cli_usage("%s is '%s'; it must be %s", option, text, list->names);
  }
  return type;
}

static void read_group(cli_layer *layer, const char *text) {
  const int is_number = *text && text[strspn(text, "0123456789")] == 0;
  layer->desc.group_k = is_number ? cli_number("--group", text, 0, CLI_MAX_SIZE) : 0;
  if (layer->desc.group_k % 16 || (!is_number && strcmp(text, "row") != 0)) {
    cli_usage("--group is '%s'; it must be a multiple of 16, or row", text);
  }
}

static void read_zero(cli_layer *layer, const char *text) {
  lpgemm_weight_desc_t *d = &layer->desc;
  char *end;
  float number = strtof(text, &end);
  int is_number = end != text && !*end && isfinite(number);
  d->zero_constant = is_number ? number : 0;
  d->zero_type = is_number ? 0 : read_type("--zero", text, &zeros);
  d->zero = is_number ? LPGEMM_ZERO_CONSTANT : d->zero_type ? LPGEMM_ZERO_PER_GROUP : LPGEMM_ZERO_NONE;
}

int cli_layer_option(cli_layer *layer, cli_words *words) {
  const char *option = words->word[words->at];
  if (strcmp(option, "--group") == 0) {
    read_group(layer, cli_next(words, option, "a number of columns, or row"));
  } else if (strcmp(option, "--scale") == 0) {
    layer->desc.scale_type = read_type(option, cli_next(words, option, scales.names), &scales);
  } else if (strcmp(option, "--zero") == 0) {
    read_zero(layer, cli_next(words, option, zeros.names));
  } else if (strcmp(option, "--x") == 0) {
    layer->x_type = read_type(option, cli_next(words, option, inputs.names), &inputs);
  } else if (strcmp(option, "--y") == 0) {
    layer->y_type = read_type(option, cli_next(words, option, outputs.names), &outputs);
  } else {
    return 0;
  }
  return 1;
}

void cli_layer_weights(cli_layer *layer, const char *option, const char *text) {
  lpgemm_weight_desc_t *d = &layer->desc;
  size_t bytes;
  layer->name = text;
  memset(d->codebook, 0, sizeof d->codebook);
  if (lpgemm_codebook_preset(text, d->codebook) == LPGEMM_SUCCESS) {
    d->type = LPGEMM_CODEBOOK(4);
    return;
  }
  lpgemm_weight_desc_t plain = {.size = sizeof plain, .n = 1, .k = 1};
  if (lpgemm_dtype_parse(text, &plain.type) != LPGEMM_SUCCESS || lpgemm_packed_size(&plain, &bytes) != LPGEMM_SUCCESS) {
    cli_usage("%s is '%s'; it must be u1..u8, i2..i8, b1..b8, c1..c4, eXmY of 3 to 8 bits, nf4, fp4 or iq4_nl", option,
              text);
  }
  d->type = plain.type;
  if (LPGEMM_DTYPE_KIND(d->type) != LPGEMM_KIND_CODEBOOK) return;
  int entries = 1 << lpgemm_dtype_bits(d->type);
  for (int i = 0; i < entries; i++) d->codebook[i] = 2.0f * (float)i / (float)(entries - 1) - 1.0f;
}

void cli_layer_finish(cli_layer *layer) {
  if (!layer->x_type) layer->x_type = LPGEMM_F16;
  if (!layer->y_type) layer->y_type = lpgemm_dtype_bits(layer->x_type) > 8 ? layer->x_type : LPGEMM_F16;
  lpgemm_weight_desc_t smallest = layer->desc;
  smallest.n = smallest.k = 1;
  size_t bytes;
  cli_check(lpgemm_packed_size(&smallest, &bytes));
}

/* ---- weights ---- */

/* The same ones at every call: xorshift, eight codes a step. */
static uint8_t *random_codes(size_t count, int bits) {
  uint8_t *codes = cli_allocate(count + 8);
  uint64_t state = 0x9e3779b97f4a7c15u, mask = ((1u << bits) - 1) * UINT64_C(0x0101010101010101);
  for (size_t i = 0; i < count; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t eight = state & mask;
    memcpy(codes + i, &eight, sizeof eight);
  }
  return codes;
}

/* 2^0 to 2^-3, which every type of scales holds, so that the exponents of a row differ as those of a model do; for
 * integers the middle of the codes. */
static uint8_t *numbers(lpgemm_dtype_t type, size_t count, int code_bits, size_t *bytes) {
  static const struct {
    lpgemm_dtype_t type;
    uint32_t bias;
    int mantissa;
  } floats[] = {
      {LPGEMM_F16, 15, 10}, {LPGEMM_BF16, 127, 7}, {LPGEMM_F32, 127, 23}, {LPGEMM_E8M0, 127, 0}, {LPGEMM_E4M3, 7, 3}};
  size_t element = (size_t)lpgemm_dtype_bits(type) / 8;
  *bytes = count * element;
  if (!type) return NULL;
  uint8_t *out = cli_allocate(*bytes);
  for (size_t i = 0; i < count; i++) {
    uint32_t number = 1u << (code_bits - 1);
    for (size_t f = 0; f < CLI_COUNT(floats); f++) {
      if (floats[f].type == type) number = (floats[f].bias - (uint32_t)(i * 7 / 3 % 4)) << floats[f].mantissa;
    }
    memcpy(out + i * element, &number, element);
  }
  return out;
}

lpgemm_weights_t cli_layer_make(const cli_layer *layer, lpgemm_handle_t handle, int64_t n, int64_t k) {
  lpgemm_weight_desc_t d = layer->desc;
  d.n = n;
  d.k = k;
  size_t packed;
  cli_check(lpgemm_packed_size(&d, &packed));
  int bits = lpgemm_dtype_bits(d.type);
  size_t parts = (size_t)n * (size_t)(d.group_k ? (k + d.group_k - 1) / d.group_k : 1);
  lpgemm_weight_source_t source = {.size = sizeof source};
  source.codes_bytes = (size_t)n * (size_t)k;
  uint8_t *codes = random_codes(source.codes_bytes, bits);
  uint8_t *scale = numbers(d.scale_type, parts, bits, &source.scales_bytes);
  uint8_t *zero = numbers(d.zero_type, parts, bits, &source.zeros_bytes);
  source.codes = codes;
  source.scales = scale;
  source.zeros = zero;
  lpgemm_weights_t weights;
  cli_check(lpgemm_pack_weights(handle, &d, &source, NULL, 0, &weights));
  free(codes);
  free(scale);
  free(zero);
  return weights;
}

lpgemm_run_args_t cli_layer_args(const cli_layer *layer, lpgemm_weights_t weights, int64_t m) {
  lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = m};
  args.x_type = layer->x_type;
  args.y_type = layer->y_type;
  return args;
}

lpgemm_status_t cli_layer_explain(lpgemm_handle_t handle, const lpgemm_run_args_t *args, size_t *workspace, char *text,
                                  size_t bytes) {
  static _Alignas(256) char nowhere[256]; /* nothing runs: the choice looks at the number of bytes alone */
  text[0] = 0;
  lpgemm_status_t status = lpgemm_workspace_size(handle, args->weights, args->m, args, workspace);
  if (status != LPGEMM_SUCCESS) return status;
  cli_check(lpgemm_set_workspace(handle, nowhere, *workspace));
  status = lpgemm_explain(handle, args, text, bytes);
  cli_check(lpgemm_set_workspace(handle, NULL, 0));
  return status;
}

/* ---- JSON ---- */

void cli_layer_json(const cli_layer *layer) {
  const lpgemm_weight_desc_t *d = &layer->desc;
  printf("\"weights\": \"%s\", \"group\": %lld, \"scale\": \"%s\", \"zero\": ", layer->name, (long long)d->group_k,
         lpgemm_dtype_name(d->scale_type));
  if (d->zero == LPGEMM_ZERO_CONSTANT) {
    printf("%.9g", (double)d->zero_constant);
  } else {
    printf("\"%s\"", lpgemm_dtype_name(d->zero_type));
  }
  printf(", \"x\": \"%s\", \"y\": \"%s\"", lpgemm_dtype_name(layer->x_type), lpgemm_dtype_name(layer->y_type));
}
