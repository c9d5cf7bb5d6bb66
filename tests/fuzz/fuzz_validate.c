/* libFuzzer: hostile blobs. Whatever lpgemm_validate() accepts must load as a view, unpack and multiply without
 * touching a byte that it should not; whatever it refuses must be refused by lpgemm_deserialize() too. */
#include "fuzz.h"
#include "layouts/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Larger matrices than this are only validated: a blob without codes may promise 2^31 rows. */
enum { MAX_SIDE = 4096, ROWS = 2, MOST_EXPERTS = 16 };

/* ---- the target ---- */

static void use(lpgemm_weights_t weights) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  must(lpgemm_weights_info(weights, &info) == LPGEMM_SUCCESS);
  size_t n = (size_t)info.desc.n, k = (size_t)(info.desc.x_k ? info.desc.x_k : info.desc.k);
  const int32_t experts = info.desc.experts > 1 ? info.desc.experts : 1;
  if (n > MAX_SIDE || k > MAX_SIDE || experts > MOST_EXPERTS) return;
  uint16_t *x = malloc(ROWS * k * sizeof *x + 1);
  float *y = malloc(ROWS * n * sizeof *y + 1);
  uint8_t *codes = malloc((size_t)experts * n * k + 1);
  must(x && y && codes);
  for (size_t i = 0; i < ROWS * k; i++) x[i] = (uint16_t)(0x3c00 + i % 64);
  must(lpgemm_unpack_weights(the_handle(), weights, LPGEMM_U8, codes, 0) == LPGEMM_SUCCESS);
  lpgemm_run_args_t args = {.size = sizeof args};
  args.weights = weights;
  args.m = ROWS;
  args.x = x;
  args.x_type = LPGEMM_F16;
  args.y = y;
  args.y_type = LPGEMM_F32;
  if (experts == 1) {
    must(lpgemm_run(the_handle(), &args) == LPGEMM_SUCCESS);
  } else {
    int32_t offsets[MOST_EXPERTS + 1];
    for (int32_t e = 0; e <= experts; e++) offsets[e] = e < experts - 1 ? e % ROWS : ROWS;
    const lpgemm_groups_t groups = {.size = sizeof groups, .offsets = offsets};
    const lpgemm_status_t status = lpgemm_run_grouped(the_handle(), &args, &groups);
    must(status == LPGEMM_SUCCESS || (info.desc.columns && status == LPGEMM_WORKSPACE_TOO_SMALL));
  }
  free(x);
  free(y);
  free(codes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lpgemm_status_t valid = lpgemm_validate(data, size);
  void *aligned = NULL;
  must(posix_memalign(&aligned, LPG_SECTION_ALIGN, size + 1) == 0);
  memcpy(aligned, data, size);
  lpgemm_weights_t weights = NULL;
  lpgemm_status_t loaded = lpgemm_deserialize(the_handle(), aligned, size, LPGEMM_LOAD_VIEW, &weights);
  must((loaded == LPGEMM_SUCCESS) == (valid == LPGEMM_SUCCESS));
  if (loaded == LPGEMM_SUCCESS) {
    use(weights);
    must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
  }
  uint64_t storage[LPGEMM_WEIGHTS_BYTES / 8]; /* the header where the bytes are, or on its own: then of one matrix */
  for (int own = 0; own < (size >= LPGEMM_HEADER_BYTES ? 2 : 1); own++) {
    loaded = lpgemm_weights_from_blob(the_handle(), own ? data : NULL, own ? LPGEMM_HEADER_BYTES : 0, aligned, size,
                                      storage, sizeof storage, &weights);
    must(loaded == LPGEMM_SUCCESS || valid != LPGEMM_SUCCESS || (own && loaded == LPGEMM_INVALID_SIZE));
    if (loaded == LPGEMM_SUCCESS && valid == LPGEMM_SUCCESS) use(weights);
    if (loaded == LPGEMM_SUCCESS) must(lpgemm_weights_destroy(weights) == LPGEMM_SUCCESS);
  }
  free(aligned);
  return 0;
}

/* ---- the mutator: checksums would stop every mutation at the door, so most inputs get theirs right again ---- */

enum { AT_TOTAL_BYTES = 24, AT_PAYLOAD_HASH = 496, AT_HEADER_HASH = 504 }; /* FORMAT.md, section 2 */

static void put64(uint8_t *at, uint64_t value) {
  for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void fix_hashes(uint8_t *data, size_t size) {
  put64(data + AT_TOTAL_BYTES, size);
  put64(data + AT_PAYLOAD_HASH, lpgemm_i_hash(data + LPG_HEADER_BYTES, size - LPG_HEADER_BYTES));
  put64(data + AT_HEADER_HASH, lpgemm_i_hash(data, AT_HEADER_HASH));
}

/* Another legal matrix over the same bytes, which the fuzzer would not find: its sections must follow from its sizes.
 */
static size_t relabel(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  lpg_packed packed;
  lpg_content content;
  if (lpgemm_i_read_header(data, size, &packed, &content) != LPGEMM_SUCCESS) return size;
  lpgemm_weight_desc_t desc = packed.desc;
  switch (seed % 9) {
    case 8: desc.rows = desc.rows ? LPGEMM_ROWS_PLAIN : LPGEMM_ROWS_PAIRED; break;
    case 0: desc.n = (int64_t)(seed >> 8) % 40; break;
    case 1: desc.k = (int64_t)(seed >> 8) % 300; break;
    case 2: desc.group_k = (int64_t)(seed >> 8) % 9 * 16; break;
    case 3: desc.row_scales = desc.row_scales ? 0 : LPGEMM_F32; break;
    case 4: desc.columns = desc.columns ? LPGEMM_COLUMNS_PLAIN : LPGEMM_COLUMNS_ORDERED; break;
    case 5: desc.group_n = (int64_t)(seed >> 8) % 4 * 16; break;
    case 6: desc.x_k = desc.columns ? desc.k + (int64_t)(seed >> 8) % 40 : 0; break;
    default: desc.type = LPGEMM_DTYPE_(1 + (seed >> 8) % 3, 0, 2 + (seed >> 10) % 7); break;
  }
  if (!desc.columns) desc.x_k = 0;
  if (lpgemm_i_make_packed(&desc, &packed) != LPGEMM_SUCCESS || packed.total_bytes > max_size) return size;
  if (packed.total_bytes > size) memset(data + size, 0, packed.total_bytes - size);
  for (int32_t i = 0; desc.columns && i < desc.k; i++) { /* a legal order, which no mutation would find */
    const int32_t at = (int32_t)((i + (int64_t)(seed >> 8) % 64) % packed.x_k);
    memcpy(data + packed.section[LPG_SECTION_COLUMN_ORDER].offset + 4 * i, &at, sizeof at);
  }
  lpgemm_i_write_header(&packed, &content, data);
  return (size_t)packed.total_bytes;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 8 == 0 || size < LPG_HEADER_BYTES) return LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 1) {
    size = relabel(data, size, max_size, seed >> 3);
  } else if (seed % 8 < 5) {
    LLVMFuzzerMutate(data, LPG_HEADER_BYTES, LPG_HEADER_BYTES);
  } else {
    size_t payload = LLVMFuzzerMutate(data + LPG_HEADER_BYTES, size - LPG_HEADER_BYTES, size - LPG_HEADER_BYTES);
    if (seed % 8 == 7) size = LPG_HEADER_BYTES + payload;
  }
  fix_hashes(data, size);
  if (seed % 64 != 33 || 2 * size > max_size) return size;
  memcpy(data + size, data, size); /* a stack of two */
  return 2 * size;
}
