/* bitsandbytes NF4 and FP4: nibbles of the flattened matrix, the high one first, and blocks of the flattened matrix
 * too. What they are made of stands in JSON in a tensor. */
#include <math.h>
#include <stdlib.h>

#include "bits.h"
#include "bitsandbytes.h"
#include "import.h"

enum { ENTRIES = 16, NESTED_ENTRIES = 256, MOST_JSON = 4096 };

/* ---- the JSON of a quant_state: one flat object ---- */

/* The text after "key": in an object without objects in it; NULL if the key is not there. */
static const char *find_value(const char *json, const char *key) {
  const size_t length = strlen(key);
  for (const char *at = strchr(json, '"'); at; at = strchr(at, '"')) {
    const char *name = ++at, *end = strchr(name, '"');
    if (!end) return NULL;
    const char *colon = end + 1 + strspn(end + 1, " \t\r\n");
    if (*colon == ':' && (size_t)(end - name) == length && memcmp(name, key, length) == 0) {
      return colon + 1 + strspn(colon + 1, " \t\r\n");
    }
    at = end + 1;
  }
  return NULL;
}

/* An integer, which the text of JSON has without sign, point or exponent. */
static const char *read_integer(const char *text, int64_t *value) {
  int digits = 0;
  for (*value = 0; text && *text >= '0' && *text <= '9' && digits <= 12; digits++)
    *value = *value * 10 + (*text++ - '0');
  return digits >= 1 && digits <= 12 ? text : NULL;
}

/* A decimal number, whatever the locale has for a point; 0 if it is none. 18 digits decide. */
static int read_real(const char *text, double *value) {
  const int negative = *text == '-';
  int64_t digits = 0, power = 0, seen = 0;
  for (int after_point = 0; (text + negative)[seen]; seen++) {
    const char c = (text + negative)[seen];
    if (c == '.' && !after_point) {
      after_point = 1;
    } else if (c >= '0' && c <= '9') {
      const int kept = digits < INT64_C(100000000000000000);
      if (kept) digits = digits * 10 + (c - '0');
      power += !kept - after_point;
    } else {
      break;
    }
  }
  const char *rest = text + negative + seen;
  if (seen > 0 && (*rest == 'e' || *rest == 'E')) {
    const int below = rest[1] == '-', sign = below || rest[1] == '+';
    int64_t exponent;
    if (!read_integer(rest + 1 + sign, &exponent)) return 0;
    power += below ? -exponent : exponent;
  }
  *value = (double)digits;
  for (int64_t i = 0; i < 400 && i < (power < 0 ? -power : power); i++) *value = power < 0 ? *value / 10 : *value * 10;
  if (negative) *value = -*value;
  return seen > 0;
}

static lpgemm_status_t need_integer(const char *json, const char *key, int64_t *value) {
  const char *text = find_value(json, key);
  LPG_CHECK(read_integer(text, value) && *value > 0, LPGEMM_CORRUPT_DATA,
            "quant_state has no \"%s\" that is an integer above 0", key);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t need_shape(const char *json, lpg_part *part) {
  const char *text = find_value(json, "shape");
  int64_t size[2] = {0, 0};
  for (int i = 0; i < 2 && text; i++) {
    text = *text == (i ? ',' : '[') ? read_integer(text + 1 + strspn(text + 1, " \t\r\n"), &size[i]) : NULL;
    if (text) text += strspn(text, " \t\r\n");
  }
  LPG_CHECK(text && *text == ']' && size[0] > 0 && size[1] > 0 && size[0] <= INT32_MAX && size[1] <= INT32_MAX,
            LPGEMM_CORRUPT_DATA, "quant_state has no \"shape\" of two integers from 1 to 2^31 - 1");
  part->desc.n = size[0], part->desc.k = size[1];
  return LPGEMM_SUCCESS;
}

/* The JSON as text that ends with 0; of any tensor whose name begins with weight.quant_state. */
static lpgemm_status_t copy_json(const lpgemm_import_t *import, char *json) {
  static const lpgemm_dtype_t bytes[] = {LPGEMM_U8, 0};
  static const char *const names[] = {"weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"};
  const lpgemm_tensor_t *t;
  LPG_TRY(lpgemm_i_may_have_tensor(import, names[0], bytes, &t));
  if (!t) LPG_TRY(lpgemm_i_may_have_tensor(import, names[1], bytes, &t));
  LPG_CHECK(t, LPGEMM_INVALID_ARGUMENT,
            "there is no tensor %s or %s among the %zu of this layer, and bitsandbytes needs it", names[0], names[1],
            import->count);
  LPG_CHECK(t->bytes < MOST_JSON, LPGEMM_CORRUPT_DATA, "%s has %zu bytes; it has at most %d", t->name, t->bytes,
            MOST_JSON - 1);
  memcpy(json, t->data, t->bytes);
  json[t->bytes] = 0;
  return LPGEMM_SUCCESS;
}

/* ---- what the tensors say ---- */

static lpgemm_status_t need_numbers(const lpgemm_import_t *import, const char *name, lpgemm_dtype_t type, int64_t count,
                                    const lpgemm_tensor_t **tensor) {
  const lpgemm_dtype_t types[] = {type, 0};
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_need_tensor(import, name, types, tensor));
  LPG_CHECK(lpgemm_i_elements(*tensor) == count, LPGEMM_INVALID_SIZE, "%s is %s; it must have %lld numbers", name,
            lpgemm_i_shape_text(*tensor, text), (long long)count);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_nested(const lpgemm_import_t *import, const char *json, int64_t blocks, lpg_quant_state *s,
                                   const lpgemm_tensor_t **nested) {
  LPG_TRY(need_integer(json, "nested_blocksize", &s->nested_block));
  const char *offset = find_value(json, "nested_offset");
  double value = 0;
  LPG_CHECK(offset && read_real(offset, &value) && isfinite((float)value), LPGEMM_CORRUPT_DATA,
            "quant_state has no \"nested_offset\" that is a number");
  s->nested_offset = (float)value;
  LPG_TRY(need_numbers(import, "weight.nested_absmax", LPGEMM_F32, lpg_ceil_div(blocks, s->nested_block),
                       &nested[LPG_NESTED_ABSMAX]));
  return need_numbers(import, "weight.nested_quant_map", LPGEMM_F32, NESTED_ENTRIES, &nested[LPG_NESTED_MAP]);
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Blocks that cross rows are cut into pieces of one size, each with its block's scale. */
static lpgemm_status_t set_group(int64_t block, lpg_part *part) {
  const int64_t k = part->desc.k, group = common_divisor(k, block);
  LPG_CHECK(group % LPG_STEP_K == 0, LPGEMM_NOT_SUPPORTED,
            "blocks of %lld cross rows of %lld columns and share only %lld: not a multiple of 16", (long long)block,
            (long long)k, (long long)group);
  part->desc.group_k = group < k ? group : 0;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t set_codebook(const lpgemm_import_t *import, lpg_part *part) {
  const lpgemm_tensor_t *map;
  LPG_TRY(need_numbers(import, "weight.quant_map", LPGEMM_F32, ENTRIES, &map));
  for (int i = 0; i < ENTRIES; i++) {
    part->desc.codebook[i] = (float)lpgemm_i_real(map, i);
    LPG_CHECK(isfinite(part->desc.codebook[i]), LPGEMM_CORRUPT_DATA, "weight.quant_map[%d] is not finite", i);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_bitsandbytes(const lpgemm_import_t *import, lpg_part *part) {
  static const lpgemm_dtype_t bytes[] = {LPGEMM_U8, 0}, maxima[] = {LPGEMM_F32, LPGEMM_U8, 0};
  char json[MOST_JSON], text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_no_stack(import, "bitsandbytes"));
  LPG_TRY(copy_json(import, json));
  LPG_TRY(need_shape(json, part));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight", bytes, &part->codes));
  LPG_TRY(lpgemm_i_need_tensor(import, "weight.absmax", maxima, &part->scales));
  const int64_t n = part->desc.n, k = part->desc.k;
  LPG_CHECK(lpgemm_i_elements(part->codes) == lpg_ceil_div(n * k, 2), LPGEMM_INVALID_SIZE,
            "weight is %s, but 4 bits of [%lld][%lld] need %lld bytes", lpgemm_i_shape_text(part->codes, text),
            (long long)n, (long long)k, (long long)lpg_ceil_div(n * k, 2));
  lpg_quant_state *s = part->own = calloc(1, sizeof *s);
  LPG_CHECK(s, LPGEMM_OUT_OF_MEMORY, "no memory for the state of a layer");
  LPG_TRY(need_integer(json, "blocksize", &s->block));
  const int64_t blocks = lpg_ceil_div(n * k, s->block);
  LPG_CHECK(lpgemm_i_elements(part->scales) == blocks, LPGEMM_INVALID_SIZE,
            "weight.absmax is %s, but blocks of %lld of [%lld][%lld] are %lld", lpgemm_i_shape_text(part->scales, text),
            (long long)s->block, (long long)n, (long long)k, (long long)blocks);
  if (part->scales->type == LPGEMM_U8) LPG_TRY(open_nested(import, json, blocks, s, part->more));
  part->desc.type = LPGEMM_CODEBOOK(4);
  part->desc.scale_type = LPGEMM_F32;
  LPG_TRY(set_group(s->block, part));
  return set_codebook(import, part);
}

/* ---- codes and numbers ---- */

/* K is a multiple of 16, so that rows begin at bytes. */
static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const uint8_t *from = part->code_data + row * part->desc.k / 2;
  for (int64_t i = 0; i < rows * part->desc.k / 8; i++) {
    const uint32_t word = lpg_get32(from + i * 4);
    const uint64_t eight = lpg_spread((word & 0x0f0f0f0fu) << 4 | (word >> 4 & 0x0f0f0f0fu), 4);
    memcpy(codes + i * 8, &eight, 8);
  }
}

/* Each step is rounded to fp32, as the library does it. */
static float absmax_of(const lpg_part *part, const lpg_quant_state *s, int64_t block) {
  const uint8_t *nested = part->more_data[LPG_NESTED_ABSMAX], *map = part->more_data[LPG_NESTED_MAP];
  if (!map) return lpg_bits_f32(lpg_get32(part->scale_data + block * 4));
  const float entry = lpg_bits_f32(lpg_get32(map + part->scale_data[block] * 4));
  const float product = entry * lpg_bits_f32(lpg_get32(nested + block / s->nested_block * 4));
  return product + s->nested_offset;
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const lpg_quant_state *s = part->own;
  const int64_t group = part->desc.group_k ? part->desc.group_k : part->desc.k, each = part->desc.k / group;
  (void)id; /* there are only scales */
  for (int64_t i = 0; i < rows * each; i++) {
    ((float *)out)[i] = absmax_of(part, s, (row * each + i) * group / s->block);
  }
}

const lpg_reader lpgemm_i_read_bitsandbytes = {LPGEMM_FORMAT_BITSANDBYTES, "bitsandbytes", open_bitsandbytes,
                                               read_codes, read_numbers};
