/* A layer as a command line describes it: types, groups, scales, zeros; and weights like that to ask about or to time.
 */
#ifndef CLI_LAYER_H
#define CLI_LAYER_H

#include "common.h"

typedef struct cli_layer {
  const char *name;          /* of the weights, as it was given */
  lpgemm_weight_desc_t desc; /* without n and k */
  lpgemm_dtype_t x_type, y_type;
} cli_layer;

/* What --help says of the options that cli_layer_option() takes. */
#define CLI_LAYER_HELP                                                                     \
  "  --group G           columns that share a scale: a multiple of 16, or row (default)\n" \
  "  --scale TYPE        of the scales: f16, bf16, f32, e8m0, e4m3 or none (default)\n"    \
  "  --zero TYPE         a zero a group, u8, u16, f16, bf16 or f32; default none\n"        \
  "  --zero NUMBER       one zero for all weights\n"                                       \
  "  --x TYPE            of the activations; default f16\n"                                \
  "  --y TYPE            of the output; default X's type, or f16 where X is narrower\n"

/* Before the options are read: size fields. */
void cli_layer_start(cli_layer *layer);

/* 1 if the current word was one of the options above, which it has taken with its value. */
int cli_layer_option(cli_layer *layer, cli_words *words);

/* The type of the weights, or the name of a codebook. */
void cli_layer_weights(cli_layer *layer, const char *option, const char *text);

/* After the options are read: fills what follows from others, and refuses weights that cannot be. */
void cli_layer_finish(cli_layer *layer);

/* Packed weights with random codes, and powers of two as scales. */
lpgemm_weights_t cli_layer_make(const cli_layer *layer, lpgemm_handle_t handle, int64_t n, int64_t k);

/* Types and rows of a call with them. */
lpgemm_run_args_t cli_layer_args(const cli_layer *layer, lpgemm_weights_t weights, int64_t m);

/* lpgemm_explain() as if the handle had all the workspace that the call may want. text is empty where the call is
 * refused before a kernel is looked for. */
lpgemm_status_t cli_layer_explain(lpgemm_handle_t handle, const lpgemm_run_args_t *args, size_t *workspace, char *text,
                                  size_t bytes);

/* Members of a JSON object, without its braces. */
void cli_layer_json(const cli_layer *layer);

#endif
