/* Names: what may be one, and finding things by them. Sorted arrays rather than hash tables: no file can be made such
 * that they are slow. */
#include <stdlib.h>

#include "files.h"

size_t lpgemm_i_utf8(const char *text, size_t length) {
  const uint8_t *s = (const uint8_t *)text;
  if (length >= 1 && s[0] < 0x80) return 1;
  if (length >= 2 && s[0] >= 0xc2 && s[0] <= 0xdf && s[1] >> 6 == 2) return 2;
  if (length >= 3 && s[0] >> 4 == 0xe && s[1] >> 6 == 2 && s[2] >> 6 == 2) {
    /* neither longer than needed nor half of a pair */
    return (s[0] != 0xe0 || s[1] >= 0xa0) && (s[0] != 0xed || s[1] < 0xa0) ? 3 : 0;
  }
  if (length >= 4 && s[0] >= 0xf0 && s[0] <= 0xf4 && s[1] >> 6 == 2 && s[2] >> 6 == 2 && s[3] >> 6 == 2) {
    return (s[0] != 0xf0 || s[1] >= 0x90) && (s[0] != 0xf4 || s[1] < 0x90) ? 4 : 0;
  }
  return 0;
}

lpgemm_status_t lpgemm_i_check_name(const char *file, const char *what, const char *name, size_t length) {
  LPG_CHECK(length >= 1 && length <= LPG_MOST_NAME, LPGEMM_CORRUPT_DATA,
            "%.300s: %s has %zu bytes; it may have 1 to %d", file, what, length, LPG_MOST_NAME);
  for (size_t i = 0; i < length;) {
    const size_t step = lpgemm_i_utf8(name + i, length - i);
    LPG_CHECK(step, LPGEMM_CORRUPT_DATA, "%.300s: byte %zu of %s is not UTF-8", file, i, what);
    LPG_CHECK((uint8_t)name[i] >= ' ' && name[i] != 0x7f, LPGEMM_CORRUPT_DATA,
              "%.300s: %s has the control character 0x%02x at byte %zu", file, what, (uint8_t)name[i], i);
    i += step;
  }
  return LPGEMM_SUCCESS;
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const lpg_named *const *)a)->name, (*(const lpg_named *const *)b)->name);
}

lpgemm_status_t lpgemm_i_index(lpg_memory *memory, const char *file, const char *what, const void *things, size_t count,
                               size_t size, const lpg_named ***index) {
  void *array = NULL;
  LPG_TRY(lpgemm_i_grow(memory, &array, 0, count, sizeof(lpg_named *)));
  const lpg_named **sorted = array;
  *index = sorted; /* the caller frees it, also after a failure */
  for (size_t i = 0; i < count; i++) sorted[i] = (const void *)((const uint8_t *)things + i * size);
  qsort(array, count, sizeof(lpg_named *), by_name);
  for (size_t i = 1; i < count; i++) {
    LPG_CHECK(strcmp(sorted[i - 1]->name, sorted[i]->name) != 0, LPGEMM_CORRUPT_DATA,
              "%.300s: there are two %s of the name \"%.200s\"; names must be unique", file, what, sorted[i]->name);
  }
  return LPGEMM_SUCCESS;
}

const void *lpgemm_i_look_up(const lpg_named *const *index, size_t count, const char *name) {
  const lpg_named key = {name}, *wanted = &key;
  if (count == 0) return NULL;
  const lpg_named *const *found = bsearch(&wanted, index, count, sizeof(lpg_named *), by_name);
  return found ? *found : NULL;
}
