/* Formats, descriptions and sizes in words. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

static const char *second_word(const char *name) {
  const char *colon = strchr(name, ':');
  return colon ? colon + 1 : name;
}

const char *convert_format_words(const lpgemm_import_t *import, char *text) {
  static const char *const names[] = {
      [LPGEMM_FORMAT_GPTQ] = "GPTQ",
      [LPGEMM_FORMAT_GPTQ_V2] = "GPTQ v2",
      [LPGEMM_FORMAT_AWQ] = "AWQ",
      [LPGEMM_FORMAT_AWQ_GEMV] = "AWQ gemv",
      [LPGEMM_FORMAT_AWQ_GEMV_FAST] = "AWQ gemv_fast",
      [LPGEMM_FORMAT_PACK_QUANTIZED] = "pack-quantized",
      [LPGEMM_FORMAT_INT8_FP8] = "scaled",
      [LPGEMM_FORMAT_NVFP4] = "NVFP4",
      [LPGEMM_FORMAT_MXFP] = "MXFP",
      [LPGEMM_FORMAT_BITSANDBYTES] = "bitsandbytes",
      [LPGEMM_FORMAT_HQQ] = "HQQ",
      [LPGEMM_FORMAT_BITNET] = "BitNet",
      [LPGEMM_FORMAT_GGUF] = "GGUF",
      [LPGEMM_FORMAT_BITNET_AUTO] = "BitNet",
  };
  const size_t format = (size_t)import->format;
  const char *name = format < CLI_COUNT(names) && names[format] ? names[format] : "unknown";
  const lpgemm_dtype_t type = import->count ? import->tensors[0].type : 0;
  if (import->format == LPGEMM_FORMAT_GGUF) {
    snprintf(text, CONVERT_WORDS, "GGUF %s", second_word(lpgemm_dtype_name(type)));
  } else if (import->format == LPGEMM_FORMAT_INT8_FP8) {
    snprintf(text, CONVERT_WORDS, "%s", type == LPGEMM_I8 ? "int8" : "fp8");
  } else if (import->format == LPGEMM_FORMAT_MXFP) {
    const int bits = type == LPGEMM_E4M3 ? 8 : import->bits ? import->bits : 4;
    snprintf(text, CONVERT_WORDS, "MXFP%d", bits);
  } else {
    snprintf(text, CONVERT_WORDS, "%s", name);
  }
  return text;
}

static void add(char *text, const char *more) {
  snprintf(text + strlen(text), CONVERT_WORDS - strlen(text), "%s", more);
}

const char *convert_desc_words(const lpgemm_weight_desc_t *d, char *text) {
  char part[64];
  snprintf(text, CONVERT_WORDS, "%s", lpgemm_dtype_name(d->type));
  if (d->group_k) {
    snprintf(part, sizeof part, " g%lld", (long long)d->group_k);
    add(text, part);
  }
  if (d->group_n) {
    snprintf(part, sizeof part, " by %lld rows", (long long)d->group_n);
    add(text, part);
  }
  if (d->scale_type) {
    add(text, " ");
    add(text, lpgemm_dtype_name(d->scale_type));
  }
  if (d->super_scale_type) {
    snprintf(part, sizeof part, " x %s a %lld", lpgemm_dtype_name(d->super_scale_type), (long long)d->super_k);
    add(text, part);
  }
  if (d->zero == LPGEMM_ZERO_CONSTANT) {
    snprintf(part, sizeof part, ", zero %g", (double)d->zero_constant);
    add(text, part);
  } else if (d->zero != LPGEMM_ZERO_NONE) {
    snprintf(part, sizeof part, ", %s %s", d->zero == LPGEMM_ZERO_MINIMUM ? "minima" : "zeros",
             lpgemm_dtype_name(d->zero_type));
    add(text, part);
  }
  if (d->super_zero_type) {
    snprintf(part, sizeof part, " x %s", lpgemm_dtype_name(d->super_zero_type));
    add(text, part);
  }
  if (d->global_scale != 0.0f && d->global_scale != 1.0f) {
    snprintf(part, sizeof part, ", all x %g", (double)d->global_scale);
    add(text, part);
  }
  if (d->row_scales) add(text, ", row scales");
  if (d->columns == LPGEMM_COLUMNS_ORDERED) add(text, ", ordered");
  return text;
}

const char *convert_size_words(uint64_t bytes, char *text) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < CLI_COUNT(units)) value /= 1000, unit++;
  snprintf(text, CONVERT_WORDS, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return text;
}
