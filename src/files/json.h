/* JSON in two steps: the whole text is checked once, without recursion; after that values are pieces of that text, and
 * walking through them cannot fail. */
#ifndef LPG_FILES_JSON_H
#define LPG_FILES_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "lpgemm.h"

enum { LPG_JSON_DEPTH = 16 };

/* A value: where it begins in checked text, and where the text ends. at is NULL for one that is not there. */
typedef struct lpg_json {
  const char *at, *end;
} lpg_json;

/* CORRUPT_DATA, with file and place, unless the text is one JSON value of at most LPG_JSON_DEPTH levels. */
lpgemm_status_t lpgemm_i_json_check(const char *file, const char *text, size_t bytes, lpg_json *value);

/* '{', '[', '"', '0' (any number), 't', 'f', 'n'; 0 for a value that is not there. */
char lpgemm_i_json_kind(lpg_json value);

/* Walks through an object or array: *walk is lpgemm_i_json_walk() of it; 0 at its end. key may be NULL, and is none in
 * an array. */
lpg_json lpgemm_i_json_walk(lpg_json value);
int lpgemm_i_json_next(lpg_json *walk, lpg_json *key, lpg_json *value);

/* The member of that name; of several the last, as the writers of these files read them. Not there: at is NULL, also if
 * object is no object. */
lpg_json lpgemm_i_json_member(lpg_json object, const char *name);

/* Decodes a string with its escapes into out, ends it with 0, and returns its bytes; -1 if it is no string, has a 0
 * inside, or does not fit. */
int64_t lpgemm_i_json_text(lpg_json value, char *out, size_t size);
int lpgemm_i_json_is(lpg_json value, const char *text);

/* 1 if it is an integer that fits. */
int lpgemm_i_json_integer(lpg_json value, int64_t *number);

#endif
