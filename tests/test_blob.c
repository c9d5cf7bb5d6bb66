/* Packed matrices as files: what was written runs as what was packed, and nothing that is not exactly right is taken.
 * Damage is signed again where it must be, with the hash of ref/format_reader.c. */
#include <sys/mman.h>

#include "ref/format_reader.h"
#include "sample.h"
#include "test.h"

static lpgemm_handle_t handle;

typedef struct blob {
  uint8_t *bytes; /* test_alloc() memory, so 256-byte aligned */
  uint64_t size;
} blob;

static blob serialize(lpgemm_weights_t weights) {
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  blob b = {test_alloc(info.packed_bytes), info.packed_bytes};
  CHECK_STATUS(lpgemm_serialize(handle, weights, b.bytes, b.size), LPGEMM_SUCCESS);
  return b;
}

static blob make_blob(const lpgemm_weight_desc_t *desc) {
  sample s;
  sample_make(&s, desc);
  lpgemm_weights_t weights = sample_pack(handle, &s);
  blob b = serialize(weights);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  sample_free(&s);
  return b;
}

static void put(uint8_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void sign_header(blob b) { put(b.bytes + 504, format_hash(b.bytes, 504), 8); }

static void sign(blob b) {
  put(b.bytes + 496, format_hash(b.bytes + 512, b.size - 512), 8);
  sign_header(b);
}

/* ---- good ones ---- */

enum { M = 3 };

/* Y of the same X for any weights of this shape. */
static uint8_t *product(lpgemm_weights_t weights, int64_t n, int64_t k) {
  float *x = test_alloc((size_t)(M * k) * sizeof *x), *y = test_alloc((size_t)(M * n) * sizeof *y);
  for (int64_t i = 0; i < M * k; i++) x[i] = (float)((i * 37 + 11) % 64 - 32) / 16.0f;
  lpgemm_run_args_t args = {.size = sizeof args};
  args.weights = weights;
  args.m = M;
  args.x = x;
  args.y = y;
  args.x_type = args.y_type = LPGEMM_F32;
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_workspace_size(handle, weights, M, &args, &bytes), LPGEMM_SUCCESS);
  void *workspace = test_alloc(bytes);
  CHECK_STATUS(lpgemm_set_workspace(handle, workspace, bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_run(handle, &args), LPGEMM_SUCCESS);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(workspace);
  test_free(x);
  return (uint8_t *)y;
}

static void check_loaded(blob b, const void *memory, uint32_t flags, lpgemm_weights_t original, const uint8_t *want) {
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_deserialize(handle, memory, b.size, flags, &weights), LPGEMM_SUCCESS);
  if (weights == NULL) return;
  lpgemm_weights_info_t a = {.size = sizeof a}, c = {.size = sizeof c};
  CHECK_STATUS(lpgemm_weights_info(original, &a), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(weights, &c), LPGEMM_SUCCESS);
  CHECK(memcmp(&a.desc, &c.desc, sizeof a.desc) == 0);
  CHECK(a.payload_hash == c.payload_hash && a.layout_id == c.layout_id && a.packed_bytes == c.packed_bytes);
  CHECK((c.memory == memory) == ((flags & LPGEMM_LOAD_VIEW) != 0));
  blob loaded = serialize(weights);
  CHECK(memcmp(loaded.bytes, b.bytes, b.size) == 0);
  test_free(loaded.bytes);
  uint8_t *got = product(weights, a.desc.n, a.desc.k);
  CHECK(memcmp(got, want, (size_t)(M * a.desc.n) * 4) == 0);
  test_free(got);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

/* Weights in storage, of a blob with or without a header on the host, are the weights. */
static void check_storage(blob b, const void *header, const void *memory, lpgemm_weights_t original,
                          const uint8_t *want) {
  uint64_t storage[LPGEMM_WEIGHTS_BYTES / 8];
  memset(storage, 0xA5, sizeof storage);
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_weights_from_blob(handle, header, header ? LPGEMM_HEADER_BYTES : 0, memory, b.size, storage,
                                        sizeof storage, &weights),
               LPGEMM_SUCCESS);
  if (weights == NULL) return;
  CHECK((void *)weights == (void *)storage);
  lpgemm_weights_info_t a = {.size = sizeof a}, c = {.size = sizeof c};
  CHECK_STATUS(lpgemm_weights_info(original, &a), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(weights, &c), LPGEMM_SUCCESS);
  CHECK(memcmp(&a.desc, &c.desc, sizeof a.desc) == 0 && c.memory == memory);
  CHECK(a.payload_hash == c.payload_hash && a.layout_id == c.layout_id && a.packed_bytes == c.packed_bytes);
  CHECK_STATUS(lpgemm_prepare(handle, weights, M), LPGEMM_SUCCESS);
  uint8_t *got = product(weights, a.desc.n, a.desc.k);
  CHECK(memcmp(got, want, (size_t)(M * a.desc.n) * 4) == 0);
  test_free(got);
  lpgemm_weights_t again = NULL;
  CHECK_STATUS(lpgemm_weights_from_blob(handle, header, header ? LPGEMM_HEADER_BYTES : 0, memory, b.size, storage,
                                        sizeof storage, &again),
               LPGEMM_INVALID_ARGUMENT);
  CHECK(again == NULL && strstr(lpgemm_last_error(), "storage") != NULL);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(weights, &c), LPGEMM_INVALID_HANDLE);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_INVALID_HANDLE);
}

/* Written to a file, mapped read-only: validate and a view that wrote would crash. */
static void *map_file(blob b) {
  FILE *file = tmpfile();
  CHECK(file != NULL);
  if (file == NULL) return NULL;
  CHECK_INT(fwrite(b.bytes, 1, b.size, file), b.size);
  CHECK_INT(fflush(file), 0);
  void *mapped = mmap(NULL, b.size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  CHECK(mapped != MAP_FAILED);
  CHECK_INT(fclose(file), 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

static void check_file(const lpgemm_weight_desc_t *desc) {
  sample s;
  sample_make(&s, desc);
  lpgemm_weights_t weights = sample_pack(handle, &s);
  sample_free(&s);
  if (weights == NULL) return;
  uint8_t *want = product(weights, desc->n, desc->k);
  blob b = serialize(weights);
  CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
  void *mapped = map_file(b);
  if (mapped) {
    const void *own_kind = test_backend() == LPGEMM_BACKEND_CPU ? mapped : b.bytes;
    CHECK_STATUS(lpgemm_validate(mapped, b.size), LPGEMM_SUCCESS);
    check_loaded(b, own_kind, LPGEMM_LOAD_VIEW, weights, want);
    check_loaded(b, own_kind, LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM, weights, want);
    check_storage(b, NULL, own_kind, weights, want);
    check_storage(b, b.bytes, own_kind, weights, want);
    check_loaded(b, mapped, LPGEMM_LOAD_COPY, weights, want);
    check_loaded(b, mapped, LPGEMM_LOAD_SKIP_CHECKSUM, weights, want);
    CHECK_INT(munmap(mapped, b.size), 0);
  }
  uint8_t *odd = test_alloc_at(b.size, 1); /* a copy may come from anywhere */
  memcpy(odd, b.bytes, b.size);
  CHECK_STATUS(lpgemm_validate(odd, b.size), LPGEMM_SUCCESS);
  check_loaded(b, odd, LPGEMM_LOAD_COPY, weights, want);
  test_free(odd);
  test_free(want);
  test_free(b.bytes);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
}

static void files(void) {
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    if (!test_case("blob/file/%s", lpgemm_dtype_name(sample_type(i)))) continue;
    lpgemm_weight_desc_t desc = sample_desc_zeros(37, 300, sample_type(i), 32, LPGEMM_F16, LPGEMM_F32);
    check_file(&desc);
  }
  if (test_case("blob/file/q4k")) {
    lpgemm_weight_desc_t desc = sample_desc_q4k(37, 600);
    check_file(&desc);
  }
  if (test_case("blob/file/empty")) {
    lpgemm_weight_desc_t desc = sample_desc(0, 0, LPGEMM_UINT(4), 0, 0);
    blob b = make_blob(&desc);
    CHECK_INT(b.size, 512);
    CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
    test_free(b.bytes);
  }
}

static void serialize_refusals(void) {
  if (!test_case("blob/serialize")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 100, LPGEMM_UINT(3), 0, LPGEMM_F16);
  sample s;
  sample_make(&s, &desc);
  lpgemm_weights_t weights = sample_pack(handle, &s);
  blob b = serialize(weights);
  uint8_t *out = test_alloc(b.size);
  CHECK_STATUS(lpgemm_serialize(handle, weights, out, b.size - 1), LPGEMM_BUFFER_TOO_SMALL);
  CHECK(strstr(lpgemm_last_error(), "buffer_bytes") != NULL);
  CHECK_STATUS(lpgemm_serialize(handle, weights, NULL, b.size), LPGEMM_NULL_POINTER);
  for (uint64_t i = 0; i < b.size; i++) CHECK_INT(out[i], 0xCD);
  CHECK_STATUS(lpgemm_serialize(handle, weights, out, b.size), LPGEMM_SUCCESS);
  CHECK(memcmp(out, b.bytes, b.size) == 0);
  test_free(out);
  test_free(b.bytes);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  sample_free(&s);
}

/* ---- bad ones ---- */

/* Refused in every way of loading, with nothing made and nothing written; `header` says that the header shows it. */
static void check_refused(const void *bytes, uint64_t size, lpgemm_status_t want, int header, const char *what) {
  static const uint32_t flags[] = {LPGEMM_LOAD_COPY, LPGEMM_LOAD_VIEW, LPGEMM_LOAD_SKIP_CHECKSUM,
                                   LPGEMM_LOAD_VIEW | LPGEMM_LOAD_SKIP_CHECKSUM};
  lpgemm_status_t got = lpgemm_validate(bytes, size);
  if (got != want) {
    test_fail(__FILE__, __LINE__, "%s: validate gives %s, not %s", what, lpgemm_status_string(got),
              lpgemm_status_string(want));
  }
  for (int i = 0; i < (header ? 4 : 2); i++) {
    lpgemm_weights_t weights = NULL;
    got = lpgemm_deserialize(handle, bytes, size, flags[i], &weights);
    if (got != want || weights != NULL) {
      test_fail(__FILE__, __LINE__, "%s: deserialize with flags %u gives %s, not %s", what, (unsigned)flags[i],
                lpgemm_status_string(got), lpgemm_status_string(want));
    }
    lpgemm_weights_destroy(weights);
  }
}

static void truncated(void) {
  if (!test_case("blob/truncated")) return;
  lpgemm_weight_desc_t desc = sample_desc_zeros(17, 70, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  blob b = make_blob(&desc);
  for (uint64_t size = 0; size < b.size; size++) {
    uint8_t *cut = test_alloc(size); /* no byte more, so that a sanitizer sees a read beyond */
    memcpy(cut, b.bytes, size);
    check_refused(cut, size, LPGEMM_CORRUPT_DATA, 1, "cut");
    test_free(cut);
  }
  uint8_t *longer = test_alloc(b.size + 1024);
  memset(longer, 0, b.size + 1024);
  memcpy(longer, b.bytes, b.size);
  static const uint64_t more[] = {1, 8, 255, 256, 512, 1024};
  for (int i = 0; i < 6; i++) check_refused(longer, b.size + more[i], LPGEMM_CORRUPT_DATA, 1, "longer");
  test_free(longer);
  test_free(b.bytes);
}

/* Every bit of the header. */
static void header_flips(void) {
  if (!test_case("blob/header_flips")) return;
  lpgemm_weight_desc_t desc = sample_desc_q4k(17, 300);
  blob b = make_blob(&desc);
  for (int at = 0; at < 512; at++) {
    lpgemm_status_t want = at >= 12 && at < 16 ? LPGEMM_VERSION_MISMATCH : LPGEMM_CORRUPT_DATA;
    for (int mask = 1; mask <= 0xff; mask = mask < 0x80 ? mask << 1 : mask + 0x7f) { /* each bit, then all */
      b.bytes[at] ^= (uint8_t)mask;
      char what[40];
      snprintf(what, sizeof what, "header byte %d flipped by 0x%02x", at, (unsigned)mask);
      check_refused(b.bytes, b.size, want, 1, what);
      b.bytes[at] ^= (uint8_t)mask;
    }
  }
  CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
  test_free(b.bytes);
}

/* Every bit of the payload. */
static void payload_flips(void) {
  if (!test_case("blob/payload_flips")) return;
  lpgemm_weight_desc_t desc = sample_desc_zeros(17, 70, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  blob b = make_blob(&desc);
  for (uint64_t at = 512; at < b.size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      b.bytes[at] ^= (uint8_t)(1 << bit);
      CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_CORRUPT_DATA);
      b.bytes[at] ^= (uint8_t)(1 << bit);
    }
  }
  /* words that change places are seen as well */
  uint8_t word[8];
  for (uint64_t at = 512; at + 16 <= b.size; at += 8) {
    memcpy(word, b.bytes + at, 8);
    if (memcmp(word, b.bytes + at + 8, 8) == 0) continue;
    memcpy(b.bytes + at, b.bytes + at + 8, 8);
    memcpy(b.bytes + at + 8, word, 8);
    CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_CORRUPT_DATA);
    memcpy(b.bytes + at + 8, b.bytes + at, 8);
    memcpy(b.bytes + at, word, 8);
  }
  b.bytes[600] ^= 1;
  check_refused(b.bytes, b.size, LPGEMM_CORRUPT_DATA, 0, "payload byte 600");
  lpgemm_weights_t weights = NULL; /* who asks for it gets it unchecked */
  CHECK_STATUS(lpgemm_deserialize(handle, b.bytes, b.size, LPGEMM_LOAD_SKIP_CHECKSUM, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(b.bytes);
}

/* Headers with right hashes that say something impossible. u4, 33 x 128, groups of 32 with f16 scales and u8 zeros. */
static void contradictions(void) {
  if (!test_case("blob/contradictions")) return;
  enum { CODES = 176, SCALES = 192, ZEROS = 208, SUPERS = 224, EXPONENTS = 256 };
  lpgemm_weight_desc_t desc = sample_desc_zeros(33, 128, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  blob b = make_blob(&desc);
  format_reader r;
  CHECK(format_open(&r, b.bytes, b.size) == NULL);
  const uint32_t nan = 0x7fc00000, infinity = 0x7f800000, one = 0x3f800000;
  const struct {
    const char *what;
    int at, bytes;
    uint64_t value;
    lpgemm_status_t want;
  } rows[] = {
      {"header bytes", 8, 4, 513, LPGEMM_CORRUPT_DATA},
      {"version 0", 12, 4, 0, LPGEMM_VERSION_MISMATCH},
      {"version 2 of what is plain", 12, 4, 2, LPGEMM_CORRUPT_DATA},
      {"version 3", 12, 4, 3, LPGEMM_VERSION_MISMATCH},
      {"layout 0", 16, 4, 0, LPGEMM_LAYOUT_MISMATCH},
      {"layout 2", 16, 4, 2, LPGEMM_LAYOUT_MISMATCH},
      {"unnamed byte 20", 20, 1, 1, LPGEMM_CORRUPT_DATA},
      {"unnamed byte 164", 164, 1, 1, LPGEMM_CORRUPT_DATA},
      {"unnamed byte 175", 175, 1, 1, LPGEMM_CORRUPT_DATA},
      {"unnamed byte 272", 272, 1, 1, LPGEMM_CORRUPT_DATA},
      {"unnamed byte 495", 495, 1, 1, LPGEMM_CORRUPT_DATA},
      {"total too small", 24, 8, b.size - 256, LPGEMM_CORRUPT_DATA},
      {"total too large", 24, 8, b.size + 256, LPGEMM_CORRUPT_DATA},
      {"total huge", 24, 8, UINT64_MAX, LPGEMM_CORRUPT_DATA},
      {"n negative", 32, 8, (uint64_t)-1, LPGEMM_CORRUPT_DATA},
      {"n huge", 32, 8, UINT64_C(1) << 62, LPGEMM_CORRUPT_DATA},
      {"n 2^31", 32, 8, UINT64_C(1) << 31, LPGEMM_CORRUPT_DATA},
      {"n larger", 32, 8, 49, LPGEMM_CORRUPT_DATA},
      {"n smaller", 32, 8, 16, LPGEMM_CORRUPT_DATA},
      {"k negative", 40, 8, (uint64_t)-128, LPGEMM_CORRUPT_DATA},
      {"k huge", 40, 8, INT64_MAX, LPGEMM_CORRUPT_DATA},
      {"k larger", 40, 8, 192, LPGEMM_CORRUPT_DATA},
      {"k 0", 40, 8, 0, LPGEMM_CORRUPT_DATA},
      {"group_k no multiple of 16", 48, 8, 40, LPGEMM_CORRUPT_DATA},
      {"group_k negative", 48, 8, (uint64_t)-32, LPGEMM_CORRUPT_DATA},
      {"group_k smaller", 48, 8, 16, LPGEMM_CORRUPT_DATA},
      {"group_k larger", 48, 8, 64, LPGEMM_CORRUPT_DATA},
      {"super_k without super scales", 56, 8, 64, LPGEMM_CORRUPT_DATA},
      {"type none", 64, 4, 0, LPGEMM_CORRUPT_DATA},
      {"type f16", 64, 4, LPGEMM_F16, LPGEMM_CORRUPT_DATA},
      {"type i32", 64, 4, LPGEMM_I32, LPGEMM_CORRUPT_DATA},
      {"type of other bits", 64, 4, LPGEMM_UINT(5), LPGEMM_CORRUPT_DATA},
      {"type 0xffffffff", 64, 4, 0xffffffff, LPGEMM_CORRUPT_DATA},
      {"no scale_type", 68, 4, 0, LPGEMM_CORRUPT_DATA},
      {"scale_type of other bytes", 68, 4, LPGEMM_F32, LPGEMM_CORRUPT_DATA},
      {"scale_type u4", 68, 4, LPGEMM_UINT(4), LPGEMM_CORRUPT_DATA},
      {"super_scale_type", 72, 4, LPGEMM_F16, LPGEMM_CORRUPT_DATA},
      {"zero 4", 76, 4, 4, LPGEMM_CORRUPT_DATA},
      {"zero 0x80000002", 76, 4, 0x80000002, LPGEMM_CORRUPT_DATA},
      {"zero none", 76, 4, 0, LPGEMM_CORRUPT_DATA},
      {"zero minimum", 76, 4, 3, LPGEMM_CORRUPT_DATA},
      {"zero_type none", 80, 4, 0, LPGEMM_CORRUPT_DATA},
      {"zero_type e8m0", 80, 4, LPGEMM_E8M0, LPGEMM_CORRUPT_DATA},
      {"super_zero_type", 84, 4, LPGEMM_F16, LPGEMM_CORRUPT_DATA},
      {"zero_constant", 88, 4, one, LPGEMM_CORRUPT_DATA},
      {"zero_constant NaN", 88, 4, nan, LPGEMM_CORRUPT_DATA},
      {"global_scale 0", 92, 4, 0, LPGEMM_CORRUPT_DATA},
      {"global_scale infinite", 92, 4, infinity, LPGEMM_CORRUPT_DATA},
      {"codebook", 96, 4, one, LPGEMM_CORRUPT_DATA},
      {"codebook -0", 156, 4, 0x80000000, LPGEMM_CORRUPT_DATA},
      {"codebook NaN", 128, 4, nan, LPGEMM_CORRUPT_DATA},
      {"scale_span 256", 160, 4, 256, LPGEMM_CORRUPT_DATA},
      {"codes in the header", CODES, 8, 256, LPGEMM_CORRUPT_DATA},
      {"codes later", CODES, 8, r.offset[FORMAT_CODES] + 256, LPGEMM_CORRUPT_DATA},
      {"codes shorter", CODES + 8, 8, r.length[FORMAT_CODES] - 8, LPGEMM_CORRUPT_DATA},
      {"codes huge", CODES + 8, 8, UINT64_MAX - 511, LPGEMM_CORRUPT_DATA},
      {"scales over codes", SCALES, 8, r.offset[FORMAT_CODES], LPGEMM_CORRUPT_DATA},
      {"scales misaligned", SCALES, 8, r.offset[FORMAT_SCALES] + 16, LPGEMM_CORRUPT_DATA},
      {"scales out of range", SCALES, 8, b.size, LPGEMM_CORRUPT_DATA},
      {"scales wrap round", SCALES, 8, UINT64_MAX - 255, LPGEMM_CORRUPT_DATA},
      {"scales into zeros", SCALES + 8, 8, r.length[FORMAT_SCALES] + 256, LPGEMM_CORRUPT_DATA},
      {"zeros over scales", ZEROS, 8, r.offset[FORMAT_SCALES], LPGEMM_CORRUPT_DATA},
      {"zeros absent", ZEROS + 8, 8, 0, LPGEMM_CORRUPT_DATA},
      {"super scales from nowhere", SUPERS, 8, 512, LPGEMM_CORRUPT_DATA},
      {"super scales with bytes", SUPERS + 8, 8, 16, LPGEMM_CORRUPT_DATA},
      {"exponents out of range", EXPONENTS, 8, b.size + 256, LPGEMM_CORRUPT_DATA},
      {"exponents too long", EXPONENTS + 8, 8, 4096, LPGEMM_CORRUPT_DATA},
      {"payload hash", 496, 8, 0, LPGEMM_CORRUPT_DATA},
  };
  uint8_t *good = test_alloc(512);
  memcpy(good, b.bytes, 512);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    put(b.bytes + rows[i].at, rows[i].value, rows[i].bytes);
    sign_header(b);
    CHECK(memcmp(b.bytes, good, 504) != 0);
    check_refused(b.bytes, b.size, rows[i].want, rows[i].at != 496, rows[i].what);
    CHECK(format_open(&r, b.bytes, b.size) != NULL);
    memcpy(b.bytes, good, 512);
  }
  CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
  test_free(good);
  test_free(b.bytes);
}

/* Payloads with right hashes that break the rules of FORMAT.md sections 4, 7 and 8. Q4_K, 17 x 260. */
static void bad_payloads(void) {
  if (!test_case("blob/bad_payloads")) return;
  lpgemm_weight_desc_t desc = sample_desc_q4k(17, 260);
  blob b = make_blob(&desc);
  format_reader r;
  CHECK(format_open(&r, b.bytes, b.size) == NULL);
  const uint64_t scales = r.offset[FORMAT_SCALES], exponents = r.offset[FORMAT_ROW_EXPONENTS];
  const uint64_t last_tile = r.offset[FORMAT_CODES] + (uint64_t)((2 * r.k_tiles - 1) * r.tile_bytes);
  const struct {
    const char *what;
    uint64_t at;
    uint8_t value;
  } rows[] = {
      {"code of a padding row", last_tile + 64, 1},      /* lane 4: row 1 of the tile */
      {"code of a padding column", last_tile + 8, 0x10}, /* lane 0, word 2: columns 32, 48, ... */
      {"u6 scale code of 64", scales + 3, 64},
      {"u6 minimum code of 255", r.offset[FORMAT_ZEROS] + 5, 255},
      {"scale of a padding row", scales + (uint64_t)r.group.padded * 16 + 1, 1},
      {"scale of a padding group", scales + (uint64_t)(r.group.padded - 1) * 16, 1},
      {"super scale of a padding row", r.offset[FORMAT_SUPER_SCALES] + (uint64_t)r.super.padded * 32 + 2, 1},
      {"row exponent", exponents + 2, (uint8_t)(b.bytes[exponents + 2] + 1)},
      {"exponent of a padding row", exponents + 20, 1},
      {"gap after the last section", b.size - 1, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint8_t good = b.bytes[rows[i].at];
    CHECK(good != rows[i].value);
    b.bytes[rows[i].at] = rows[i].value;
    sign(b);
    check_refused(b.bytes, b.size, LPGEMM_CORRUPT_DATA, 0, rows[i].what);
    CHECK(format_open(&r, b.bytes, b.size) != NULL);
    b.bytes[rows[i].at] = good;
    sign(b);
  }
  put(b.bytes + 160, 1 + (uint64_t)b.bytes[160], 4);
  sign(b);
  check_refused(b.bytes, b.size, LPGEMM_CORRUPT_DATA, 0, "scale_span");
  test_free(b.bytes);
}

/* What version 2 adds, all at once. */
static lpgemm_weight_desc_t desc_version_2(void) {
  lpgemm_weight_desc_t desc = sample_desc_zeros(75, 300, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  desc.row_scales = LPGEMM_F32;
  desc.group_n = 32;
  return desc;
}

static void version_2(void) {
  if (test_case("blob/file/version_2")) {
    lpgemm_weight_desc_t desc = desc_version_2();
    check_file(&desc);
  }
  if (!test_case("blob/version_2")) return;
  enum { ORDER = 272, FACTORS = 288 };
  lpgemm_weight_desc_t desc = desc_version_2();
  blob b = make_blob(&desc);
  format_reader r;
  CHECK(format_open(&r, b.bytes, b.size) == NULL);
  CHECK_INT(b.bytes[12], 2);
  const uint64_t order = r.offset[FORMAT_COLUMN_ORDER], factors = r.offset[FORMAT_ROW_SCALES];
  const struct {
    const char *what;
    uint64_t at;
    int bytes;
    uint64_t value;
  } rows[] = {
      {"version 1", 12, 4, 1},
      {"rows", 20, 4, 1},
      {"row_scales f16", 164, 4, LPGEMM_F16},
      {"no row_scales", 164, 4, 0},
      {"columns 2", 168, 4, 2},
      {"columns plain", 168, 4, 0},
      {"group_n 24", 172, 4, 24},
      {"group_n 0", 172, 4, 0},
      {"group_n 48", 172, 4, 48},
      {"group_n huge", 172, 4, 0xfffffff0},
      {"x_k = k", 304, 8, 300},
      {"x_k below k", 304, 8, 299},
      {"x_k huge", 304, 8, UINT64_MAX},
      {"order over codes", ORDER, 8, 512},
      {"order shorter", ORDER + 8, 8, 4 * 299},
      {"factors shorter", FACTORS + 8, 8, 4 * 75},
      {"order beyond k", order + 4 * 17, 4, 300},
      {"order negative", order + 4 * 17, 4, 0xffffffff},
      {"order twice", order + 4 * 17, 4, (uint64_t)format_column(&r, 18)},
      {"factor of a padding row", factors + 4 * 75, 4, 1},
      {"rows that share differ", r.offset[FORMAT_SCALES] + 2, 2, 0x1234},
      {"zeros that share differ", r.offset[FORMAT_ZEROS] + 1, 1, (uint64_t)b.bytes[r.offset[FORMAT_ZEROS]] ^ 1},
  };
  uint8_t good[8];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    memcpy(good, b.bytes + rows[i].at, sizeof good);
    put(b.bytes + rows[i].at, rows[i].value, rows[i].bytes);
    sign(b);
    const int is_order = rows[i].at >= order && rows[i].at < order + 4 * 300; /* which is checked always */
    check_refused(b.bytes, b.size, LPGEMM_CORRUPT_DATA, rows[i].at < 512 || is_order, rows[i].what);
    CHECK(format_open(&r, b.bytes, b.size) != NULL);
    memcpy(b.bytes + rows[i].at, good, sizeof good);
  }
  sign(b);
  CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
  test_free(b.bytes);
  /* a header alone may claim any x_k: no check may believe it */
  desc = sample_desc(0, 64, LPGEMM_UINT(4), 0, 0);
  desc.columns = LPGEMM_COLUMNS_ORDERED;
  desc.x_k = INT32_MAX;
  uint8_t *memory = test_alloc(1024);
  int32_t columns[64];
  for (int i = 0; i < 64; i++) columns[i] = INT32_MAX - 1 - i * 30000000;
  lpgemm_weight_source_t source = {
      .size = sizeof source, .column_order = columns, .column_order_bytes = sizeof columns};
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, memory, 1024, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_validate(memory, 768), LPGEMM_SUCCESS);
  test_free(memory);
}

/* Random changes of well-formed fields, signed: the library and the independent reader agree on what is a matrix. */
static void agreement(void) {
  if (!test_case("blob/agreement")) return;
  static const uint32_t types[] = {0,
                                   LPGEMM_UINT(3),
                                   LPGEMM_UINT(4),
                                   LPGEMM_UINT(6),
                                   LPGEMM_INT(4),
                                   LPGEMM_BIPOLAR(4),
                                   LPGEMM_CODEBOOK(4),
                                   LPGEMM_FLOAT(2, 1),
                                   LPGEMM_U8,
                                   LPGEMM_I8,
                                   LPGEMM_E4M3,
                                   LPGEMM_E8M0,
                                   LPGEMM_U16,
                                   LPGEMM_F16,
                                   LPGEMM_BF16,
                                   LPGEMM_F32,
                                   LPGEMM_I32,
                                   0x60000};
  const int count = test_backend() == LPGEMM_BACKEND_CPU ? 4 : 3;
  lpgemm_weight_desc_t descs[4] = {sample_desc_q4k(17, 300),
                                   sample_desc_zeros(33, 128, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8),
                                   sample_desc(16, 64, LPGEMM_CODEBOOK(4), 0, LPGEMM_E8M0), desc_version_2()};
  int accepted = 0, refused = 0;
  for (int i = 0; i < count; i++) {
    blob b = make_blob(&descs[i]);
    uint8_t *good = test_alloc(b.size);
    memcpy(good, b.bytes, b.size);
    for (int round = 0; round < 4000; round++) {
      switch (test_between(0, 5)) {
        case 5: put(b.bytes + 164 + 4 * test_between(0, 2), (uint64_t)test_between(0, 3) * 16, 4); break;
        case 0: put(b.bytes + 64 + 4 * test_between(0, 5), types[test_between(0, 17)], 4); break;
        case 1: put(b.bytes + 32 + 8 * test_between(0, 3), (uint64_t)test_between(-1, 20) * 16, 8); break;
        case 2: put(b.bytes + 32, (uint64_t)test_between(descs[i].n - 2, descs[i].n + 2), 8); break;
        case 3: put(b.bytes + 88 + 4 * test_between(0, 18), test_random() & 0xffffffff, 4); break;
        default: b.bytes[test_between(512, (int64_t)b.size - 1)] ^= (uint8_t)(1 << test_between(0, 7)); break;
      }
      sign(b);
      format_reader r;
      const char *why_not = format_open(&r, b.bytes, b.size);
      lpgemm_status_t status = lpgemm_validate(b.bytes, b.size);
      if ((status == LPGEMM_SUCCESS) != (why_not == NULL)) {
        test_fail(__FILE__, __LINE__, "round %d: the reader says %s, the library %s (%s)", round,
                  why_not ? why_not : "right", lpgemm_status_string(status), lpgemm_last_error());
      }
      accepted += status == LPGEMM_SUCCESS;
      refused += status != LPGEMM_SUCCESS;
      memcpy(b.bytes, good, b.size);
    }
    test_free(good);
    test_free(b.bytes);
  }
  CHECK(accepted > 500 && refused > 500);
}

static void load_refusals(void) {
  if (!test_case("blob/load")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 100, LPGEMM_UINT(3), 0, LPGEMM_F16);
  blob b = make_blob(&desc);
  lpgemm_weights_t weights = NULL;
  for (size_t offset = 1; offset < 256; offset *= 2) {
    uint8_t *moved = test_alloc_at(b.size, offset);
    memcpy(moved, b.bytes, b.size);
    const int is_legal = test_backend() == LPGEMM_BACKEND_CPU && offset >= 64;
    const lpgemm_status_t want = is_legal ? LPGEMM_SUCCESS : LPGEMM_MISALIGNED;
    CHECK_STATUS(lpgemm_deserialize(handle, moved, b.size, LPGEMM_LOAD_VIEW, &weights), want);
    CHECK(is_legal || strstr(lpgemm_last_error(), "bytes") != NULL);
    CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    weights = NULL;
    test_free(moved);
  }
  CHECK_STATUS(lpgemm_deserialize(handle, b.bytes, b.size, 4, &weights), LPGEMM_INVALID_ARGUMENT);
  CHECK(strstr(lpgemm_last_error(), "flags") != NULL);
  CHECK_STATUS(lpgemm_deserialize(handle, NULL, b.size, 0, &weights), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_deserialize(handle, b.bytes, b.size, 0, NULL), LPGEMM_NULL_POINTER);
  CHECK_STATUS(lpgemm_validate(NULL, 512), LPGEMM_NULL_POINTER);
  CHECK(weights == NULL);
  test_free(b.bytes);
}

/* Views where torch's allocator puts them give the bits of those at the largest alignment. */
static void aligned_views(void) {
  if (test_backend() != LPGEMM_BACKEND_CPU || !test_case("blob/aligned")) return;
  for (int i = 0; i < SAMPLE_TYPES; i++) {
    lpgemm_weight_desc_t desc = sample_desc_zeros(37, 300, sample_type(i), 32, LPGEMM_F16, LPGEMM_F32);
    blob b = make_blob(&desc);
    uint8_t *moved = test_alloc_at(b.size, 64), *got[2];
    memcpy(moved, b.bytes, b.size);
    const uint8_t *const memory[2] = {b.bytes, moved};
    for (int j = 0; j < 2; j++) {
      lpgemm_weights_t weights = NULL;
      CHECK_STATUS(lpgemm_deserialize(handle, memory[j], b.size, LPGEMM_LOAD_VIEW, &weights), LPGEMM_SUCCESS);
      got[j] = product(weights, desc.n, desc.k);
      CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
    }
    CHECK(memcmp(got[0], got[1], (size_t)(M * desc.n) * 4) == 0);
    for (int j = 0; j < 2; j++) test_free(got[j]);
    test_free(moved);
    test_free(b.bytes);
  }
}

/* What a header on the host says is checked as a file's is; the bytes behind it are not read. */
static void storage_refusals(void) {
  if (!test_case("blob/storage")) return;
  lpgemm_weight_desc_t desc = sample_desc(20, 100, LPGEMM_UINT(3), 0, LPGEMM_F16);
  blob b = make_blob(&desc);
  uint8_t header[LPGEMM_HEADER_BYTES];
  memcpy(header, b.bytes, sizeof header);
  uint64_t storage[LPGEMM_WEIGHTS_BYTES / 8 + 1];
  lpgemm_weights_t weights = NULL;
#define REFUSES(header, header_bytes, bytes, size, storage, weights, status, word)                                 \
  CHECK_STATUS(                                                                                                    \
      lpgemm_weights_from_blob(handle, header, header_bytes, bytes, size, storage, LPGEMM_WEIGHTS_BYTES, weights), \
      status);                                                                                                     \
  CHECK(strstr(lpgemm_last_error(), word) != NULL)
  REFUSES(header, 512, NULL, b.size, storage, &weights, LPGEMM_NULL_POINTER, "bytes");
  REFUSES(header, 512, b.bytes, b.size, NULL, &weights, LPGEMM_NULL_POINTER, "storage");
  REFUSES(header, 512, b.bytes, b.size, storage, NULL, LPGEMM_NULL_POINTER, "weights");
  REFUSES(NULL, 512, b.bytes, b.size, storage, &weights, LPGEMM_NULL_POINTER, "header");
  REFUSES(header, 511, b.bytes, b.size, storage, &weights, LPGEMM_BUFFER_TOO_SMALL, "header_bytes");
  REFUSES(header, 1024, b.bytes, b.size, storage, &weights, LPGEMM_INVALID_SIZE, "header_bytes");
  REFUSES(header, 512, b.bytes + 32, b.size, storage, &weights, LPGEMM_MISALIGNED, "bytes");
  REFUSES(NULL, 0, b.bytes + 32, b.size, storage, &weights, LPGEMM_MISALIGNED, "bytes");
  REFUSES(header, 512, b.bytes, b.size, (uint8_t *)storage + 4, &weights, LPGEMM_MISALIGNED, "storage");
  for (uint64_t size = 0; size < b.size; size += 64) {
    REFUSES(header, 512, b.bytes, size, storage, &weights, LPGEMM_CORRUPT_DATA, "");
    REFUSES(NULL, 0, b.bytes, size, storage, &weights, LPGEMM_CORRUPT_DATA, "");
  }
  for (size_t at = 0; at < sizeof header; at++) {
    header[at] ^= 1;
    const lpgemm_status_t want = at >= 12 && at < 16 ? LPGEMM_VERSION_MISMATCH : LPGEMM_CORRUPT_DATA;
    REFUSES(header, 512, b.bytes, b.size, storage, &weights, want, "");
    header[at] ^= 1;
  }
  REFUSES(header, 512, b.bytes, 2 * b.size, storage, &weights, LPGEMM_INVALID_SIZE, "2 blobs");
#undef REFUSES
  CHECK_STATUS(
      lpgemm_weights_from_blob(handle, header, 512, b.bytes, b.size, storage, LPGEMM_WEIGHTS_BYTES - 1, &weights),
      LPGEMM_BUFFER_TOO_SMALL);
  CHECK(weights == NULL && strstr(lpgemm_last_error(), "storage_bytes") != NULL);
  memset(b.bytes, 0, sizeof header);
  CHECK_STATUS(lpgemm_weights_from_blob(handle, header, 512, b.bytes, b.size, storage, sizeof storage, &weights),
               LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  uint8_t headers[2 * LPGEMM_HEADER_BYTES]; /* of a stack */
  for (int e = 0; e < 2; e++) memcpy(headers + e * LPGEMM_HEADER_BYTES, header, sizeof header);
  lpgemm_weights_info_t info = {.size = sizeof info};
  CHECK_STATUS(
      lpgemm_weights_from_blob(handle, headers, sizeof headers, b.bytes, 2 * b.size, storage, sizeof storage, &weights),
      LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(weights, &info), LPGEMM_SUCCESS);
  CHECK_INT(info.desc.experts, 2);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  test_free(b.bytes);
}

/* Rows without columns take no bytes, so a header of 512 may claim any number of them: no loop may believe it. */
static void rows_of_nothing(void) {
  if (!test_case("blob/rows_of_nothing")) return;
  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  desc.n = INT32_MAX;
  desc.type = LPGEMM_UINT(4);
  lpgemm_weight_source_t source = {.size = sizeof source};
  uint8_t *memory = test_alloc(512);
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_pack_weights(handle, &desc, &source, memory, 512, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_validate(memory, 512), LPGEMM_SUCCESS);
  test_free(memory);
}

/* What is derived from scales on two levels, where a super-group or the row does not end with a group. */
static void two_levels(void) {
  static const lpgemm_dtype_t codes[] = {LPGEMM_UINT(4), LPGEMM_UINT(6), LPGEMM_I8, LPGEMM_E4M3};
  static const int64_t groups[] = {16, 32, 48, 64, 128};
  if (!test_case("blob/two_levels")) return;
  for (int i = 0; i < 200; i++) {
    lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT((uint32_t)test_between(1, 8))};
    desc.n = test_between(1, 40);
    desc.k = test_between(1, 700);
    desc.group_k = groups[test_between(0, 4)];
    desc.super_k = desc.group_k * test_between(0, 5);
    desc.scale_type = codes[test_between(0, 3)];
    desc.super_scale_type = LPGEMM_F16;
    blob b = make_blob(&desc);
    CHECK_STATUS(lpgemm_validate(b.bytes, b.size), LPGEMM_SUCCESS);
    test_free(b.bytes);
  }
}

void suite_blob(void) {
  handle = sample_handle();
  two_levels();
  files();
  version_2();
  serialize_refusals();
  truncated();
  header_flips();
  payload_flips();
  contradictions();
  bad_payloads();
  agreement();
  load_refusals();
  aligned_views();
  storage_refusals();
  rows_of_nothing();
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}
