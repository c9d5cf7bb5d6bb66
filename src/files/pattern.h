/* Patterns of configs: the part of Python's regular expressions that configs of checkpoints use. */
#ifndef LPG_FILES_PATTERN_H
#define LPG_FILES_PATTERN_H

#include <stdint.h>

/* MATCH as re.match() (from the begin of the text on), SEARCH as re.search(), WHOLE as re.fullmatch(). */
typedef enum lpg_pattern_mode { LPG_PATTERN_MATCH, LPG_PATTERN_SEARCH, LPG_PATTERN_WHOLE } lpg_pattern_mode;

/* 1 or 0; -1 for a pattern that is not understood (back references, more than 500 characters, ...). Takes from *steps
 * what it costs, and gives up with -2 when they are used up: a pattern from a file must not be able to take long. */
int lpgemm_i_pattern(const char *pattern, const char *text, lpg_pattern_mode mode, int64_t *steps);

#endif
