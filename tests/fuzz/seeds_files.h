/* Seeds for the readers of checkpoint files, hostile ones among them. */
#ifndef SEEDS_FILES_H
#define SEEDS_FILES_H

#include "lpgemm.h"

lpgemm_status_t seeds_container(const char *path, lpgemm_handle_t handle, lpgemm_weights_t weights);

/* Into fuzz_safetensors, fuzz_gguf and fuzz_config below the directory. */
void seeds_files(const char *directory);

#endif
