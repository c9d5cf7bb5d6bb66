/* A strict reader of JSON. */
#include "json.h"

#include <string.h>

#include "files.h"

static const char *skip_space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* ---- checking: each returns what follows, NULL with *why ---- */

static int hex4(const char *p, const char *end, uint32_t *code) {
  *code = 0;
  if (end - p < 4) return 0;
  for (int i = 0; i < 4; i++) {
    const char c = p[i];
    uint32_t digit;
    if (is_digit(c)) {
      digit = (uint32_t)(c - '0');
    } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
      digit = (uint32_t)((c | 32) - 'a') + 10;
    } else {
      return 0;
    }
    *code = *code << 4 | digit;
  }
  return 1;
}

/* After "\u": one character, of two halves if it begins with a high one. */
static const char *escaped(const char *p, const char *end, uint32_t *code) {
  uint32_t low;
  if (!hex4(p, end, code)) return NULL;
  p += 4;
  if (*code >= 0xdc00 && *code <= 0xdfff) return NULL;
  if (*code < 0xd800 || *code > 0xdbff) return p;
  if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, end, &low) || low < 0xdc00 || low > 0xdfff)
    return NULL;
  *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
  return p + 6;
}

static const char *check_string(const char *p, const char *end, const char **why) {
  uint32_t code;
  *why = "a string that does not end";
  for (p++; p < end && *p != '"';) {
    const size_t step = lpgemm_i_utf8(p, (size_t)(end - p));
    if (step == 0 || (uint8_t)*p < ' ') {
      *why = "a string that is not UTF-8, or has a control character";
      return NULL;
    }
    if (*p != '\\') {
      p += step;
    } else if (end - p >= 2 && p[1] == 'u') {
      p = escaped(p + 2, end, &code);
      *why = "a \\u that is no character";
      if (!p) return NULL;
      *why = "a string that does not end";
    } else if (end - p >= 2 && p[1] && strchr("\"\\/bfnrt", p[1])) {
      p += 2;
    } else {
      *why = "an escape that JSON does not have";
      return NULL;
    }
  }
  return p < end ? p + 1 : NULL;
}

static const char *check_number(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  if (p == end || !is_digit(*p)) return NULL;
  if (*p == '0') {
    p++;
  } else {
    while (p < end && is_digit(*p)) p++;
  }
  if (p < end && *p == '.') {
    if (++p == end || !is_digit(*p)) return NULL;
    while (p < end && is_digit(*p)) p++;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    if (p == end || !is_digit(*p)) return NULL;
    while (p < end && is_digit(*p)) p++;
  }
  return p;
}

static const char *check_scalar(const char *p, const char *end, const char **why) {
  static const char *const words[] = {"true", "false", "null"};
  if (*p == '"') return check_string(p, end, why);
  *why = "no value";
  for (int i = 0; i < 3; i++) {
    const size_t length = strlen(words[i]);
    if ((size_t)(end - p) >= length && memcmp(p, words[i], length) == 0) return p + length;
  }
  return check_number(p, end);
}

/* "name" and the colon after it. */
static const char *check_key(const char *p, const char *end, const char **why) {
  *why = "no name of a member";
  if (p == end || *p != '"') return NULL;
  p = check_string(p, end, why);
  if (!p) return NULL;
  p = skip_space(p, end);
  *why = "no colon after the name of a member";
  return p < end && *p == ':' ? p + 1 : NULL;
}

/* After a value: closes what ends here and stops before the next value, or at the end of the text. */
static const char *check_after(const char *p, const char *end, int *depth, uint32_t objects, const char **why) {
  for (;;) {
    p = skip_space(p, end);
    if (*depth == 0) {
      *why = "more after the value";
      return p == end ? p : NULL;
    }
    const int object = (int)(objects >> *depth & 1);
    *why = "neither a comma nor the end of an object or array";
    if (p == end) return NULL;
    if (*p == ',') {
      p = skip_space(p + 1, end);
      return object ? check_key(p, end, why) : p;
    }
    if (*p != (object ? '}' : ']')) return NULL;
    p++, --*depth;
  }
}

/* One value: into an object or array, or past a scalar. */
static const char *check_value(const char *p, const char *end, int *depth, uint32_t *objects, const char **why) {
  if (*p != '{' && *p != '[') {
    p = check_scalar(p, end, why);
    return p ? check_after(p, end, depth, *objects, why) : NULL;
  }
  *why = "more than 16 levels";
  if (*depth == LPG_JSON_DEPTH) return NULL;
  const uint32_t object = *p == '{';
  ++*depth;
  *objects = (*objects & ~(1u << *depth)) | object << *depth;
  p = skip_space(p + 1, end);
  if (p < end && *p == (object ? '}' : ']')) {
    --*depth;
    return check_after(p + 1, end, depth, *objects, why);
  }
  return object ? check_key(p, end, why) : p;
}

lpgemm_status_t lpgemm_i_json_check(const char *file, const char *text, size_t bytes, lpg_json *value) {
  const char *end = text + bytes, *why = "no value", *p = skip_space(text, end), *before = p;
  int depth = 0;
  uint32_t objects = 0; /* bit d: level d is an object */
  *value = (lpg_json){p, end};
  if (p == end) p = NULL;
  while (p && p < end) {
    before = p = skip_space(p, end);
    if (p == end) break;
    p = check_value(p, end, &depth, &objects, &why);
  }
  LPG_CHECK(p && depth == 0, LPGEMM_CORRUPT_DATA, "%.300s is no JSON: %s, from byte %zu on", file,
            p ? "it ends too early" : why, (size_t)(before - text));
  return LPGEMM_SUCCESS;
}

/* ---- walking: the text is checked ---- */

static const char *after_string(const char *p) {
  for (p++; *p != '"'; p++) p += *p == '\\';
  return p + 1;
}

static const char *after_value(const char *p, const char *end) {
  if (*p == '"') return after_string(p);
  if (*p != '{' && *p != '[') {
    while (p < end && !strchr(",]} \t\n\r", *p)) p++;
    return p;
  }
  for (int depth = 0;;) {
    if (*p == '"') {
      p = after_string(p);
      continue;
    }
    depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
    p++;
    if (depth == 0) return p;
  }
}

char lpgemm_i_json_kind(lpg_json value) {
  if (!value.at) return 0;
  return *value.at == '-' || is_digit(*value.at) ? '0' : *value.at;
}

lpg_json lpgemm_i_json_walk(lpg_json value) {
  const char kind = lpgemm_i_json_kind(value);
  return kind == '{' || kind == '[' ? (lpg_json){value.at + 1, value.end} : (lpg_json){0};
}

int lpgemm_i_json_next(lpg_json *walk, lpg_json *key, lpg_json *value) {
  if (key) *key = (lpg_json){0};
  if (!walk->at) return 0;
  const char *end = walk->end, *p = skip_space(walk->at, end);
  if (*p == ',') p = skip_space(p + 1, end);
  if (*p == '}' || *p == ']') return 0;
  if (*p == '"') { /* a name if a colon follows, else a string of an array */
    const char *after = skip_space(after_string(p), end);
    if (after < end && *after == ':') {
      if (key) *key = (lpg_json){p, end};
      p = skip_space(after + 1, end);
    }
  }
  *value = (lpg_json){p, end};
  walk->at = after_value(p, end);
  return 1;
}

lpg_json lpgemm_i_json_member(lpg_json object, const char *name) {
  lpg_json found = {0}, key, value;
  if (lpgemm_i_json_kind(object) != '{') return found;
  for (lpg_json walk = lpgemm_i_json_walk(object); lpgemm_i_json_next(&walk, &key, &value);) {
    if (lpgemm_i_json_is(key, name)) found = value;
  }
  return found;
}

/* ---- values ---- */

static size_t put_utf8(uint32_t code, char out[4]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)((0xf0u << (4 - length) & 0xffu) | code);
  return length;
}

int64_t lpgemm_i_json_text(lpg_json value, char *out, size_t size) {
  size_t length = 0;
  if (lpgemm_i_json_kind(value) != '"') return -1;
  for (const char *p = value.at + 1; *p != '"';) {
    char character[4] = {*p};
    size_t step = 1;
    if (*p != '\\') {
      p++;
    } else if (p[1] == 'u') {
      uint32_t code;
      p = escaped(p + 2, value.end, &code);
      if (!p || code == 0) return -1;
      step = put_utf8(code, character);
    } else {
      static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
      const char *place = strchr(from, p[1]);
      character[0] = place ? to[place - from] : p[1];
      p += 2;
    }
    if (length + step >= size) return -1;
    memcpy(out + length, character, step);
    length += step;
  }
  out[length] = 0;
  return (int64_t)length;
}

int lpgemm_i_json_is(lpg_json value, const char *text) {
  char decoded[128];
  return lpgemm_i_json_text(value, decoded, sizeof decoded) >= 0 && strcmp(decoded, text) == 0;
}

int lpgemm_i_json_integer(lpg_json value, int64_t *number) {
  if (lpgemm_i_json_kind(value) != '0') return 0;
  const char *p = value.at;
  const int negative = *p == '-';
  int64_t n = 0;
  for (p += negative; p < value.end && is_digit(*p); p++) {
    if (n > (INT64_MAX - (*p - '0')) / 10) return 0;
    n = n * 10 + (*p - '0');
  }
  if (p < value.end && (*p == '.' || *p == 'e' || *p == 'E')) return 0;
  *number = negative ? -n : n;
  return 1;
}
