#include "golden_case.h"

#include "test.h"

#define F32 LPGEMM_F32
const golden_case golden_cases[] = {
    {"awq-gemm-128", LPGEMM_FORMAT_AWQ, 0, 0, F32, 0},
    {"awq-gemm-64", LPGEMM_FORMAT_AWQ, 4, 64, F32, 0},
    {"awq-gemv-128", LPGEMM_FORMAT_AWQ_GEMV, 4, 128, F32, 0},
    {"awq-gemv-fast-128", LPGEMM_FORMAT_AWQ_GEMV_FAST, 4, 128, F32, 0},
    {"bitnet-bf16", LPGEMM_FORMAT_BITNET, 0, 0, F32, 0},
    {"bnb-fp4-64", LPGEMM_FORMAT_BITSANDBYTES, 0, 0, F32, 0},
    {"bnb-nf4-128-cross-rows", LPGEMM_FORMAT_BITSANDBYTES, 0, 0, F32, 0},
    {"bnb-nf4-64", LPGEMM_FORMAT_BITSANDBYTES, 0, 0, F32, 0},
    {"bnb-nf4-64-bf16", LPGEMM_FORMAT_BITSANDBYTES, 0, 0, LPGEMM_BF16, 0},
    {"bnb-nf4-64-nested", LPGEMM_FORMAT_BITSANDBYTES, 0, 0, F32, 0}, /* absmax in the library's own steps */
    {"ct-fp8-block", LPGEMM_FORMAT_INT8_FP8, 0, 128, F32, 0},
    {"ct-fp8-channel", LPGEMM_FORMAT_INT8_FP8, 0, 0, F32, 0},
    {"ct-fp8-tensor", LPGEMM_FORMAT_INT8_FP8, 0, 0, F32, 0},
    {"ct-int3-dense", LPGEMM_FORMAT_PACK_QUANTIZED, 3, 64, F32, 0},
    {"ct-int4-asym-64", LPGEMM_FORMAT_PACK_QUANTIZED, 0, 0, F32, 0},
    {"ct-int4-sym-128", LPGEMM_FORMAT_PACK_QUANTIZED, 4, 128, F32, 0},
    {"ct-int8-channel", LPGEMM_FORMAT_PACK_QUANTIZED, 8, 0, F32, 0},
    {"ct-mxfp4", LPGEMM_FORMAT_MXFP, 4, 32, F32, 0},
    {"ct-mxfp6-e2m3", LPGEMM_FORMAT_MXFP, 0, 0, F32, 0},
    {"ct-mxfp8", LPGEMM_FORMAT_MXFP, 0, 0, F32, 0},
    {"ct-nvfp4", LPGEMM_FORMAT_NVFP4, 0, 0, F32, 2},
    {"ct-old-int3", LPGEMM_FORMAT_PACK_QUANTIZED, 3, 64, F32, 0},
    {"ct-old-int4-act-order", LPGEMM_FORMAT_PACK_QUANTIZED, 4, 64, F32, 0},
    {"ct-w8a8-int-channel", LPGEMM_FORMAT_INT8_FP8, 0, 0, F32, 0},
    {"fp8-scale-inv-128", LPGEMM_FORMAT_INT8_FP8, 0, 0, F32, 0},
    {"gpt-oss-mxfp4", LPGEMM_FORMAT_MXFP, 0, 0, F32, 0},
    {"gptq-2bit-v1", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"gptq-3bit-v1", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"gptq-4bit-v1", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"gptq-4bit-v1-act-order", LPGEMM_FORMAT_GPTQ, 4, 64, F32, 0},
    {"gptq-4bit-v1-row", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"gptq-4bit-v1-sym", LPGEMM_FORMAT_GPTQ, 4, 128, F32, 0},
    {"gptq-4bit-v1-zero-0", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"gptq-4bit-v2", LPGEMM_FORMAT_GPTQ_V2, 0, 0, F32, 0},
    {"gptq-8bit-v1", LPGEMM_FORMAT_GPTQ, 0, 0, F32, 0},
    {"hqq-1bit-64", LPGEMM_FORMAT_HQQ, 0, 0, F32, 0},
    {"hqq-2bit-64", LPGEMM_FORMAT_HQQ, 0, 0, F32, 0},
    {"hqq-3bit-64", LPGEMM_FORMAT_HQQ, 0, 0, F32, 0},
    {"hqq-4bit-64", LPGEMM_FORMAT_HQQ, 0, 0, F32, 0},
    {"hqq-8bit-64", LPGEMM_FORMAT_HQQ, 0, 0, F32, 0},
    {"modelopt-nvfp4", LPGEMM_FORMAT_NVFP4, 0, 0, F32, 2},
};
const size_t golden_case_count = sizeof golden_cases / sizeof golden_cases[0];

/* A model's file has one layer here: what follows "..._proj" is the tensor's name, after a point or an underscore. */
int golden_tensors(lpgemm_file_t file, lpgemm_format_t format, lpgemm_tensor_t *tensors) {
  size_t count;
  int taken = 0;
  CHECK_STATUS(lpgemm_file_counts(file, &count, NULL), LPGEMM_SUCCESS);
  for (size_t i = 0; i < count && i < GOLDEN_TENSORS; i++) {
    CHECK_STATUS(lpgemm_file_tensor(file, i, &tensors[taken]), LPGEMM_SUCCESS);
    const char *layer = strstr(tensors[taken].name, "_proj");
    CHECK(layer != NULL);
    if (layer) tensors[taken].name = layer + 6;
    /* the library's values are the ternary numbers themselves */
    taken += !(format == LPGEMM_FORMAT_BITNET && strcmp(tensors[taken].name, "weight_scale") == 0);
  }
  return taken;
}
