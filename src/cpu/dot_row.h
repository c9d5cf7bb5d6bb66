/* One row of X by codes as they lie. Part of dot.c.
 *
 * A panel of bytes pays where several rows of X meet it. A single row meets the packed form itself, 512 bytes of which
 * are a strip
 *
 *     strip[g][t][w][2]     words w of the lanes (g, t), of the rows g and g + 8
 *
 * After a shift and a mask each word has four codes, a quad of step `w * fields + field` of the strip. Widths that fill
 * no word alone have two units a chunk, of eight steps: a vector takes its words w from unit w. So it is X that is
 * brought into this order, and scales and zeros, four words for a g. Sums stay apart, lane by lane, until a tile is
 * done. That is another order than that of multiply_rows(): calls whose bits must not depend on M have panels. */
#ifndef LPG_CPU_DOT_ROW_H
#define LPG_CPU_DOT_ROW_H

#include "dot_groups.h"

enum {
  LPG_DOT_STRIP = 512,
  LPG_DOT_EIGHTS = LPG_TILE_ROWS / 2, /* g */
  LPG_DOT_VECTORS = 8,                /* of X, in a chunk: strips times fields, for all widths */
  LPG_DOT_AHEAD = 8192,               /* bytes of codes that are asked for before their time, ... */
  LPG_DOT_CHUNKS_AHEAD = 4            /* ... and chunks of scales */
};

/* The row of X in a chunk. A span is one or two fields of a strip, whose sums are scaled together. */
typedef struct dot_lanes {
  _Alignas(64) int8_t x[LPG_DOT_VECTORS][4 * LPG_TILE_ROWS]; /* of each field [t][w][2][4] */
  uint32_t start[LPG_DOT_VECTORS][LPG_TILE_ROWS];            /* of each span: what its sums begin with, */
  float step[LPG_DOT_VECTORS][2];                            /* and the step of X, for each w */
} dot_lanes;

/* What a tile has for it. */
typedef struct dot_row {
  _Alignas(64) uint32_t less[LPG_DOT_VECTORS][2 * LPG_TILE_ROWS]; /* of each span [g][w][2]: zeros, times the start */
  uint32_t scale[LPG_DOT_VECTORS][2 * LPG_TILE_ROWS];             /* of each span, as fp32, with that of X */
  uint32_t folds[LPG_DOT_VECTORS][2 * LPG_TILE_ROWS];             /* of each field */
  float sums[LPG_DOT_EIGHTS][LPG_TILE_ROWS];                      /* of all chunks */
} dot_row;

/* Fields of a strip; of all strips of a chunk where units have several words. */
INLINE int fields_of(int bits) { return lpg_is_pow2_width(bits) ? 8 / bits : 8; }

/* The step of a chunk whose quads are in words w of a field, fields counted from the chunk's first one. */
INLINE int step_of_field(int bits, int field, int w) {
  const int fields = fields_of(bits);
  return (field / fields * 2 + w) * fields + field % fields;
}

/* What words w of fields and of spans are of: a step, a unit and a block of X. */
typedef struct dot_strips {
  int fields_a_span, spans;
  int units_a_group; /* as a power of two; for are_plain() */
  uint8_t step[LPG_DOT_VECTORS][2], unit[LPG_DOT_VECTORS][2], block[LPG_DOT_VECTORS][2];
  uint16_t scale[LPG_DOT_VECTORS][2]; /* where their scales are in a chunk's, for are_plain() */
} dot_strips;

static dot_strips find_strips(int bits, int unit, const lpg_axis *group, int scale_bytes) {
  dot_strips of = {.fields_a_span = unit == LPG_STEP_K || fields_of(bits) == 1 ? 1 : 2};
  of.spans = LPG_DOT_VECTORS / of.fields_a_span;
  const int64_t group_k = group->count == 1 || group->k > LPG_DOT_K ? LPG_DOT_K : group->k;
  while (unit << of.units_a_group < group_k) of.units_a_group++;
  for (int i = 0; i < 2 * LPG_DOT_VECTORS; i++) of.step[i / 2][i % 2] = (uint8_t)step_of_field(bits, i / 2, i % 2);
  for (int i = 0; i < 2 * of.spans; i++) {
    const int column = of.step[i / 2 * of.fields_a_span][i % 2] * LPG_STEP_K;
    of.unit[i / 2][i % 2] = (uint8_t)(column / unit);
    of.block[i / 2][i % 2] = (uint8_t)(column / LPG_DOT_BLOCK);
    of.scale[i / 2][i % 2] = (uint16_t)((column / unit >> of.units_a_group) * scale_bytes);
  }
  return of;
}

/* Scales are those of the first digit; sums are in units of the last one. */
INLINE float unit_of_digits(int digits) { return digits == 1 ? 1.0f : digits == 2 ? 0x1p-8f : 0x1p-16f; }

/* step: of the blocks of X; last: unit_of_digits(). */
INLINE void fill_lanes(const dot_strips *of, const int8_t *x, const float *step, float last, dot_lanes *to) {
  for (int i = 0; i < LPG_DOT_VECTORS; i++) {
    spread_quads(x + of->step[i][0] * LPG_STEP_K, x + of->step[i][1] * LPG_STEP_K, to->x[i]);
  }
  for (int i = 0; i < 2 * of->spans; i++) to->step[i / 2][i % 2] = step[of->block[i / 2][i % 2]] * last;
}

/* What the sums of a span begin with: the sums of its bytes of X, lane by lane, times the negative of the one zero, or
 * as 16 bits for zeros of groups. Minima of folded groups need none. */
INLINE void fill_starts(const dot_strips *of, const dot_x *x, dot_lanes *to) {
  if (x->sums == PAIRS_OF_SUMS || (x->sums == SUMS_TIMES_ZERO && x->less == 0)) {
    memset(to->start, 0, sizeof to->start);
    return;
  }
  for (int i = 0; i < of->spans; i++) {
    const int8_t *first = to->x[i * of->fields_a_span], *last = to->x[(i + 1) * of->fields_a_span - 1];
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) {
      const vuint ones = (vuint){0} + 0x01010101u;
      vint sum = add_products(1, ones, load_bytes((const uint8_t *)first + p * 4 * V), (vint){0});
      if (last != first) sum = add_products(1, ones, load_bytes((const uint8_t *)last + p * 4 * V), sum);
      sum = x->sums == SUMS ? sum & 0xffff : sum * x->less;
      memcpy(to->start[i] + p * V, &sum, sizeof sum);
    }
  }
}

/* Words of two groups in turn, times a number of each where they are fp32. */
INLINE void fill_pairs(const uint32_t *low, const uint32_t *high, const float *factor, uint32_t *out) {
  vuint a[LPG_DOT_PARTS], b[LPG_DOT_PARTS];
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    a[p] = load_words(low + p * V);
    b[p] = load_words(high + p * V);
    if (factor) {
      a[p] = (vuint)((vfloat)a[p] * factor[0]);
      b[p] = (vuint)((vfloat)b[p] * factor[1]);
    }
  }
  mix_pairs(a, b, out);
}

/* Scales and zeros. */
INLINE void fill_row_groups(const dot_strips *of, const dot_x *x, const dot_lanes *lanes,
                            const dot_group *const *of_unit, dot_row *r) {
  for (int i = 0; i < of->spans; i++) {
    const dot_group *low = of_unit[of->unit[i][0]], *high = of_unit[of->unit[i][1]];
    fill_pairs((const uint32_t *)(const void *)low->scale, (const uint32_t *)(const void *)high->scale, lanes->step[i],
               r->scale[i]);
    if (x->sums != SUMS) continue;
    fill_pairs((const uint32_t *)(const void *)low->less, (const uint32_t *)(const void *)high->less, NULL, r->less[i]);
  }
}

/* ---- scales that are read as they are packed, without a dot_group ---- */

/* Where those of a chunk are, and minima. Of two levels the upper one, of fp16, has one number for all of it. NULL:
 * there are none. */
typedef struct dot_scales {
  const uint8_t *scales, *minima, *super_scales, *super_minima;
} dot_scales;

static dot_scales dot_scales_of(const dot_groups *all, const dot_sections *tile, int64_t k) {
  const lpg_packed *packed = all->from->packed;
  const int64_t group = index_on(&packed->group, k), super = index_on(&packed->super, k);
  dot_scales n = {.scales = tile->scales + group * all->slot_bytes[LPG_SECTION_SCALES]};
  if (tile->supers) n.super_scales = tile->supers + super * all->slot_bytes[LPG_SECTION_SUPER_SCALES];
  if (tile->zeros) n.minima = tile->zeros + group * all->slot_bytes[LPG_SECTION_ZEROS];
  if (tile->super_zeros) n.super_minima = tile->super_zeros + super * all->slot_bytes[LPG_SECTION_SUPER_ZEROS];
  return n;
}

INLINE int one_upper_a_chunk(const lpg_packed *packed) {
  return packed->super.count == 1 || packed->super.k % LPG_DOT_K == 0;
}

/* Whether scales need no more than to be multiplied, and minima, if any, are of the same type and levels: so it is with
 * K-quants of 3 bits and more, and with fp16 and one zero for all. */
static int are_plain(const dot_groups *all, int unit) {
  const lpg_packed *packed = all->from->packed;
  const lpgemm_weight_desc_t *d = &packed->desc;
  const int is_byte = d->scale_type == LPGEMM_UINT(6) || d->scale_type == LPGEMM_I8;
  if (all->folds || packed->group.k % unit != 0 || !has_pattern(&packed->group)) return 0;
  if (d->super_scale_type ? !is_byte || !one_upper_a_chunk(packed) : d->scale_type != LPGEMM_F16) return 0;
  if (all->one_zero) return !all->has_rest;
  return all->leaves_minimum && all->left == 0.0f && d->zero_type == d->scale_type &&
         d->super_zero_type == d->super_scale_type;
}

/* all: the sums of X by unit; value: of a byte of W. The scale is multiplied by the value first: in another order it
 * may leave the range of fp32 on the way. */
INLINE void fill_row_scales(lpgemm_dtype_t type, const dot_strips *of, const dot_scales *n, int units, const float *all,
                            const dot_lanes *lanes, float value, dot_row *r, float *total) {
  const int bytes = lpg_slot_bytes(type), chunk_bytes = (((units - 1) >> of->units_a_group) + 1) * bytes;
  for (int i = 0; i < chunk_bytes; i += 64) {
    __builtin_prefetch(n->scales + LPG_DOT_CHUNKS_AHEAD * chunk_bytes + i, 0, 2);
    if (n->minima) __builtin_prefetch(n->minima + LPG_DOT_CHUNKS_AHEAD * chunk_bytes + i, 0, 2);
  }
  const int super_ahead = LPG_DOT_CHUNKS_AHEAD * LPG_TILE_ROWS * 2;
  if (n->super_scales) __builtin_prefetch(n->super_scales + super_ahead, 0, 2);
  if (n->super_minima) __builtin_prefetch(n->super_minima + super_ahead, 0, 2);
  vfloat super[LPG_DOT_PARTS];
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    super[p] = (vfloat){0} + value;
    if (n->super_scales) super[p] *= load_slots(LPGEMM_F16, n->super_scales, p * V, NULL);
  }
  for (int i = 0; i < of->spans; i++) {
    vuint scale[2][LPG_DOT_PARTS];
#pragma GCC unroll 2
    for (int w = 0; w < 2; w++) {
      const uint8_t *at = n->scales + of->scale[i][w];
#pragma GCC unroll 4
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        scale[w][p] = (vuint)(load_slots(type, at, p * V, NULL) * super[p] * lanes->step[i][w]);
      }
    }
    mix_pairs(scale[0], scale[1], r->scale[i]);
  }
  if (!n->minima) return;
  vfloat left[LPG_DOT_PARTS] = {{0}};
  for (int u = 0; u < units; u++) {
    const uint8_t *at = n->minima + (u >> of->units_a_group) * bytes;
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) left[p] += load_slots(type, at, p * V, NULL) * all[u];
  }
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    if (n->super_minima) left[p] *= load_slots(LPGEMM_F16, n->super_minima, p * V, NULL);
    store(total + p * V, load(total + p * V) + left[p]);
  }
}

/* ---- bytes that are multiplied by the codes of their scales, of 4 bits and groups of 16 ---- */

/* Codes of 4 bits of two groups. pair_factors: [g][group][2], in both halves of words; pair_minima: of a row, as the
 * two halves of a word. */
#if defined(__AVX2__)
INLINE void load_nibbles(const uint8_t *a, const uint8_t *b, __m128i of[2]) {
  const __m128i nibble = _mm_set1_epi8(15);
  const __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)a),
                                          _mm_loadl_epi64((const __m128i *)(const void *)b));
  const __m128i low = _mm_and_si128(both, nibble), high = _mm_and_si128(_mm_srli_epi16(both, 4), nibble);
  of[0] = _mm_unpacklo_epi8(low, high);
  of[1] = _mm_unpackhi_epi8(low, high);
}

INLINE void pair_factors(const uint8_t *a, const uint8_t *b, uint32_t *out) {
  __m128i of[2];
  load_nibbles(a, b, of);
  const __m128i mixed[2] = {_mm_unpacklo_epi16(of[0], of[1]), _mm_unpackhi_epi16(of[0], of[1])};
#pragma GCC unroll 4
  for (int i = 0; i < 2 * LPG_DOT_PARTS; i++) {
    const __m128i bytes = mixed[i / LPG_DOT_PARTS];
    const vuint word = wide_bytes(i % LPG_DOT_PARTS ? _mm_unpackhi_epi64(bytes, bytes) : bytes),
                twice = word | word << 16u;
    memcpy(out + i * V, &twice, sizeof twice);
  }
}

INLINE void pair_minima(const uint8_t *a, const uint8_t *b, vint out[LPG_DOT_PARTS]) {
  __m128i of[2];
  load_nibbles(a, b, of);
  const __m128i low = _mm_unpacklo_epi8(of[0], of[1]), high = _mm_unpackhi_epi8(of[0], of[1]);
#if defined(__AVX512F__)
  out[0] = (vint)_mm512_cvtepu8_epi16(_mm256_set_m128i(high, low));
#else
  out[0] = (vint)_mm256_cvtepu8_epi16(low);
  out[1] = (vint)_mm256_cvtepu8_epi16(high);
#endif
}
#else
INLINE uint32_t nibble_at(const uint8_t *p, int slot) { return p[slot / 2] >> slot % 2 * 4 & 15u; }

INLINE void pair_factors(const uint8_t *a, const uint8_t *b, uint32_t *out) {
  for (int i = 0; i < 2 * LPG_TILE_ROWS; i++) out[i] = nibble_at(i & 2 ? b : a, i / 4 * 2 + i % 2) * 0x10001u;
}

INLINE void pair_minima(const uint8_t *a, const uint8_t *b, vint out[LPG_DOT_PARTS]) {
  for (int i = 0; i < LPG_TILE_ROWS; i++) out[i / V][i % V] = (int32_t)(nibble_at(a, i) | nibble_at(b, i) << 16);
}
#endif

/* sums: of X, a pair of each block; step: of the blocks. */
INLINE void fill_row_nibbles(const dot_strips *of, const dot_scales *n, const int32_t *sums, const float *step,
                             const dot_lanes *lanes, dot_row *r, float *total) {
  enum { NIBBLES = LPG_TILE_ROWS / 2 }; /* bytes of a group */
#pragma GCC unroll 8
  for (int i = 0; i < LPG_DOT_VECTORS; i++) {
    pair_factors(n->scales + of->step[i][0] * NIBBLES, n->scales + of->step[i][1] * NIBBLES, r->folds[i]);
  }
  uint32_t super[LPG_TILE_ROWS];
#pragma GCC unroll 4
  for (int slot = 0; slot < LPG_TILE_ROWS; slot += V) {
    const vfloat scale = load_slots(LPGEMM_F16, n->super_scales, slot, NULL);
    memcpy(super + slot, &scale, sizeof scale);
  }
  for (int i = 0; i < of->spans; i++) fill_pairs(super, super, lanes->step[i], r->scale[i]);
  if (!n->minima) return;
  vfloat left[LPG_DOT_PARTS] = {{0}};
#pragma GCC unroll 8
  for (int block = 0; block < LPG_DOT_K / LPG_DOT_BLOCK; block++) {
    vint minima[LPG_DOT_PARTS];
    pair_minima(n->minima + 2 * block * NIBBLES, n->minima + (2 * block + 1) * NIBBLES, minima);
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) {
      const vint products = multiply_16((vint){0} + sums[block], minima[p]);
      left[p] += __builtin_convertvector(products, vfloat) * step[block];
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < LPG_DOT_PARTS; p++) {
    store(total + p * V, load(total + p * V) + left[p] * load_slots(LPGEMM_F16, n->super_minima, p * V, NULL));
  }
}

/* Whether that can be done. */
INLINE int has_nibbles(const lpg_packed *packed) {
  const lpgemm_weight_desc_t *d = &packed->desc;
  return packed->group.k == LPG_STEP_K && one_upper_a_chunk(packed) && d->scale_type == LPGEMM_UINT(4) &&
         (d->zero == LPGEMM_ZERO_NONE || d->zero_type == LPGEMM_UINT(4));
}

/* ---- products ---- */

/* Where codes are asked for now; behind a task's end are those of another thread. */
INLINE const uint8_t *codes_ahead(const uint8_t *codes, const uint8_t *end) {
  return end - codes > LPG_DOT_AHEAD ? codes + LPG_DOT_AHEAD : codes;
}

/* The words of two units, of those of a strip that p has. */
INLINE void load_units(int bits, const uint8_t *at, vuint words[LPG_MAX_UNIT_WORDS]) {
#pragma GCC unroll 7
  for (int i = 0; i < bits; i++) {
    const uint8_t *first = at + i / 2 * LPG_DOT_STRIP, *second = at + (bits + i) / 2 * LPG_DOT_STRIP;
    words[i] = take_pairs((vuint)load_bytes(first), i % 2, (vuint)load_bytes(second), (bits + i) % 2);
  }
}

/* The sum of those of digits. */
INLINE vfloat sum_of_digits(int digits, const vint found[LPG_DOT_DIGITS]) {
  if (digits == 1) return __builtin_convertvector(found[0], vfloat);
  if (digits == 2) return __builtin_convertvector(found[0] * 256 + found[1], vfloat);
  return __builtin_convertvector(found[0], vfloat) * 65536.0f +
         __builtin_convertvector(found[1] * 256 + found[2], vfloat);
}

/* sums += the products of the strips of a chunk. width: of the bytes, as add_products() has it; digits: tables; 0:
 * codes are the bytes. */
INLINE void multiply_strips(int bits, int width, int fields_a_span, int digits, const uint8_t table[][16], int folds,
                            int has_zeros, const uint8_t *codes, const uint8_t *end, const dot_lanes *x, dot_row *r) {
  const int fields = fields_of(bits), sums = digits > 1 ? digits : 1, is_whole = lpg_is_pow2_width(bits);
  const vuint mask = (vuint){0} + ((1u << bits) - 1u) * 0x01010101u;
  const uint8_t *ahead = codes_ahead(codes, end); /* asked for line after line */
  for (int g = 0; g < LPG_DOT_EIGHTS; g++) {
    vfloat total[LPG_DOT_PARTS];
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) total[p] = load(r->sums[g] + p * V);
#pragma GCC unroll 8
    for (int strip = 0; strip < LPG_DOT_VECTORS / fields; strip++) {
      const uint8_t *at = codes + strip * LPG_DOT_STRIP + g * 4 * LPG_TILE_ROWS;
      for (int i = 0; i < (is_whole ? 1 : bits); i++, ahead += 64) __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 4
      for (int p = 0; p < LPG_DOT_PARTS; p++) {
        vuint words[LPG_MAX_UNIT_WORDS];
        if (is_whole) {
          words[0] = (vuint)load_bytes(at + p * 4 * V);
        } else {
          load_units(bits, at + p * 4 * V, words);
        }
        vint found[LPG_DOT_DIGITS] = {{0}};
#pragma GCC unroll 8
        for (int f = 0; f < fields; f++) {
          const int field = strip * fields + f, span = field / fields_a_span;
          if (f % fields_a_span == 0) {
            vint start = load_bytes((const uint8_t *)(x->start[span] + p * V));
            if (has_zeros) start = multiply_16(start, repeat_four(r->less[span] + 4 * g));
#pragma GCC unroll 3
            for (int d = 0; d < sums; d++) found[d] = start;
          }
          const vuint w = !is_whole   ? quad_of(bits, words, f)
                          : bits == 8 ? words[0]
                                      : words[0] >> (uint32_t)(f * bits) & mask;
          const vint bytes = load_bytes((const uint8_t *)x->x[field] + p * 4 * V);
          if (folds) {
            found[0] = add_folded_products(w, bytes, repeat_four(r->folds[field] + 4 * g), found[0]);
          } else {
#pragma GCC unroll 3
            for (int d = 0; d < sums; d++) {
              found[d] = add_products(width, digits > 0 ? look_up(table[d], w) : w, bytes, found[d]);
            }
          }
          if ((f + 1) % fields_a_span == 0) {
            total[p] += sum_of_digits(sums, found) * (vfloat)repeat_four(r->scale[span] + 4 * g);
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < LPG_DOT_PARTS; p++) store(r->sums[g] + p * V, total[p]);
  }
}

/* Whether there is a loop for such codes. */
INLINE int has_row_loop(int bits, const lpg_dot_bytes *bytes, int folds) {
#if !defined(LPG_DOT_NO_CLASSES)
  if (bytes->bits == 8 && !folds) return 0; /* VPMADDUBSW has no room */
#endif
  return folds ? bits == 2 : bytes->has_table ? bits == 4 : 1;
}

static void multiply_row(int bits, const lpg_dot_bytes *bytes, const dot_strips *of, int folds, int has_zeros,
                         const uint8_t *codes, const uint8_t *end, const dot_lanes *x, dot_row *r) {
  enum { SMALL = 9, WIDE = 10 }; /* bytes of tables, of up to 7 bits or of 8, and the digits */
  const int way = !bytes->has_table ? bits : bytes->bits <= 7 ? SMALL : WIDE + bytes->digits;
#define LOOP(n, width, fields, digits) \
  multiply_strips(n, width, fields, digits, bytes->table, 0, has_zeros, codes, end, x, r)
#define CASES(fields)                                           \
  switch (way) {                                                \
    case 1: LOOP(1, 1, fields, 0); break;                       \
    case 2: LOOP(2, 2, fields, 0); break;                       \
    case 3: LOOP(3, 3, fields, 0); break;                       \
    case 4: LOOP(4, 4, fields, 0); break;                       \
    case 5: LOOP(5, 5, fields, 0); break;                       \
    case 6: LOOP(6, 6, fields, 0); break;                       \
    case 7: LOOP(7, 7, fields, 0); break;                       \
    case 8: LOOP(8, LPG_DOT_CENTERED, 1, 0); break;             \
    case SMALL: LOOP(4, 7, fields, 1); break;                   \
    case WIDE + 1: LOOP(4, LPG_DOT_CENTERED, fields, 1); break; \
    case WIDE + 2: LOOP(4, LPG_DOT_CENTERED, fields, 2); break; \
    default: LOOP(4, LPG_DOT_CENTERED, fields, 3); break;       \
  }
  if (folds) {
    multiply_strips(2, 2, 2, 0, NULL, 1, 0, codes, end, x, r);
  } else if (of->fields_a_span == 1) {
    CASES(1)
  } else {
    CASES(2)
  }
#undef CASES
#undef LOOP
}

/* The sums of the 16 rows, in slot order. */
static void add_row_sums(const dot_row *r, float *sums) {
  for (int slot = 0; slot < LPG_TILE_ROWS; slot++) {
    float sum = sums[slot];
    for (int lane = slot % 2; lane < LPG_TILE_ROWS; lane += 2) sum += r->sums[slot / 2][lane];
    sums[slot] = sum;
  }
}

#endif
