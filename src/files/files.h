/* Checkpoint files -> tensors and layers. A reader for each sort of file fills the list of tensors; layers.c groups
 * them; file.c is what the public calls see. Nothing in a file is believed: lengths are compared with what is left
 * before they are used, and all memory comes from a budget, the bytes of the files and 64 MiB. */
#ifndef LPG_FILES_H
#define LPG_FILES_H

#include "internal.h"

enum {
  LPG_MOST_TENSORS = 1 << 20,
  LPG_MOST_LAYERS = 1 << 20,
  LPG_MOST_SHARDS = 1 << 14,
  LPG_MOST_NAME = 1024,              /* bytes of the name of a tensor */
  LPG_MOST_JSON = 100 << 20,         /* bytes of a header or a config */
  LPG_FILE_PATH = 4096,              /* bytes of a path, its 0 among them */
  LPG_FILES_SLACK = 64 << 20,        /* what the index of any file may take beyond the file's size */
  LPG_CONTAINER_TENSOR_ALIGN = 4096, /* where blobs and tensors of a container begin */
};

/* ---- memory ---- */

typedef struct lpg_chunk lpg_chunk;

typedef struct lpg_memory {
  lpg_chunk *chunks; /* of small pieces, freed together */
  size_t left;       /* bytes that may still be taken */
  const char *owner; /* the file's name, for the sentence */
} lpg_memory;

/* Small pieces that live as long as the file. */
lpgemm_status_t lpgemm_i_keep(lpg_memory *memory, size_t bytes, void **piece);
lpgemm_status_t lpgemm_i_keep_text(lpg_memory *memory, const char *text, size_t length, const char **copy);
/* An array that grows to `count` elements and keeps what it had; *array is NULL at first, and free() ends it. */
lpgemm_status_t lpgemm_i_grow(lpg_memory *memory, void **array, size_t had, size_t count, size_t element);
void lpgemm_i_forget(lpg_memory *memory);

/* ---- a mapped file ---- */

typedef struct lpg_map {
  const uint8_t *bytes;
  size_t size;
  int mapped; /* 0: the caller's memory */
} lpg_map;

lpgemm_status_t lpgemm_i_map(const char *path, lpg_map *map);
void lpgemm_i_unmap(lpg_map *map);
/* 1 if there is such a file, of whatever kind. */
int lpgemm_i_exists(const char *path);

/* ---- names: what has a name begins with it; an index is an array of pointers to such things, sorted by name ---- */

typedef struct lpg_named {
  const char *name;
} lpg_named;

/* Builds the index of count things of `size` bytes; a name that is there twice is refused. */
lpgemm_status_t lpgemm_i_index(lpg_memory *memory, const char *file, const char *what, const void *things, size_t count,
                               size_t size, const lpg_named ***index);
const void *lpgemm_i_look_up(const lpg_named *const *index, size_t count, const char *name);

/* Refuses what is no name: empty, too long, not UTF-8, or with control characters, which a terminal would obey. what:
 * "the name of a tensor", or of what else. */
lpgemm_status_t lpgemm_i_check_name(const char *file, const char *what, const char *name, size_t length);
/* Bytes of the UTF-8 character at text, 0 if it is none. */
size_t lpgemm_i_utf8(const char *text, size_t length);

/* ---- the file ---- */

typedef enum lpg_file_kind { LPG_FILE_SAFETENSORS = 1, LPG_FILE_GGUF = 2, LPG_FILE_CONTAINER = 3 } lpg_file_kind;

typedef struct lpg_layer {
  const char *name;
  const lpgemm_tensor_t *tensors; /* names without the layer's */
  uint32_t count;
  int32_t bits;
  lpgemm_format_t format;
  int64_t group_k, expert;
  const char *refusal; /* why it is not read; NULL: it is */
} lpg_layer;

struct lpgemm_file {
  lpg_file_kind kind;
  char name[LPG_FILE_PATH]; /* in messages */
  lpg_memory memory;
  lpg_map *maps;
  size_t map_count;
  lpgemm_tensor_t *tensors;
  size_t tensor_count;
  const lpg_named **tensor_index;
  lpg_layer *layers;
  size_t layer_count, layer_room;
  const lpg_named **layer_index;
  const uint64_t *hashes;  /* of a container's tensors */
  int64_t heads, kv_heads; /* of attention; 0: not said */
};

/* count more tensors at the end of the list, all zero. */
lpgemm_status_t lpgemm_i_more_tensors(lpgemm_file_t file, size_t count, lpgemm_tensor_t **tensors);

/* Bytes of a tensor of this type and shape; SIZE_OVERFLOW, or CORRUPT_DATA where its numbers fill no whole bytes or
 * blocks. name and type_name are for the sentence. */
lpgemm_status_t lpgemm_i_tensor_bytes(const char *file, const lpgemm_tensor_t *tensor, uint64_t *bytes);

/* Refuses tensors that overlap, and with `dense` also gaps between them and bytes before or after them. */
lpgemm_status_t lpgemm_i_check_extents(lpgemm_file_t file, const char *name, const lpgemm_tensor_t *tensors,
                                       size_t count, const uint8_t *begin, const uint8_t *end, int dense);

/* ---- readers: each appends the tensors of one file in memory. name is for messages ---- */

lpgemm_status_t lpgemm_i_read_safetensors(lpgemm_file_t file, const char *name, const lpg_map *map);

typedef struct lpg_gguf {
  int64_t split_count, split_number, split_tensors; /* -1: not said */
  int64_t heads, kv_heads;                          /* 0: not said */
} lpg_gguf;
lpgemm_status_t lpgemm_i_read_gguf_file(lpgemm_file_t file, const char *name, const lpg_map *map, lpg_gguf *gguf);
int lpgemm_i_is_gguf(const lpg_map *map);

lpgemm_status_t lpgemm_i_read_container(lpgemm_file_t file, const char *name, const lpg_map *map);
int lpgemm_i_is_container(const lpg_map *map);

/* All files of a model folder, or of a split GGUF, whose first file is mapped already. */
lpgemm_status_t lpgemm_i_open_folder(lpgemm_file_t file, const char *path);
lpgemm_status_t lpgemm_i_open_splits(lpgemm_file_t file, const char *path, const lpg_gguf *first);
/* Maps one more file for `file`. */
lpgemm_status_t lpgemm_i_add_map(lpgemm_file_t file, const char *path, lpg_map **map);

/* ---- layers ---- */

/* count tensors beginning with `tensors`, which the file keeps, are a layer. */
lpgemm_status_t lpgemm_i_add_layer(lpgemm_file_t file, const lpg_layer *layer);
lpgemm_status_t lpgemm_i_gguf_layers(lpgemm_file_t file);
/* config: the folder in which config.json may lie; NULL: none. */
lpgemm_status_t lpgemm_i_safetensors_layers(lpgemm_file_t file, const char *folder);

#endif
