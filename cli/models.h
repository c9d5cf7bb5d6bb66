/* Weight matrices of models by name. */
#ifndef CLI_MODELS_H
#define CLI_MODELS_H

#include "common.h"

typedef struct cli_matrix {
  const char *name; /* "model.matrix" */
  int64_t n, k;
} cli_matrix;

extern const cli_matrix cli_models[];
extern const int cli_model_count;

/* Whether a matrix is `name`, or one of the model `name`. */
int cli_is_of_model(const cli_matrix *matrix, const char *name);

/* "llama3-8b, llama3-70b, ...", for a sentence. */
void cli_model_names(char *text, size_t bytes);

#endif
