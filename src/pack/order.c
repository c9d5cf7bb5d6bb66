/* Orders of columns. */
#include <stdlib.h>

#include "pack.h"

/* Entries are marked in a window of so many numbers at a time: what a file says of x_k must not decide how much memory
 * its check takes. */
enum { WINDOW = 1 << 26 };

/* The first entry, of those in the window, that stands there a second time; k if there is none. */
static int64_t find_twice(const void *order, int64_t k, int64_t window, uint8_t *marks) {
  for (int64_t i = 0; i < k; i++) {
    int32_t entry;
    memcpy(&entry, (const uint8_t *)order + 4 * i, sizeof entry);
    const int64_t at = entry - window;
    if (at < 0 || at >= WINDOW) continue;
    if (marks[at / 8] >> at % 8 & 1) return i;
    marks[at / 8] = (uint8_t)(marks[at / 8] | 1u << at % 8);
  }
  return k;
}

lpgemm_status_t lpgemm_i_check_order(const char *name, const void *order, const lpg_packed *packed) {
  const int64_t k = packed->desc.k, x_k = packed->x_k;
  int32_t entry;
  for (int64_t i = 0; i < k; i++) {
    memcpy(&entry, (const uint8_t *)order + 4 * i, sizeof entry);
    LPG_CHECK(entry >= 0 && entry < x_k, LPGEMM_INVALID_ARGUMENT, "%s[%lld] is %d; it must be 0 to %lld", name,
              (long long)i, entry, (long long)(x_k - 1));
  }
  const int64_t bits = x_k < WINDOW ? x_k : WINDOW;
  uint8_t *marks = malloc((size_t)(bits / 8 + 1));
  LPG_CHECK(marks, LPGEMM_OUT_OF_MEMORY, "no memory for %lld bytes of scratch", (long long)(bits / 8 + 1));
  int64_t twice = k;
  for (int64_t window = 0; window < x_k && twice == k; window += WINDOW) {
    memset(marks, 0, (size_t)(bits / 8 + 1));
    twice = find_twice(order, k, window, marks);
  }
  free(marks);
  if (twice == k) return LPGEMM_SUCCESS;
  memcpy(&entry, (const uint8_t *)order + 4 * twice, sizeof entry);
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "%s[%lld] is %d, which stands there twice", name, (long long)twice, entry);
}

/* Counting sort: stable, and the counts say whether groups have the size that they must. */
static lpgemm_status_t sort_by_group(const int32_t *group_of, int64_t k, int64_t group_k, int64_t groups,
                                     int32_t *count, int32_t *order) {
  for (int64_t c = 0; c < k; c++) {
    LPG_CHECK(group_of[c] >= 0 && group_of[c] < groups, LPGEMM_INVALID_ARGUMENT,
              "group_of[%lld] is %d; %lld columns in groups of %lld have the groups 0 to %lld", (long long)c,
              group_of[c], (long long)k, (long long)group_k, (long long)(groups - 1));
    count[group_of[c]]++;
  }
  for (int64_t g = 0, rest = k; g < groups; g++, rest -= group_k) {
    const int64_t size = rest < group_k ? rest : group_k;
    LPG_CHECK(count[g] == size, LPGEMM_INVALID_ARGUMENT,
              "group_of puts %d columns into group %lld, which must have %lld: groups must have equal sizes, but for a "
              "last one",
              count[g], (long long)g, (long long)size);
  }
  for (int64_t g = 0; g < groups; g++) count[g] = (int32_t)(g * group_k); /* where the next column of the group goes */
  for (int64_t c = 0; c < k; c++) order[count[group_of[c]]++] = (int32_t)c;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_column_order(const int32_t *group_of, int64_t k, int64_t group_k, int32_t *order) {
  LPG_CHECK(k >= 0, LPGEMM_INVALID_SIZE, "k is %lld; it must be 0 or more", (long long)k);
  LPG_CHECK(k <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "k is %lld; at most %d columns fit", (long long)k, INT32_MAX);
  LPG_CHECK(group_k > 0, LPGEMM_INVALID_ARGUMENT, "group_k is %lld; it must be 1 or more", (long long)group_k);
  if (k == 0) return LPGEMM_SUCCESS;
  LPG_CHECK(group_of, LPGEMM_NULL_POINTER, "group_of is NULL");
  LPG_CHECK(order, LPGEMM_NULL_POINTER, "order is NULL");
  const int64_t groups = lpg_ceil_div(k, group_k);
  int32_t *count = calloc((size_t)groups, sizeof *count);
  LPG_CHECK(count, LPGEMM_OUT_OF_MEMORY, "no memory for %lld groups", (long long)groups);
  lpgemm_status_t status = sort_by_group(group_of, k, group_k, groups, count, order);
  free(count);
  return status;
}
