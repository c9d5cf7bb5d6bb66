/* What the CUDA suites share: calls of the runtime that must succeed, and memory that only the GPU can reach. */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>

/* A lost context would fail every later case: prints the sentence and ends the program. */
void gpu_must(const char *file, int line, int error, const char *call);
#define GPU(call) gpu_must(__FILE__, __LINE__, (int)(call), #call)

/* 256-byte aligned memory filled with a byte, between two that must not change. */
void *gpu_alloc(size_t bytes, int fill);

/* The same with a copy of host memory; NULL for NULL. */
void *gpu_copy(const void *host, size_t bytes);

/* Copies to the host when all work that was given to the GPU is done. */
void gpu_read(void *host, const void *gpu, size_t bytes);

/* Fails the case if something was written beside the memory. NULL is allowed. */
void gpu_free(void *gpu);

#endif
