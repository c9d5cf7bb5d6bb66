/* The GPU's packer, unpacker and quantiser against the host's: the same bytes, the same refusals, from memory that only
 * the GPU can reach and from memory that only the host can. */
#include <cuda_runtime_api.h>
#include <math.h>

#include "../ref/gemm_ref.h"
#include "../sample.h"
#include "../test.h"
#include "gpu.h"

static lpgemm_handle_t cpu, gpu;

static lpgemm_handle_t make_handle(lpgemm_backend_t backend) {
  lpgemm_config_t config = {.size = sizeof config};
  lpgemm_handle_t handle = NULL;
  config.backend = backend;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  return handle;
}

/* ---- what is packed ---- */

static const struct {
  lpgemm_dtype_t code, super;
} scale_kinds[] = {{0, 0},
                   {LPGEMM_F16, 0},
                   {LPGEMM_BF16, 0},
                   {LPGEMM_F32, 0},
                   {LPGEMM_E8M0, 0},
                   {LPGEMM_E4M3, 0},
                   {LPGEMM_UINT(4), LPGEMM_F16},
                   {LPGEMM_UINT(6), LPGEMM_BF16},
                   {LPGEMM_I8, LPGEMM_F32},
                   {LPGEMM_E4M3, LPGEMM_F32}};
static const struct {
  lpgemm_zero_t zero;
  lpgemm_dtype_t code, super;
} zero_kinds[] = {{LPGEMM_ZERO_NONE, 0, 0},
                  {LPGEMM_ZERO_CONSTANT, 0, 0},
                  {LPGEMM_ZERO_PER_GROUP, LPGEMM_U8, 0},
                  {LPGEMM_ZERO_PER_GROUP, LPGEMM_U16, 0},
                  {LPGEMM_ZERO_PER_GROUP, LPGEMM_F16, 0},
                  {LPGEMM_ZERO_PER_GROUP, LPGEMM_BF16, 0},
                  {LPGEMM_ZERO_PER_GROUP, LPGEMM_F32, 0},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_F16, 0},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_BF16, 0},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_F32, 0},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_UINT(4), LPGEMM_F16},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_UINT(6), LPGEMM_F32},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_I8, LPGEMM_BF16},
                  {LPGEMM_ZERO_MINIMUM, LPGEMM_E4M3, LPGEMM_F16}};
enum {
  SCALES = sizeof scale_kinds / sizeof scale_kinds[0],
  ZEROS = sizeof zero_kinds / sizeof zero_kinds[0],
  KINDS = SCALES * ZEROS /* the pairs, of which those with two-level minima but not scales do not exist */
};

/* Kind i of scales and zeros for a type, in an odd shape; 0 if it does not exist. */
static int make_desc(lpgemm_dtype_t type, int i, lpgemm_weight_desc_t *desc) {
  static const int64_t groups[] = {16, 32, 48, 128, 0};
  int s = i % SCALES, z = i / SCALES % ZEROS;
  if (zero_kinds[z].super && !scale_kinds[s].super) return 0;
  int64_t group = groups[test_random() % 5];
  *desc = sample_desc(test_between(1, 50), test_between(1, 600), type, group, scale_kinds[s].code);
  desc->super_scale_type = scale_kinds[s].super;
  if (desc->super_scale_type) desc->super_k = group * test_between(0, 4);
  desc->zero = zero_kinds[z].zero;
  desc->zero_type = zero_kinds[z].code;
  desc->super_zero_type = zero_kinds[z].super;
  if (desc->zero == LPGEMM_ZERO_CONSTANT) desc->zero_constant = i % 2 ? 1.5f : 3;
  if (i % 3 == 0) desc->global_scale = -0.37f;
  return 1;
}

/* ---- sources: the same arrays on the host, on the GPU, or some here and some there ---- */

typedef enum place { ON_HOST, ON_GPU, ON_BOTH } place;

typedef struct placed {
  lpgemm_weight_source_t source;
  int on_gpu[5];
  void *memory[5];
} placed;

static const void **array_of(lpgemm_weight_source_t *source, int i) {
  const void **arrays[] = {&source->codes, &source->scales, &source->zeros, &source->super_scales,
                           &source->super_zeros};
  return arrays[i];
}

/* skip: bytes in front of the codes, which need no alignment. */
static placed put(const lpgemm_weight_source_t *from, place where, size_t skip) {
  placed p = {.source = *from};
  const int odd = (int)(test_random() % 2);
  const size_t sizes[] = {from->codes_bytes, from->scales_bytes, from->zeros_bytes, from->super_scales_bytes,
                          from->super_zeros_bytes};
  for (int i = 0; i < 5; i++) {
    const void **array = array_of(&p.source, i);
    size_t offset = i == 0 ? skip : 0;
    if (!*array) continue;
    p.on_gpu[i] = where == ON_BOTH ? i % 2 == odd : where == ON_GPU;
    p.memory[i] = p.on_gpu[i] ? gpu_alloc(offset + sizes[i], 0xff) : malloc(offset + sizes[i] + 1);
    if (!p.memory[i]) abort();
    GPU(cudaMemcpy((char *)p.memory[i] + offset, *array, sizes[i], cudaMemcpyDefault));
    *array = (char *)p.memory[i] + offset;
  }
  return p;
}

static void take_away(placed *p) {
  for (int i = 0; i < 5; i++) {
    if (p->on_gpu[i]) {
      gpu_free(p->memory[i]);
    } else {
      free(p->memory[i]);
    }
  }
}

/* ---- packing ---- */

static lpgemm_weights_info_t info_of(lpgemm_weights_t weights) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  return info;
}

/* Both matrices have the same bytes and say the same about themselves. */
static void check_equal(lpgemm_weights_t want, lpgemm_weights_t got, const char *what) {
  lpgemm_weights_info_t a = info_of(want), b = info_of(got);
  size_t a_size = 0, b_size = 0;
  uint8_t *a_blob = sample_blob(cpu, want, &a_size), *b_blob = sample_blob(gpu, got, &b_size);
  CHECK_INT(b.backend, LPGEMM_BACKEND_CUDA);
  CHECK_INT(a_size, b_size);
  CHECK(a.payload_hash == b.payload_hash);
  for (size_t i = 0; i < a_size && a_size == b_size; i++) {
    if (a_blob[i] == b_blob[i]) continue;
    test_fail(__FILE__, __LINE__, "%s, %s %lld x %lld: byte %zu of %zu is 0x%02x, not 0x%02x", what,
              lpgemm_dtype_name(a.desc.type), (long long)a.desc.n, (long long)a.desc.k, i, a_size, b_blob[i],
              a_blob[i]);
    break;
  }
  test_free(a_blob);
  test_free(b_blob);
}

/* Packs on the GPU from one place, into memory of the library or of the caller. */
static void check_packed(const sample *s, lpgemm_weights_t want, place where, int own_memory) {
  static const char *const places[] = {"from the host", "from the GPU", "from both"};
  size_t bytes = info_of(want).packed_bytes;
  placed p = put(&s->source, where, test_random() % 3);
  void *memory = own_memory ? gpu_alloc(bytes, 0xCD) : NULL;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(gpu, &s->desc, &p.source, memory, memory ? bytes : 0, &weights), LPGEMM_SUCCESS);
  take_away(&p); /* the bytes are final */
  if (weights) {
    CHECK(!memory || info_of(weights).memory == memory);
    check_equal(want, weights, places[where]);
  }
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  gpu_free(memory);
}

static void pack_kinds(lpgemm_dtype_t type, lpgemm_code_layout_t layout, lpgemm_order_t order) {
  static const int64_t gaps[] = {0, 1, 7, 24};
  for (int i = (int)(test_random() % 7); i < KINDS; i += 7) { /* 7 is prime to both: every scale and zero is met */
    lpgemm_weight_desc_t desc;
    if (!make_desc(type, i, &desc)) continue;
    sample s;
    sample_make(&s, &desc);
    int64_t gap = gaps[test_random() % 4];
    sample_lay_out(&s, layout, gap ? desc.k + gap : 0, order);
    lpgemm_weights_t want = sample_pack(cpu, &s);
    if (want) {
      check_packed(&s, want, ON_GPU, 0);
      check_packed(&s, want, ON_GPU, 1);
      check_packed(&s, want, ON_HOST, i % 2);
      check_packed(&s, want, ON_BOTH, i % 2);
    }
    CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
    sample_free(&s);
  }
}

/* More row tiles than a launch has blocks, a long row, and nothing at all. */
static void pack_shape(int64_t n, int64_t k, lpgemm_dtype_t type, int64_t group) {
  lpgemm_weight_desc_t desc = sample_desc(n, k, type, group, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  for (int layout = LPGEMM_CODES_BYTES; layout <= LPGEMM_CODES_BITS; layout++) {
    if (layout == LPGEMM_CODES_BITS) sample_lay_out(&s, LPGEMM_CODES_BITS, k + 1, LPGEMM_COLUMN_MAJOR);
    lpgemm_weights_t want = sample_pack(cpu, &s);
    if (want) check_packed(&s, want, ON_GPU, layout);
    CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
  }
  sample_free(&s);
}

/* ---- refusals ---- */

enum { HEADER = 512 }; /* bytes, see FORMAT.md */

/* The GPU refuses what the host refuses with its words, wherever it packs, and leaves no header. */
static void check_refused(const lpgemm_weight_desc_t *desc, const lpgemm_weight_source_t *source,
                          lpgemm_status_t want) {
  lpgemm_weights_t none = NULL;
  size_t bytes = 0;
  char words[512];
  CHECK_STATUS(lpgemm_pack_weights(cpu, desc, source, NULL, 0, &none), want);
  snprintf(words, sizeof words, "%s", lpgemm_last_error());
  CHECK_STATUS(lpgemm_packed_size(desc, &bytes), LPGEMM_SUCCESS);
  uint8_t *host = malloc(bytes);
  if (!host) abort();
  for (int where = ON_HOST; where <= ON_GPU; where++) {
    placed p = put(source, (place)where, 0);
    void *memory = gpu_alloc(bytes, 0xCD);
    lpgemm_dtype_t type; /* so that no sentence is left over */
    CHECK_STATUS(lpgemm_dtype_parse("another error", &type), LPGEMM_INVALID_TYPE);
    CHECK_STATUS(lpgemm_pack_weights(gpu, desc, &p.source, memory, bytes, &none), want);
    if (strcmp(words, lpgemm_last_error()) != 0) {
      test_fail(__FILE__, __LINE__, "\"%s\" on the GPU, \"%s\" on the host", lpgemm_last_error(), words);
    }
    CHECK(none == NULL);
    gpu_read(host, memory, bytes);
    for (size_t i = 0; i < HEADER; i++) CHECK_INT(host[i], 0);
    take_away(&p);
    gpu_free(memory);
  }
  free(host);
}

static void refuse_codes(uint32_t bits) {
  static const int places[][2] = {{0, 0}, {39, 299}, {17, 255}, {17, 256}, {5, 63}, {39, 31}, {0, 16}};
  lpgemm_weight_desc_t desc = sample_desc(40, 300, LPGEMM_UINT(bits), 0, 0);
  sample s;
  sample_make(&s, &desc);
  for (int gap = 0; gap < 2; gap++) {
    sample_lay_out(&s, LPGEMM_CODES_BYTES, gap ? 311 : 0, LPGEMM_ROW_MAJOR);
    for (int i = 0; i < 7; i++) {
      uint8_t *first = s.source_codes + places[i][0] * (gap ? 311 : 300) + places[i][1];
      uint8_t *second = s.source_codes + places[(i + 1) % 7][0] * (gap ? 311 : 300) + places[(i + 1) % 7][1];
      const uint8_t good[] = {*first, *second};
      *first |= (uint8_t)(1u << bits);
      check_refused(&desc, &s.source, LPGEMM_INVALID_CODE);
      *second |= 0x80; /* of two the first is named */
      check_refused(&desc, &s.source, LPGEMM_INVALID_CODE);
      *first = good[0];
      *second = good[1];
    }
  }
  sample_free(&s);
}

/* Scales of a part that are too large, alone and two at once, in both orders. */
static void refuse_numbers(lpgemm_weight_desc_t desc, lpgemm_part_t part, uint32_t wrong) {
  for (int order = LPGEMM_ROW_MAJOR; order <= LPGEMM_COLUMN_MAJOR; order++) {
    sample s;
    sample_make(&s, &desc);
    sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, (lpgemm_order_t)order);
    int64_t count = desc.n * sample_part_columns(&desc, part), bytes = ref_bytes(sample_part_type(&desc, part));
    for (int i = 0; i < 12; i++) {
      int64_t at = i == 0 ? 0 : i == 1 ? count - 1 : test_between(0, count - 1);
      memcpy((uint8_t *)s.source_part[part] + at * bytes, &wrong, (size_t)bytes);
      check_refused(&desc, &s.source, LPGEMM_INVALID_CODE);
      if (i % 2 == 0) continue;
      sample_lay_out(&s, LPGEMM_CODES_BYTES, 0, (lpgemm_order_t)order); /* right again */
    }
    sample_free(&s);
  }
}

static void refusals(void) {
  for (uint32_t bits = 1; bits < 8; bits++) {
    if (test_case("device/refused/code/%u", (unsigned)bits)) refuse_codes(bits);
  }
  if (test_case("device/refused/scale/u6")) refuse_numbers(sample_desc_q4k(20, 300), LPGEMM_PART_SCALES, 64);
  if (test_case("device/refused/minimum/u6")) refuse_numbers(sample_desc_q4k(20, 300), LPGEMM_PART_ZEROS, 255);
  if (test_case("device/refused/scale/u4")) {
    lpgemm_weight_desc_t desc = sample_desc_q4k(20, 300);
    desc.scale_type = LPGEMM_UINT(4);
    refuse_numbers(desc, LPGEMM_PART_SCALES, 16);
  }
  for (uint32_t bits = 1; bits <= 8; bits++) {
    lpgemm_dtype_t type = LPGEMM_UINT(bits);
    if (bits < 8 && test_case("device/refused/zero/u8/%u", (unsigned)bits)) {
      refuse_numbers(sample_desc_zeros(20, 300, type, 32, LPGEMM_F16, LPGEMM_U8), LPGEMM_PART_ZEROS, (1u << bits) + 1);
    }
    if (test_case("device/refused/zero/u16/%u", (unsigned)bits)) {
      refuse_numbers(sample_desc_zeros(20, 300, type, 32, LPGEMM_F16, LPGEMM_U16), LPGEMM_PART_ZEROS, (1u << bits) + 1);
    }
  }
}

/* ---- unpacking ---- */

static void check_unpacked(lpgemm_weights_t on_cpu, lpgemm_weights_t on_gpu, lpgemm_dtype_t type, int64_t ld) {
  lpgemm_weight_desc_t desc = info_of(on_cpu).desc;
  size_t bytes = (size_t)((desc.n - 1) * ld + desc.k) * (size_t)ref_bytes(type);
  uint8_t *want = malloc(bytes), *here = malloc(bytes), *there = gpu_alloc(bytes, 0xCD);
  if (!want || !here) abort();
  memset(want, 0xCD, bytes);
  memset(here, 0xCD, bytes);
  CHECK_STATUS(lpgemm_unpack_weights(cpu, on_cpu, type, want, ld), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(gpu, on_gpu, type, here, ld), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(gpu, on_gpu, type, there, ld), LPGEMM_SUCCESS);
  CHECK(memcmp(want, here, bytes) == 0);
  gpu_read(here, there, bytes);
  for (size_t i = 0; i < bytes; i++) {
    if (want[i] == here[i]) continue;
    test_fail(__FILE__, __LINE__, "%s %lld x %lld as %s, ld %lld: byte %zu is 0x%02x, not 0x%02x",
              lpgemm_dtype_name(desc.type), (long long)desc.n, (long long)desc.k, lpgemm_dtype_name(type),
              (long long)ld, i, here[i], want[i]);
    break;
  }
  free(want);
  free(here);
  gpu_free(there);
}

static void check_parts(lpgemm_weights_t weights, const sample *s) {
  for (int part = LPGEMM_PART_SCALES; part <= LPGEMM_PART_SUPER_ZEROS; part++) {
    if (!s->part[part]) continue;
    uint8_t *out = malloc(s->part_bytes[part]);
    if (!out) abort();
    CHECK_STATUS(lpgemm_unpack_part(gpu, weights, (lpgemm_part_t)part, out, s->part_bytes[part]), LPGEMM_SUCCESS);
    CHECK(memcmp(out, s->part[part], s->part_bytes[part]) == 0);
    free(out);
  }
}

static void unpack_kinds(lpgemm_dtype_t type) {
  static const lpgemm_dtype_t types[] = {LPGEMM_U8, LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16};
  for (int i = (int)(test_random() % 7); i < KINDS; i += 7) {
    lpgemm_weight_desc_t desc;
    if (!make_desc(type, i, &desc)) continue;
    if (i % 2) desc.global_scale = 0; /* 1: fp16 may come of fp32 arithmetic then */
    sample s;
    sample_make(&s, &desc);
    lpgemm_weights_t on_cpu = sample_pack(cpu, &s), on_gpu = sample_pack(gpu, &s);
    for (int t = 0; t < 4 && on_cpu && on_gpu; t++) {
      check_unpacked(on_cpu, on_gpu, types[t], desc.k);
      check_unpacked(on_cpu, on_gpu, types[t], desc.k + 1 + 2 * (i % 8));
    }
    if (on_gpu) check_parts(on_gpu, &s);
    CHECK_STATUS(lpgemm_weights_destroy(on_cpu), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_destroy(on_gpu), LPGEMM_SUCCESS);
    sample_free(&s);
  }
}

static void unpack_many_rows(void) {
  lpgemm_weight_desc_t desc = sample_desc(16 * 65535 + 21, 5, LPGEMM_INT(2), 0, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t on_cpu = sample_pack(cpu, &s), on_gpu = sample_pack(gpu, &s);
  if (on_cpu && on_gpu) check_unpacked(on_cpu, on_gpu, LPGEMM_F16, 6);
  CHECK_STATUS(lpgemm_weights_destroy(on_cpu), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(on_gpu), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* ---- quantising ---- */

/* Rows near a bell curve with a spread of their own, some of zeros; what lies between rows is not read. */
static void *draw_weights(lpgemm_dtype_t type, int64_t n, int64_t k, int64_t ld) {
  int64_t count = (n - 1) * ld + k;
  void *w = malloc((size_t)(count * ref_bytes(type)));
  if (!w) abort();
  for (int64_t i = 0; i < count; i++) {
    double bell = test_uniform(-1, 1) + test_uniform(-1, 1) + test_uniform(-1, 1);
    double v = ldexp(bell + (double)(i / ld % 3), (int)(i / ld % 9) - 6);
    ref_store(type, w, i, i % ld >= k ? (double)NAN : i / ld % 11 == 5 ? 0 : v);
  }
  return w;
}

/* 1 if the host quantises so, and the GPU makes the same bytes; 0 if both refuse with the same words. */
static int check_quantized(const lpgemm_weight_desc_t *desc, lpgemm_quantize_method_t method, lpgemm_dtype_t type,
                           const void *w, int64_t ld) {
  lpgemm_weights_t want = NULL;
  lpgemm_status_t status = lpgemm_quantize_weights(cpu, desc, method, w, type, ld, NULL, 0, &want);
  char words[512];
  snprintf(words, sizeof words, "%s", lpgemm_last_error());
  size_t bytes = 0, w_bytes = (size_t)(((desc->n - 1) * ld + desc->k) * ref_bytes(type));
  CHECK_STATUS(lpgemm_packed_size(desc, &bytes), LPGEMM_SUCCESS);
  for (int where = ON_HOST; where <= ON_GPU; where++) {
    void *on_gpu = where == ON_GPU ? gpu_copy(w, w_bytes) : NULL, *memory = on_gpu ? gpu_alloc(bytes, 0xCD) : NULL;
    lpgemm_weights_t got = NULL;
    CHECK_STATUS(
        lpgemm_quantize_weights(gpu, desc, method, on_gpu ? on_gpu : w, type, ld, memory, memory ? bytes : 0, &got),
        status);
    if (want && got) check_equal(want, got, "quantised");
    if (!want) CHECK(strcmp(words, lpgemm_last_error()) == 0 && got == NULL);
    if (!want && memory) {
      uint8_t *host = malloc(bytes);
      if (!host) abort();
      gpu_read(host, memory, bytes);
      for (size_t i = 0; i < bytes; i++) CHECK_INT(host[i], 0xCD);
      free(host);
    }
    CHECK_STATUS(lpgemm_weights_destroy(got), LPGEMM_SUCCESS);
    gpu_free(memory);
    gpu_free(on_gpu);
  }
  CHECK_STATUS(lpgemm_weights_destroy(want), LPGEMM_SUCCESS);
  return want != NULL;
}

static void quantize_kinds(lpgemm_dtype_t type) {
  static const lpgemm_dtype_t sources[] = {LPGEMM_F32, LPGEMM_F16, LPGEMM_BF16};
  int made = 0;
  for (int method = LPGEMM_QUANTIZE_ABSMAX; method <= LPGEMM_QUANTIZE_MSE; method++) {
    for (int i = (int)(test_random() % 7); i < KINDS; i += 7) {
      lpgemm_weight_desc_t desc;
      if (!make_desc(type, i, &desc)) continue;
      if (desc.global_scale < 0) desc.global_scale = 0.37f;
      if (desc.k > 200) desc.k = 200;
      int64_t ld = desc.k + i % 4;
      lpgemm_dtype_t source = sources[test_random() % 3];
      void *w = draw_weights(source, desc.n, desc.k, ld);
      made += check_quantized(&desc, (lpgemm_quantize_method_t)method, source, w, ld);
      free(w);
    }
  }
  CHECK(made > 10);
}

/* More than the scratch holds at once. */
static void quantize_large(void) {
  lpgemm_weight_desc_t desc = sample_desc_q4k(1800, 4099);
  void *w = draw_weights(LPGEMM_F16, desc.n, desc.k, desc.k);
  CHECK(check_quantized(&desc, LPGEMM_QUANTIZE_MINMAX, LPGEMM_F16, w, desc.k));
  free(w);
}

static void quantize_not_finite(void) {
  static const int places[][2] = {{0, 0}, {3, 57}, {6, 99}};
  static const float values[] = {NAN, INFINITY, -INFINITY};
  lpgemm_weight_desc_t desc = sample_desc(7, 100, LPGEMM_INT(4), 32, LPGEMM_F16);
  for (int i = 0; i < 9; i++) {
    float *w = draw_weights(LPGEMM_F32, 7, 100, 103);
    w[places[i % 3][0] * 103 + places[i % 3][1]] = values[i / 3];
    w[6 * 103 + 99] = NAN; /* of two the first is named */
    CHECK(!check_quantized(&desc, LPGEMM_QUANTIZE_ABSMAX, LPGEMM_F32, w, 103));
    free(w);
  }
}

/* ---- files ---- */

static void check_load(const uint8_t *blob, const void *bytes, size_t size, uint32_t flags, lpgemm_weights_t want) {
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_deserialize(gpu, bytes, size, flags, &weights), LPGEMM_SUCCESS);
  if (!weights) return;
  CHECK((info_of(weights).memory == bytes) == ((flags & LPGEMM_LOAD_VIEW) != 0));
  check_equal(want, weights, "loaded");
  uint8_t *back = malloc(size);
  if (!back) abort();
  CHECK_STATUS(lpgemm_serialize(gpu, weights, back, size), LPGEMM_SUCCESS);
  CHECK(memcmp(back, blob, size) == 0);
  free(back);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

static void load(void) {
  lpgemm_weight_desc_t desc = sample_desc_q4k(37, 600);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t on_cpu = sample_pack(cpu, &s), none = NULL;
  size_t size = 0;
  uint8_t *managed = sample_blob(cpu, on_cpu, &size), *odd = malloc(size + 1);
  if (!managed || !odd) abort();
  uint8_t *blob = odd + 1; /* a copy may come from anywhere */
  memcpy(blob, managed, size);
  uint8_t *there = gpu_copy(blob, size);
  check_load(blob, blob, size, LPGEMM_LOAD_COPY, on_cpu);
  check_load(blob, blob, size, LPGEMM_LOAD_COPY | LPGEMM_LOAD_SKIP_CHECKSUM, on_cpu);
  check_load(blob, there, size, LPGEMM_LOAD_VIEW, on_cpu);
  check_load(blob, there, size, LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM, on_cpu);
  for (int i = 0; i < 2; i++) { /* a header on the host, or the one that is there */
    uint64_t storage[LPGEMM_WEIGHTS_BYTES / 8];
    const size_t room = sizeof storage;
    lpgemm_weights_t weights = NULL;
    CHECK_STATUS(lpgemm_weights_from_blob(gpu, i ? blob : NULL, i ? LPGEMM_HEADER_BYTES : 0, there, size, storage, room,
                                          &weights),
                 LPGEMM_SUCCESS);
    if (weights) check_equal(on_cpu, weights, "in storage");
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_from_blob(gpu, blob, LPGEMM_HEADER_BYTES, blob, size, storage, room, &none),
                 LPGEMM_MISALIGNED);
    CHECK_STATUS(lpgemm_weights_from_blob(gpu, i ? blob : NULL, i ? LPGEMM_HEADER_BYTES : 0, there + 64, size, storage,
                                          room, &none),
                 LPGEMM_MISALIGNED);
  }
  void *aligned = NULL;
  CHECK_INT(posix_memalign(&aligned, 256, size), 0);
  memcpy(aligned, blob, size);
  CHECK_STATUS(lpgemm_deserialize(gpu, aligned, size, LPGEMM_LOAD_VIEW, &none), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "LPGEMM_LOAD_COPY") != NULL);
  free(aligned);
  for (size_t at = 0; at < size; at += 97) { /* damage on the GPU is seen */
    uint8_t bad = (uint8_t)(blob[at] ^ 1);
    GPU(cudaMemcpy(there + at, &bad, 1, cudaMemcpyHostToDevice));
    lpgemm_status_t want = at >= 12 && at < 16 ? LPGEMM_VERSION_MISMATCH : LPGEMM_CORRUPT_DATA;
    CHECK_STATUS(lpgemm_deserialize(gpu, there, size, LPGEMM_LOAD_VIEW, &none), want);
    GPU(cudaMemcpy(there + at, blob + at, 1, cudaMemcpyHostToDevice));
  }
  for (size_t cut = 0; cut < size; cut += 256) {
    CHECK_STATUS(lpgemm_deserialize(gpu, there, cut, LPGEMM_LOAD_VIEW, &none), LPGEMM_CORRUPT_DATA);
  }
  CHECK(none == NULL);
  gpu_free(there);
  test_free(managed);
  free(odd);
  CHECK_STATUS(lpgemm_weights_destroy(on_cpu), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* Weights of one backend and a handle of the other. */
static void wrong_backend(void) {
  lpgemm_weight_desc_t desc = sample_desc(20, 64, LPGEMM_UINT(4), 32, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t on_cpu = sample_pack(cpu, &s), on_gpu = sample_pack(gpu, &s);
  uint16_t *x = test_alloc(64 * 2), *y = test_alloc(20 * 2);
  memset(x, 0, 64 * 2);
  for (int i = 0; i < 2; i++) {
    lpgemm_handle_t handle = i ? cpu : gpu;
    lpgemm_weights_t weights = i ? on_gpu : on_cpu;
    CHECK_STATUS(lpgemm_matmul(handle, weights, 1, x, 0, y, 0), LPGEMM_WRONG_DEVICE);
    CHECK_STATUS(lpgemm_unpack_weights(handle, weights, LPGEMM_F16, y, 0), LPGEMM_WRONG_DEVICE);
    CHECK_STATUS(lpgemm_serialize(handle, weights, y, 1 << 20), LPGEMM_WRONG_DEVICE);
    CHECK_STATUS(lpgemm_prepare(handle, weights, 1), LPGEMM_WRONG_DEVICE);
  }
  test_free(x);
  test_free(y);
  CHECK_STATUS(lpgemm_weights_destroy(on_cpu), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(on_gpu), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* Tuning times what the trial's workspace has room for, however much another kernel would like. */
static void tune(void) {
  enum { N = 2560, K = 2304 };
  static const int64_t rows[] = {1, 23, 56, 300};
  const lpgemm_weight_desc_t desc = sample_desc(N, K, LPGEMM_UINT(3), 64, LPGEMM_F16);
  float *w = draw_weights(LPGEMM_F32, N, K, K);
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_quantize_weights(gpu, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights),
               LPGEMM_SUCCESS);
  free(w);
  const lpgemm_autotune_options_t options = {.size = sizeof options,
                                             .seconds = 60}; /* other programs may share the GPU */
  CHECK_STATUS(lpgemm_autotune(gpu, weights, rows, sizeof rows / sizeof rows[0], &options), LPGEMM_SUCCESS);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = rows[i]};
    char text[512] = "";
    CHECK_STATUS(lpgemm_explain(gpu, &args, text, sizeof text), LPGEMM_SUCCESS);
    CHECK(strstr(text, "the fastest that was measured") != NULL);
  }
  CHECK_STATUS(lpgemm_tuning_clear(gpu), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

/* A handle of another GPU than the current one: the work is done there, and the current one stays. */
static void second_gpu(void) {
  enum { N = 40, K = 130 };
  lpgemm_config_t config = {.size = sizeof config};
  lpgemm_handle_t first = gpu;
  config.backend = LPGEMM_BACKEND_CUDA;
  config.device = 1;
  CHECK_STATUS(lpgemm_create(&gpu, &config), LPGEMM_SUCCESS);
  lpgemm_weight_desc_t desc = sample_desc(N, K, LPGEMM_INT(4), 32, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  float *w = draw_weights(LPGEMM_F32, N, K, K), *want_values = malloc(N * K * sizeof *w),
        *values = malloc(N * K * sizeof *w);
  if (!want_values || !values) abort();
  lpgemm_weights_t want[2] = {sample_pack(cpu, &s)}, got[2] = {NULL};
  CHECK_STATUS(lpgemm_quantize_weights(cpu, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &want[1]),
               LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(cpu, want[0], LPGEMM_F32, want_values, 0), LPGEMM_SUCCESS);
  GPU(cudaSetDevice(1));
  placed p = put(&s.source, ON_GPU, 0);
  void *w_there = gpu_copy(w, N * K * sizeof *w), *out = gpu_alloc(N * K * sizeof *w, 0);
  GPU(cudaSetDevice(0));
  CHECK_STATUS(lpgemm_pack_weights(gpu, &desc, &p.source, NULL, 0, &got[0]), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_quantize_weights(gpu, &desc, LPGEMM_QUANTIZE_ABSMAX, w_there, LPGEMM_F32, 0, NULL, 0, &got[1]),
               LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_unpack_weights(gpu, got[0], LPGEMM_F32, out, 0), LPGEMM_SUCCESS);
  for (int i = 0; i < 2; i++) check_equal(want[i], got[i], "on the second GPU");
  int current = -1;
  GPU(cudaGetDevice(&current));
  CHECK_INT(current, 0);
  GPU(cudaSetDevice(1));
  gpu_read(values, out, N * K * sizeof *w);
  CHECK(memcmp(values, want_values, N * K * sizeof *w) == 0);
  take_away(&p);
  gpu_free(w_there);
  gpu_free(out);
  GPU(cudaSetDevice(0));
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(lpgemm_weights_destroy(want[i]), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_destroy(got[i]), LPGEMM_SUCCESS);
  }
  free(w);
  free(want_values);
  free(values);
  sample_free(&s);
  CHECK_STATUS(lpgemm_destroy(gpu), LPGEMM_SUCCESS);
  gpu = first;
}

/* ---- the suite ---- */

void suite_device(void) {
  cpu = make_handle(LPGEMM_BACKEND_CPU);
  gpu = make_handle(LPGEMM_BACKEND_CUDA);
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    lpgemm_dtype_t type = sample_type(i);
    const char *name = lpgemm_dtype_name(type);
    for (int j = 0; j < 4; j++) {
      if (test_case("device/pack/%s/%s/%s", name, j % 2 ? "bits" : "bytes", j / 2 ? "columns" : "rows")) {
        pack_kinds(type, (lpgemm_code_layout_t)(j % 2), (lpgemm_order_t)(j / 2));
      }
    }
    if (test_case("device/unpack/%s", name)) unpack_kinds(type);
    if (test_case("device/quantize/%s", name)) quantize_kinds(type);
  }
  for (uint32_t bits = 1; bits <= 8; bits++) {
    if (test_case("device/pack/long/u%u", (unsigned)bits)) pack_shape(3, 40001, LPGEMM_UINT(bits), 128);
  }
  if (test_case("device/pack/many_rows/u3")) pack_shape(16 * 65535 + 21, 5, LPGEMM_UINT(3), 0);
  if (test_case("device/pack/empty")) {
    pack_shape(0, 20, LPGEMM_UINT(4), 32);
    pack_shape(20, 0, LPGEMM_UINT(4), 32);
  }
  if (test_case("device/unpack/many_rows")) unpack_many_rows();
  refusals();
  if (test_case("device/quantize/large")) quantize_large();
  if (test_case("device/quantize/not_finite")) quantize_not_finite();
  if (test_case("device/load")) load();
  if (test_case("device/tune")) tune();
  if (test_case("device/wrong_backend")) wrong_backend();
  int gpus = 0;
  GPU(cudaGetDeviceCount(&gpus));
  if (gpus > 1 && test_case("device/second_gpu")) second_gpu();
  CHECK_STATUS(lpgemm_destroy(cpu), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(gpu), LPGEMM_SUCCESS);
}
