/* GPTQ: streams of codes down the columns of qweight, zeros packed along N, perhaps an order of columns. */
#include "bits.h"
#include "import.h"

enum {
  V1 = 1, /* zeros are stored less one */
  V2 = 2,
  RUN = 64, /* columns that are read at once: for 16 rows or more, whole cache lines of qweight */
  MOST_WORDS = RUN * 8 / 32
};

/* ---- what the tensors say ---- */

static int is_width(int bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

/* From the caller, or from how many words of qzeros the N zeros of a group take. */
static lpgemm_status_t find_bits(const lpgemm_import_t *import, int64_t n, const lpgemm_tensor_t *zeros, int *bits) {
  *bits = import->bits;
  for (int b = 8; *bits == 0 && b >= 2; b--) {
    if (is_width(b) && zeros->dims == 2 && zeros->shape[1] == lpg_ceil_div(n * b, 32)) *bits = b;
  }
  LPG_CHECK(
      is_width(*bits), LPGEMM_NOT_SUPPORTED,
      *bits ? "bits is %d; GPTQ has 2, 3, 4 and 8" : "bits is %d, and qzeros do not say it: set it to 2, 3, 4 or 8",
      *bits);
  LPG_CHECK(*bits != 3 || n % 32 == 0, LPGEMM_INVALID_SIZE, "qweight has N = %lld; 3 bits need a multiple of 32",
            (long long)n);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t find_columns(const lpgemm_tensor_t *qweight, const lpgemm_tensor_t *g_idx, int bits,
                                    int64_t *k) {
  int64_t words = qweight->shape[0], most = words * 32 / bits;
  *k = g_idx ? lpgemm_i_elements(g_idx) : most;
  LPG_CHECK(lpg_ceil_div(*k * bits, 32) == words, LPGEMM_INVALID_SIZE,
            "qweight has %lld rows of words, but %d bits and the %lld columns of g_idx need %lld", (long long)words,
            bits, (long long)*k, (long long)lpg_ceil_div(*k * bits, 32));
  LPG_CHECK(bits != 3 || *k % 32 == 0, LPGEMM_INVALID_SIZE,
            "qweight has %lld rows of words, %lld columns; 3 bits need a multiple of 32 columns", (long long)words,
            (long long)*k);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_gptq(const lpgemm_import_t *import, lpg_part *part, int variant) {
  static const lpgemm_dtype_t words[] = {LPGEMM_I32, LPGEMM_U32, 0}, halves[] = {LPGEMM_F16, LPGEMM_BF16, 0},
                              indices[] = {LPGEMM_I32, LPGEMM_I64, 0};
  const lpgemm_tensor_t *qweight, *qzeros, *scales, *g_idx;
  char shape[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_no_stack(import, "GPTQ"));
  LPG_TRY(lpgemm_i_need_tensor(import, "qweight", words, &qweight));
  LPG_TRY(lpgemm_i_need_tensor(import, "qzeros", words, &qzeros));
  LPG_TRY(lpgemm_i_need_tensor(import, "scales", halves, &scales));
  LPG_TRY(lpgemm_i_may_have_tensor(import, "g_idx", indices, &g_idx));
  LPG_CHECK(qweight->dims == 2, LPGEMM_INVALID_SIZE, "qweight is %s; it must be [K * bits / 32][N]",
            lpgemm_i_shape_text(qweight, shape));
  int bits;
  int64_t n = qweight->shape[1], k;
  LPG_TRY(find_bits(import, n, qzeros, &bits));
  LPG_TRY(find_columns(qweight, g_idx, bits, &k));
  LPG_CHECK(scales->dims == 2 && scales->shape[1] == n, LPGEMM_INVALID_SIZE,
            "scales is %s; it must be [groups][N], and qweight has N = %lld", lpgemm_i_shape_text(scales, shape),
            (long long)n);
  int64_t groups = scales->shape[0];
  LPG_TRY(lpgemm_i_need_matrix(qzeros, groups, lpg_ceil_div(n * bits, 32), "%d bits and N = %lld", bits, (long long)n));
  lpgemm_weight_desc_t *d = &part->desc;
  d->n = n, d->k = k;
  d->type = LPGEMM_UINT(bits);
  d->scale_type = scales->type;
  d->zero = LPGEMM_ZERO_PER_GROUP, d->zero_type = LPGEMM_U8;
  part->codes = qweight, part->scales = scales, part->zeros = qzeros;
  part->variant = variant;
  return lpgemm_i_set_order(import, g_idx, groups, "scales", part);
}

static lpgemm_status_t open_v1(const lpgemm_import_t *import, lpg_part *part) { return open_gptq(import, part, V1); }
static lpgemm_status_t open_v2(const lpgemm_import_t *import, lpg_part *part) { return open_gptq(import, part, V2); }

/* ---- codes ---- */

/* Columns k .. k + count - 1 of some rows. A row's words lie N words apart, so that the lines of a run of columns serve
 * all rows before they leave the cache. */
LPG_ALWAYS_INLINE void read_run(const lpg_part *part, int bits, int64_t row, int64_t rows, int64_t k, int64_t count,
                                uint8_t *codes) {
  const int64_t next = part->desc.n * 4, words = lpg_ceil_div(count * bits, 32);
  const uint8_t *from = part->code_data + k * bits / 32 * next + row * 4;
  for (int64_t i = 0; i < rows; i++) {
    uint32_t word[MOST_WORDS];
    for (int64_t w = 0; w < words; w++) word[w] = lpg_get32(from + w * next + i * 4);
    if (bits == 4 && count == RUN) { /* a word has eight codes: it needs no way through memory */
      for (int w = 0; w < RUN / 8; w++) {
        uint64_t eight = lpg_spread(word[w], 4);
        memcpy(codes + i * part->desc.k + w * 8, &eight, 8);
      }
    } else {
      lpg_expand((const uint8_t *)word, count, bits, codes + i * part->desc.k);
    }
  }
}

LPG_ALWAYS_INLINE void read_rows(const lpg_part *part, int bits, int64_t row, int64_t rows, uint8_t *codes) {
  int64_t k = 0;
  for (; k + RUN <= part->desc.k; k += RUN) read_run(part, bits, row, rows, k, RUN, codes + k);
  if (k < part->desc.k) read_run(part, bits, row, rows, k, part->desc.k - k, codes + k);
}

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  switch (lpg_bits(part->desc.type)) {
    case 2: read_rows(part, 2, row, rows, codes); break;
    case 3: read_rows(part, 3, row, rows, codes); break;
    case 4: read_rows(part, 4, row, rows, codes); break;
    default: read_rows(part, 8, row, rows, codes); break;
  }
}

/* ---- scales and zeros ---- */

/* Of 2, 4 and 8 bits whole words were decremented, so a borrow has run through the fields: whole words go up again. */
static uint8_t zero_at(const lpg_part *part, const uint8_t *line, int bits, int64_t n) {
  if (bits == 3) return (uint8_t)((lpg_field_at(line, 4, n, 3) + (part->variant == V1)) & 7u);
  const uint32_t one_each = bits == 2 ? 0x55555555u : bits == 4 ? 0x11111111u : 0x01010101u;
  uint32_t word = lpg_get32(line + n * bits / 32 * 4);
  if (part->variant == V1) word += one_each;
  return (uint8_t)(word >> n * bits % 32 & ((1u << bits) - 1u));
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const int64_t groups = part->scales->shape[0], n = part->desc.n;
  const int bits = lpg_bits(part->desc.type);
  for (int64_t g = 0; g < groups; g++) {
    const uint8_t *scales = part->scale_data + (g * n + row) * 2;
    const uint8_t *zeros = part->zero_data + g * part->zeros->shape[1] * 4;
    for (int64_t i = 0; i < rows; i++) {
      if (id == LPG_SECTION_SCALES) {
        ((uint16_t *)out)[i * groups + g] = lpg_get16(scales + i * 2);
      } else {
        ((uint8_t *)out)[i * groups + g] = zero_at(part, zeros, bits, row + i);
      }
    }
  }
}

const lpg_reader lpgemm_i_read_gptq = {LPGEMM_FORMAT_GPTQ, "GPTQ", open_v1, read_codes, read_numbers};
const lpg_reader lpgemm_i_read_gptq_v2 = {LPGEMM_FORMAT_GPTQ_V2, "GPTQ v2", open_v2, read_codes, read_numbers};
