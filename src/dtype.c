/* Names of number formats, and the known codebooks. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "layouts/ggml.h"

static const struct {
  const char *name;
  lpgemm_dtype_t type;
} named[] = {
    /* the first name of a type is the one that lpgemm_dtype_name() gives */
    {"none", 0},
    {"f16", LPGEMM_F16},
    {"bf16", LPGEMM_BF16},
    {"f32", LPGEMM_F32},
    {"e8m0", LPGEMM_E8M0},
    {"u16", LPGEMM_U16},
    {"i32", LPGEMM_I32},
    {"fp16", LPGEMM_F16},
    {"fp32", LPGEMM_F32},
    {"half", LPGEMM_F16},
    {"float", LPGEMM_F32},
    {"bfloat16", LPGEMM_BF16},
    {"uint16", LPGEMM_U16},
    {"int32", LPGEMM_I32},
};
enum { NAMED = sizeof named / sizeof named[0] };

/* Types that only tensors of files have: they are named in messages, and no call takes them. */
static const struct {
  const char *name;
  lpgemm_dtype_t type;
  int bits; /* 0: of no fixed width */
} stored[] = {{"i16", LPGEMM_I16, 16},          {"i64", LPGEMM_I64, 64},  {"u32", LPGEMM_U32, 32},
              {"u64", LPGEMM_U64, 64},          {"f64", LPGEMM_F64, 64},  {"bool", LPGEMM_BOOL, 8},
              {"c64", LPGEMM_C64, 64},          {"blob", LPGEMM_BLOB, 8}, {"e4m3fnuz", LPGEMM_E4M3FNUZ, 8},
              {"e5m2fnuz", LPGEMM_E5M2FNUZ, 8},
#define STORED_GGML(number, name, columns, bytes) {"ggml:" name, LPGEMM_GGML(number), 0},
              LPG_GGML_TYPES(STORED_GGML)
#undef STORED_GGML
};
enum { STORED = sizeof stored / sizeof stored[0] };

static const struct {
  const char *prefix;
  int kind;
} families[] = {
    {"u", LPGEMM_KIND_UINT},          {"uint", LPGEMM_KIND_UINT},  {"i", LPGEMM_KIND_INT},
    {"int", LPGEMM_KIND_INT},         {"s", LPGEMM_KIND_INT},      {"b", LPGEMM_KIND_BIPOLAR},
    {"bipolar", LPGEMM_KIND_BIPOLAR}, {"c", LPGEMM_KIND_CODEBOOK}, {"codebook", LPGEMM_KIND_CODEBOOK},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* Reads one or two digits; returns what follows them, NULL if there is no digit. */
static const char *read_number(const char *s, int *value) {
  if (!isdigit((unsigned char)*s)) return NULL;
  *value = *s++ - '0';
  if (isdigit((unsigned char)*s)) *value = *value * 10 + *s++ - '0';
  return s;
}

static lpgemm_dtype_t parse_family(const char *text) {
  for (int i = 0; i < FAMILIES; i++) {
    size_t length = strlen(families[i].prefix);
    int bits;
    if (strncmp(text, families[i].prefix, length) != 0) continue;
    const char *rest = read_number(text + length, &bits);
    if (rest && *rest == 0) return LPGEMM_DTYPE_((lpgemm_dtype_t)families[i].kind, 0u, (lpgemm_dtype_t)bits);
  }
  return 0;
}

static lpgemm_dtype_t parse_float(const char *text) {
  int e, m;
  if (*text != 'e') return 0;
  const char *rest = read_number(text + 1, &e);
  if (!rest || *rest != 'm') return 0;
  rest = read_number(rest + 1, &m);
  return rest && *rest == 0 ? LPGEMM_FLOAT((lpgemm_dtype_t)e, (lpgemm_dtype_t)m) : 0;
}

lpgemm_status_t lpgemm_dtype_parse(const char *text, lpgemm_dtype_t *type) {
  LPG_CHECK(text, LPGEMM_NULL_POINTER, "text is NULL");
  LPG_CHECK(type, LPGEMM_NULL_POINTER, "type is NULL");
  for (int i = 0; i < NAMED; i++) {
    if (strcmp(text, named[i].name) == 0) {
      *type = named[i].type;
      return LPGEMM_SUCCESS;
    }
  }
  lpgemm_dtype_t t = parse_family(text);
  if (t == 0) t = parse_float(text);
  LPG_CHECK(
      t != 0 && lpg_bits(t) != 0, LPGEMM_INVALID_TYPE,
      "text is \"%.32s\"; a number format is u1..u8, i2..i8, b1..b8, c1..c4, eXmY, f16, bf16, f32, e8m0, u16 or i32",
      text);
  *type = t;
  return LPGEMM_SUCCESS;
}

/* "u" "4": the letters of the short form and its digits; one static string each, so that the result never dies. */
#define NAMES8(p) \
  { p "1", p "2", p "3", p "4", p "5", p "6", p "7", p "8" }
static const char *const integer_names[4][8] = {NAMES8("u"), NAMES8("i"), NAMES8("b"), NAMES8("c")};
#define MANTISSAS(e) \
  { e "m0", e "m1", e "m2", e "m3", e "m4", e "m5", e "m6" }
static const char *const float_names[7][7] = {MANTISSAS("e1"), MANTISSAS("e2"), MANTISSAS("e3"), MANTISSAS("e4"),
                                              MANTISSAS("e5"), MANTISSAS("e6"), MANTISSAS("e7")};

const char *lpgemm_dtype_name(lpgemm_dtype_t type) {
  for (int i = 0; i < NAMED; i++) {
    if (type == named[i].type) return named[i].name;
  }
  for (int i = 0; i < STORED; i++) {
    if (type == stored[i].type) return stored[i].name;
  }
  if (!lpg_is_weight_type(type)) return "invalid";
  if (lpg_kind(type) == LPGEMM_KIND_FLOAT) return float_names[lpg_exponent_bits(type) - 1][lpg_low_field(type)];
  return integer_names[lpg_kind(type) - LPGEMM_KIND_UINT][lpg_bits(type) - 1];
}

int lpgemm_dtype_bits(lpgemm_dtype_t type) { return lpg_bits(type); }

int lpgemm_i_stored_bits(lpgemm_dtype_t type) {
  for (int i = 0; i < STORED; i++) {
    if (type == stored[i].type) return stored[i].bits;
  }
  return lpg_bits(type);
}

/* NF4 is bitsandbytes' table of normal quantiles, FP4 its table in code order, IQ4_NL llama.cpp's. */
static const struct {
  const char *name;
  float table[16];
} presets[] = {
    {"nf4",
     {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
      -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
      0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f,
      1.0f}},
    {"fp4",
     {0.0f, 0.0625f / 12.0f, 8.0f / 12.0f, 12.0f / 12.0f, 4.0f / 12.0f, 6.0f / 12.0f, 2.0f / 12.0f, 3.0f / 12.0f, -0.0f,
      -0.0625f / 12.0f, -8.0f / 12.0f, -12.0f / 12.0f, -4.0f / 12.0f, -6.0f / 12.0f, -2.0f / 12.0f, -3.0f / 12.0f}},
    {"iq4_nl",
     {-127.0f, -104.0f, -83.0f, -65.0f, -49.0f, -35.0f, -22.0f, -10.0f, 1.0f, 13.0f, 25.0f, 38.0f, 53.0f, 69.0f, 89.0f,
      113.0f}},
};

lpgemm_status_t lpgemm_codebook_preset(const char *name, float table[16]) {
  LPG_CHECK(name, LPGEMM_NULL_POINTER, "name is NULL");
  LPG_CHECK(table, LPGEMM_NULL_POINTER, "table is NULL");
  for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
    if (strcmp(name, presets[i].name) == 0) {
      memcpy(table, presets[i].table, sizeof presets[i].table);
      return LPGEMM_SUCCESS;
    }
  }
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "name is \"%.32s\"; the known codebooks are nf4, fp4 and iq4_nl", name);
}
