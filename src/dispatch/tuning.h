/* A tuning result: what the list in memory and the text file both know. */
#ifndef LPG_DISPATCH_TUNING_H
#define LPG_DISPATCH_TUNING_H

#include "dispatch.h"

enum {                  /* columns of a key, in sorting order: threads, types and options, sizes, rows */
       LPG_KEY_THREADS, /* CPU: of the handle; 0: a file does not say, or a GPU */
       LPG_KEY_WEIGHTS,
       LPG_KEY_GROUP,
       LPG_KEY_SCALE, /* bit number of an LPG_S_ member */
       LPG_KEY_ZERO,  /* bit number of an LPG_Z_ member */
       LPG_KEY_X,
       LPG_KEY_Y,
       LPG_KEY_MODE,
       LPG_KEY_N,
       LPG_KEY_K,
       LPG_KEY_M, /* 0 with LPG_MODE_INVARIANT: one choice for every number of rows */
       LPG_KEY_COLUMNS
};
enum { LPG_MODE_FAST = 1, LPG_MODE_INVARIANT = 2 };

typedef struct lpg_entry {
  int64_t key[LPG_KEY_COLUMNS];
  double microseconds;
  char kernel[LPG_KERNEL_NAME_BYTES];
} lpg_entry;

struct lpg_tuning {
  lpg_entry *entries; /* sorted by key */
  int count, capacity;
  uint64_t version; /* another one after every change */
};

#define LPG_TUNING_MICROSECONDS 1e12 /* every measurement is below */

/* Adds an entry, or replaces the one with the same key. */
lpgemm_status_t lpgemm_i_tuning_insert(lpg_tuning *tuning, const lpg_entry *entry);

#endif
