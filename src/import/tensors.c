/* The tensors of a layer: found by name, and checked before a byte of them is read. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "bits.h"
#include "import.h"

#define MOST_OF_A_DIMENSION (INT64_C(1) << 40)

const lpgemm_tensor_t *lpgemm_i_tensor(const lpgemm_import_t *import, const char *name) {
  for (size_t i = 0; i < import->count; i++) {
    if (import->tensors[i].name && strcmp(import->tensors[i].name, name) == 0) return &import->tensors[i];
  }
  return NULL;
}

int64_t lpgemm_i_elements(const lpgemm_tensor_t *tensor) {
  int64_t elements = 1;
  for (int i = 0; i < tensor->dims; i++) elements *= tensor->shape[i];
  return elements;
}

const char *lpgemm_i_shape_text(const lpgemm_tensor_t *tensor, char *text) {
  size_t length = 0;
  if (tensor->dims == 0) snprintf(text, LPG_SHAPE_TEXT, "[]");
  for (int i = 0; i < tensor->dims; i++) {
    length += (size_t)snprintf(text + length, LPG_SHAPE_TEXT - length, "[%" PRId64 "]", tensor->shape[i]);
  }
  return text;
}

static lpgemm_status_t check_shape(const lpgemm_tensor_t *t) {
  LPG_CHECK(t->dims >= 0 && t->dims <= 4, LPGEMM_INVALID_ARGUMENT, "%s has %d dimensions; there are 0 to 4", t->name,
            (int)t->dims);
  int64_t elements = 1;
  for (int i = 0; i < t->dims; i++) {
    int64_t size = t->shape[i];
    LPG_CHECK(size > 0 && size <= MOST_OF_A_DIMENSION, size <= 0 ? LPGEMM_INVALID_SIZE : LPGEMM_SIZE_OVERFLOW,
              "%s has %lld for its dimension %d; it must be 1 to 2^40", t->name, (long long)size, i);
    LPG_CHECK(elements <= LPG_MOST_ELEMENTS / size, LPGEMM_SIZE_OVERFLOW, "%s has more than 2^58 numbers", t->name);
    elements *= size;
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_tensor(const lpgemm_tensor_t *t, const lpgemm_dtype_t *types) {
  char names[128] = "", shape[LPG_SHAPE_TEXT];
  int fits = 0;
  size_t length = 0;
  for (int i = 0; types[i]; i++) {
    fits |= types[i] == t->type;
    length +=
        (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", lpgemm_dtype_name(types[i]));
    if (length >= sizeof names) length = sizeof names - 1;
  }
  LPG_CHECK(fits, LPGEMM_INVALID_TYPE, "%s is of type %s; it must be of one of these: %s", t->name,
            lpgemm_dtype_name(t->type), names);
  LPG_TRY(check_shape(t));
  int bits = lpgemm_i_stored_bits(t->type);
  uint64_t bytes = ((uint64_t)lpgemm_i_elements(t) * (uint64_t)bits + 7) / 8;
  LPG_CHECK(bits == 0 || t->bytes == bytes, LPGEMM_INVALID_SIZE, "%s has %zu bytes, but %s of %s are %llu", t->name,
            t->bytes, lpgemm_i_shape_text(t, shape), lpgemm_dtype_name(t->type), (unsigned long long)bytes);
  LPG_CHECK(t->data, LPGEMM_NULL_POINTER, "%s has no data: its pointer is NULL", t->name);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_may_have_tensor(const lpgemm_import_t *import, const char *name, const lpgemm_dtype_t *types,
                                         const lpgemm_tensor_t **tensor) {
  *tensor = NULL;
  const lpgemm_tensor_t *found = lpgemm_i_tensor(import, name);
  if (found) LPG_TRY(check_tensor(found, types));
  *tensor = found;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_need_tensor(const lpgemm_import_t *import, const char *name, const lpgemm_dtype_t *types,
                                     const lpgemm_tensor_t **tensor) {
  LPG_TRY(lpgemm_i_may_have_tensor(import, name, types, tensor));
  LPG_CHECK(*tensor, LPGEMM_INVALID_ARGUMENT,
            "there is no tensor %s among the %zu of this layer, and its format needs it", name, import->count);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_need_one_of(const lpgemm_import_t *import, const char *a, const char *b, const char **name) {
  *name = lpgemm_i_tensor(import, a) ? a : b;
  LPG_CHECK(lpgemm_i_tensor(import, *name), LPGEMM_INVALID_ARGUMENT,
            "there is no tensor %s or %s among the %zu of this layer, and its format needs one of them", a, b,
            import->count);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_need_matrix(const lpgemm_tensor_t *tensor, int64_t rows, int64_t columns, const char *why,
                                     ...) {
  if (lpg_is_matrix(tensor, rows, columns)) return LPGEMM_SUCCESS;
  char reason[160], shape[LPG_SHAPE_TEXT];
  va_list arguments;
  va_start(arguments, why);
  vsnprintf(reason, sizeof reason, why, arguments);
  va_end(arguments);
  LPG_CHECK(0, LPGEMM_INVALID_SIZE, "%s is %s, but %s need [%lld][%lld]", tensor->name,
            lpgemm_i_shape_text(tensor, shape), reason, (long long)rows, (long long)columns);
}

static int64_t load_integer(lpgemm_dtype_t type, const uint8_t *from) {
  switch (type) {
    case LPGEMM_I64: {
      int64_t value;
      memcpy(&value, from, 8);
      return value;
    }
    case LPGEMM_I32: return (int32_t)lpg_get32(from);
    case LPGEMM_I16: return (int16_t)lpg_get16(from);
    case LPGEMM_I8: return (int8_t)*from;
    default: return *from;
  }
}

int64_t lpgemm_i_integer(const lpgemm_tensor_t *tensor, int64_t i) {
  return load_integer(tensor->type, (const uint8_t *)tensor->data + i * (lpgemm_i_stored_bits(tensor->type) / 8));
}

void lpgemm_i_integers(const lpgemm_tensor_t *tensor, int64_t *out) {
  const int64_t count = lpgemm_i_elements(tensor), bytes = lpgemm_i_stored_bits(tensor->type) / 8;
  const uint8_t *from = tensor->data;
  if (tensor->type == LPGEMM_I32) { /* what g_idx is: without a choice for each */
    for (int64_t i = 0; i < count; i++) out[i] = (int32_t)lpg_get32(from + i * 4);
    return;
  }
  for (int64_t i = 0; i < count; i++) out[i] = load_integer(tensor->type, from + i * bytes);
}

double lpgemm_i_real(const lpgemm_tensor_t *tensor, int64_t i) {
  const uint8_t *from = (const uint8_t *)tensor->data + i * (lpgemm_i_stored_bits(tensor->type) / 8);
  switch (tensor->type) {
    case LPGEMM_F64: {
      double value;
      memcpy(&value, from, 8);
      return value;
    }
    case LPGEMM_F32: return (double)lpg_bits_f32(lpg_get32(from));
    case LPGEMM_F16: return (double)lpg_f16_to_f32(lpg_get16(from));
    case LPGEMM_BF16: return (double)lpg_bf16_to_f32(lpg_get16(from));
    case LPGEMM_E8M0: return (double)lpg_e8m0_to_f32(*from);
    default: return (double)lpgemm_i_integer(tensor, i);
  }
}

lpgemm_status_t lpgemm_i_global_scale(const lpgemm_tensor_t *tensor, int64_t expert, int64_t experts, int divides,
                                      lpg_part *part) {
  char shape[LPG_SHAPE_TEXT];
  const int64_t elements = lpgemm_i_elements(tensor);
  LPG_CHECK(elements == 1 || elements == experts, LPGEMM_INVALID_SIZE, "%s is %s; it must be one number%s",
            tensor->name, lpgemm_i_shape_text(tensor, shape), experts > 1 ? ", or one an expert" : "");
  double value = lpgemm_i_real(tensor, elements == 1 ? 0 : expert);
  float scale = (float)(divides ? 1.0 / value : value);
  LPG_CHECK(isfinite(scale) && scale != 0.0f, LPGEMM_CORRUPT_DATA, "%s is %g; it must be finite and not 0",
            tensor->name, value);
  part->desc.global_scale = scale;
  part->global_name = tensor->name;
  return LPGEMM_SUCCESS;
}
