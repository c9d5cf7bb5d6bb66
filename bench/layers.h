/* The matrices of published models' linear layers, from their sizes. */
#ifndef BENCH_LAYERS_H
#define BENCH_LAYERS_H

#include "shapes.h"

/* Adds the layers of every model in DATA/tests/shapes/layers.txt, whole and cut for tensor parallelism by 2, 4 and 8:
 * "llama3-8b:qkv", "llama3-8b:qkv-tp2". */
bench_error bench_add_layers(const char *data, bench_shapes *shapes);

#endif
