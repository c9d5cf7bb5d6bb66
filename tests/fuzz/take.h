/* What the fuzzers do with the layers of a checkpoint: import them, and hold the library to what it says of them. */
#ifndef FUZZ_TAKE_H
#define FUZZ_TAKE_H

#include "fuzz.h"

/* A stack of experts may offer tens of thousands of layers: each costs something, and MOST_WORK is what a file gets. */
enum { MOST_PACKED = 2 << 20, MOST_CODES = 4 << 20, MOST_WORK = 8 << 20, A_TRY = 2048 };

/* ---- one matrix ---- */

/* But for the sign of NVFP4's scales, which stand first in a block and have none. */
static inline int is_same(int type, const uint8_t *a, const uint8_t *b, size_t bytes) {
  enum { NVFP4 = 40, BLOCK = 36, SCALES = 4 };
  size_t i = 0;
  while (i < bytes && ((a[i] ^ b[i]) & (type == NVFP4 && i % BLOCK < SCALES ? 0x7f : 0xff)) == 0) i++;
  return i == bytes;
}

/* Blocks of a type that is not expanded come back byte for byte. */
static inline void give_back(lpgemm_weights_t weights, const lpgemm_import_t *import) {
  for (size_t i = 0; i < import->count; i++) {
    const lpgemm_tensor_t *t = &import->tensors[i];
    const int type = (int)(t->type & 0xffff);
    size_t bytes = 0;
    if (strcmp(t->name, "weight") != 0 || !is_taken(lpgemm_export_size(weights, type, &bytes))) continue;
    must(bytes <= t->bytes);
    uint8_t *out = malloc(bytes + 1);
    must(out != NULL);
    if (is_taken(lpgemm_export(the_handle(), weights, type, out, bytes))) {
      must(is_same(type, out, (const uint8_t *)t->data + (size_t)import->expert * bytes, bytes));
    }
    free(out);
  }
}

/* Into memory that is exactly as large as codes or values are, which the caller frees; NULL if they are too many. */
static inline void *unpack(const lpgemm_weight_desc_t *desc, lpgemm_weights_t weights, lpgemm_dtype_t type) {
  const size_t n = (size_t)desc->n * (size_t)(desc->experts > 1 ? desc->experts : 1);
  const size_t k = (size_t)(desc->x_k ? desc->x_k : desc->k);
  if (n == 0 || k == 0 || k > MOST_CODES || n > MOST_CODES / k) return NULL;
  void *out = malloc(n * k * (size_t)lpgemm_dtype_bits(type) / 8);
  must(out && lpgemm_unpack_weights(the_handle(), weights, type, out, 0) == LPGEMM_SUCCESS);
  return out;
}

/* The same rows in two pieces are the same bytes. */
static inline void take_pieces(const lpgemm_import_t *import, const lpgemm_weights_info_t *whole) {
  const lpgemm_weight_desc_t *desc = &whole->desc;
  const int64_t cut = desc->group_n ? desc->group_n : 16;
  lpgemm_import_t first = *import, rest = *import;
  lpgemm_weights_t weights = NULL;
  lpgemm_weights_info_t info = {.size = sizeof info};
  if (desc->n <= cut) return;
  first.n1 = cut;
  rest.n0 = cut;
  must(lpgemm_weights_create(the_handle(), desc, NULL, 0, &weights) == LPGEMM_SUCCESS);
  must(lpgemm_import_rows(the_handle(), weights, 0, cut, &rest) == LPGEMM_SUCCESS);
  must(lpgemm_import_rows(the_handle(), weights, 0, 0, &first) == LPGEMM_SUCCESS);
  must(lpgemm_weights_finish(the_handle(), weights) == LPGEMM_SUCCESS);
  must(lpgemm_weights_info(weights, &info) == LPGEMM_SUCCESS && info.payload_hash == whole->payload_hash);
  must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
}

/* Rows and columns that are cut out, above the same columns of all rows, have the codes of the whole. */
static inline void take_slices(const lpgemm_import_t *import, const lpgemm_weights_info_t *whole,
                               const uint8_t *codes) {
  const lpgemm_weight_desc_t *desc = &whole->desc;
  const int64_t n = desc->n, k = desc->k, unit = desc->super_k ? desc->super_k : desc->group_k;
  const int64_t n0 = (int64_t)(whole->payload_hash >> 2 & 0xffff) % n, k0 = unit < k && !desc->columns ? unit : 0;
  lpgemm_import_t parts[2] = {*import, *import};
  lpgemm_weight_desc_t joined = {.size = sizeof joined};
  lpgemm_weights_t weights = NULL;
  parts[0].n0 = n0;
  parts[0].k0 = parts[1].k0 = k0;
  if (!codes || desc->x_k) return;
  must(lpgemm_import_desc(parts, 2, &joined) == LPGEMM_SUCCESS && joined.n == 2 * n - n0 && joined.k == k - k0);
  must(lpgemm_import_weights(the_handle(), parts, 2, NULL, 0, &weights) == LPGEMM_SUCCESS);
  uint8_t *found = unpack(&joined, weights, LPGEMM_U8);
  for (int64_t i = 0; found && i < joined.n; i++) {
    const int64_t row = i < n - n0 ? n0 + i : i - (n - n0);
    must(memcmp(found + i * joined.k, codes + row * k + k0, (size_t)joined.k) == 0);
  }
  free(found);
  must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
}

static inline void take_apart(const lpgemm_import_t *import, size_t *work) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_info_t info = {.size = sizeof info};
  lpgemm_weights_t weights = NULL;
  size_t bytes = 0;
  if (!is_taken(lpgemm_import_desc(import, 1, &desc))) return;
  must(desc.n > 0 && desc.k > 0 && lpgemm_packed_size(&desc, &bytes) == LPGEMM_SUCCESS && bytes > 0);
  if (bytes > MOST_PACKED || bytes > *work) return;
  *work -= bytes;
  if (!is_taken(lpgemm_import_weights(the_handle(), import, 1, NULL, 0, &weights))) return;
  must(lpgemm_weights_info(weights, &info) == LPGEMM_SUCCESS && info.packed_bytes == bytes);
  must(info.desc.n == desc.n && info.desc.k == desc.k && info.desc.type == desc.type);
  uint8_t *codes = unpack(&desc, weights, LPGEMM_U8);
  /* what is slow is done for some, and it depends on the bytes alone for which */
  if (info.payload_hash % 4 == 0) free(unpack(&desc, weights, LPGEMM_F32));
  if (info.payload_hash % 4 == 1) take_pieces(import, &info);
  if (info.payload_hash % 4 == 2) must(lpgemm_validate(info.memory, bytes) == LPGEMM_SUCCESS);
  if (info.payload_hash % 4 == 3) take_slices(import, &info, codes);
  free(codes);
  if (import->format == LPGEMM_FORMAT_GGUF) give_back(weights, import);
  must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
}

/* Takes what it costs from *work. In the file a byte too many would be one of the next tensor: each gets memory of its
 * own, which ends where the tensor does, and is aligned to nothing. */
static inline void take(const lpgemm_import_t *import, size_t *work) {
  enum { MOST = 32 };
  lpgemm_tensor_t tensors[MOST];
  uint8_t *memory[MOST];
  lpgemm_import_t copy = *import;
  size_t cost = A_TRY;
  must(import->count <= MOST);
  for (size_t i = 0; i < import->count; i++) cost += import->tensors[i].bytes;
  if (*work < cost) return;
  *work -= cost;
  for (size_t i = 0; i < import->count; i++) {
    tensors[i] = import->tensors[i];
    must((memory[i] = malloc(tensors[i].bytes + 1)));
    tensors[i].data = memcpy(memory[i] + 1, tensors[i].data, tensors[i].bytes);
  }
  copy.tensors = tensors;
  take_apart(&copy, work);
  for (size_t i = 0; i < import->count; i++) free(memory[i]);
}

/* A matrix of a container, which is packed already. */
static inline void take_blob(const lpgemm_tensor_t *t, size_t *work) {
  lpgemm_weights_t weights = NULL;
  lpgemm_weights_info_t info = {.size = sizeof info};
  if (t->type != LPGEMM_BLOB || t->bytes > *work) return;
  *work -= t->bytes;
  const lpgemm_status_t valid = lpgemm_validate(t->data, t->bytes);
  const int loaded = is_taken(lpgemm_deserialize(the_handle(), t->data, t->bytes, LPGEMM_LOAD_COPY, &weights));
  must(loaded == (valid == LPGEMM_SUCCESS));
  if (!loaded) return;
  must(lpgemm_weights_info(weights, &info) == LPGEMM_SUCCESS);
  free(unpack(&info.desc, weights, LPGEMM_U8));
  must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
}

/* ---- layers ---- */

/* What of a layer only a config says: without one GPTQ, AWQ and pack-quantized would never be imported. */
static inline void take_guesses(lpgemm_file_t file, const char *layer, size_t *work) {
  enum { MOST = 8 };
  static const struct {
    lpgemm_format_t format;
    int32_t bits;
    int64_t group_k;
  } guesses[] = {{LPGEMM_FORMAT_GPTQ, 4, 0},
                 {LPGEMM_FORMAT_GPTQ, 3, 0},
                 {LPGEMM_FORMAT_GPTQ_V2, 0, 32},
                 {LPGEMM_FORMAT_GPTQ_V2, 8, 128},
                 {LPGEMM_FORMAT_AWQ, 4, 0},
                 {LPGEMM_FORMAT_AWQ_GEMV, 4, 64},
                 {LPGEMM_FORMAT_AWQ_GEMV, 4, 128},
                 {LPGEMM_FORMAT_AWQ_GEMV_FAST, 4, 128},
                 {LPGEMM_FORMAT_PACK_QUANTIZED, 0, 0},
                 {LPGEMM_FORMAT_PACK_QUANTIZED, 4, 0},
                 {LPGEMM_FORMAT_PACK_QUANTIZED, 3, 0},
                 {LPGEMM_FORMAT_PACK_QUANTIZED, 8, 0},
                 {LPGEMM_FORMAT_BITNET, 0, 0},
                 {LPGEMM_FORMAT_BITNET_AUTO, 0, 0},
                 {LPGEMM_FORMAT_INT8_FP8, 0, 0},
                 {LPGEMM_FORMAT_NVFP4, 0, 0},
                 {LPGEMM_FORMAT_MXFP, 6, 0}};
  const size_t length = strlen(layer);
  lpgemm_tensor_t tensors[MOST], t;
  lpgemm_import_t import = {.size = sizeof import, .tensors = tensors};
  size_t count = 0;
  if (*work < A_TRY) return;
  must(lpgemm_file_counts(file, &count, NULL) == LPGEMM_SUCCESS);
  for (size_t i = 0; i < count && import.count < MOST; i++) {
    must(lpgemm_file_tensor(file, i, &t) == LPGEMM_SUCCESS);
    if (strncmp(t.name, layer, length) != 0 || t.name[length] != '.') continue;
    t.name += length + 1;
    tensors[import.count++] = t;
  }
  for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++) {
    import.format = guesses[i].format;
    import.bits = guesses[i].bits;
    import.group_k = guesses[i].group_k;
    take(&import, work);
  }
}

#endif
