#include "stack.h"

#include <math.h>

#include "ref/gemm_ref.h"
#include "test.h"

/* ---- tame numbers ---- */

static void tame_part(sample *s, lpgemm_part_t part, double low, double high) {
  const lpgemm_dtype_t type = sample_part_type(&s->desc, part);
  const int64_t count = sample_part_rows(&s->desc, part) * sample_part_columns(&s->desc, part);
  for (int64_t i = 0; i < count && type; i++) ref_store(type, s->part[part], i, test_uniform(low, high));
}

void stack_tame(sample *s, double size) {
  const lpgemm_weight_desc_t *d = &s->desc;
  double largest = 1;
  for (uint32_t code = 0; code < 1u << lpgemm_dtype_bits(d->type); code++) {
    const double v = fabs(sample_code_value(d->type, code, d->codebook));
    if (isfinite(v) && v > largest) largest = v;
  }
  const double unit = size / largest;
  const int two_levels = d->super_scale_type != 0, real_zeros = LPGEMM_DTYPE_KIND(d->zero_type) == LPGEMM_KIND_REAL;
  if (!two_levels) tame_part(s, LPGEMM_PART_SCALES, unit / 2, unit);
  tame_part(s, LPGEMM_PART_SUPER_SCALES, unit / 64, unit / 32);
  tame_part(s, LPGEMM_PART_SUPER_ZEROS, -size / 64, size / 64);
  if (d->zero == LPGEMM_ZERO_MINIMUM && !two_levels) tame_part(s, LPGEMM_PART_ZEROS, -size, size);
  if (d->zero == LPGEMM_ZERO_PER_GROUP && real_zeros) tame_part(s, LPGEMM_PART_ZEROS, 0, largest / 2);
  tame_part(s, LPGEMM_PART_ROW_SCALES, 0.5, 1.5);
  if (d->type == LPGEMM_E4M3 || d->type == LPGEMM_E5M2) { /* no NaN, no Inf: those are tests of their own */
    const int64_t codes = d->n * sample_x_k(d);
    for (int64_t i = 0; i < codes; i++) s->codes[i] &= 0xf7;
    if (d->type == LPGEMM_E5M2) {
      for (int64_t i = 0; i < codes; i++) s->codes[i] &= 0xbf;
    }
  }
  if (!d->scale_type) s->desc.global_scale = (float)unit;
  sample_lay_out(s, LPGEMM_CODES_BYTES, 0, LPGEMM_ROW_MAJOR);
}

/* ---- packing ---- */

lpgemm_weight_source_t stack_rows(const sample *s, int64_t first, int64_t rows) {
  const lpgemm_weight_desc_t *d = &s->desc;
  lpgemm_weight_source_t piece = s->source;
  const int64_t shared = d->group_n > 1 ? d->group_n : 1, x_k = sample_x_k(d);
  const struct {
    const void **data;
    size_t *bytes;
  } arrays[] = {[LPGEMM_PART_SCALES] = {&piece.scales, &piece.scales_bytes},
                [LPGEMM_PART_ZEROS] = {&piece.zeros, &piece.zeros_bytes},
                [LPGEMM_PART_SUPER_SCALES] = {&piece.super_scales, &piece.super_scales_bytes},
                [LPGEMM_PART_SUPER_ZEROS] = {&piece.super_zeros, &piece.super_zeros_bytes},
                [LPGEMM_PART_ROW_SCALES] = {&piece.row_scales, &piece.row_scales_bytes}};
  piece.codes = s->source_codes + first * x_k;
  piece.codes_bytes = (size_t)(rows * x_k);
  for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_ROW_SCALES; part++) {
    const int64_t lines = part == LPGEMM_PART_ROW_SCALES ? 1 : shared;
    const int64_t line = sample_part_columns(d, (lpgemm_part_t)part) *
                         ((lpgemm_dtype_bits(sample_part_type(d, (lpgemm_part_t)part)) + 7) / 8);
    if (line == 0) continue;
    *arrays[part].data = (const uint8_t *)*arrays[part].data + first / lines * line;
    *arrays[part].bytes = (size_t)((rows + lines - 1) / lines * line);
  }
  return piece;
}

/* Rows [begin, end) of an expert, cut once at a random place. */
static void pack_part(lpgemm_handle_t handle, lpgemm_weights_t weights, int e, const sample *s, int64_t begin,
                      int64_t end) {
  const int paired = s->desc.rows == LPGEMM_ROWS_PAIRED;
  const int64_t unit = s->desc.group_n > 1 ? s->desc.group_n : paired ? 8 : 16;
  int64_t cut = begin + test_between(0, (end - begin) / unit) * unit;
  for (int part = 0; part < 2; part++) {
    const int64_t first = part ? begin : cut, rows = (part ? cut : end) - first;
    const lpgemm_weight_source_t piece = stack_rows(s, first, rows);
    CHECK_STATUS(lpgemm_pack_rows(handle, weights, e, first, rows, &piece), LPGEMM_SUCCESS);
  }
}

static void pack_blob(lpgemm_handle_t handle, lpgemm_weights_t weights, int e, const sample *s) {
  size_t size = 0;
  lpgemm_weights_t one = sample_pack(handle, s);
  uint8_t *blob = one ? sample_blob(handle, one, &size) : NULL;
  const uint32_t flags = test_between(0, 1) ? LPGEMM_LOAD_SKIP_CHECKSUM : 0;
  if (blob) CHECK_STATUS(lpgemm_stack_expert(handle, weights, e, blob, size, flags), LPGEMM_SUCCESS);
  test_free(blob);
  CHECK_STATUS(lpgemm_weights_destroy(one), LPGEMM_SUCCESS);
}

void stack_pack(stack *s, lpgemm_handle_t handle) {
  int turn[STACK_MOST];
  CHECK_STATUS(lpgemm_weights_destroy(s->weights), LPGEMM_SUCCESS);
  s->weights = NULL;
  CHECK_STATUS(lpgemm_weights_create(handle, &s->desc, NULL, 0, &s->weights), LPGEMM_SUCCESS);
  for (int i = 0; i < s->experts; i++) turn[i] = i;
  for (int i = 0; i < s->experts; i++) {
    const int other = (int)test_between(i, s->experts - 1), taken = turn[other];
    turn[other] = turn[i];
    turn[i] = taken;
  }
  const float global = s->desc.global_scale == 0.0f ? 1.0f : s->desc.global_scale;
  for (int i = 0; i < s->experts; i++) {
    const sample *expert = &s->expert[turn[i]];
    const float own = expert->desc.global_scale == 0.0f ? 1.0f : expert->desc.global_scale;
    const int64_t n = expert->desc.n, half = expert->desc.rows == LPGEMM_ROWS_PAIRED ? n / 2 : 0;
    if (own != global || test_between(0, 3) == 0) {
      pack_blob(handle, s->weights, turn[i], expert);
    } else {
      pack_part(handle, s->weights, turn[i], expert, half, n);
      if (half) pack_part(handle, s->weights, turn[i], expert, 0, half);
    }
  }
  CHECK_STATUS(lpgemm_weights_finish(handle, s->weights), LPGEMM_SUCCESS);
}

void stack_make(stack *s, lpgemm_handle_t handle, const lpgemm_weight_desc_t *desc, double size, int own_scales) {
  memset(s, 0, sizeof *s);
  s->desc = *desc;
  s->experts = desc->experts > 1 ? desc->experts : 1;
  lpgemm_weight_desc_t one = *desc;
  one.experts = 0;
  for (int i = 0; i < s->experts; i++) {
    sample_make(&s->expert[i], &one);
    stack_tame(&s->expert[i], size);
    if (i == 0) s->desc.global_scale = s->expert[i].desc.global_scale;
    if (own_scales && i > 0) {
      const float global = s->desc.global_scale == 0.0f ? 1.0f : s->desc.global_scale;
      s->expert[i].desc.global_scale = global * (1.0f + 0.125f * (float)i);
    }
  }
  stack_pack(s, handle);
}

void stack_free(stack *s) {
  for (int i = 0; i < s->experts; i++) sample_free(&s->expert[i]);
  CHECK_STATUS(lpgemm_weights_destroy(s->weights), LPGEMM_SUCCESS);
  s->weights = NULL;
}
