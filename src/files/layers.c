/* The list of layers. */
#include "layers.h"

#include <stdio.h>

lpgemm_status_t lpgemm_i_add_layer(lpgemm_file_t file, const lpg_layer *layer) {
  LPG_CHECK(file->layer_count < LPG_MOST_LAYERS, LPGEMM_SIZE_OVERFLOW,
            "%.300s has more than %d layers and experts; no checkpoint has so many", file->name, LPG_MOST_LAYERS);
  if (file->layer_count == file->layer_room) {
    const size_t room = file->layer_room ? 2 * file->layer_room : 16;
    void *array = file->layers;
    LPG_TRY(lpgemm_i_grow(&file->memory, &array, file->layer_room, room, sizeof *layer));
    file->layers = array;
    file->layer_room = room;
  }
  lpg_layer *added = &file->layers[file->layer_count];
  *added = *layer;
  LPG_TRY(lpgemm_i_keep_text(&file->memory, layer->name, strlen(layer->name), &added->name));
  file->layer_count++;
  return LPGEMM_SUCCESS;
}

const lpgemm_tensor_t *lpgemm_i_part(const lpg_finder *finder, const char *suffix) {
  char name[2 * LPG_MOST_NAME];
  snprintf(name, sizeof name, "%s%s", finder->layer, suffix);
  return lpgemm_i_look_up(finder->file->tensor_index, finder->file->tensor_count, name);
}

lpgemm_status_t lpgemm_i_add_refused(lpg_finder *finder, const char *why) {
  const lpg_layer layer = {.name = finder->layer, .refusal = why};
  return lpgemm_i_add_layer(finder->file, &layer);
}

lpgemm_status_t lpgemm_i_add_parts(lpg_finder *finder, const char *const *names, char separator, int dims,
                                   const lpg_settings *settings) {
  enum { MOST_PARTS = 24 };
  lpgemm_tensor_t found[MOST_PARTS];
  char suffix[128];
  uint32_t count = 0;
  if (settings->refusal) return lpgemm_i_add_refused(finder, settings->refusal);
  for (int i = 0; names[i] && count < MOST_PARTS; i++) {
    snprintf(suffix, sizeof suffix, "%c%s", separator, names[i]);
    const lpgemm_tensor_t *t = lpgemm_i_part(finder, suffix);
    if (!t) continue;
    found[count] = *t;
    found[count++].name = t->name + strlen(finder->layer) + 1;
  }
  void *parts;
  LPG_TRY(lpgemm_i_keep(&finder->file->memory, count * sizeof *found, &parts));
  memcpy(parts, found, count * sizeof *found);
  lpg_layer layer = {.name = finder->layer, .tensors = parts, .count = count};
  layer.format = settings->format, layer.bits = settings->bits, layer.group_k = settings->group_k;
  if (count == 0 || found[0].dims <= dims) return lpgemm_i_add_layer(finder->file, &layer);
  /* an empty stack could promise any number of experts */
  if (found[0].bytes == 0) return lpgemm_i_add_refused(finder, "it is a stack of experts without numbers");
  for (layer.expert = 0; layer.expert < found[0].shape[0]; layer.expert++) {
    char name[LPG_MOST_NAME + 32];
    snprintf(name, sizeof name, "%s.%lld", finder->layer, (long long)layer.expert);
    layer.name = name;
    LPG_TRY(lpgemm_i_add_layer(finder->file, &layer));
  }
  return LPGEMM_SUCCESS;
}

/* ---- GGUF: every matrix, or stack of matrices, of a block type ---- */

lpgemm_status_t lpgemm_i_gguf_layers(lpgemm_file_t file) {
  static const char weight[] = ".weight";
  for (size_t i = 0; i < file->tensor_count; i++) {
    const lpgemm_tensor_t *t = &file->tensors[i];
    if (LPGEMM_DTYPE_KIND(t->type) != LPGEMM_KIND_GGML || t->dims < 2 || t->dims > 3) continue;
    const size_t length = strlen(t->name), tail = sizeof weight - 1;
    const int named = length > tail && strcmp(t->name + length - tail, weight) == 0;
    lpg_finder finder = {.file = file};
    snprintf(finder.layer, sizeof finder.layer, "%.*s", (int)(named ? length - tail : length), t->name);
    void *piece;
    LPG_TRY(lpgemm_i_keep(&file->memory, 2 * sizeof *t, &piece));
    lpgemm_tensor_t *parts = piece;
    lpg_layer layer = {.name = finder.layer, .tensors = parts, .count = 1, .format = LPGEMM_FORMAT_GGUF};
    parts[0] = *t;
    parts[0].name = "weight";
    const lpgemm_tensor_t *scale = lpgemm_i_part(&finder, ".scale");
    if (scale && scale->type == LPGEMM_F32) {
      parts[layer.count] = *scale;
      parts[layer.count++].name = "scale";
    }
    if (t->dims == 2) {
      LPG_TRY(lpgemm_i_add_layer(file, &layer));
      continue;
    }
    for (layer.expert = 0; t->bytes > 0 && layer.expert < t->shape[0]; layer.expert++) {
      char name[LPG_MOST_NAME + 32];
      snprintf(name, sizeof name, "%s.%lld", finder.layer, (long long)layer.expert);
      layer.name = name;
      LPG_TRY(lpgemm_i_add_layer(file, &layer));
    }
  }
  return LPGEMM_SUCCESS;
}
