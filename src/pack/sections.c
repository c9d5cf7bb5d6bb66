/* Scales, zeros and the like in their sections, and what is derived from them. */
#include "pack.h"

void lpgemm_i_clear_numbers(const lpg_plan *plan, uint8_t *blob) {
  uint64_t first = LPG_HEADER_BYTES + plan->section[LPG_SECTION_CODES].bytes;
  memset(blob + first, 0, plan->total_bytes - first);
}

uint32_t lpgemm_i_largest_number(const lpg_plan *plan, lpg_section_id id) {
  lpgemm_dtype_t type = lpgemm_i_section_type(&plan->desc, id);
  if (lpg_kind(type) != LPGEMM_KIND_UINT) return UINT32_MAX;
  int is_zero = id == LPG_SECTION_ZEROS && plan->desc.zero == LPGEMM_ZERO_PER_GROUP; /* GPTQ's reach 2^bits */
  return is_zero ? 1u << plan->bits : (1u << lpg_bits(type)) - 1u;
}

lpg_line lpgemm_i_line(const lpg_plan *plan, lpg_section_id id, int64_t row) {
  lpg_line line;
  line.type = lpgemm_i_section_type(&plan->desc, id);
  line.offset =
      (int64_t)plan->section[id].offset + lpg_value_offset(line.type, lpg_section_axis(plan, id)->padded, row, 0);
  line.stride = lpg_slot_bytes(line.type);
  line.bytes = line.type == LPGEMM_UINT(4) ? 0 : lpg_bytes(line.type);
  line.shift = 4 * (lpg_row_slot((int)(row % LPG_TILE_ROWS)) % 2);
  return line;
}

void lpgemm_i_put_number(const lpg_line *line, uint8_t *blob, int64_t index, uint32_t number) {
  uint8_t *at = blob + line->offset + index * line->stride;
  if (line->bytes == 0) *at = (uint8_t)((*at & ~(15u << line->shift)) | number << line->shift);
  for (int i = 0; i < line->bytes; i++) at[i] = (uint8_t)(number >> 8 * i);
}

uint32_t lpgemm_i_get_number(const lpg_line *line, const uint8_t *blob, int64_t index) {
  const uint8_t *at = blob + line->offset + index * line->stride;
  switch (line->bytes) {
    case 0: return (uint32_t)*at >> line->shift & 15u;
    case 1: return at[0];
    case 2: return (uint32_t)at[0] | (uint32_t)at[1] << 8;
    default: return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
  }
}

float lpgemm_i_value_of(lpgemm_dtype_t type, uint32_t number) {
  switch (type) {
    case LPGEMM_F32: return lpg_bits_f32(number);
    case LPGEMM_F16: return lpg_f16_to_f32((uint16_t)number);
    case LPGEMM_BF16: return lpg_bf16_to_f32((uint16_t)number);
    default: return lpg_code_value(type, number, NULL);
  }
}

float lpgemm_i_number_value(const lpg_line *line, const uint8_t *blob, int64_t index) {
  return lpgemm_i_value_of(line->type, lpgemm_i_get_number(line, blob, index));
}

/* ---- row exponents ---- */

enum { MAX_SPAN = 255 };

/* floor(log2(|x|)) of a finite x that is not 0. */
static int exponent_of(float x) {
  uint32_t magnitude = lpg_f32_bits(x) & 0x7fffffffu;
  if (magnitude >= 0x00800000u) return (int)(magnitude >> 23) - 127;
  int e = -149;
  while (magnitude >>= 1) e++;
  return e;
}

int8_t lpgemm_i_row_exponent(const lpg_plan *plan, const uint8_t *blob, int64_t row, uint32_t *scale_span) {
  int two_levels = plan->desc.super_scale_type != 0;
  lpg_line scales = lpgemm_i_line(plan, LPG_SECTION_SCALES, row);
  lpg_line supers = lpgemm_i_line(plan, LPG_SECTION_SUPER_SCALES, row);
  int low = INT8_MAX + 1, high = INT16_MIN; /* beyond every exponent */
  for (int64_t j = 0; j < plan->group.count; j++) {
    float scale = lpgemm_i_number_value(&scales, blob, j);
    if (two_levels) scale *= lpgemm_i_number_value(&supers, blob, j * plan->group.k / plan->super.k);
    if (!(scale - scale == 0.0f)) {
      *scale_span = MAX_SPAN;
    } else if (scale != 0.0f) {
      int e = exponent_of(scale);
      if (e < low) low = e;
      if (e > high) high = e;
    }
  }
  if (high < low) return 0; /* no scale has an exponent */
  uint32_t span = high < INT8_MIN || high - low > MAX_SPAN ? MAX_SPAN : (uint32_t)(high - low);
  if (span > *scale_span) *scale_span = span;
  return (int8_t)(high < INT8_MIN ? INT8_MIN : high);
}

void lpgemm_i_seal(const lpg_plan *plan, uint8_t *blob, lpg_content *content) {
  content->scale_span = 0;
  if (plan->section[LPG_SECTION_ROW_EXPONENTS].bytes > 0) {
    uint8_t *exponents = blob + plan->section[LPG_SECTION_ROW_EXPONENTS].offset;
    for (int64_t row = 0; row < plan->desc.n; row++) {
      exponents[row] = (uint8_t)lpgemm_i_row_exponent(plan, blob, row, &content->scale_span);
    }
  }
  content->payload_hash = lpgemm_i_hash(blob + LPG_HEADER_BYTES, plan->total_bytes - LPG_HEADER_BYTES);
  lpgemm_i_write_header(plan, content, blob);
}
