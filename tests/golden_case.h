/* The golden vectors of checkpoint formats in safetensors files, one layer each. */
#ifndef TEST_GOLDEN_CASE_H
#define TEST_GOLDEN_CASE_H

#include <stddef.h>

#include "lpgemm.h"

typedef struct golden_case {
  const char *name;
  lpgemm_format_t format;
  int bits;
  int64_t group;        /* as a config would say it, where the tensors leave it open */
  lpgemm_dtype_t round; /* to what the library rounds at the end; F32 if it does not */
  int ulp;              /* of fp32 that the library's own rounding of scales may cost */
} golden_case;

extern const golden_case golden_cases[];
extern const size_t golden_case_count;

enum { GOLDEN_TENSORS = 16 };

/* The tensors of the layer under the names that an import takes; returns how many. They live as long as the file. */
int golden_tensors(lpgemm_file_t file, lpgemm_format_t format, lpgemm_tensor_t *tensors);

#endif
