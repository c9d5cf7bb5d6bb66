#include "models.h"

#include <stdio.h>
#include <string.h>

/* The same as tests/shapes/model.txt, which an installed program does not have; the suite cli compares them. */
const cli_matrix cli_models[] = {
    {"llama3-8b.qkv", 6144, 4096},       {"llama3-8b.o", 4096, 4096},
    {"llama3-8b.gate_up", 28672, 4096},  {"llama3-8b.down", 4096, 14336},
    {"llama3-70b.qkv", 10240, 8192},     {"llama3-70b.o", 8192, 8192},
    {"llama3-70b.gate_up", 57344, 8192}, {"llama3-70b.up", 28672, 8192},
    {"llama3-70b.down", 8192, 28672},    {"qwen2.5-32b.qkv", 7168, 5120},
    {"qwen2.5-32b.o", 5120, 5120},       {"qwen2.5-32b.gate_up", 55296, 5120},
    {"qwen2.5-32b.down", 5120, 27648},   {"gemma2-9b.qkv", 8192, 3584},
    {"gemma2-9b.o", 3584, 4096},         {"gemma2-9b.gate_up", 28672, 3584},
    {"gemma2-9b.down", 3584, 14336},     {"gpt-oss.qkv", 5120, 2880},
    {"gpt-oss.o", 2880, 4096},           {"gpt-oss.expert_up", 5760, 2880},
    {"gpt-oss.expert_down", 2880, 2880}, {"lut.ffn", 27648, 5120},
};
const int cli_model_count = (int)CLI_COUNT(cli_models);

int cli_is_of_model(const cli_matrix *matrix, const char *name) {
  size_t model = (size_t)(strrchr(matrix->name, '.') - matrix->name);
  return strcmp(matrix->name, name) == 0 || (strlen(name) == model && strncmp(matrix->name, name, model) == 0);
}

void cli_model_names(char *text, size_t bytes) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < cli_model_count; i++) {
    const char *name = cli_models[i].name;
    size_t model = (size_t)(strrchr(name, '.') - name);
    if (i > 0 && strncmp(cli_models[i - 1].name, name, model + 1) == 0) continue; /* of the same model */
    int wanted = snprintf(text + used, bytes - used, "%s%.*s", i ? ", " : "", (int)model, name);
    if (wanted < 0 || (size_t)wanted >= bytes - used) return;
    used += (size_t)wanted;
  }
}
