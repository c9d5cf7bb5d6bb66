/* Checkpoints that are wrong: each refusal with its sentence, and tensors of every wrong size, of which not one byte
 * too many may be read. */
#include <math.h>

#include "checkpoint.h"
#include "test.h"

static lpgemm_handle_t handle;

static const checkpoint_spec *spec_of(const char *name) {
  for (int i = 0; i < checkpoint_spec_count; i++) {
    if (strcmp(checkpoint_specs[i].name, name) == 0) return &checkpoint_specs[i];
  }
  test_fail(__FILE__, __LINE__, "no checkpoint %s", name);
  return &checkpoint_specs[0];
}

/* Both calls refuse the parts with this status, and the sentence has these words. */
static void check_refused(const lpgemm_import_t *parts, size_t count, lpgemm_status_t status, const char *words) {
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_import_desc(parts, count, &desc), status);
  if (!strstr(lpgemm_last_error(), words)) {
    test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", lpgemm_last_error(), words);
  }
  CHECK_STATUS(lpgemm_import_weights(handle, parts, count, NULL, 0, &weights), status);
  CHECK(weights == NULL);
}

static void set_shape(checkpoint *c, const char *name, int dims, int64_t a, int64_t b, size_t bytes) {
  lpgemm_tensor_t *t = checkpoint_tensor(c, name);
  t->dims = dims, t->shape[0] = a, t->shape[1] = b, t->bytes = bytes;
}

static void *data_of(checkpoint *c, const char *name) { return (void *)(uintptr_t)checkpoint_tensor(c, name)->data; }

/* ---- sentences: one thing is wrong with an otherwise good matrix ---- */

static void qzeros_words(checkpoint *c) {
  c->import.bits = 4;
  set_shape(c, "qzeros", 2, 7, 24, 7 * 24 * 4);
}
static void groups_unequal(checkpoint *c) {
  int32_t *g = data_of(c, "g_idx");
  int64_t k = 0;
  while (g[k] != 3) k++;
  g[k] = 2;
}
static void group_beyond(checkpoint *c) { ((int32_t *)data_of(c, "g_idx"))[7] = 8; }
static void group_negative(checkpoint *c) { ((int32_t *)data_of(c, "g_idx"))[7] = -1; }
static void g_idx_short(checkpoint *c) { set_shape(c, "g_idx", 1, 240, 0, 240 * 4); }
static void inside_a_group(checkpoint *c) { c->import.k0 = 40; }
static void end_inside_a_group(checkpoint *c) { c->import.k1 = 200; }
static void no_bits(checkpoint *c) { set_shape(c, "qzeros", 2, 7, 11, 7 * 11 * 4); }
static void five_bits(checkpoint *c) { c->import.bits = 5; }
static void nine_bits(checkpoint *c) { c->import.bits = 9; }
static void scales_shape(checkpoint *c) { set_shape(c, "scales", 2, 7, 199, 7 * 199 * 2); }
static void other_group(checkpoint *c) { c->import.group_k = 64; }
static void order_group(checkpoint *c) { c->import.group_k = 64; }
static void odd_group(checkpoint *c) { /* 14 groups of 24 */
  c->import.group_k = 24, c->import.bits = 4;
  checkpoint_tensor(c, "g_idx")->name = "bias";
  set_shape(c, "qzeros", 2, 14, 25, 14 * 25 * 4);
  set_shape(c, "scales", 2, 14, 200, 14 * 200 * 2);
}
static void rows_reversed(checkpoint *c) { c->import.n0 = 9, c->import.n1 = 9; }
static void rows_beyond(checkpoint *c) { c->import.n1 = c->spec.n + 1; }
static void columns_negative(checkpoint *c) { c->import.k0 = -32; }
static void an_expert(checkpoint *c) { c->import.expert = 1; }
static void negative_expert(checkpoint *c) { c->import.expert = -1; }
static void fourth_expert(checkpoint *c) { c->import.expert = 3; }
static void unknown_format(checkpoint *c) { c->import.format = (lpgemm_format_t)99; }
static void a_reserved(checkpoint *c) { c->import.reserved[2] = 1; }
static void no_size(checkpoint *c) { c->import.size = 4; }
static void no_tensors(checkpoint *c) { c->import.tensors = NULL; }
static void no_name(checkpoint *c) { c->tensor[1].name = NULL; }
static void many_dims(checkpoint *c) { c->tensor[0].dims = 5; }
static void negative_dim(checkpoint *c) { c->tensor[0].shape[0] = -1; }
static void empty(checkpoint *c) { c->tensor[0].shape[0] = 0, c->tensor[0].bytes = 0; }
static void overflowing(checkpoint *c) {
  c->tensor[0].dims = 4;
  for (int i = 0; i < 4; i++) c->tensor[0].shape[i] = INT64_C(1) << 32;
}
static void words_short(checkpoint *c) { /* 244 columns of 4 bits need 31 */
  set_shape(c, "weight_packed", 2, 130, 29, 130 * 29 * 4);
}
static void words_neither(checkpoint *c) { set_shape(c, "weight_packed", 2, 70, 31, 70 * 31 * 4); }
static void words_either(checkpoint *c) { /* 14 columns of 3 bits: two words in both arrangements */
  int64_t *shape = data_of(c, "weight_shape");
  shape[1] = 14;
  set_shape(c, "weight_packed", 2, 70, 2, 70 * 2 * 4);
}
static void one_word(checkpoint *c) { /* 3 columns of 3 bits: which of both it is only zeros would show */
  int64_t *shape = data_of(c, "weight_shape");
  shape[1] = 3;
  set_shape(c, "weight_packed", 2, 70, 1, 70 * 4);
}
static void width_open(checkpoint *c) {
  int64_t *shape = data_of(c, "weight_shape");
  shape[1] = 3;
  c->import.bits = 0;
  set_shape(c, "weight_packed", 2, 130, 1, 130 * 4);
}
static void shape_negative(checkpoint *c) { ((int64_t *)data_of(c, "weight_shape"))[1] = -5; }
static void shape_huge(checkpoint *c) { ((int64_t *)data_of(c, "weight_shape"))[0] = INT64_MAX; }
static void shape_long(checkpoint *c) { set_shape(c, "weight_shape", 1, 1, 0, 8); }
static void rows_differ(checkpoint *c) { ((int64_t *)data_of(c, "weight_shape"))[0] = 69; }
static void zero_words(checkpoint *c) { set_shape(c, "weight_zero_point", 2, 6, 5, 6 * 5 * 4); }
static void no_block(checkpoint *c) { set_shape(c, "weight_scale_inv", 2, 7, 1, 7 * 4); }
static void global_zero(checkpoint *c) { *(float *)data_of(c, "weight_scale_2") = 0.0f; }
static void global_nan(checkpoint *c) { *(float *)data_of(c, "weight_global_scale") = NAN; }
static void swizzled(checkpoint *c) {
  lpgemm_tensor_t *t = checkpoint_tensor(c, "weight_scale");
  t->type = LPGEMM_U8, t->dims = 1, t->shape[0] = (int64_t)t->bytes;
}
static void block_bytes(checkpoint *c) {
  lpgemm_tensor_t *t = checkpoint_tensor(c, "blocks");
  t->shape[3] = 8, t->shape[2] *= 2;
}
static void axis_0(checkpoint *c) { *(int32_t *)data_of(c, "axis") = 0; }
static void seven_bits(checkpoint *c) { *(int32_t *)data_of(c, "nbits") = 7; }
static void group_of_50(checkpoint *c) { *(int32_t *)data_of(c, "group_size") = 50; }
static void group_of_8(checkpoint *c) { *(int32_t *)data_of(c, "group_size") = 8; }
static void quantised_scales(checkpoint *c) { checkpoint_tensor(c, "scale")->name = "scale_q"; }
static void crossing(checkpoint *c) { /* 33 by 240 becomes 110 by 72 */
  char *json = data_of(c, "weight.quant_state.bitsandbytes__nf4"), *shape = strstr(json, "[33, 240]");
  memcpy(shape, "[110, 72]", 9);
}
static void no_blocksize(checkpoint *c) {
  char *json = data_of(c, "weight.quant_state.bitsandbytes__nf4");
  memcpy(strstr(json, "blocksize"), "blacksize", 9);
}
static void shape_of_text(checkpoint *c) {
  char *json = data_of(c, "weight.quant_state.bitsandbytes__nf4");
  memcpy(strstr(json, "[33, 240]"), "[33; 240]", 9);
}
static void absmax_short(checkpoint *c) { set_shape(c, "weight.absmax", 1, 5, 0, 20); }
static void map_nan(checkpoint *c) { ((float *)data_of(c, "weight.quant_map"))[3] = NAN; }

enum {
  ARGUMENT = LPGEMM_INVALID_ARGUMENT,
  SIZE = LPGEMM_INVALID_SIZE,
  UNSUPPORTED = LPGEMM_NOT_SUPPORTED,
  CORRUPT = LPGEMM_CORRUPT_DATA
};

static const struct {
  const char *name, *spec;
  void (*spoil)(checkpoint *c);
  int status;
  const char *words;
} sentences[] = {
    {"qzeros", "gptq-4", qzeros_words, SIZE, "qzeros is [7][24], but 4 bits and N = 200 need [7][25]"},
    {"groups-unequal", "gptq-order", groups_unequal, UNSUPPORTED,
     "g_idx puts 33 columns into group 2 and 32 into the others: groups must have equal sizes"},
    {"group-beyond", "gptq-order", group_beyond, CORRUPT, "g_idx has group 8 at column 7; there are 8 groups, 0 to 7"},
    {"group-negative", "gptq-order", group_negative, CORRUPT, "g_idx has group -1 at column 7"},
    {"g_idx-short", "gptq-order", g_idx_short, SIZE,
     "32 rows of words, but 4 bits and the 240 columns of g_idx need 30"},
    {"k0", "gptq-order", inside_a_group, ARGUMENT,
     "k0 = 40 lies inside a group of 32 columns: 32 and 64 are the nearest edges"},
    {"k1", "awq-128", end_inside_a_group, ARGUMENT,
     "k1 = 200 lies inside a group of 128 columns: 128 and 256 are the nearest edges"},
    {"no-bits", "gptq-4", no_bits, UNSUPPORTED, "set it to 2, 3, 4 or 8"},
    {"five-bits", "gptq-4", five_bits, UNSUPPORTED, "bits is 5; GPTQ has 2, 3, 4 and 8"},
    {"nine-bits", "gptq-4", nine_bits, ARGUMENT, "part.bits is 9"},
    {"scales", "gptq-4", scales_shape, SIZE, "scales is [7][199]"},
    {"group", "awq-128", other_group, SIZE, "scales has 3 groups, but 384 columns in groups of 64 need 6"},
    {"group-order", "gptq-order", order_group, SIZE, "g_idx puts 32 columns into a group"},
    {"group-24", "gptq-4", odd_group, UNSUPPORTED, "groups of 24 columns; only multiples of 16"},
    {"rows-reversed", "gptq-4", rows_reversed, SIZE, "n0 is 9 and n1 is 9"},
    {"rows-beyond", "awq", rows_beyond, SIZE, "n1 is 153; of 0 to 152"},
    {"columns-negative", "awq", columns_negative, SIZE, "k0 is -32"},
    {"expert", "awq", an_expert, ARGUMENT, "AWQ has no stacks of experts"},
    {"expert-negative", "awq", negative_expert, ARGUMENT, "part.expert is -1"},
    {"expert-beyond", "gpt-oss", fourth_expert, ARGUMENT, "expert is 3, but blocks is [3][70][7][16]: there are 3"},
    {"format", "awq", unknown_format, ARGUMENT, "part.format is 99"},
    {"reserved", "awq", a_reserved, LPGEMM_INVALID_STRUCT, "part.reserved[2] is 1"},
    {"size", "awq", no_size, LPGEMM_INVALID_STRUCT, "part.size is 4"},
    {"tensors", "awq", no_tensors, LPGEMM_NULL_POINTER, "part.tensors is NULL"},
    {"name", "awq", no_name, LPGEMM_NULL_POINTER, "part.tensors[1].name is NULL"},
    {"dims", "awq", many_dims, ARGUMENT, "qweight has 5 dimensions"},
    {"dimension", "awq", negative_dim, SIZE, "qweight has -1 for its dimension 0"},
    {"empty", "awq", empty, SIZE, "qweight has 0 for its dimension 0"},
    {"overflow", "awq", overflowing, LPGEMM_SIZE_OVERFLOW, "qweight has more than 2^58 numbers"},
    {"words-short", "packed-4", words_short, SIZE,
     "weight_packed has 29 words a row, but weight_shape says 244 columns: 4 bits need 31"},
    {"words-neither", "packed-3", words_neither, SIZE,
     "3 bits in 30 words for 320 columns is dense, in 32 one field a code: 31 is neither"},
    {"words-either", "packed-3", words_either, UNSUPPORTED, "cannot be told"},
    {"words-one", "packed-3", one_word, UNSUPPORTED, "cannot be told"},
    {"width", "packed-4", width_open, ARGUMENT, "fits no width, or more than one"},
    {"shape-negative", "packed-4", shape_negative, CORRUPT, "weight_shape says 130 by -5"},
    {"shape-huge", "packed-4", shape_huge, CORRUPT, "weight_shape says 9223372036854775807 by 244"},
    {"shape-long", "packed-4", shape_long, SIZE, "weight_shape is [1]; it must be [2]"},
    {"shape-rows", "packed-3", rows_differ, SIZE, "weight_packed is [70][30], but weight_shape says N = 69"},
    {"zeros", "packed-3", zero_words, SIZE, "weight_zero_point is [6][5], but 3 bits, N = 70 and 5 groups need [7][5]"},
    {"blocks", "fp8-block", no_block, ARGUMENT, "no block of one size covers [300][330]"},
    {"global-zero", "nvfp4-modelopt", global_zero, CORRUPT, "weight_scale_2 is 0; it must be finite and not 0"},
    {"global-nan", "nvfp4", global_nan, CORRUPT, "weight_global_scale is nan"},
    {"swizzled", "nvfp4-modelopt", swizzled, UNSUPPORTED,
     "weight_scale is one-dimensional: this is a swizzled copy; convert the checkpoint before swizzling"},
    {"swizzled-mx", "mxfp4", swizzled, UNSUPPORTED, "this is a swizzled copy"},
    {"block-bytes", "gpt-oss", block_bytes, SIZE, "blocks have 16 bytes"},
    {"axis", "hqq-4", axis_0, UNSUPPORTED, "HQQ with axis 0 has groups down the columns: quantise with axis = 1"},
    {"nbits", "hqq-4", seven_bits, UNSUPPORTED, "nbits is 7"},
    {"group-50", "hqq-4", group_of_50, UNSUPPORTED, "group_size is 50, which does not divide 192 columns"},
    {"group-8", "hqq-4", group_of_8, UNSUPPORTED, "groups of 8 columns; only multiples of 16"},
    {"scale_q", "hqq-4", quantised_scales, UNSUPPORTED, "quant_scale and quant_zero off"},
    {"crossing", "bitsandbytes-crossing", crossing, UNSUPPORTED,
     "blocks of 64 cross rows of 72 columns and share only 8: not a multiple of 16"},
    {"blocksize", "bitsandbytes-crossing", no_blocksize, CORRUPT, "no \"blocksize\""},
    {"shape-text", "bitsandbytes-crossing", shape_of_text, CORRUPT, "no \"shape\" of two integers"},
    {"absmax", "bitsandbytes", absmax_short, SIZE, "weight.absmax is [5], but blocks of 64 of [70][192] are 210"},
    {"map", "bitsandbytes", map_nan, CORRUPT, "weight.quant_map[3] is not finite"},
};

static void check_sentences(void) {
  for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
    checkpoint c;
    if (!test_case("import_refusals/%s", sentences[i].name)) continue;
    checkpoint_make(&c, spec_of(sentences[i].spec));
    sentences[i].spoil(&c);
    check_refused(&c.import, 1, (lpgemm_status_t)sentences[i].status, sentences[i].words);
    checkpoint_free(&c);
  }
}

/* ---- every tensor of every format: absent, of another type, a byte short, without data ---- */

static int is_optional(const char *name) {
  static const char *const names[] = {"g_idx", "weight_g_idx", "weight_zero_point", "group_size", "axis"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(name, names[i]) == 0) return 1;
  }
  return 0;
}

static void check_tensors(const checkpoint_spec *spec) {
  checkpoint c;
  checkpoint_make(&c, spec);
  for (size_t i = 0; i < c.import.count; i++) {
    const lpgemm_tensor_t good = c.tensor[i];
    const int absent_is_good = is_optional(good.name) || (spec->kind == CHECKPOINT_BITNET && i == 1);
    c.tensor[i].name = "something_else";
    lpgemm_weight_desc_t desc = {.size = sizeof desc};
    if (!absent_is_good) {
      CHECK(lpgemm_import_desc(&c.import, 1, &desc) != LPGEMM_SUCCESS);
      CHECK(strstr(lpgemm_last_error(), good.name) || strstr(lpgemm_last_error(), "nbits"));
    }
    c.tensor[i] = good;
    c.tensor[i].type = LPGEMM_BOOL;
    check_refused(&c.import, 1, LPGEMM_INVALID_TYPE, good.name);
    c.tensor[i] = good;
    c.tensor[i].bytes--;
    check_refused(&c.import, 1, LPGEMM_INVALID_SIZE, good.name);
    c.tensor[i] = good;
    c.tensor[i].data = NULL;
    check_refused(&c.import, 1, LPGEMM_NULL_POINTER, good.name);
    c.tensor[i] = good;
  }
  checkpoint_free(&c);
}

/* ---- tensors that are shorter than they should be, exactly as long as they say ---- */

/* Whatever is said of it, an import reads nothing beyond (the sanitizer would say so). */
static void try_import(const lpgemm_import_t *import) {
  lpgemm_weights_t weights = NULL;
  if (lpgemm_import_weights(handle, import, 1, NULL, 0, &weights) != LPGEMM_SUCCESS) CHECK(weights == NULL);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

static void check_truncated(const checkpoint_spec *spec) {
  checkpoint c;
  checkpoint_make(&c, spec);
  for (size_t i = 0; i < c.import.count; i++) {
    const lpgemm_tensor_t good = c.tensor[i];
    for (int d = 0; d < good.dims; d++) {
      for (int64_t size = 1; size < good.shape[d]; size += size < 8 ? 1 : good.shape[d] / 16 + 1) {
        const size_t bytes = good.bytes / (size_t)good.shape[d] * (size_t)size;
        void *copy = malloc(bytes);
        memcpy(copy, good.data, bytes);
        c.tensor[i].shape[d] = size, c.tensor[i].bytes = bytes, c.tensor[i].data = copy;
        for (c.import.bits = 0; c.import.bits <= 8; c.import.bits += spec->bits) try_import(&c.import);
        c.import.bits = 0;
        free(copy);
        c.tensor[i] = good;
      }
    }
  }
  checkpoint_free(&c);
}

/* Bytes of settings, of indices and of text changed at random; other tensors hold numbers that cannot be wrong. */
static void check_settings(const checkpoint_spec *spec) {
  checkpoint c;
  checkpoint_make(&c, spec);
  for (size_t i = 0; i < c.import.count; i++) {
    uint8_t *data = (uint8_t *)(uintptr_t)c.tensor[i].data;
    const int is_text = strstr(c.tensor[i].name, "quant_state") != NULL;
    if (c.tensor[i].dims > 1 && !is_text) continue;
    for (int round = 0; round < 200; round++) {
      const size_t at = (size_t)test_between(0, (int64_t)c.tensor[i].bytes - 1);
      const uint8_t before = data[at];
      data[at] = (uint8_t)(is_text ? test_between(' ', '~') : (int64_t)(test_random() & 255));
      try_import(&c.import);
      data[at] = before;
    }
  }
  checkpoint_free(&c);
}

/* ---- everything at once: sizes, settings and slices at random, tensors exactly as long as they say ---- */

static int64_t draw(const int64_t *from, int count) { return from[test_between(0, count - 1)]; }

static void change_shape(lpgemm_tensor_t *t) {
  static const int64_t sizes[] = {1, 2, 3, 4, 8, 13, 16, 24, 31, 32, 64, 100, 128, 256};
  int64_t before = 1, after = 1;
  for (int d = 0; d < t->dims; d++) before *= t->shape[d];
  if (t->dims > 0) t->shape[test_between(0, t->dims - 1)] = draw(sizes, 14);
  if (test_between(0, 9) == 0 && t->dims < 4) t->shape[t->dims++] = draw(sizes, 14);
  if (test_between(0, 9) == 0 && t->dims > 0) t->dims--;
  for (int d = 0; d < t->dims; d++) after *= t->shape[d];
  t->bytes = t->bytes / (size_t)before * (size_t)after;
}

static void check_mutations(const checkpoint_spec *spec) {
  static const int64_t groups[] = {0, 0, 0, 8, 16, 32, 48, 64, 100, 128, 4096},
                       edges[] = {0, 0, 0, 1, 16, 32, 64, 127, 128};
  for (int round = 0; round < 60; round++) {
    checkpoint c;
    checkpoint_make(&c, spec);
    for (int changes = (int)test_between(0, 3); changes > 0; changes--) {
      lpgemm_tensor_t *t = &c.tensor[test_between(0, (int64_t)c.import.count - 1)];
      lpgemm_tensor_t changed = *t;
      change_shape(&changed);
      if (changed.bytes > 1 << 20) continue;
      uint8_t *copy = test_alloc(changed.bytes);
      for (size_t i = 0; i < changed.bytes; i++) copy[i] = ((const uint8_t *)t->data)[i % t->bytes];
      test_free((void *)(uintptr_t)t->data);
      changed.data = copy;
      *t = changed;
    }
    c.import.bits = test_between(0, 1) ? spec->bits : (int)test_between(0, 8);
    c.import.group_k = draw(groups, 11);
    c.import.expert = test_between(0, 4) ? c.import.expert : test_between(0, 5);
    c.import.n0 = draw(edges, 9), c.import.n1 = draw(edges, 9);
    c.import.k0 = draw(edges, 9), c.import.k1 = draw(edges, 9);
    if (test_between(0, 4) == 0) c.import.format = (lpgemm_format_t)test_between(1, 14);
    try_import(&c.import);
    checkpoint_free(&c);
  }
}

static void check_every_format(void) {
  for (int s = 0; s < checkpoint_spec_count; s++) {
    const checkpoint_spec *spec = &checkpoint_specs[s];
    if (test_case("import_refusals/tensors/%s", spec->name)) check_tensors(spec);
    if (test_case("import_refusals/truncated/%s", spec->name)) check_truncated(spec);
    if (test_case("import_refusals/mutations/%s", spec->name)) check_mutations(spec);
    if (test_case("import_refusals/settings/%s", spec->name)) check_settings(spec);
  }
}

/* ---- parts that do not join, pieces that do not fit, codes that are too wide ---- */

static void check_joins(void) {
  static const struct {
    const char *first, *second, *words;
  } pairs[] = {{"gptq-4", "awq", "parts[1] is AWQ and parts[0] is GPTQ"},
               {"gptq-v2", "gptq-order", "parts[1] is GPTQ and parts[0] is GPTQ v2"},
               {"gptq-4", "gptq-2", "parts[1] has K = 320 and parts[0] has 336"},
               {"packed-5", "packed-7", "parts[1] has group_k 32 and parts[0] has 64"},
               {"packed-5", "packed-6-words", "parts[1] has codes of u6 and parts[0] has u5"},
               {"fp8-tensor", "fp8-row", "parts[1] has scales of bf16 and parts[0] has none"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    checkpoint a, b;
    if (!test_case("import_refusals/join/%s-%s", pairs[i].first, pairs[i].second)) continue;
    checkpoint_make(&a, spec_of(pairs[i].first));
    checkpoint_make(&b, spec_of(pairs[i].second));
    const lpgemm_import_t parts[] = {a.import, b.import};
    check_refused(parts, 2, LPGEMM_INVALID_ARGUMENT, pairs[i].words);
    CHECK(strstr(lpgemm_last_error(), "import them one by one") != NULL);
    checkpoint_free(&a);
    checkpoint_free(&b);
  }
  if (test_case("import_refusals/join/orders")) {
    checkpoint a, b;
    checkpoint_make(&a, spec_of("gptq-order"));
    checkpoint_make(&b, spec_of("gptq-order"));
    const lpgemm_import_t parts[] = {a.import, b.import};
    check_refused(parts, 2, LPGEMM_NOT_SUPPORTED, "another order of columns");
    checkpoint_free(&a);
    checkpoint_free(&b);
  }
  if (test_case("import_refusals/join/none")) {
    check_refused(NULL, 1, LPGEMM_NULL_POINTER, "parts is NULL");
    lpgemm_import_t nothing = {.size = sizeof nothing};
    check_refused(&nothing, 0, LPGEMM_INVALID_ARGUMENT, "count is 0");
  }
}

static void check_pieces(void) {
  checkpoint c;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  lpgemm_weights_t weights;
  if (!test_case("import_refusals/rows")) return;
  checkpoint_make(&c, spec_of("nvfp4"));
  CHECK_STATUS(lpgemm_import_desc(&c.import, 1, &desc), LPGEMM_SUCCESS);
  desc.global_scale *= 2;
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 0, 0, &c.import), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "weight_global_scale stands for a scale") != NULL);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  desc.global_scale = 1, desc.row_scales = LPGEMM_F32;
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 1, 0, &c.import), LPGEMM_INVALID_ARGUMENT);
  c.import.n1 = 16;
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 0, 8, &c.import), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 0, 16, &c.import), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 0, 16, &c.import), LPGEMM_INVALID_ARGUMENT); /* twice */
  CHECK_STATUS(lpgemm_weights_finish(handle, weights), LPGEMM_INVALID_ARGUMENT);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  c.import.n1 = 0;
  desc.group_k = 32;
  CHECK_STATUS(lpgemm_weights_create(handle, &desc, NULL, 0, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_import_rows(handle, weights, 0, 0, &c.import), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "create them from lpgemm_import_desc()") != NULL);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  checkpoint_free(&c);
}

/* 2^22 rows of one column: each would be padded to 32 columns. */
static void check_growth(void) {
  checkpoint_spec spec = {"int8-long", CHECKPOINT_INT8, 1 << 22, 1, 0, 8, 0};
  checkpoint c;
  if (!test_case("import_refusals/growth")) return;
  checkpoint_make(&c, &spec);
  check_refused(&c.import, 1, LPGEMM_NOT_SUPPORTED, "nearly all of them padding");
  checkpoint_free(&c);
}

static void check_wide_code(void) {
  checkpoint c;
  lpgemm_weights_t weights = NULL;
  if (!test_case("import_refusals/code")) return;
  checkpoint_make(&c, spec_of("hqq-5"));
  ((uint8_t *)data_of(&c, "W_q"))[66 * 192 + 5] = 0x20; /* a byte has a row's 192 columns in three groups */
  CHECK_STATUS(lpgemm_import_weights(handle, &c.import, 1, NULL, 0, &weights), LPGEMM_INVALID_CODE);
  CHECK(strstr(lpgemm_last_error(), "the HQQ has code 32 at row 66, column 5: its type u5 does not hold it") != NULL);
  CHECK(weights == NULL);
  lpgemm_weight_desc_t desc = {.size = 8};
  CHECK_STATUS(lpgemm_import_desc(&c.import, 1, &desc), LPGEMM_INVALID_STRUCT);
  CHECK_STATUS(lpgemm_import_desc(&c.import, 1, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_import_weights(handle, &c.import, 1, NULL, 0, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_import_weights(NULL, &c.import, 1, NULL, 0, &weights), LPGEMM_NULL_POINTER);
  checkpoint_free(&c);
}

void suite_import_refusals(void) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 2};
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  check_sentences();
  check_every_format();
  check_joins();
  check_pieces();
  check_growth();
  check_wide_code();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
