/* AWQ, 4 bits: "gemm" packs along N in an order of its own, "gemv" along K, "gemv_fast" in blocks of 4 rows. */
#include "bits.h"
#include "import.h"

enum { GEMM = 1, GEMV, GEMV_FAST, RUN = 64 };

static const lpgemm_dtype_t words[] = {LPGEMM_I32, LPGEMM_U32, 0}, halves[] = {LPGEMM_F16, LPGEMM_BF16, 0},
                            shorts[] = {LPGEMM_I16, LPGEMM_U16, 0};

/* ---- what the tensors say ---- */

static lpgemm_status_t need_all(const lpgemm_import_t *import, const lpgemm_dtype_t *codes, const lpgemm_dtype_t *zeros,
                                lpg_part *part) {
  char shape[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_no_stack(import, "AWQ"));
  LPG_CHECK(import->bits == 0 || import->bits == 4, LPGEMM_NOT_SUPPORTED, "bits is %d; AWQ has 4", (int)import->bits);
  LPG_TRY(lpgemm_i_need_tensor(import, "qweight", codes, &part->codes));
  LPG_TRY(lpgemm_i_need_tensor(import, "qzeros", zeros, &part->zeros));
  LPG_TRY(lpgemm_i_need_tensor(import, "scales", halves, &part->scales));
  const lpgemm_tensor_t *all[] = {part->codes, part->zeros, part->scales};
  for (int i = 0; i < 3; i++) {
    LPG_CHECK(all[i]->dims == 2, LPGEMM_INVALID_SIZE, "%s is %s; it must have two dimensions", all[i]->name,
              lpgemm_i_shape_text(all[i], shape));
  }
  lpgemm_weight_desc_t *d = &part->desc;
  d->type = LPGEMM_UINT(4);
  d->scale_type = part->scales->type;
  d->zero = LPGEMM_ZERO_PER_GROUP, d->zero_type = LPGEMM_U8;
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t open_gemm(const lpgemm_import_t *import, lpg_part *part) {
  LPG_TRY(need_all(import, words, words, part));
  part->variant = GEMM;
  part->desc.k = part->codes->shape[0], part->desc.n = part->codes->shape[1] * 8;
  int64_t groups = part->scales->shape[0];
  LPG_TRY(lpgemm_i_need_matrix(part->scales, groups, part->desc.n, "words of 8 and N = %lld", (long long)part->desc.n));
  LPG_TRY(lpgemm_i_need_matrix(part->zeros, groups, part->desc.n / 8, "4 bits and N = %lld", (long long)part->desc.n));
  return lpgemm_i_set_group(import, groups, "scales", part);
}

/* Words of zeros that the gemv forms store for a row of `groups`: an even number for groups of 64, and so on. */
static int64_t padded_words(int64_t groups, int64_t group_k) {
  return lpg_round_up(lpg_ceil_div(groups, 8), group_k == 64 ? 2 : group_k == 32 ? 4 : 1);
}

/* The group is what the caller says, or the one size whose padded words are `stored`. */
static lpgemm_status_t set_padded_group(const lpgemm_import_t *import, int64_t stored, lpg_part *part) {
  const int64_t k = part->desc.k, sizes[] = {32, 64, 128, k};
  int64_t found = import->group_k;
  int fit = found != 0;
  for (int i = 0; i < 4 && import->group_k == 0; i++) {
    if (i == 3 ? k <= 128 : sizes[i] > k) continue;
    if (padded_words(lpg_ceil_div(k, sizes[i]), sizes[i]) != stored) continue;
    found = sizes[i];
    fit++;
  }
  LPG_CHECK(fit == 1, LPGEMM_INVALID_ARGUMENT,
            "group_k is 0, and %lld words of zeros a row fit %s size of groups of %lld columns: set group_k",
            (long long)stored, fit ? "more than one" : "no", (long long)k);
  int64_t groups = lpg_ceil_div(k, found), need = padded_words(groups, found);
  LPG_CHECK(need == stored, LPGEMM_INVALID_SIZE,
            "qzeros has %lld words a row, but %lld columns in groups of %lld need %lld: check group_k",
            (long long)stored, (long long)k, (long long)found, (long long)need);
  lpgemm_import_t with_group = *import;
  with_group.group_k = found;
  return lpgemm_i_set_group(&with_group, groups, "scales", part);
}

static lpgemm_status_t open_gemv(const lpgemm_import_t *import, lpg_part *part) {
  LPG_TRY(need_all(import, words, words, part));
  part->variant = GEMV;
  const int64_t n = part->desc.n = part->codes->shape[0], stored = part->zeros->shape[1];
  part->desc.k = part->codes->shape[1] * 8;
  LPG_TRY(lpgemm_i_need_matrix(part->zeros, n, stored, "N = %lld", (long long)n));
  LPG_TRY(lpgemm_i_need_matrix(part->scales, n, stored * 8, "N = %lld and %lld words of zeros", (long long)n,
                               (long long)stored));
  return set_padded_group(import, stored, part);
}

static lpgemm_status_t open_gemv_fast(const lpgemm_import_t *import, lpg_part *part) {
  LPG_TRY(need_all(import, shorts, halves, part));
  part->variant = GEMV_FAST;
  const int64_t n = part->desc.n = part->codes->shape[0] * 4, k = part->desc.k = part->codes->shape[1];
  LPG_CHECK(k % RUN == 0, LPGEMM_INVALID_SIZE, "qweight has %lld columns; gemv_fast needs a multiple of 64",
            (long long)k);
  const int64_t stored = part->scales->shape[0] / 8;
  LPG_TRY(lpgemm_i_need_matrix(part->scales, stored * 8, n, "N = %lld and groups by eights", (long long)n));
  LPG_TRY(lpgemm_i_need_matrix(part->zeros, stored * 8, n, "N = %lld and the scales", (long long)n));
  part->desc.zero = LPGEMM_ZERO_MINIMUM, part->desc.zero_type = part->zeros->type;
  return set_padded_group(import, stored, part);
}

/* ---- codes ---- */

static const uint8_t field_of[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* where column n % 8 lies in a word of "gemm" */

/* Columns of K are rows of words. Words of a run of them are gathered first, so that the shifts run over vectors. */
static void gemm_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int64_t k = part->desc.k, next = part->desc.n / 8 * 4, first = row / 8, last = (row + rows - 1) / 8;
  for (int64_t at = 0; at < k; at += RUN) {
    uint32_t word[LPG_BAND / 8 + 1][RUN];
    const int64_t count = k - at < RUN ? k - at : RUN;
    for (int64_t i = 0; i < count; i++) {
      const uint8_t *from = part->code_data + (at + i) * next;
      for (int64_t w = first; w <= last; w++) word[w - first][i] = lpg_get32(from + w * 4);
    }
    for (int64_t n = row; n < row + rows; n++) {
      const uint32_t *in = word[n / 8 - first];
      uint8_t *to = codes + (n - row) * k + at;
      const int shift = 4 * field_of[n % 8];
      if (count == RUN) {
        for (int i = 0; i < RUN; i++) to[i] = (uint8_t)(in[i] >> shift & 15u);
      } else {
        for (int64_t i = 0; i < count; i++) to[i] = (uint8_t)(in[i] >> shift & 15u);
      }
    }
  }
}

static void gemv_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int64_t k = part->desc.k;
  lpg_expand(part->code_data + row * (k / 2), rows * k, 4, codes);
}

/* 64 columns of 4 rows are 128 bytes, 32 a row; inside 32 columns, nibble 8p + 4q + r is column 8r + 2p + q. */
static void fast_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int64_t k = part->desc.k;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t at = 0; at < k; at += RUN) {
      uint8_t nibbles[RUN], *to = codes + i * k + at;
      lpg_expand(part->code_data + (row + i) / 4 * (k * 2) + at * 2 + (row + i) % 4 * (RUN / 2), RUN, 4, nibbles);
      for (int j = 0; j < RUN; j++) to[j / 32 * 32 + j % 4 * 8 + j / 8 % 4 * 2 + j / 4 % 2] = nibbles[j];
    }
  }
}

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  switch (part->variant) {
    case GEMM: gemm_codes(part, row, rows, codes); break;
    case GEMV: gemv_codes(part, row, rows, codes); break;
    default: fast_codes(part, row, rows, codes); break;
  }
}

/* ---- scales and zeros ---- */

static uint8_t zero_at(const lpg_part *part, int64_t n, int64_t g) {
  if (part->variant == GEMM) {
    return (uint8_t)(lpg_get32(part->zero_data + (g * part->desc.n + n) / 8 * 4) >> 4 * field_of[n % 8] & 15u);
  }
  return (uint8_t)lpg_field_at(part->zero_data + n * part->zeros->shape[1] * 4, 4, g, 4);
}

static void read_numbers(const lpg_part *part, lpg_section_id id, int64_t row, int64_t rows, void *out) {
  const int64_t groups = part->desc.group_k ? lpg_ceil_div(part->desc.k, part->desc.group_k) : 1;
  const uint8_t *halves_of = id == LPG_SECTION_SCALES ? part->scale_data : part->zero_data;
  for (int64_t g = 0; g < groups; g++) {
    for (int64_t i = 0, n = row; i < rows; i++, n++) {
      if (id == LPG_SECTION_SCALES || part->variant == GEMV_FAST) {
        int64_t at = part->variant == GEMV ? n * part->scales->shape[1] + g : g * part->desc.n + n;
        ((uint16_t *)out)[i * groups + g] = lpg_get16(halves_of + at * 2);
      } else {
        ((uint8_t *)out)[i * groups + g] = zero_at(part, n, g);
      }
    }
  }
}

const lpg_reader lpgemm_i_read_awq = {LPGEMM_FORMAT_AWQ, "AWQ", open_gemm, read_codes, read_numbers};
const lpg_reader lpgemm_i_read_awq_gemv = {LPGEMM_FORMAT_AWQ_GEMV, "AWQ gemv", open_gemv, read_codes, read_numbers};
const lpg_reader lpgemm_i_read_awq_gemv_fast = {LPGEMM_FORMAT_AWQ_GEMV_FAST, "AWQ gemv_fast", open_gemv_fast,
                                                read_codes, read_numbers};
