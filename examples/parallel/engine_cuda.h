#ifndef ENGINE_CUDA_H
#define ENGINE_CUDA_H

#include "parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

void add_halves(const char *const *parts, int ranks, int64_t count, void *out);

#ifdef __cplusplus
}
#endif

#endif
