/* Measured choices in memory: a sorted list. */
#include "tuning.h"

#include <math.h>
#include <stdlib.h>

#include "kinds.h"

enum { MAX_ENTRIES = 8192 };

static int64_t bit_index(uint32_t member) {
  int64_t i = 0;
  while (member >> i > 1) i++;
  return i;
}

static void make_key(const lpg_problem *p, int threads, int64_t *key) {
  const lpgemm_weight_desc_t *d = &p->weights->desc;
  key[LPG_KEY_THREADS] = threads;
  key[LPG_KEY_WEIGHTS] = d->type;
  key[LPG_KEY_GROUP] = lpg_group_columns(p->weights);
  key[LPG_KEY_SCALE] = bit_index(lpg_scale_member(d));
  key[LPG_KEY_ZERO] = bit_index(lpg_zero_member(d));
  key[LPG_KEY_X] = p->x_type;
  key[LPG_KEY_Y] = p->y_type;
  key[LPG_KEY_MODE] =
      (p->level == LPGEMM_LEVEL_FAST ? LPG_MODE_FAST : 0) | (p->batch_invariant ? LPG_MODE_INVARIANT : 0);
  key[LPG_KEY_N] = d->n;
  key[LPG_KEY_K] = d->k;
  key[LPG_KEY_M] = p->batch_invariant ? 0 : p->m;
}

/* Compares the first `columns` columns. */
static int compare(const int64_t *a, const int64_t *b, int columns) {
  for (int i = 0; i < columns; i++) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

/* The first entry that is not below the key in its first `columns` columns. */
static int lower_bound(const lpg_tuning *t, const int64_t *key, int columns) {
  int low = 0, high = t->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (compare(t->entries[middle].key, key, columns) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

lpg_tuning *lpgemm_i_tuning_create(void) { return calloc(1, sizeof(lpg_tuning)); }

void lpgemm_i_tuning_destroy(lpg_tuning *tuning) {
  if (!tuning) return;
  free(tuning->entries);
  free(tuning);
}

void lpgemm_i_tuning_clear(lpg_tuning *tuning) {
  tuning->count = 0;
  tuning->version++;
}

uint64_t lpgemm_i_tuning_version(const lpg_tuning *tuning) { return tuning->version; }

static double octaves(int64_t a, int64_t b) { return fabs(log2((double)(a > 1 ? a : 1) / (double)(b > 1 ? b : 1))); }

static const char *find_nearest(const lpg_tuning *tuning, const int64_t *key) {
  const lpg_entry *nearest = NULL;
  double least = 0.0;
  for (int i = lower_bound(tuning, key, LPG_KEY_N); i < tuning->count; i++) {
    const lpg_entry *e = &tuning->entries[i];
    if (compare(e->key, key, LPG_KEY_N) != 0) break;
    double distance = octaves(e->key[LPG_KEY_N], key[LPG_KEY_N]) + octaves(e->key[LPG_KEY_K], key[LPG_KEY_K]) +
                      octaves(e->key[LPG_KEY_M], key[LPG_KEY_M]);
    if (distance > LPG_TUNING_REACH) continue;
    if (e->key[LPG_KEY_N] != key[LPG_KEY_N] || e->key[LPG_KEY_K] != key[LPG_KEY_K])
      distance += LPG_TUNING_REACH; /* behind all of the same shape */
    if (!nearest || distance < least) {
      nearest = e;
      least = distance;
    }
  }
  return nearest ? nearest->kernel : NULL;
}

const char *lpgemm_i_tuning_find(const lpg_tuning *tuning, const lpg_problem *problem, int threads) {
  int64_t key[LPG_KEY_COLUMNS];
  make_key(problem, threads, key);
  const char *kernel = find_nearest(tuning, key);
  if (kernel || threads == 0) return kernel;
  key[LPG_KEY_THREADS] = 0;
  return find_nearest(tuning, key);
}

static lpgemm_status_t reserve_one(lpg_tuning *t) {
  if (t->count < t->capacity) return LPGEMM_SUCCESS;
  LPG_CHECK(t->count < MAX_ENTRIES, LPGEMM_OUT_OF_MEMORY, "there are %d tuning results already; no more are kept",
            t->count);
  int capacity = t->capacity ? 2 * t->capacity : 64;
  lpg_entry *entries = realloc(t->entries, (size_t)capacity * sizeof *entries);
  LPG_CHECK(entries, LPGEMM_OUT_OF_MEMORY, "no memory for %d tuning results", capacity);
  t->entries = entries;
  t->capacity = capacity;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_tuning_insert(lpg_tuning *t, const lpg_entry *entry) {
  int at = lower_bound(t, entry->key, LPG_KEY_COLUMNS);
  if (at == t->count || compare(t->entries[at].key, entry->key, LPG_KEY_COLUMNS) != 0) {
    LPG_TRY(reserve_one(t));
    memmove(&t->entries[at + 1], &t->entries[at], (size_t)(t->count - at) * sizeof *entry);
    t->count++;
  }
  t->entries[at] = *entry;
  t->version++;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_tuning_put(lpg_tuning *tuning, const lpg_problem *problem, int threads, const char *kernel,
                                    double microseconds) {
  lpg_entry entry;
  make_key(problem, threads, entry.key);
  LPG_CHECK(strlen(kernel) < sizeof entry.kernel, LPGEMM_INVALID_ARGUMENT,
            "kernel is \"%.80s\"; a name has less than %d characters", kernel, LPG_KERNEL_NAME_BYTES);
  LPG_CHECK(microseconds >= 0.0 && microseconds < LPG_TUNING_MICROSECONDS, LPGEMM_INVALID_ARGUMENT,
            "microseconds is %g; it must be a time", microseconds);
  memcpy(entry.kernel, kernel, strlen(kernel) + 1);
  entry.microseconds = microseconds;
  return lpgemm_i_tuning_insert(tuning, &entry);
}
