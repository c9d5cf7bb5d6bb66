/* The set of live handles and weights: an object that was destroyed, or never was one, is recognised by its address
 * alone. */
#include <pthread.h>
#include <stdlib.h>

#include "internal.h"

typedef struct entry {
  const void *object; /* NULL: free */
  lpg_object kind;
} entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry *table; /* open addressing, linear probing; capacity is a power of two, at most half full */
static size_t capacity, used;

static size_t home(const void *object, size_t size) {
  return (size_t)((uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15ULL >> 32) & (size - 1);
}

static entry *find(const void *object) {
  if (capacity == 0) return NULL;
  for (size_t i = home(object, capacity);; i = (i + 1) & (capacity - 1)) {
    if (table[i].object == object) return &table[i];
    if (table[i].object == NULL) return NULL;
  }
}

static void place(entry *into, size_t size, entry e) {
  size_t i = home(e.object, size);
  while (into[i].object) i = (i + 1) & (size - 1);
  into[i] = e;
}

static int grow(void) {
  size_t size = capacity ? capacity * 2 : 64;
  entry *larger = calloc(size, sizeof *larger);
  if (!larger) return 0;
  for (size_t i = 0; i < capacity; i++) {
    if (table[i].object) place(larger, size, table[i]);
  }
  free(table);
  table = larger;
  capacity = size;
  return 1;
}

lpgemm_status_t lpgemm_i_live_add(const void *object, lpg_object kind) {
  pthread_mutex_lock(&mutex);
  int room = 2 * (used + 1) <= capacity || grow();
  if (room) {
    place(table, capacity, (entry){object, kind});
    used++;
  }
  pthread_mutex_unlock(&mutex);
  LPG_CHECK(room, LPGEMM_OUT_OF_MEMORY, "no memory for the table of live objects");
  return LPGEMM_SUCCESS;
}

int lpgemm_i_live_remove(const void *object, lpg_object kind) {
  pthread_mutex_lock(&mutex);
  entry *e = find(object);
  int found = e && e->kind == kind;
  if (found) {
    e->object = NULL;
    used--;
    for (size_t i = (size_t)(e - table + 1) & (capacity - 1); table[i].object; i = (i + 1) & (capacity - 1)) {
      entry moved = table[i]; /* close the gap that linear probing must not see */
      table[i].object = NULL;
      place(table, capacity, moved);
    }
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

/* What live objects two addresses are of, 0: of none. All threads that run products meet at this lock: one look for
 * both. */
static void look(const void *first, const void *second, int *first_kind, int *second_kind) {
  pthread_mutex_lock(&mutex);
  const entry *e = first ? find(first) : NULL;
  *first_kind = e ? (int)e->kind : 0;
  e = second ? find(second) : NULL;
  *second_kind = e ? (int)e->kind : 0;
  pthread_mutex_unlock(&mutex);
}

int lpgemm_i_is_live(const void *object, lpg_object kind) {
  int found, none;
  if (!object) return 0;
  look(object, NULL, &found, &none);
  return found == (int)kind;
}

void lpgemm_i_retire(void *object) {
  enum { KEPT = 64 };
  static void *kept[KEPT];
  static size_t next;
  pthread_mutex_lock(&mutex);
  void *oldest = kept[next];
  kept[next] = object;
  next = (next + 1) % KEPT;
  pthread_mutex_unlock(&mutex);
  free(oldest);
}

static lpgemm_status_t check_handle_kind(lpgemm_handle_t handle, int kind) {
  LPG_CHECK(handle, LPGEMM_NULL_POINTER, "handle is NULL; make one with lpgemm_create()");
  LPG_CHECK(kind == LPG_OBJECT_HANDLE, LPGEMM_INVALID_HANDLE,
            "handle %p is no live handle: it was destroyed, or lpgemm_create() never made it", (void *)handle);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_weights_kind(lpgemm_weights_t weights, int kind) {
  LPG_CHECK(weights, LPGEMM_NULL_POINTER, "weights is NULL; make them with lpgemm_pack_weights()");
  LPG_CHECK(kind != LPG_OBJECT_PIECES, LPGEMM_INVALID_HANDLE,
            "weights %p are not complete; call lpgemm_weights_finish() when all rows are packed", (void *)weights);
  LPG_CHECK(kind == LPG_OBJECT_WEIGHTS, LPGEMM_INVALID_HANDLE,
            "weights %p are no live weights: they were destroyed, or never made", (void *)weights);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_handle(lpgemm_handle_t handle) {
  int kind, none;
  look(handle, NULL, &kind, &none);
  return check_handle_kind(handle, kind);
}

lpgemm_status_t lpgemm_i_check_weights(lpgemm_weights_t weights) {
  int kind, none;
  look(weights, NULL, &kind, &none);
  return check_weights_kind(weights, kind);
}

lpgemm_status_t lpgemm_i_check_pair(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  int handle_kind, weights_kind;
  look(handle, weights, &handle_kind, &weights_kind);
  LPG_TRY(check_handle_kind(handle, handle_kind));
  LPG_TRY(check_weights_kind(weights, weights_kind));
  return lpgemm_i_check_device(handle, weights);
}
