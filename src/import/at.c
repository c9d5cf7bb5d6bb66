/* From an opened part of a checkpoint to where its codes and numbers lie. */
#include "at.h"

#include "bitsandbytes.h"
#include "device.h"
#include "gguf.h"
#include "iq.h"

/* ---- numbers ---- */

/* Rows of `groups` numbers, or with rows side by side. */
static lpg_array_at rows_of(const uint8_t *data, int64_t groups, int bytes) {
  return (lpg_array_at){data, 1, groups, 1, bytes, 0};
}
static lpg_array_at columns_of(const uint8_t *data, int64_t n, int bytes) {
  return (lpg_array_at){data, 1, 1, n, bytes, 0};
}

static int64_t group_of(const lpg_part *part) { return part->desc.group_k ? part->desc.group_k : part->desc.k; }
static int64_t groups_of(const lpg_part *part) { return lpg_ceil_div(part->desc.k, group_of(part)); }

/* ---- one format each ---- */

static void find_gptq(const lpg_part *part, lpg_at *at) {
  at->arrangement = LPG_AT_GPTQ;
  at->line = at->n;
  at->scales = columns_of(part->scale_data, at->n, 2);
  at->zeros = (lpg_array_at){.data = part->zero_data, .line = part->zeros->shape[1]};
  at->zeros_are = LPG_ZEROS_GPTQ;
  at->zeros_less_one = part->reader->format == LPGEMM_FORMAT_GPTQ;
}

static void find_awq(const lpg_part *part, lpg_at *at) {
  at->zeros = (lpg_array_at){.data = part->zero_data, .line = part->zeros->shape[1]};
  at->scales = columns_of(part->scale_data, at->n, 2);
  switch (part->reader->format) {
    case LPGEMM_FORMAT_AWQ:
      at->arrangement = LPG_AT_AWQ;
      at->line = at->n / 8;
      at->zeros_are = LPG_ZEROS_AWQ;
      break;
    case LPGEMM_FORMAT_AWQ_GEMV:
      at->arrangement = LPG_AT_STREAM;
      at->line = at->k * 4;
      at->scales = rows_of(part->scale_data, part->scales->shape[1], 2);
      at->zeros_are = LPG_ZEROS_ROWS;
      break;
    default:
      at->arrangement = LPG_AT_AWQ_FAST;
      at->zeros = columns_of(part->zero_data, at->n, 2);
      break;
  }
}

/* The reader has seen that the words are those of one arrangement or of the other. */
static void find_packed(const lpg_part *part, lpg_at *at) {
  const int64_t words = part->codes->shape[1];
  const int is_dense = words == lpg_ceil_div(at->k * at->bits, 32);
  at->arrangement = is_dense ? LPG_AT_STREAM : LPG_AT_WORDS;
  at->line = is_dense ? words * 32 : words;
  if (part->scales) at->scales = rows_of(part->scale_data, groups_of(part), lpg_bytes(part->desc.scale_type));
  if (part->zeros) at->zeros = (lpg_array_at){.data = part->zero_data, .line = part->zeros->shape[1]};
  at->zeros_are = is_dense ? LPG_ZEROS_DENSE : LPG_ZEROS_WORDS;
}

static void find_scaled(const lpg_part *part, lpg_at *at) {
  at->arrangement = LPG_AT_BYTES;
  at->line = at->k;
  if (part->zeros) at->flip = 0x80u; /* codes and zeros become unsigned */
  if (!part->scales) return;
  const int stack = part->codes->dims == 3;
  const int64_t columns = part->scales->dims == stack + 2 ? part->scales->shape[stack + 1] : 1;
  at->scales = rows_of(part->scale_data, columns, lpg_bytes(part->desc.scale_type));
  at->zeros = rows_of(part->zero_data, columns, 1);
  at->scales.rows_a_line = at->zeros.rows_a_line = part->variant;
  at->zeros.flip = 0x80u;
}

static void find_stream(const lpg_part *part, lpg_at *at) {
  at->arrangement = at->bits == 8 ? LPG_AT_BYTES : LPG_AT_STREAM;
  at->line = at->k * (at->bits == 8 ? 1 : at->bits);
  at->scales = rows_of(part->scale_data, groups_of(part), 1);
}

static void find_bitsandbytes(const lpg_part *part, lpg_at *at) {
  const lpg_quant_state *state = part->own;
  at->arrangement = LPG_AT_NF4;
  at->group = group_of(part);
  at->scales = (lpg_array_at){.data = part->scale_data, .group = state->block};
  at->scales_are = LPG_SCALES_BLOCKS;
  at->map = part->more_data[LPG_NESTED_MAP];
  at->nested = part->more_data[LPG_NESTED_ABSMAX];
  at->nested_group = state->nested_block;
  at->nested_offset = state->nested_offset;
}

static void find_hqq(const lpg_part *part, lpg_at *at) {
  const int fields = at->bits == 3 ? 10 : at->bits >= 5 ? 1 : 8 / at->bits;
  at->arrangement = fields == 1 ? LPG_AT_BYTES : LPG_AT_HQQ;
  at->line = at->k; /* of whole bytes; else */
  at->group = group_of(part);
  at->lines = lpg_ceil_div(at->n * groups_of(part), fields);
  at->scales = rows_of(part->scale_data, groups_of(part), lpg_bytes(part->desc.scale_type));
  at->zeros = rows_of(part->zero_data, groups_of(part), lpg_bytes(part->desc.zero_type));
}

static void find_gguf(const lpg_part *part, lpg_at *at) {
  static const uint16_t *const grids[] = {
      [16] = lpgemm_i_grid_iq2_xxs, [17] = lpgemm_i_grid_iq2_xs, [18] = lpgemm_i_grid_iq3_xxs, [19] = lpgemm_i_grid_iq1,
      [21] = lpgemm_i_grid_iq3_s,   [22] = lpgemm_i_grid_iq2_s,  [29] = lpgemm_i_grid_iq1};
  const int type = part->variant;
  at->arrangement = LPG_AT_GGML + type;
  at->line = at->k / lpg_ggml_block(type) * lpg_ggml_bytes(type);
  at->grid = type < (int)(sizeof grids / sizeof grids[0]) ? grids[type] : NULL;
}

size_t lpgemm_i_grid_bytes(const lpg_at *at) {
  return at->grid ? (size_t)lpg_grid_entries(at->arrangement - LPG_AT_GGML) * sizeof *at->grid : 0;
}

int lpgemm_i_find_at(const lpg_part *part, lpg_at *at) {
  *at = (lpg_at){.bits = lpg_bits(part->desc.type), .n = part->desc.n, .k = part->desc.k, .codes = part->code_data};
  at->code_bytes = part->codes->bytes - (size_t)(part->code_data - (const uint8_t *)part->codes->data);
  switch (part->reader->format) {
    case LPGEMM_FORMAT_GPTQ:
    case LPGEMM_FORMAT_GPTQ_V2: find_gptq(part, at); break;
    case LPGEMM_FORMAT_AWQ:
    case LPGEMM_FORMAT_AWQ_GEMV:
    case LPGEMM_FORMAT_AWQ_GEMV_FAST: find_awq(part, at); break;
    case LPGEMM_FORMAT_PACK_QUANTIZED: find_packed(part, at); break;
    case LPGEMM_FORMAT_INT8_FP8: find_scaled(part, at); break;
    case LPGEMM_FORMAT_NVFP4:
    case LPGEMM_FORMAT_MXFP: find_stream(part, at); break;
    case LPGEMM_FORMAT_BITSANDBYTES: find_bitsandbytes(part, at); break;
    case LPGEMM_FORMAT_HQQ: find_hqq(part, at); break;
    case LPGEMM_FORMAT_BITNET:
    case LPGEMM_FORMAT_BITNET_AUTO:
      at->arrangement = LPG_AT_BITNET;
      at->lines = at->n / 4;
      break;
    case LPGEMM_FORMAT_GGUF: find_gguf(part, at); break;
    default: return 0;
  }
  /* kernels count groups of a whole matrix in 32 bits */
  return at->n <= INT32_MAX && at->k <= INT32_MAX && at->n * groups_of(part) <= UINT32_MAX;
}

/* ---- addresses ---- */

static int is_multiple(const void *address, int of) { return (uintptr_t)address % (uintptr_t)of == 0; }

static int is_array_aligned(const lpg_array_at *a) { return is_multiple(a->data, a->bytes > 0 ? a->bytes : 4); }

int lpgemm_i_is_aligned(const lpg_at *at) {
  int align = 4;
  const int bytes = lpg_ggml_bytes(at->arrangement - LPG_AT_GGML);
  switch (at->arrangement) {
    case LPG_AT_BYTES:
    case LPG_AT_STREAM:
    case LPG_AT_BITNET: align = 1; break;
    case LPG_AT_HQQ: align = at->bits == 3 ? 4 : 1; break;
    default:
      if (at->arrangement >= LPG_AT_GGML) align = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
      break;
  }
  const int are_scales =
      at->map ? is_multiple(at->map, 4) && is_multiple(at->nested, 4) : is_array_aligned(&at->scales);
  return is_multiple(at->codes, align) && are_scales && is_array_aligned(&at->zeros);
}
