/* Layers of safetensors files. A layer shows itself by one tensor, its marker: "...qweight", "...weight_packed". What
 * the tensors are called decides that a layer is quantised; the config says how, where the tensors leave it open. */
#include "layers.h"

/* With the two dimensions of a matrix; a third is one of experts. */
enum { MATRIX = 2, BLOCKS = 3 };

/* ---- GPTQ, AWQ, AutoRound ---- */

static lpgemm_status_t qweight(lpg_finder *f, const lpgemm_tensor_t *marker) {
  static const char *const with_order[] = {"qweight", "qzeros", "scales", "g_idx", NULL};
  static const char *const plain[] = {"qweight", "qzeros", "scales", NULL};
  lpg_settings s;
  (void)marker;
  LPG_TRY(lpgemm_i_config_qweight(&f->config, f->layer, &s));
  const int gptq = s.format == LPGEMM_FORMAT_GPTQ || s.format == LPGEMM_FORMAT_GPTQ_V2;
  return lpgemm_i_add_parts(f, gptq && !s.without_order ? with_order : plain, '.', MATRIX, &s);
}

/* ---- compressed-tensors ---- */

static lpgemm_status_t weight_packed(lpg_finder *f, const lpgemm_tensor_t *marker) {
  static const char *const parts[] = {"weight_packed",
                                      "weight_scale",
                                      "weight_zero_point",
                                      "weight_shape",
                                      "weight_g_idx",
                                      "weight_global_scale",
                                      NULL};
  lpg_settings s;
  LPG_TRY(lpgemm_i_config_packed(&f->config, f->layer, &s));
  if (!s.format && !s.refusal) { /* without a config: codes of 4 and 6 bits in bytes say what they are */
    const lpgemm_tensor_t *scale = lpgemm_i_part(f, ".weight_scale");
    const int bytes = marker->type == LPGEMM_U8;
    if (bytes && lpgemm_i_part(f, ".weight_global_scale")) s.format = LPGEMM_FORMAT_NVFP4;
    if (bytes && !s.format && scale && (scale->type == LPGEMM_U8 || scale->type == LPGEMM_E8M0)) {
      s.format = LPGEMM_FORMAT_MXFP;
    }
    if (!s.format) {
      s.refusal =
          "it has weight_packed, and how many bits a code has only a config says; put the model's config.json "
          "beside the file";
    }
  }
  return lpgemm_i_add_parts(f, parts, '.', MATRIX, &s);
}

/* ---- weight and weight_scale: FP8 and int8, MXFP8, ModelOpt's NVFP4, BitNet ---- */

static const char *const scaled_parts[] = {"weight",         "weight_scale",      "weight_scale_inv",
                                           "weight_scale_2", "weight_zero_point", NULL};

static lpgemm_status_t bytes_with_scale(lpg_finder *f, const lpgemm_tensor_t *scale) {
  lpg_settings s = {.format = LPGEMM_FORMAT_NVFP4};
  if (lpgemm_i_part(f, ".weight_scale_2")) return lpgemm_i_add_parts(f, scaled_parts, '.', MATRIX, &s);
  if (f->config.method == LPG_METHOD_BITNET) {
    LPG_TRY(lpgemm_i_config_bitnet(&f->config, &s));
    return lpgemm_i_add_parts(f, scaled_parts, '.', MATRIX, &s);
  }
  if (scale->type == LPGEMM_E4M3) {
    return lpgemm_i_add_refused(f, "it is NVFP4 without weight_scale_2, or codes with scales that are not read");
  }
  return lpgemm_i_add_refused(
      f,
      "it has bytes with weight_scale, and whether that is BitNet only a config says (quant_method "
      "\"bitnet\" and its linear_class); other such formats are not read");
}

static lpgemm_status_t scaled(lpg_finder *f, const lpgemm_tensor_t *scale) {
  const lpgemm_tensor_t *weight = lpgemm_i_part(f, ".weight");
  const int inverse = lpgemm_i_part(f, ".weight_scale_inv") != NULL, plain = lpgemm_i_part(f, ".weight_scale") != NULL;
  if (!weight || lpg_is_real(weight->type) || lpgemm_i_part(f, ".weight_packed")) return LPGEMM_SUCCESS;
  if (inverse && plain) { /* found twice: by the one and by the other */
    const int first = strcmp(scale->name + strlen(f->layer), ".weight_scale") == 0;
    return first ? lpgemm_i_add_refused(f, "it has weight_scale and weight_scale_inv; one of them is wrong")
                 : LPGEMM_SUCCESS;
  }
  if (lpgemm_i_part(f, ".pre_quant_scale")) {
    return lpgemm_i_add_refused(f, "it has pre_quant_scale, by which X would have to be multiplied first; not read");
  }
  if (weight->type == LPGEMM_U8) return bytes_with_scale(f, scale);
  if (weight->type != LPGEMM_E4M3 && weight->type != LPGEMM_E5M2 && weight->type != LPGEMM_I8) {
    const char *why;
    LPG_TRY(lpgemm_i_refuse_layer(&f->file->memory, &why,
                                  "it has a weight of type %s with scales; e4m3, e5m2, i8 and u8 are read",
                                  lpgemm_dtype_name(weight->type)));
    return lpgemm_i_add_refused(f, why);
  }
  lpg_settings s;
  LPG_TRY(lpgemm_i_config_scaled(&f->config, f->layer, &s));
  if (!s.format) {
    const int powers = plain && (scale->type == LPGEMM_U8 || scale->type == LPGEMM_E8M0);
    s.format = powers ? LPGEMM_FORMAT_MXFP : LPGEMM_FORMAT_INT8_FP8;
  }
  return lpgemm_i_add_parts(f, scaled_parts, '.', MATRIX, &s);
}

/* ---- formats whose tensors say all ---- */

static lpgemm_status_t gpt_oss(lpg_finder *f, const lpgemm_tensor_t *marker) {
  static const char *const parts[] = {"blocks", "scales", NULL};
  const lpg_settings s = {.format = LPGEMM_FORMAT_MXFP, .bits = 4, .group_k = 32};
  if (marker->type != LPGEMM_U8 || !lpgemm_i_part(f, "_scales")) return LPGEMM_SUCCESS;
  return lpgemm_i_add_parts(f, parts, '_', BLOCKS, &s);
}

static lpgemm_status_t bitsandbytes(lpg_finder *f, const lpgemm_tensor_t *marker) {
  static const char *const parts[] = {"weight",
                                      "weight.absmax",
                                      "weight.quant_map",
                                      "weight.nested_absmax",
                                      "weight.nested_quant_map",
                                      "weight.quant_state.bitsandbytes__nf4",
                                      "weight.quant_state.bitsandbytes__fp4",
                                      NULL};
  const lpg_settings s = {.format = LPGEMM_FORMAT_BITSANDBYTES, .bits = 4};
  (void)marker;
  return lpgemm_i_add_parts(f, parts, '.', MATRIX, &s);
}

static lpgemm_status_t hqq(lpg_finder *f, const lpgemm_tensor_t *marker) {
  static const char *const parts[] = {"W_q",
                                      "scale",
                                      "zero",
                                      "nbits",
                                      "group_size",
                                      "axis",
                                      "packing",
                                      "shape",
                                      "view_as_float",
                                      "unpack_view_dtype",
                                      "scale_q",
                                      "zero_q",
                                      "compute_dtype",
                                      "quant_scale",
                                      "quant_zero",
                                      "channel_wise",
                                      "optimize",
                                      "round_zero",
                                      "stores_quant_config",
                                      "offload_meta",
                                      NULL};
  const lpg_settings s = {.format = LPGEMM_FORMAT_HQQ};
  (void)marker;
  return lpgemm_i_add_parts(f, parts, '.', MATRIX, &s);
}

/* ---- what is not read, by its marker ---- */

static lpgemm_status_t int8(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  return lpgemm_i_add_refused(f,
                              "it is int8 of bitsandbytes (SCB), which is not read; quantise the model to 4 bits, or "
                              "to int8 with compressed-tensors");
}

static lpgemm_status_t exl2(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  return lpgemm_i_add_refused(f, "it is EXL2 (q_weight), which is not read; quantise the model as GPTQ or GGUF");
}

static lpgemm_status_t exl3(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  return lpgemm_i_add_refused(f, "it is EXL3 (trellis), which is not read; quantise the model as GPTQ or GGUF");
}

static lpgemm_status_t aqlm(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  if (!lpgemm_i_part(f, ".codes")) return LPGEMM_SUCCESS;
  return lpgemm_i_add_refused(
      f, "it is AQLM (codebooks and codes), which is not read; quantise the model as GPTQ or GGUF");
}

static lpgemm_status_t quip(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  return lpgemm_i_add_refused(f, "it is QuIP# (Qidxs), which is not read; quantise the model as GPTQ or GGUF");
}

static lpgemm_status_t torchao(lpg_finder *f, const lpgemm_tensor_t *marker) {
  (void)marker;
  return lpgemm_i_add_refused(f,
                              "it is a tensor of torchao, which is not read; quantise the model as GPTQ, or with "
                              "compressed-tensors");
}

static const struct {
  const char *suffix;
  lpgemm_status_t (*add)(lpg_finder *finder, const lpgemm_tensor_t *marker);
} markers[] = {
    {".qweight", qweight},
    {".weight_packed", weight_packed},
    {".weight_scale", scaled},
    {".weight_scale_inv", scaled},
    {"_blocks", gpt_oss},
    {".weight.quant_state.bitsandbytes__nf4", bitsandbytes},
    {".weight.quant_state.bitsandbytes__fp4", bitsandbytes},
    {".W_q", hqq},
    {".SCB", int8},
    {".q_weight", exl2},
    {".trellis", exl3},
    {".codebooks", aqlm},
    {".Qidxs", quip},
    {"._weight_qdata", torchao},
    {".weight_qdata", torchao},
};

lpgemm_status_t lpgemm_i_safetensors_layers(lpgemm_file_t file, const char *folder) {
  lpg_finder finder = {.file = file};
  LPG_TRY(lpgemm_i_read_config(file, folder, &finder.config));
  for (size_t i = 0; i < file->tensor_count; i++) {
    const lpgemm_tensor_t *t = &file->tensors[i];
    const size_t length = strlen(t->name);
    for (size_t m = 0; m < sizeof markers / sizeof markers[0]; m++) {
      const size_t tail = strlen(markers[m].suffix);
      if (length <= tail || strcmp(t->name + length - tail, markers[m].suffix) != 0) continue;
      memcpy(finder.layer, t->name, length - tail);
      finder.layer[length - tail] = 0;
      LPG_TRY(markers[m].add(&finder, t));
    }
  }
  LPG_CHECK(
      file->layer_count > 0 || finder.config.method != LPG_METHOD_OTHER, LPGEMM_NOT_SUPPORTED,
      "%.300s is quantised with quant_method \"%s\", which is not read; quantise the model as GPTQ, AWQ or GGUF, or "
      "with compressed-tensors",
      file->name, finder.config.method_name);
  return LPGEMM_SUCCESS;
}
