/* What a model folder's config.json (or hf_quant_config.json, quantize_config.json) says of a layer. */
#ifndef LPG_FILES_CONFIG_H
#define LPG_FILES_CONFIG_H

#include "files.h"
#include "json.h"

typedef enum lpg_method {
  LPG_METHOD_NONE = 0, /* no config, or one that does not speak of quantisation */
  LPG_METHOD_GPTQ,
  LPG_METHOD_AWQ,
  LPG_METHOD_AUTO_ROUND,
  LPG_METHOD_COMPRESSED_TENSORS,
  LPG_METHOD_FP8,
  LPG_METHOD_MODELOPT,
  LPG_METHOD_BITNET,
  LPG_METHOD_SELF_DESCRIBING, /* bitsandbytes, HQQ, gpt-oss: their tensors say all */
  LPG_METHOD_OTHER
} lpg_method;

typedef struct lpg_config {
  lpg_memory *memory; /* for refusals */
  lpg_json quantization;
  lpg_method method;
  char method_name[64];
  int64_t steps; /* that patterns may still take */
} lpg_config;

/* The settings of one layer. */
typedef struct lpg_settings {
  lpgemm_format_t format;
  int32_t bits;
  int64_t group_k;
  int without_order;   /* g_idx means nothing */
  const char *refusal; /* NULL: none */
} lpg_settings;

enum { LPG_CONFIG_STEPS = 1 << 28 };

/* Takes an object of settings; method is what it is of where it does not say. */
void lpgemm_i_use_config(lpg_config *config, lpg_json quantization, const char *method);

/* Maps and checks the configs of a folder; NULL: there is none. */
lpgemm_status_t lpgemm_i_read_config(lpgemm_file_t file, const char *folder, lpg_config *config);

/* Settings of a layer with qweight (GPTQ, AWQ and what is stored like them), with weight_packed, and with a weight of 8
 * bits and weight_scale. */
lpgemm_status_t lpgemm_i_config_qweight(lpg_config *config, const char *layer, lpg_settings *settings);
lpgemm_status_t lpgemm_i_config_packed(lpg_config *config, const char *layer, lpg_settings *settings);
lpgemm_status_t lpgemm_i_config_scaled(lpg_config *config, const char *layer, lpg_settings *settings);
lpgemm_status_t lpgemm_i_config_bitnet(lpg_config *config, lpg_settings *settings);

/* Keeps a sentence. */
lpgemm_status_t lpgemm_i_refuse_layer(lpg_memory *memory, const char **refusal, const char *format, ...)
    LPG_PRINTF(3, 4);

#endif
