/* How many columns a group has, and the order of columns that GPTQ's g_idx stands for. */
#include <stdlib.h>

#include "import.h"

static lpgemm_status_t check_group(const lpg_part *part, int64_t group_k, const char *what) {
  LPG_CHECK(group_k % LPG_STEP_K == 0, LPGEMM_NOT_SUPPORTED,
            "%s has groups of %lld columns; only multiples of 16 are supported: quantise with such groups", what,
            (long long)group_k);
  LPG_CHECK(group_k <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "%s has groups of %lld columns for %lld columns", what,
            (long long)group_k, (long long)part->desc.k);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_set_group(const lpgemm_import_t *import, int64_t groups, const char *what, lpg_part *part) {
  int64_t k = part->desc.k, group_k = import->group_k;
  part->desc.group_k = 0;
  if (groups == 1 && (group_k == 0 || group_k >= k)) return LPGEMM_SUCCESS;
  if (group_k == 0) {
    LPG_CHECK(groups <= k && k % groups == 0, LPGEMM_INVALID_ARGUMENT,
              "%s has %lld groups for %lld columns, which have no equal size: set group_k, or check the shapes", what,
              (long long)groups, (long long)k);
    group_k = k / groups;
  }
  LPG_CHECK(lpg_ceil_div(k, group_k) == groups, LPGEMM_INVALID_SIZE,
            "%s has %lld groups, but %lld columns in groups of %lld need %lld: check group_k", what, (long long)groups,
            (long long)k, (long long)group_k, (long long)lpg_ceil_div(k, group_k));
  part->desc.group_k = group_k;
  return check_group(part, group_k, what);
}

lpgemm_status_t lpgemm_i_no_stack(const lpgemm_import_t *import, const char *format) {
  LPG_CHECK(import->expert == 0, LPGEMM_INVALID_ARGUMENT,
            "expert is %lld, but %s has no stacks of experts: give each expert its tensors and leave it 0",
            (long long)import->expert, format);
  return LPGEMM_SUCCESS;
}

/* ---- g_idx ---- */

/* How many columns each group has; refuses numbers that are no group. */
static lpgemm_status_t count_groups(const char *name, const int64_t *group_of, int64_t k, int64_t groups,
                                    int64_t *columns) {
  for (int64_t c = 0; c < k; c++) {
    const int64_t group = group_of[c];
    LPG_CHECK(group >= 0 && group < groups, LPGEMM_CORRUPT_DATA,
              "%s has group %lld at column %lld; there are %lld groups, 0 to %lld", name, (long long)group,
              (long long)c, (long long)groups, (long long)groups - 1);
    columns[group]++;
  }
  return LPGEMM_SUCCESS;
}

/* Every group but the last must have as many columns as most have, and the last one no more. */
static lpgemm_status_t check_counts(const char *name, int64_t k, int64_t groups, const int64_t *columns,
                                    int64_t *group_k) {
  int64_t size = lpg_ceil_div(k, groups);
  for (int64_t g = 0; g < groups; g++) { /* the median would do; the size of any two neighbours is simpler */
    if (g + 1 < groups && columns[g] == columns[g + 1]) size = columns[g];
  }
  for (int64_t g = 0; g < groups; g++) {
    int last = g == groups - 1;
    LPG_CHECK(columns[g] == size || (last && columns[g] > 0 && columns[g] < size), LPGEMM_NOT_SUPPORTED,
              "%s puts %lld columns into group %lld and %lld into the others: groups must have equal sizes", name,
              (long long)columns[g], (long long)g, (long long)size);
  }
  *group_k = size;
  return LPGEMM_SUCCESS;
}

/* Columns of a group become neighbours and keep their order. first[g]: where group g begins. */
static lpgemm_status_t sort_columns(const int64_t *group_of, int64_t k, int64_t groups, int64_t *first,
                                    int32_t **order) {
  *order = malloc((size_t)k * sizeof **order);
  LPG_CHECK(*order, LPGEMM_OUT_OF_MEMORY, "no memory for the order of %lld columns", (long long)k);
  for (int64_t g = 0, at = 0; g < groups; g++) {
    int64_t count = first[g];
    first[g] = at;
    at += count;
  }
  for (int64_t c = 0; c < k; c++) (*order)[first[group_of[c]]++] = (int32_t)c;
  return LPGEMM_SUCCESS;
}

/* 1 if g_idx says nothing: groups as they lie, or zeros, which some files store where there is no order. */
static int is_plain(const int64_t *group_of, int64_t k, int64_t group_k) {
  int zeros = 1, plain = 1;
  for (int64_t c = 0, group = 0, next = group_k; c < k && (zeros || plain); c++) {
    if (c == next) {
      group++;
      next += group_k;
    }
    zeros &= group_of[c] == 0;
    plain &= group_of[c] == group;
  }
  return zeros || plain;
}

/* columns: `groups` numbers of scratch, all 0. */
static lpgemm_status_t make_order(const char *name, const int64_t *group_of, int64_t k, int64_t groups,
                                  int64_t *columns, lpg_part *part) {
  int64_t group_k = 0;
  LPG_TRY(count_groups(name, group_of, k, groups, columns));
  LPG_TRY(check_counts(name, k, groups, columns, &group_k));
  LPG_TRY(check_group(part, group_k, name));
  part->desc.group_k = group_k;
  return sort_columns(group_of, k, groups, columns, &part->column_order);
}

lpgemm_status_t lpgemm_i_set_order(const lpgemm_import_t *import, const lpgemm_tensor_t *g_idx, int64_t groups,
                                   const char *what, lpg_part *part) {
  int64_t k = part->desc.k;
  char shape[LPG_SHAPE_TEXT];
  LPG_CHECK(k <= INT32_MAX, LPGEMM_SIZE_OVERFLOW, "%s has %lld columns; at most 2^31 - 1 fit", what, (long long)k);
  LPG_CHECK(!g_idx || lpgemm_i_elements(g_idx) == k, LPGEMM_INVALID_SIZE, "%s is %s, but there are %lld columns",
            g_idx->name, lpgemm_i_shape_text(g_idx, shape), (long long)k);
  if (!g_idx || groups == 1) return lpgemm_i_set_group(import, groups, what, part);
  int64_t *memory = calloc((size_t)(k + groups), sizeof *memory), *group_of = memory + groups;
  LPG_CHECK(memory, LPGEMM_OUT_OF_MEMORY, "no memory for %lld groups of %lld columns", (long long)groups, (long long)k);
  lpgemm_i_integers(g_idx, group_of);
  const int plain = is_plain(group_of, k, import->group_k ? import->group_k : lpg_ceil_div(k, groups));
  const lpgemm_status_t status = plain ? lpgemm_i_set_group(import, groups, what, part)
                                       : make_order(g_idx->name, group_of, k, groups, memory, part);
  free(memory);
  if (plain || status != LPGEMM_SUCCESS) return status;
  const int64_t group_k = part->desc.group_k;
  LPG_CHECK(import->group_k == 0 || import->group_k == group_k, LPGEMM_INVALID_SIZE,
            "group_k is %lld, but %s puts %lld columns into a group", (long long)import->group_k, g_idx->name,
            (long long)group_k);
  int64_t c = 0;
  while (c < k && part->column_order[c] == c) c++;
  if (c < k) {
    part->desc.columns = LPGEMM_COLUMNS_ORDERED;
  } else { /* the last group is short, and nothing is out of order */
    free(part->column_order);
    part->column_order = NULL;
  }
  return LPGEMM_SUCCESS;
}
