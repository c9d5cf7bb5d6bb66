#include "format_reader.h"

#include <math.h>
#include <string.h>

/* ---- little-endian numbers ---- */

static uint64_t load(const uint8_t *at, int count) {
  uint64_t v = 0;
  for (int i = count - 1; i >= 0; i--) v = v << 8 | at[i];
  return v;
}

static uint32_t u32(const uint8_t *at) { return (uint32_t)load(at, 4); }

static float f32_of(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

uint64_t format_hash(const uint8_t *bytes, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count / 8; i++) {
    uint64_t h = load(bytes + 8 * i, 8) ^ (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    sum += h ^ h >> 32;
  }
  return sum;
}

/* ---- section 1: types ---- */

enum { F16 = 0x6050a, BF16 = 0x60807, F32 = 0x60817, E8M0 = 0x70800, E4M3 = 0x50403, E5M2 = 0x50502 };
enum { U4 = 0x10004, U6 = 0x10006, U8 = 0x10008, U16 = 0x10010, I8 = 0x20008 };

static int type_bits(uint32_t type) {
  int kind = (int)(type >> 16), a = (int)(type >> 8 & 255), b = (int)(type & 255);
  switch (kind) {
    case 1: return a == 0 && ((b >= 1 && b <= 8) || b == 16) ? b : 0;
    case 2: return a == 0 && b >= 2 && b <= 8 ? b : 0;
    case 3: return a == 0 && b >= 1 && b <= 8 ? b : 0;
    case 4: return a == 0 && b >= 1 && b <= 4 ? b : 0;
    case 5: return a >= 1 && 1 + a + b >= 3 && 1 + a + b <= 8 ? 1 + a + b : 0;
    case 6: return type == F16 || type == BF16 ? 16 : type == F32 ? 32 : 0;
    case 7: return type == E8M0 ? 8 : 0;
    default: return 0;
  }
}

static int is_weight_type(uint32_t type) { return type >> 16 <= 5 && type_bits(type) >= 1 && type_bits(type) <= 8; }
static int is_real(uint32_t type) { return type == F16 || type == BF16 || type == F32; }
static int is_sub_code(uint32_t type) { return type == U4 || type == U6 || type == I8 || type == E4M3; }
static int value_bytes(uint32_t type) { return (type_bits(type) + 7) / 8; }

static double float_value(uint32_t code, int ebits, int mbits, int ieee) {
  double sign = code >> (ebits + mbits) & 1 ? -1.0 : 1.0;
  int e = (int)(code >> mbits & ((1u << ebits) - 1)), bias = (1 << (ebits - 1)) - 1;
  double m = ldexp((double)(code & ((1u << mbits) - 1)), -mbits);
  if (ieee && e == (1 << ebits) - 1) return m > 0.0 ? (double)NAN : sign * (double)INFINITY;
  return e == 0 ? sign * ldexp(m, 1 - bias) : sign * ldexp(1.0 + m, e - bias);
}

static double code_value(const format_reader *r, uint32_t type, uint32_t code) {
  int bits = type_bits(type), a = (int)(type >> 8 & 255), b = (int)(type & 255);
  switch (type >> 16) {
    case 1: return code;
    case 2: return (double)code - (double)(code >> (bits - 1) << bits);
    case 3: return 2.0 * code - (double)((1 << bits) - 1);
    case 4: return (double)r->codebook[code];
    case 5:
      if (type == E4M3 && (code & 0x7f) == 0x7f) return (double)NAN;
      return float_value(code, a, b, type == E5M2);
    case 6: return type == F32 ? (double)f32_of(code) : float_value(code, a, b, 1);
    default: return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
  }
}

/* ---- section 2: the header ---- */

static const char *check_types(const format_reader *r) {
  uint32_t s = r->scale_type, z = r->zero_type;
  if (!is_weight_type(r->type)) return "type";
  if (r->super_scale_type == 0) {
    if (s != 0 && !is_real(s) && s != E8M0 && s != E4M3) return "scale_type";
    if (r->super_k != 0) return "super_k without super scales";
  } else {
    if (!is_real(r->super_scale_type)) return "super_scale_type";
    if (!is_sub_code(s)) return "scale_type of two levels";
  }
  switch (r->zero) {
    case 0:
    case 1:
      if (z != 0) return "zero_type without zeros";
      break;
    case 2:
      if (z != U8 && z != U16 && !is_real(z)) return "zero_type";
      break;
    case 3:
      if (r->super_zero_type == 0 ? !is_real(z) : !is_sub_code(z)) return "zero_type of minima";
      break;
    default: return "zero";
  }
  if (r->super_zero_type != 0 && (!is_real(r->super_zero_type) || r->zero != 3 || r->super_scale_type == 0)) {
    return "super_zero_type";
  }
  return NULL;
}

static const char *check_numbers(const format_reader *r) {
  const int64_t most = INT64_C(0x7fffffff);
  if (r->n < 0 || r->n > most || r->k < 0 || r->k > most) return "n or k";
  if (r->group_k < 0 || r->group_k % 16 != 0) return "group_k";
  if (r->super_k < 0 || (r->super_k > 0 && (r->group_k == 0 || r->super_k % r->group_k != 0))) return "super_k";
  if (!isfinite(r->zero_constant) || (r->zero != 1 && r->zero_constant != 0.0f)) return "zero_constant";
  if (!isfinite(r->global_scale) || r->global_scale == 0.0f) return "global_scale";
  int entries = r->type >> 16 == 4 ? 1 << type_bits(r->type) : 0;
  for (int i = 0; i < 16; i++) {
    if (!isfinite(r->codebook[i])) return "codebook";
    if (i >= entries && u32(r->bytes + 96 + 4 * i) != 0) return "codebook beyond its entries";
  }
  if (r->scale_span > 255) return "scale_span";
  if (r->row_scales != 0 && r->row_scales != F32) return "row_scales";
  if (r->rows > 1) return "rows";
  if (r->rows == 1 && r->n % 2 != 0) return "an odd number of rows in pairs";
  if (r->rows == 1 && r->group_n != 0 && r->n / 2 % r->group_n != 0) return "group_n of pairs";
  if (r->columns > 1) return "columns";
  if (r->group_n % 16 != 0 || r->group_n > most) return "group_n";
  if (r->group_n != 0 && r->scale_type == 0 && r->zero_type == 0) return "group_n without scales and zeros";
  if (r->x_k != 0 && (r->columns == 0 || r->x_k <= r->k || r->x_k > most)) return "x_k";
  return NULL;
}

static int all_zero(const uint8_t *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (bytes[i] != 0) return 0;
  }
  return 1;
}

static void read_fields(format_reader *r) {
  const uint8_t *h = r->bytes;
  r->n = (int64_t)load(h + 32, 8);
  r->k = (int64_t)load(h + 40, 8);
  r->group_k = (int64_t)load(h + 48, 8);
  r->super_k = (int64_t)load(h + 56, 8);
  r->type = u32(h + 64);
  r->scale_type = u32(h + 68);
  r->super_scale_type = u32(h + 72);
  r->zero = u32(h + 76);
  r->zero_type = u32(h + 80);
  r->super_zero_type = u32(h + 84);
  r->zero_constant = f32_of(u32(h + 88));
  r->global_scale = f32_of(u32(h + 92));
  for (int i = 0; i < 16; i++) r->codebook[i] = f32_of(u32(h + 96 + 4 * i));
  r->scale_span = u32(h + 160);
  r->rows = u32(h + 20);
  r->row_scales = u32(h + 164);
  r->columns = u32(h + 168);
  r->group_n = (int64_t)u32(h + 172);
  r->x_k = (int64_t)load(h + 304, 8);
}

/* ---- sections 3 and 4: sizes ---- */

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static format_axis axis_of(const format_reader *r, int64_t columns) {
  format_axis a;
  a.span = columns > 0 && columns < r->k_padded ? columns : r->k_padded > 0 ? r->k_padded : 16;
  a.count = columns > 0 ? ceil_div(r->k, columns) : 1;
  a.padded = ceil_div(r->k_padded, a.span);
  if (a.padded < a.count) a.padded = a.count;
  return a;
}

static uint32_t section_type(const format_reader *r, int section) {
  const uint32_t types[FORMAT_SECTIONS] = {
      r->type, r->scale_type, r->zero_type, r->super_scale_type, r->super_zero_type, 0, 0, 0};
  return types[section];
}

static const format_axis *section_axis(const format_reader *r, int section) {
  return section == FORMAT_SCALES || section == FORMAT_ZEROS ? &r->group : &r->super;
}

static int64_t slot_bytes(uint32_t type) { return type == U4 ? 8 : 16 * value_bytes(type); }

static void compute_sizes(format_reader *r) {
  static const int16_t tile_k[9] = {0, 256, 128, 256, 64, 256, 128, 256, 32};
  static const int8_t unit_words[9] = {0, 1, 1, 3, 1, 5, 6, 7, 1};
  r->bits = type_bits(r->type);
  r->tile_k = tile_k[r->bits];
  r->unit_words = unit_words[r->bits];
  r->unit_codes = 32 * r->unit_words / r->bits;
  r->tile_bytes = 2 * r->tile_k * r->bits;
  r->row_tiles = r->rows ? ceil_div(r->n / 2, 8) : ceil_div(r->n, 16);
  r->n_padded = 16 * r->row_tiles;
  r->k_tiles = ceil_div(r->k, r->tile_k);
  r->k_padded = r->tile_k * r->k_tiles;
  r->tiles_a_scale = r->group_n ? r->group_n / (r->rows ? 8 : 16) : 1;
  r->scale_tiles = ceil_div(r->row_tiles, r->tiles_a_scale);
  r->group = axis_of(r, r->group_k);
  r->super = axis_of(r, r->super_k);
}

static double section_size(const format_reader *r, int section) {
  if (section == FORMAT_CODES) return (double)r->row_tiles * (double)r->k_tiles * (double)r->tile_bytes;
  if (section == FORMAT_ROW_EXPONENTS) return r->scale_type ? (double)r->n_padded : 0.0;
  if (section == FORMAT_COLUMN_ORDER) return r->columns ? 4.0 * (double)r->k : 0.0;
  if (section == FORMAT_ROW_SCALES) return r->row_scales ? 4.0 * (double)r->n_padded : 0.0;
  uint32_t type = section_type(r, section);
  return type ? (double)r->scale_tiles * (double)section_axis(r, section)->padded * (double)slot_bytes(type) : 0.0;
}

static const char *check_sections(format_reader *r) {
  uint64_t end = 512, at = 512;
  for (int i = 0; i < FORMAT_SECTIONS; i++) {
    double size = section_size(r, i); /* a double, so that nothing overflows before it is refused */
    if (size >= ldexp(1.0, 46)) return "too large";
    r->length[i] = (uint64_t)size;
    r->offset[i] = r->length[i] ? at : 0;
    if (load(r->bytes + 176 + 16 * i, 8) != r->offset[i]) return "offset of a section";
    if (load(r->bytes + 184 + 16 * i, 8) != r->length[i]) return "size of a section";
    if (r->length[i] == 0) continue;
    end = at + r->length[i];
    at = (end + 255) / 256 * 256;
  }
  if (r->size != at) return "sections do not add up to the size";
  return NULL;
}

static const char *check_gaps(const format_reader *r) {
  uint64_t at = 512;
  for (int i = 0; i < FORMAT_SECTIONS; i++) {
    if (r->length[i] == 0) continue;
    if (!all_zero(r->bytes + at, r->offset[i] - at)) return "bytes between sections";
    at = r->offset[i] + r->length[i];
  }
  return all_zero(r->bytes + at, r->size - at) ? NULL : "bytes after the last section";
}

/* ---- section 5: codes ---- */

/* The bits [low, low + count) of the half word `x` words into the unit that starts at word `first` of a lane's row. */
typedef struct position {
  const uint8_t *tile;
  int64_t lane, first, row_half;
  int odd;
} position;

static uint32_t half_bits(const position *at, int64_t x, int64_t low, int count) {
  int64_t w = 2 * (at->first + x) + at->row_half;
  uint32_t word = u32(at->tile + ((w / 4) * 32 + at->lane) * 16 + (w % 4) * 4);
  return word >> (low + 16 * at->odd) & ((1u << count) - 1);
}

/* Section 5.1: the stored code of pair p. */
static uint32_t pair_code(const position *at, int bits, int64_t p) {
  uint32_t code = 0;
  switch (bits) {
    case 3:
      if (p < 15) return half_bits(at, p / 5, 3 * (p % 5), 3);
      for (int i = 0; i < 3; i++) code |= half_bits(at, i, 15, 1) << i;
      return code;
    case 5:
      if (p < 15) return half_bits(at, p / 3, 5 * (p % 3), 5);
      for (int i = 0; i < 5; i++) code |= half_bits(at, i, 15, 1) << i;
      return code;
    case 6:
      if (p < 12) return half_bits(at, p / 2, 4 + 6 * (p % 2), 6);
      if (p == 12) return half_bits(at, 0, 0, 4) | half_bits(at, 2, 0, 2) << 4;
      if (p == 13) return half_bits(at, 1, 0, 4) | half_bits(at, 2, 2, 2) << 4;
      if (p == 14) return half_bits(at, 3, 0, 4) | half_bits(at, 5, 0, 2) << 4;
      return half_bits(at, 4, 0, 4) | half_bits(at, 5, 2, 2) << 4;
    case 7:
      if (p < 14) return half_bits(at, p / 2, 2 + 7 * (p % 2), 7);
      for (int i = 0; i < 3; i++) code |= half_bits(at, (p == 14 ? 0 : 3) + i, 0, 2) << 2 * i;
      return code | half_bits(at, 6, p == 14 ? 0 : 1, 1) << 6;
    default: return half_bits(at, 0, bits * (p / 2) + 8 * (p % 2), bits);
  }
}

/* For any row and column of the padded matrix. */
static uint32_t stored_code(const format_reader *r, int64_t n, int64_t k) {
  int64_t row = n % 16, c = k % r->tile_k;
  int64_t pair = 2 * (c / 16) + c % 16 / 8, pairs = r->unit_codes / 2;
  position at;
  at.tile = r->bytes + r->offset[FORMAT_CODES] + ((n / 16) * r->k_tiles + k / r->tile_k) * r->tile_bytes;
  at.lane = 4 * (row % 8) + c % 8 / 2;
  at.first = pair / pairs * r->unit_words;
  at.row_half = row / 8;
  at.odd = (int)(c % 2);
  return pair_code(&at, r->bits, pair % pairs);
}

uint32_t format_code(const format_reader *r, int64_t n, int64_t k) {
  uint32_t flip = r->type >> 16 == 2 ? 1u << (r->bits - 1) : 0; /* section 6 */
  return stored_code(r, n, k) ^ flip;
}

/* ---- sections 7 to 9: scales and what follows from them ---- */

uint32_t format_bits(const format_reader *r, int section, int64_t n, int64_t j) {
  uint32_t type = section_type(r, section);
  int64_t block = (n / 16 / r->tiles_a_scale) * section_axis(r, section)->padded + j;
  const uint8_t *at = r->bytes + r->offset[section] + block * slot_bytes(type);
  if (type == U4) return (uint32_t)at[n % 8] >> (n % 16 < 8 ? 0 : 4) & 15u;
  int64_t slot = 2 * (n % 8) + n % 16 / 8;
  return (uint32_t)load(at + slot * value_bytes(type), value_bytes(type));
}

double format_value(const format_reader *r, int section, int64_t n, int64_t j) {
  return code_value(r, section_type(r, section), format_bits(r, section, n, j));
}

int64_t format_column(const format_reader *r, int64_t k) {
  return r->columns ? (int64_t)u32(r->bytes + r->offset[FORMAT_COLUMN_ORDER] + 4 * k) : k;
}

double format_row_scale(const format_reader *r, int64_t n) {
  return r->row_scales ? (double)f32_of(u32(r->bytes + r->offset[FORMAT_ROW_SCALES] + 4 * n)) : 1.0;
}

int format_row_exponent(const format_reader *r, int64_t n) {
  int e = r->bytes[r->offset[FORMAT_ROW_EXPONENTS] + (uint64_t)n];
  return e < 128 ? e : e - 256;
}

double format_weight(const format_reader *r, int64_t n, int64_t k) {
  int64_t j = k / r->group.span, super_j = k / r->super.span;
  double v = code_value(r, r->type, format_code(r, n, k)), scale = 1.0, global = (double)r->global_scale;
  if (r->scale_type) scale = format_value(r, FORMAT_SCALES, n, j);
  if (r->super_scale_type) scale *= format_value(r, FORMAT_SUPER_SCALES, n, super_j);
  if (r->zero == 3) {
    double minimum = format_value(r, FORMAT_ZEROS, n, j);
    if (r->super_zero_type) minimum *= format_value(r, FORMAT_SUPER_ZEROS, n, super_j);
    return (v * scale + minimum) * global * format_row_scale(r, n);
  }
  double zero = r->zero == 1 ? (double)r->zero_constant : r->zero == 2 ? format_value(r, FORMAT_ZEROS, n, j) : 0.0;
  return (v - zero) * scale * global * format_row_scale(r, n);
}

/* ---- section 2.1: pairs ---- */

int64_t format_row(const format_reader *r, int64_t n) {
  if (!r->rows) return n;
  const int64_t outputs = r->n / 2, i = n < outputs ? n : n - outputs;
  return 16 * (i / 8) + i % 8 + (n < outputs ? 0 : 8);
}

/* Whether a packed row is one of the matrix. */
static int is_row(const format_reader *r, int64_t row) {
  return r->rows ? 8 * (row / 16) + row % 8 < r->n / 2 : row < r->n;
}

static const char *check_exponents(const format_reader *r) {
  int64_t span = 0;
  int beyond = 0; /* a scale that is not finite, or a row below 2^-128 */
  for (int64_t i = 0; i < r->n; i++) {
    const int64_t n = format_row(r, i);
    int64_t largest = INT64_MIN, smallest = INT64_MAX;
    for (int64_t j = 0; j < r->group.count; j++) {
      volatile float s = (float)format_value(r, FORMAT_SCALES, n, j); /* volatile: rounded to fp32 by every compiler */
      if (r->super_scale_type) {
        s = s * (float)format_value(r, FORMAT_SUPER_SCALES, n, j * r->group.span / r->super.span);
      }
      if (!isfinite(s)) beyond = 1;
      if (!isfinite(s) || s == 0.0f) continue;
      int64_t e = ilogb((double)s);
      if (e > largest) largest = e;
      if (e < smallest) smallest = e;
    }
    int64_t stored = largest;
    if (smallest == INT64_MAX) {
      stored = 0;
    } else {
      if (largest - smallest > span) span = largest - smallest;
      if (largest < -128) {
        beyond = 1;
        stored = -128;
      }
    }
    if (format_row_exponent(r, n) != stored) return "a row exponent";
  }
  if (beyond || span > 255) span = 255;
  return r->scale_span == span ? NULL : "scale_span";
}

/* Section 7: what the numbers of a section may be. */
static uint32_t largest_bits(const format_reader *r, int section) {
  uint32_t type = section_type(r, section);
  if (type == U6) return 63;
  return type == U8 || type == U16 ? 1u << r->bits : UINT32_MAX;
}

/* The padding of section 4 and the ranges of section 7. */
static const char *check_padding(const format_reader *r) {
  for (int64_t n = 0; n < r->n_padded; n++) {
    const int real_row = is_row(r, n);
    for (int64_t k = real_row ? r->k : 0; k < r->k_padded; k++) {
      if (stored_code(r, n, k) != 0) return "codes of the padding";
    }
    for (int section = FORMAT_SCALES; section <= FORMAT_SUPER_ZEROS; section++) {
      if (r->length[section] == 0) continue;
      const format_axis *axis = section_axis(r, section);
      for (int64_t j = 0; j < axis->padded; j++) {
        uint32_t value = format_bits(r, section, n, j);
        int is_real = (real_row || r->group_n) && j < axis->count;
        if (value > (is_real ? largest_bits(r, section) : 0)) return "a value beyond its range";
        int64_t together = r->rows ? 8 : 16;
        if (r->group_n && value != format_bits(r, section, n / together * together, j))
          return "rows that do not share a value";
      }
    }
    if (!real_row && r->length[FORMAT_ROW_SCALES] && u32(r->bytes + r->offset[FORMAT_ROW_SCALES] + 4 * n) != 0) {
      return "padding row scales";
    }
    if (!real_row && r->length[FORMAT_ROW_EXPONENTS] && format_row_exponent(r, n) != 0) return "padding exponents";
  }
  return NULL;
}

/* Section 7.2. Matrices of tests are small: every pair is compared. */
static const char *check_order(const format_reader *r) {
  const int64_t x_k = r->x_k ? r->x_k : r->k;
  for (int64_t i = 0; i < r->k && r->columns; i++) {
    if (format_column(r, i) >= x_k) return "an entry of the order beyond x_k";
    for (int64_t j = 0; j < i; j++) {
      if (format_column(r, i) == format_column(r, j)) return "an entry of the order twice";
    }
  }
  return NULL;
}

/* ---- section 10: what a reader refuses ---- */

#define REFUSE(call)                     \
  do {                                   \
    const char *why_not = (call);        \
    if (why_not != NULL) return why_not; \
  } while (0)

const char *format_open(format_reader *r, const uint8_t *bytes, uint64_t size) {
  static const uint8_t magic[8] = {0x4c, 0x50, 0x47, 0x4d, 0x0d, 0x0a, 0x1a, 0x0a};
  memset(r, 0, sizeof *r);
  r->bytes = bytes;
  r->size = size;
  if (size < 512) return "fewer than 512 bytes";
  if (memcmp(bytes, magic, 8) != 0) return "magic";
  if (u32(bytes + 12) != 1 && u32(bytes + 12) != 2) return "format version";
  if (load(bytes + 504, 8) != format_hash(bytes, 504)) return "header hash";
  if (u32(bytes + 8) != 512) return "header bytes";
  if (u32(bytes + 16) != 1) return "layout";
  if (load(bytes + 24, 8) != size) return "total bytes";
  if (!all_zero(bytes + 312, 184)) return "unnamed bytes";
  const int is_plain = all_zero(bytes + 20, 4) && all_zero(bytes + 164, 12) && all_zero(bytes + 304, 8);
  if ((u32(bytes + 12) == 1) != is_plain) return "another version";
  read_fields(r);
  REFUSE(check_types(r));
  REFUSE(check_numbers(r));
  compute_sizes(r);
  REFUSE(check_sections(r));
  if (load(bytes + 496, 8) != format_hash(bytes + 512, size - 512)) return "payload hash";
  REFUSE(check_gaps(r));
  REFUSE(check_padding(r));
  REFUSE(check_order(r));
  if (r->scale_type != 0) return check_exponents(r);
  return r->scale_span == 0 ? NULL : "scale_span without scales";
}

/* ---- section 11: stacks ---- */

int64_t format_stack(const uint8_t *bytes, uint64_t size, const char **wrong) {
  *wrong = "no experts of one size";
  const uint64_t one = size < 512 ? 0 : load(bytes + 24, 8);
  if (one < 512 || size % one != 0 || size / one > 4096) return 0;
  for (uint64_t e = 0; e < size / one; e++) {
    const uint8_t *blob = bytes + e * one;
    format_reader r;
    *wrong = format_open(&r, blob, one);
    if (*wrong) return 0;
    *wrong = "headers differ";
    if (memcmp(blob, bytes, 92) != 0 || memcmp(blob + 96, bytes + 96, 64) != 0) return 0;
    if (memcmp(blob + 164, bytes + 164, 496 - 164) != 0) return 0;
  }
  *wrong = NULL;
  return (int64_t)(size / one);
}
