/* What finds layers needs: the file, its config, and tensors by the name of a layer and what follows it. */
#ifndef LPG_FILES_LAYERS_H
#define LPG_FILES_LAYERS_H

#include "config.h"

typedef struct lpg_finder {
  lpgemm_file_t file;
  lpg_config config;
  char layer[LPG_MOST_NAME + 1]; /* the one that is looked at */
} lpg_finder;

/* The tensor whose name is the layer's and `suffix` (".weight"); NULL if there is none. */
const lpgemm_tensor_t *lpgemm_i_part(const lpg_finder *finder, const char *suffix);

/* Adds the layer with its tensors of these names (without the dot; NULL ends the list) that are there. `separator` is
 * what stands before them, '.' but for gpt-oss. If the first of them has one dimension more than `dims`, they are a
 * stack, and each expert becomes a layer. */
lpgemm_status_t lpgemm_i_add_parts(lpg_finder *finder, const char *const *names, char separator, int dims,
                                   const lpg_settings *settings);

/* Adds the layer as one that is not read. */
lpgemm_status_t lpgemm_i_add_refused(lpg_finder *finder, const char *why);

#endif
