/* From a description to a plan, and the header in front of the packed sections. */
#include "packed.h"

#include <math.h>

#include "status.h"

/* ---- checking a description ---- */

/* So that counts fit int32 in kernels and no product of two sizes overflows. */
#define MAX_SIZE INT64_C(0x7fffffff)
#define MAX_TOTAL (UINT64_C(1) << 46)

/* Rows share nothing where there is nothing a group. */
static int has_numbers(const lpgemm_weight_desc_t *d) { return d->scale_type != 0 || d->zero_type != 0; }

static int is_sub_code(lpgemm_dtype_t t) {
  return t == LPGEMM_UINT(4) || t == LPGEMM_UINT(6) || t == LPGEMM_I8 || t == LPGEMM_E4M3;
}

static lpgemm_status_t check_sizes(const lpgemm_weight_desc_t *d) {
  LPG_CHECK(d->n >= 0, LPGEMM_INVALID_SIZE, "desc.n is %lld; it must be 0 or more", (long long)d->n);
  LPG_CHECK(d->k >= 0, LPGEMM_INVALID_SIZE, "desc.k is %lld; it must be 0 or more", (long long)d->k);
  LPG_CHECK(d->n <= MAX_SIZE, LPGEMM_SIZE_OVERFLOW, "desc.n is %lld; at most %lld rows fit", (long long)d->n,
            (long long)MAX_SIZE);
  LPG_CHECK(d->k <= MAX_SIZE, LPGEMM_SIZE_OVERFLOW, "desc.k is %lld; at most %lld columns fit", (long long)d->k,
            (long long)MAX_SIZE);
  LPG_CHECK(d->group_k >= 0 && d->group_k % LPG_STEP_K == 0, LPGEMM_INVALID_ARGUMENT,
            "desc.group_k is %lld; it must be a multiple of 16, or 0 for the whole row", (long long)d->group_k);
  LPG_CHECK(d->group_n == 0 || d->group_n == 1 || (d->group_n > 0 && d->group_n % LPG_TILE_ROWS == 0),
            LPGEMM_INVALID_ARGUMENT, "desc.group_n is %lld; it must be a multiple of 16, or 0 for a row each",
            (long long)d->group_n);
  LPG_CHECK(d->group_n <= MAX_SIZE, LPGEMM_SIZE_OVERFLOW,
            "desc.group_n is %lld; %lld is the largest, and n or more means the whole matrix", (long long)d->group_n,
            (long long)(MAX_SIZE / LPG_TILE_ROWS * LPG_TILE_ROWS));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_rows(const lpgemm_weight_desc_t *d) {
  LPG_CHECK(d->experts >= 0 && d->experts <= LPG_MOST_EXPERTS, LPGEMM_INVALID_ARGUMENT,
            "desc.experts is %d; it must be 0 or 1 for one matrix, or up to %d for a stack", d->experts,
            LPG_MOST_EXPERTS);
  LPG_CHECK(d->rows == LPGEMM_ROWS_PLAIN || d->rows == LPGEMM_ROWS_PAIRED, LPGEMM_INVALID_ARGUMENT,
            "desc.rows is %d; it must be LPGEMM_ROWS_PLAIN or LPGEMM_ROWS_PAIRED", (int)d->rows);
  if (d->rows == LPGEMM_ROWS_PLAIN) return LPGEMM_SUCCESS;
  LPG_CHECK(d->n % 2 == 0, LPGEMM_INVALID_SIZE, "desc.n is %lld; with LPGEMM_ROWS_PAIRED it must be even",
            (long long)d->n);
  LPG_CHECK(d->group_n <= 1 || !has_numbers(d) || d->n / 2 % d->group_n == 0, LPGEMM_INVALID_ARGUMENT,
            "desc.n is %lld and desc.group_n %lld; with LPGEMM_ROWS_PAIRED n / 2 must be a multiple of group_n",
            (long long)d->n, (long long)d->group_n);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_columns(const lpgemm_weight_desc_t *d) {
  LPG_CHECK(d->columns == LPGEMM_COLUMNS_PLAIN || d->columns == LPGEMM_COLUMNS_ORDERED, LPGEMM_INVALID_ARGUMENT,
            "desc.columns is %d; it must be LPGEMM_COLUMNS_PLAIN or LPGEMM_COLUMNS_ORDERED", (int)d->columns);
  LPG_CHECK(d->x_k == 0 || d->columns == LPGEMM_COLUMNS_ORDERED, LPGEMM_INVALID_ARGUMENT,
            "desc.x_k is %lld, but desc.columns is LPGEMM_COLUMNS_PLAIN; only an order takes some columns of X",
            (long long)d->x_k);
  LPG_CHECK(d->x_k == 0 || (d->x_k >= d->k && d->x_k <= MAX_SIZE), LPGEMM_INVALID_SIZE,
            "desc.x_k is %lld; it must be desc.k = %lld to %lld, or 0 for desc.k", (long long)d->x_k, (long long)d->k,
            (long long)MAX_SIZE);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_scales(const lpgemm_weight_desc_t *d) {
  lpgemm_dtype_t s = d->scale_type;
  if (d->super_scale_type == 0) {
    LPG_CHECK(s == 0 || lpg_is_real(s) || s == LPGEMM_E8M0 || s == LPGEMM_E4M3, LPGEMM_INVALID_TYPE,
              "desc.scale_type is %s; without super_scale_type it must be f16, bf16, f32, e8m0, e4m3 or none",
              lpgemm_dtype_name(s));
    LPG_CHECK(d->super_k == 0, LPGEMM_INVALID_ARGUMENT, "desc.super_k is %lld, but desc.super_scale_type is none",
              (long long)d->super_k);
    return LPGEMM_SUCCESS;
  }
  LPG_CHECK(lpg_is_real(d->super_scale_type), LPGEMM_INVALID_TYPE,
            "desc.super_scale_type is %s; it must be f16, bf16, f32 or none", lpgemm_dtype_name(d->super_scale_type));
  LPG_CHECK(is_sub_code(s), LPGEMM_INVALID_TYPE,
            "desc.scale_type is %s; with super_scale_type it must be u4, u6, i8 or e4m3", lpgemm_dtype_name(s));
  LPG_CHECK(d->super_k == 0 || (d->group_k > 0 && d->super_k > 0 && d->super_k % d->group_k == 0),
            LPGEMM_INVALID_ARGUMENT,
            "desc.super_k is %lld; it must be a multiple of desc.group_k (%lld), or 0 for the whole row",
            (long long)d->super_k, (long long)d->group_k);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_zeros(const lpgemm_weight_desc_t *d) {
  lpgemm_dtype_t z = d->zero_type;
  switch (d->zero) {
    case LPGEMM_ZERO_NONE:
    case LPGEMM_ZERO_CONSTANT:
      LPG_CHECK(z == 0, LPGEMM_INVALID_ARGUMENT, "desc.zero_type is %s, but desc.zero asks for no zeros a group",
                lpgemm_dtype_name(z));
      break;
    case LPGEMM_ZERO_PER_GROUP:
      LPG_CHECK(z == LPGEMM_U8 || z == LPGEMM_U16 || lpg_is_real(z), LPGEMM_INVALID_TYPE,
                "desc.zero_type is %s; zeros a group must be u8, u16, f16, bf16 or f32", lpgemm_dtype_name(z));
      break;
    case LPGEMM_ZERO_MINIMUM:
      if (d->super_zero_type == 0) {
        LPG_CHECK(lpg_is_real(z), LPGEMM_INVALID_TYPE,
                  "desc.zero_type is %s; minima without super_zero_type must be f16, bf16 or f32",
                  lpgemm_dtype_name(z));
      } else {
        LPG_CHECK(lpg_is_real(d->super_zero_type), LPGEMM_INVALID_TYPE,
                  "desc.super_zero_type is %s; it must be f16, bf16, f32 or none",
                  lpgemm_dtype_name(d->super_zero_type));
        LPG_CHECK(is_sub_code(z), LPGEMM_INVALID_TYPE,
                  "desc.zero_type is %s; minima with super_zero_type must be u4, u6, i8 or e4m3", lpgemm_dtype_name(z));
        LPG_CHECK(
            d->super_scale_type != 0, LPGEMM_INVALID_ARGUMENT,
            "desc.super_zero_type is %s, but desc.super_scale_type is none; two-level minima need two-level scales",
            lpgemm_dtype_name(d->super_zero_type));
      }
      break;
    default: LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "desc.zero is %d; it must be an LPGEMM_ZERO_ value", (int)d->zero);
  }
  LPG_CHECK(d->zero == LPGEMM_ZERO_MINIMUM || d->super_zero_type == 0, LPGEMM_INVALID_ARGUMENT,
            "desc.super_zero_type is %s, but desc.zero is not LPGEMM_ZERO_MINIMUM",
            lpgemm_dtype_name(d->super_zero_type));
  LPG_CHECK(isfinite(d->zero_constant), LPGEMM_INVALID_ARGUMENT, "desc.zero_constant is not finite");
  LPG_CHECK(d->zero == LPGEMM_ZERO_CONSTANT || d->zero_constant == 0.0f, LPGEMM_INVALID_ARGUMENT,
            "desc.zero_constant is %g, but desc.zero is not LPGEMM_ZERO_CONSTANT", (double)d->zero_constant);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_codebook(const lpgemm_weight_desc_t *d) {
  int entries = lpg_kind(d->type) == LPGEMM_KIND_CODEBOOK ? 1 << lpg_bits(d->type) : 0;
  for (int i = 0; i < 16; i++) {
    LPG_CHECK(isfinite(d->codebook[i]), LPGEMM_INVALID_ARGUMENT, "desc.codebook[%d] is not finite", i);
    LPG_CHECK(i < entries || lpg_f32_bits(d->codebook[i]) == 0, LPGEMM_INVALID_ARGUMENT,
              "desc.codebook[%d] is %g, but desc.type %s has %d codebook entries; the others must be 0", i,
              (double)d->codebook[i], lpgemm_dtype_name(d->type), entries);
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t check_desc(const lpgemm_weight_desc_t *d) {
  LPG_CHECK(lpg_is_weight_type(d->type), LPGEMM_INVALID_TYPE,
            "desc.type is %s (0x%x); it must be a weight type of 1 to 8 bits", lpgemm_dtype_name(d->type),
            (unsigned)d->type);
  LPG_TRY(check_sizes(d));
  LPG_TRY(check_rows(d));
  LPG_TRY(check_columns(d));
  LPG_TRY(check_scales(d));
  LPG_TRY(check_zeros(d));
  LPG_TRY(check_codebook(d));
  LPG_CHECK(isfinite(d->global_scale), LPGEMM_INVALID_ARGUMENT, "desc.global_scale is not finite");
  LPG_CHECK(d->row_scales == 0 || d->row_scales == LPGEMM_F32, LPGEMM_INVALID_TYPE,
            "desc.row_scales is %s (0x%x); a factor a row is f32 or none", lpgemm_dtype_name(d->row_scales),
            (unsigned)d->row_scales);
  return LPGEMM_SUCCESS;
}

/* ---- the plan ---- */

static lpg_axis make_axis(int64_t columns, int64_t k, int64_t k_padded) {
  lpg_axis a;
  a.k = columns > 0 && columns < k_padded ? columns : k_padded > 0 ? k_padded : LPG_STEP_K;
  a.count = columns > 0 ? lpg_ceil_div(k, columns) : 1;
  a.padded = lpg_ceil_div(k_padded, a.k);
  if (a.padded < a.count) a.padded = a.count;
  return a;
}

static uint64_t section_bytes(const lpg_packed *packed, lpg_section_id id) {
  uint64_t row_tiles = (uint64_t)packed->row_tiles;
  if (id == LPG_SECTION_CODES) return row_tiles * (uint64_t)packed->k_tiles * (uint64_t)lpg_tile_bytes(packed->bits);
  if (id == LPG_SECTION_ROW_EXPONENTS) return packed->desc.scale_type ? row_tiles * LPG_TILE_ROWS : 0;
  if (id == LPG_SECTION_COLUMN_ORDER) return packed->desc.columns ? (uint64_t)packed->desc.k * 4 : 0;
  if (id == LPG_SECTION_ROW_SCALES) return packed->desc.row_scales ? row_tiles * LPG_TILE_ROWS * 4 : 0;
  lpgemm_dtype_t type = lpg_section_type(&packed->desc, id);
  return type ? (uint64_t)packed->scale_tiles * (uint64_t)lpg_section_axis(packed, id)->padded *
                    (uint64_t)lpg_slot_bytes(type)
              : 0;
}

lpgemm_status_t lpgemm_i_make_packed(const lpgemm_weight_desc_t *desc, lpg_packed *packed) {
  LPG_TRY(check_desc(desc));
  lpg_packed p;
  memset(&p, 0, sizeof p);
  p.desc = *desc;
  p.desc.size = sizeof p.desc;
  if (p.desc.global_scale == 0.0f) p.desc.global_scale = 1.0f;
  if (p.desc.group_n == 1 || !has_numbers(desc)) p.desc.group_n = 0;
  if (p.desc.x_k == p.desc.k) p.desc.x_k = 0;
  if (p.desc.experts == 1) p.desc.experts = 0;
  const int is_paired = desc->rows == LPGEMM_ROWS_PAIRED;
  p.experts = p.desc.experts ? p.desc.experts : 1;
  p.outputs = is_paired ? desc->n / 2 : desc->n;
  p.x_k = p.desc.x_k ? p.desc.x_k : p.desc.k;
  p.bits = lpg_bits(desc->type);
  int tile_k = lpg_tile_k(p.bits);
  p.n_padded = lpg_round_up(p.outputs, is_paired ? LPG_PAIR_ROWS : LPG_TILE_ROWS) * (is_paired ? 2 : 1);
  p.k_padded = lpg_round_up(desc->k, tile_k);
  p.row_tiles = p.n_padded / LPG_TILE_ROWS;
  p.k_tiles = p.k_padded / tile_k;
  p.tiles_a_scale = p.desc.group_n ? p.desc.group_n / (is_paired ? LPG_PAIR_ROWS : LPG_TILE_ROWS) : 1;
  p.scale_tiles = lpg_ceil_div(p.row_tiles, p.tiles_a_scale);
  p.scale_rows = p.desc.group_n ? lpg_ceil_div(desc->n, p.desc.group_n) : desc->n;
  p.group = make_axis(desc->group_k, desc->k, p.k_padded);
  p.super = make_axis(desc->super_k, desc->k, p.k_padded);
  uint64_t offset = LPG_HEADER_BYTES;
  for (int id = 0; id < LPG_SECTIONS; id++) {
    uint64_t bytes = section_bytes(&p, (lpg_section_id)id);
    LPG_CHECK(bytes < MAX_TOTAL && offset < MAX_TOTAL, LPGEMM_SIZE_OVERFLOW,
              "desc.n (%lld) times desc.k (%lld) is too large to pack", (long long)desc->n, (long long)desc->k);
    p.section[id].offset = bytes ? offset : 0;
    p.section[id].bytes = bytes;
    offset = (offset + bytes + LPG_SECTION_ALIGN - 1) / LPG_SECTION_ALIGN * LPG_SECTION_ALIGN;
  }
  p.total_bytes = offset;
  p.stack_bytes = offset * (uint64_t)p.experts;
  LPG_CHECK(p.stack_bytes < MAX_TOTAL, LPGEMM_SIZE_OVERFLOW,
            "desc.experts (%d) of %llu bytes each are too many to pack", desc->experts, (unsigned long long)offset);
  p.values = lpgemm_i_values_of(&p.desc);
  *packed = p;
  return LPGEMM_SUCCESS;
}

/* ---- the header ---- */

static const uint8_t magic[8] = {'L', 'P', 'G', 'M', '\r', '\n', 0x1a, '\n'};

enum { /* byte offsets; FORMAT.md has the same table */
       AT_MAGIC = 0,
       AT_HEADER_BYTES = 8,
       AT_VERSION = 12,
       AT_LAYOUT = 16,
       AT_ROWS = 20,
       AT_TOTAL_BYTES = 24,
       AT_N = 32,
       AT_K = 40,
       AT_GROUP_K = 48,
       AT_SUPER_K = 56,
       AT_TYPE = 64,
       AT_SCALE_TYPE = 68,
       AT_SUPER_SCALE_TYPE = 72,
       AT_ZERO = 76,
       AT_ZERO_TYPE = 80,
       AT_SUPER_ZERO_TYPE = 84,
       AT_ZERO_CONSTANT = 88,
       AT_GLOBAL_SCALE = LPG_AT_GLOBAL_SCALE,
       AT_CODEBOOK = 96,
       AT_SCALE_SPAN = 160,
       AT_ROW_SCALES = 164,
       AT_COLUMNS = 168,
       AT_GROUP_N = 172,
       AT_SECTIONS = 176,
       AT_X_K = 304,
       AT_PAYLOAD_HASH = 496,
       AT_HEADER_HASH = 504
};

static void put32(uint8_t *h, int at, uint32_t v) {
  for (int i = 0; i < 4; i++) h[at + i] = (uint8_t)(v >> 8 * i);
}

static void put64(uint8_t *h, int at, uint64_t v) {
  put32(h, at, (uint32_t)v);
  put32(h, at + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *h, int at) {
  return (uint32_t)h[at] | (uint32_t)h[at + 1] << 8 | (uint32_t)h[at + 2] << 16 | (uint32_t)h[at + 3] << 24;
}

static uint64_t get64(const uint8_t *h, int at) { return (uint64_t)get32(h, at) | (uint64_t)get32(h, at + 4) << 32; }

uint64_t lpgemm_i_hash_part(const uint8_t *data, uint64_t first, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < bytes / 8; i++) {
    uint64_t word;
    memcpy(&word, data + 8 * i, 8);
    sum += lpg_hash_word(word, first / 8 + i);
  }
  return sum;
}

uint64_t lpgemm_i_hash(const uint8_t *data, uint64_t bytes) { return lpgemm_i_hash_part(data, 0, bytes); }

void lpgemm_i_write_header(const lpg_packed *packed, const lpg_content *content, uint8_t *header) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  uint8_t h[LPG_HEADER_BYTES] = {0};
  memcpy(h + AT_MAGIC, magic, sizeof magic);
  put32(h, AT_HEADER_BYTES, LPG_HEADER_BYTES);
  put32(h, AT_VERSION, (uint32_t)lpg_format_version(d));
  put32(h, AT_LAYOUT, LPG_LAYOUT_TILE16);
  put32(h, AT_ROWS, (uint32_t)d->rows);
  put64(h, AT_TOTAL_BYTES, packed->total_bytes);
  put64(h, AT_N, (uint64_t)d->n);
  put64(h, AT_K, (uint64_t)d->k);
  put64(h, AT_GROUP_K, (uint64_t)d->group_k);
  put64(h, AT_SUPER_K, (uint64_t)d->super_k);
  put32(h, AT_TYPE, d->type);
  put32(h, AT_SCALE_TYPE, d->scale_type);
  put32(h, AT_SUPER_SCALE_TYPE, d->super_scale_type);
  put32(h, AT_ZERO, (uint32_t)d->zero);
  put32(h, AT_ZERO_TYPE, d->zero_type);
  put32(h, AT_SUPER_ZERO_TYPE, d->super_zero_type);
  put32(h, AT_ZERO_CONSTANT, lpg_f32_bits(d->zero_constant));
  put32(h, AT_GLOBAL_SCALE, lpg_f32_bits(d->global_scale));
  for (int i = 0; i < 16; i++) put32(h, AT_CODEBOOK + 4 * i, lpg_f32_bits(d->codebook[i]));
  put32(h, AT_SCALE_SPAN, content->scale_span);
  put32(h, AT_ROW_SCALES, d->row_scales);
  put32(h, AT_COLUMNS, (uint32_t)d->columns);
  put32(h, AT_GROUP_N, (uint32_t)d->group_n);
  put64(h, AT_X_K, (uint64_t)d->x_k);
  for (int i = 0; i < LPG_SECTIONS; i++) {
    put64(h, AT_SECTIONS + 16 * i, packed->section[i].offset);
    put64(h, AT_SECTIONS + 16 * i + 8, packed->section[i].bytes);
  }
  put64(h, AT_PAYLOAD_HASH, content->payload_hash);
  put64(h, AT_HEADER_HASH, lpgemm_i_hash(h, AT_HEADER_HASH));
  memcpy(header, h, sizeof h);
}

static void read_desc(const uint8_t *h, lpgemm_weight_desc_t *d) {
  memset(d, 0, sizeof *d);
  d->size = sizeof *d;
  d->n = (int64_t)get64(h, AT_N);
  d->k = (int64_t)get64(h, AT_K);
  d->group_k = (int64_t)get64(h, AT_GROUP_K);
  d->super_k = (int64_t)get64(h, AT_SUPER_K);
  d->type = get32(h, AT_TYPE);
  d->scale_type = get32(h, AT_SCALE_TYPE);
  d->super_scale_type = get32(h, AT_SUPER_SCALE_TYPE);
  d->zero = get32(h, AT_ZERO) <= LPGEMM_ZERO_MINIMUM ? (lpgemm_zero_t)get32(h, AT_ZERO) : LPGEMM_ZERO_NONE;
  d->zero_type = get32(h, AT_ZERO_TYPE);
  d->super_zero_type = get32(h, AT_SUPER_ZERO_TYPE);
  d->zero_constant = lpg_bits_f32(get32(h, AT_ZERO_CONSTANT));
  d->global_scale = lpg_bits_f32(get32(h, AT_GLOBAL_SCALE));
  for (int i = 0; i < 16; i++) d->codebook[i] = lpg_bits_f32(get32(h, AT_CODEBOOK + 4 * i));
  d->row_scales = get32(h, AT_ROW_SCALES);
  d->rows = get32(h, AT_ROWS) ? LPGEMM_ROWS_PAIRED : LPGEMM_ROWS_PLAIN;
  d->columns = get32(h, AT_COLUMNS) ? LPGEMM_COLUMNS_ORDERED : LPGEMM_COLUMNS_PLAIN;
  d->group_n = (int64_t)get32(h, AT_GROUP_N);
  d->x_k = (int64_t)get64(h, AT_X_K);
}

uint64_t lpgemm_i_header_total(const uint8_t *bytes, uint64_t size) {
  return size >= LPG_HEADER_BYTES ? get64(bytes, AT_TOTAL_BYTES) : 0;
}

/* Everything in a header follows from the description, the content and the layout, so it is right exactly if writing it
 * again gives the same bytes. */
lpgemm_status_t lpgemm_i_read_header(const uint8_t *bytes, uint64_t size, lpg_packed *packed, lpg_content *content) {
  LPG_CHECK(size >= LPG_HEADER_BYTES, LPGEMM_CORRUPT_DATA, "size is %llu bytes; a packed matrix has at least %d",
            (unsigned long long)size, LPG_HEADER_BYTES);
  LPG_CHECK(memcmp(bytes, magic, sizeof magic) == 0, LPGEMM_CORRUPT_DATA,
            "the bytes do not start with the magic number of a packed matrix");
  const uint32_t version = get32(bytes, AT_VERSION);
  LPG_CHECK(version >= LPG_FORMAT_PLAIN && version <= LPG_FORMAT_LATEST, LPGEMM_VERSION_MISMATCH,
            "the file has format version %u; this library reads versions %d to %d", (unsigned)version, LPG_FORMAT_PLAIN,
            LPG_FORMAT_LATEST);
  LPG_CHECK(get64(bytes, AT_HEADER_HASH) == lpgemm_i_hash(bytes, AT_HEADER_HASH), LPGEMM_CORRUPT_DATA,
            "the header's checksum is wrong: the file is damaged");
  LPG_CHECK(get32(bytes, AT_LAYOUT) == LPG_LAYOUT_TILE16, LPGEMM_LAYOUT_MISMATCH,
            "the file has layout %u; this library has kernels for layout %d", (unsigned)get32(bytes, AT_LAYOUT),
            LPG_LAYOUT_TILE16);
  LPG_CHECK(get64(bytes, AT_TOTAL_BYTES) == size, LPGEMM_CORRUPT_DATA,
            "the header promises %llu bytes, but there are %llu", (unsigned long long)get64(bytes, AT_TOTAL_BYTES),
            (unsigned long long)size);
  lpgemm_weight_desc_t desc;
  lpg_packed p;
  read_desc(bytes, &desc);
  LPG_CHECK(lpgemm_i_make_packed(&desc, &p) == LPGEMM_SUCCESS, LPGEMM_CORRUPT_DATA,
            "the header describes no legal matrix");
  lpg_content c = {get32(bytes, AT_SCALE_SPAN), get64(bytes, AT_PAYLOAD_HASH)};
  uint8_t expected[LPG_HEADER_BYTES];
  lpgemm_i_write_header(&p, &c, expected);
  LPG_CHECK(c.scale_span <= 255 && memcmp(bytes, expected, sizeof expected) == 0, LPGEMM_CORRUPT_DATA,
            "the header contradicts itself: its sections do not follow from its description");
  *packed = p;
  *content = c;
  return LPGEMM_SUCCESS;
}
