/* Every public function called wrongly: the status, a sentence that names the argument, and not one byte written. */
#include <math.h>
#include <unistd.h>

#include "internal.h"
#include "sample.h"
#include "test.h"

enum { N = 24, K = 64, M = 3, ARENA = 32768 };

/* What the calls below would use if they were right. */
static struct {
  lpgemm_handle_t handle, dead_handle;
  lpgemm_weights_t weights, dead_weights; /* u4 with f16 scales */
  lpgemm_weights_t integers;              /* i8 without scales */
  lpgemm_weights_t two_level;             /* Q4_K */
  sample source;                          /* of weights */
  uint8_t *in;                            /* zeros: X, C, bias, scalars */
  uint8_t *out;                           /* whatever may be written */
} w;

static void open_world(void) {
  w.handle = sample_handle();
  w.dead_handle = sample_handle();
  CHECK_STATUS(lpgemm_destroy(w.dead_handle), LPGEMM_SUCCESS);
  lpgemm_weight_desc_t desc = sample_desc(N, K, LPGEMM_UINT(4), 32, LPGEMM_F16);
  sample_make(&w.source, &desc);
  w.weights = sample_pack(w.handle, &w.source);
  w.dead_weights = sample_pack(w.handle, &w.source);
  CHECK_STATUS(lpgemm_weights_destroy(w.dead_weights), LPGEMM_SUCCESS);
  sample s;
  desc = sample_desc(N, K, LPGEMM_INT(8), 0, 0);
  sample_make(&s, &desc);
  w.integers = sample_pack(w.handle, &s);
  sample_free(&s);
  desc = sample_desc_q4k(N, 256);
  sample_make(&s, &desc);
  w.two_level = sample_pack(w.handle, &s);
  sample_free(&s);
  w.in = test_alloc(ARENA);
  memset(w.in, 0, ARENA);
  w.out = test_alloc(ARENA);
}

static void close_world(void) {
  test_free(w.in);
  test_free(w.out);
  sample_free(&w.source);
  CHECK_STATUS(lpgemm_weights_destroy(w.weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(w.integers), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_destroy(w.two_level), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(w.handle), LPGEMM_SUCCESS);
}

/* A sentence of another failure, so that one left over is not taken for the answer. */
static void forget_error(void) { (void)lpgemm_codebook_preset("no such table", (float[16]){0}); }

static void refused(int line, const char *call, lpgemm_status_t got, lpgemm_status_t want, const char *word) {
  if (got != want) {
    test_fail(__FILE__, line, "%s gave %s (%s), not %s", call, lpgemm_status_string(got), lpgemm_last_error(),
              lpgemm_status_string(want));
  } else if (!strstr(lpgemm_last_error(), word)) {
    test_fail(__FILE__, line, "%s: \"%s\" does not name %s", call, lpgemm_last_error(), word);
  }
  for (int i = 0; i < ARENA; i++) {
    if (w.out[i] == 0xCD) continue; /* test_alloc()'s fill */
    test_fail(__FILE__, line, "%s wrote byte %d of its output", call, i);
    memset(w.out, 0xCD, ARENA);
  }
}

#define REFUSED(call, want, word) refused(__LINE__, #call, (forget_error(), (call)), want, word)

/* Places in the output arena for what a call would return. */
#define OUT(type) ((type *)(void *)w.out)
#define OUT_AT(type, offset) ((type *)(void *)(w.out + (offset)))

/* ---- right calls, to be made wrong ---- */

static lpgemm_run_args_t run_args(void) {
  lpgemm_run_args_t args = {.size = sizeof args};
  args.weights = w.weights;
  args.m = M;
  args.x = w.in;
  args.x_type = LPGEMM_F16;
  args.y = w.out;
  args.y_type = LPGEMM_F32;
  return args;
}

static lpgemm_run_args_t integer_args(void) {
  lpgemm_run_args_t args = run_args();
  args.weights = w.integers;
  args.x_type = LPGEMM_I8;
  args.y_type = LPGEMM_I32;
  return args;
}

/* ---- statuses ---- */

static void statuses(void) {
  if (!test_case("misuse/statuses")) return;
  static const int values[] = {0, 10, 11, 12, 13, 14, 15, 20, 21, 22, 30, 31, 32, 33, 34, 40, 50, 51, 52, 90, 91, 92};
  CHECK_INT(LPGEMM_INVALID_ARGUMENT, 10);
  CHECK_INT(LPGEMM_INVALID_CODE, 15);
  CHECK_INT(LPGEMM_NOT_SUPPORTED, 20);
  CHECK_INT(LPGEMM_WRONG_DEVICE, 22);
  CHECK_INT(LPGEMM_INVALID_SIZE, 30);
  CHECK_INT(LPGEMM_WORKSPACE_TOO_SMALL, 34);
  CHECK_INT(LPGEMM_CUDA_ERROR, 40);
  CHECK_INT(LPGEMM_CORRUPT_DATA, 50);
  CHECK_INT(LPGEMM_LAYOUT_MISMATCH, 52);
  CHECK_INT(LPGEMM_OUT_OF_MEMORY, 90);
  CHECK_INT(LPGEMM_INTERNAL_ERROR, 92);
  enum { COUNT = sizeof values / sizeof values[0] };
  const char *unknown = lpgemm_status_string((lpgemm_status_t)77);
  CHECK(unknown != NULL && lpgemm_status_string((lpgemm_status_t)-1) != NULL);
  for (int i = 0; i < COUNT; i++) {
    const char *text = lpgemm_status_string((lpgemm_status_t)values[i]);
    CHECK(text != NULL && strncmp(text, "LPGEMM_", 7) == 0 && strcmp(text, unknown) != 0);
    for (int j = 0; j < i; j++) CHECK(strcmp(text, lpgemm_status_string((lpgemm_status_t)values[j])) != 0);
  }
  CHECK_INT(lpgemm_version(), LPGEMM_VERSION);
  CHECK(strlen(lpgemm_build_info()) > 10 && strchr(lpgemm_build_info(), '\n') == NULL);
}

/* ---- handles and weights that are none ---- */

/* Every function that takes a handle. */
static void bad_handle(lpgemm_handle_t handle, lpgemm_status_t want) {
  lpgemm_run_args_t args = run_args();
  const lpgemm_weight_desc_t *desc = &w.source.desc;
  const int64_t rows[1] = {1};
  const float one = 1.0f;
  REFUSED(lpgemm_set_stream(handle, NULL), want, "handle");
  REFUSED(lpgemm_set_workspace(handle, NULL, 0), want, "handle");
  REFUSED(lpgemm_set_pointer_mode(handle, LPGEMM_POINTER_HOST), want, "handle");
  REFUSED(lpgemm_pack_weights(handle, desc, &w.source.source, NULL, 0, OUT(lpgemm_weights_t)), want, "handle");
  REFUSED(lpgemm_quantize_weights(handle, desc, LPGEMM_QUANTIZE_ABSMAX, w.in, LPGEMM_F16, 0, NULL, 0,
                                  OUT(lpgemm_weights_t)),
          want, "handle");
  REFUSED(lpgemm_unpack_weights(handle, w.weights, LPGEMM_U8, w.out, 0), want, "handle");
  REFUSED(lpgemm_unpack_part(handle, w.weights, LPGEMM_PART_SCALES, w.out, ARENA), want, "handle");
  REFUSED(lpgemm_serialize(handle, w.weights, w.out, ARENA), want, "handle");
  REFUSED(lpgemm_deserialize(handle, w.in, 512, 0, OUT(lpgemm_weights_t)), want, "handle");
  REFUSED(lpgemm_weights_from_blob(handle, NULL, 0, w.in, 512, w.out + 64, LPGEMM_WEIGHTS_BYTES, OUT(lpgemm_weights_t)),
          want, "handle");
  REFUSED(lpgemm_run(handle, &args), want, "handle");
  REFUSED(lpgemm_matmul(handle, w.weights, M, w.in, 0, w.out, 0), want, "handle");
  REFUSED(lpgemm_workspace_size(handle, w.weights, M, NULL, OUT(size_t)), want, "handle");
  REFUSED(lpgemm_prepare(handle, w.weights, M), want, "handle");
  REFUSED(lpgemm_quantize_activations(handle, M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, OUT_AT(float, 1024),
                                      LPGEMM_X_SCALE_ROW),
          want, "handle");
  REFUSED(lpgemm_prepared_x_size(handle, &args, OUT(size_t)), want, "handle");
  REFUSED(lpgemm_prepare_x(handle, &args, w.out, ARENA), want, "handle");
  REFUSED(lpgemm_hgemm(handle, 1, 0, N, M, K, w.in, w.weights, K, w.in, K, w.in, w.out, N), want, "handle");
  REFUSED(lpgemm_gemm_ex(handle, 1, 0, N, M, K, &one, w.weights, 2, K, w.in, 2, K, &one, w.out, 2, N, 68, 0), want,
          "handle");
  REFUSED(lpgemm_gemm_strided_batched_ex(handle, 1, 0, N, M, K, &one, &w.weights, 2, K, 0, w.in, 2, K, M * K, &one,
                                         w.out, 2, N, M * N, 2, 68, 0),
          want, "handle");
  REFUSED(lpgemm_explain(handle, &args, (char *)w.out, ARENA), want, "handle");
  REFUSED(lpgemm_supports(handle, desc, LPGEMM_F16, LPGEMM_F16, 1), want, "handle");
  REFUSED(lpgemm_autotune(handle, w.weights, rows, 1, NULL), want, "handle");
  REFUSED(lpgemm_tuning_save(handle, "/nowhere/tuning"), want, "handle");
  REFUSED(lpgemm_tuning_load(handle, "/nowhere/tuning", OUT(int), OUT_AT(int, 8)), want, "handle");
  REFUSED(lpgemm_tuning_clear(handle), want, "handle");
  CHECK_INT(lpgemm_get_backend(handle), LPGEMM_BACKEND_AUTO);
  CHECK_INT(strlen(lpgemm_device_name(handle)), 0);
}

/* Every function that takes weights. */
static void bad_weights(lpgemm_weights_t weights, lpgemm_status_t want, const char *word) {
  lpgemm_run_args_t args = run_args();
  lpgemm_weights_info_t *info = OUT(lpgemm_weights_info_t);
  const int64_t rows[1] = {1};
  const float one = 1.0f;
  args.weights = weights;
  REFUSED(lpgemm_weights_info(weights, info), want, "weights");
  REFUSED(lpgemm_unpack_weights(w.handle, weights, LPGEMM_U8, w.out, 0), want, "weights");
  REFUSED(lpgemm_unpack_part(w.handle, weights, LPGEMM_PART_SCALES, w.out, ARENA), want, "weights");
  REFUSED(lpgemm_serialize(w.handle, weights, w.out, ARENA), want, "weights");
  REFUSED(lpgemm_run(w.handle, &args), want, "weights");
  REFUSED(lpgemm_matmul(w.handle, weights, M, w.in, 0, w.out, 0), want, "weights");
  REFUSED(lpgemm_workspace_size(w.handle, weights, M, NULL, OUT(size_t)), want, "weights");
  REFUSED(lpgemm_prepare(w.handle, weights, M), want, "weights");
  REFUSED(lpgemm_hgemm(w.handle, 1, 0, N, M, K, w.in, weights, K, w.in, K, w.in, w.out, N), want, word);
  REFUSED(lpgemm_gemm_ex(w.handle, 1, 0, N, M, K, &one, weights, 2, K, w.in, 2, K, &one, w.out, 2, N, 68, 0), want,
          word);
  lpgemm_weights_t second[2] = {w.weights, weights}; /* the first product must not run either */
  REFUSED(lpgemm_gemm_strided_batched_ex(w.handle, 1, 0, N, M, K, &one, second, 2, K, 1, w.in, 2, K, M * K, &one, w.out,
                                         2, N, M * N, 2, 68, 0),
          want, word);
  REFUSED(lpgemm_explain(w.handle, &args, (char *)w.out, ARENA), want, "weights");
  REFUSED(lpgemm_autotune(w.handle, weights, rows, 1, NULL), want, "weights");
}

static void dead_objects(void) {
  if (test_case("misuse/handle/null")) bad_handle(NULL, LPGEMM_NULL_POINTER);
  if (test_case("misuse/handle/destroyed")) bad_handle(w.dead_handle, LPGEMM_INVALID_HANDLE);
  if (test_case("misuse/handle/weights")) bad_handle((lpgemm_handle_t)(void *)w.weights, LPGEMM_INVALID_HANDLE);
  if (test_case("misuse/handle/stray")) bad_handle((lpgemm_handle_t)(void *)w.in, LPGEMM_INVALID_HANDLE);
  if (test_case("misuse/weights/null")) bad_weights(NULL, LPGEMM_NULL_POINTER, "NULL");
  if (test_case("misuse/weights/destroyed")) bad_weights(w.dead_weights, LPGEMM_INVALID_HANDLE, "weights");
  if (test_case("misuse/weights/handle")) {
    bad_weights((lpgemm_weights_t)(void *)w.handle, LPGEMM_INVALID_HANDLE, "weights");
  }
  if (test_case("misuse/weights/stray")) bad_weights((lpgemm_weights_t)(void *)w.in, LPGEMM_INVALID_HANDLE, "weights");
  if (test_case("misuse/destroy")) {
    CHECK_STATUS(lpgemm_destroy(NULL), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_weights_destroy(NULL), LPGEMM_SUCCESS);
    REFUSED(lpgemm_destroy(w.dead_handle), LPGEMM_INVALID_HANDLE, "handle");
    REFUSED(lpgemm_weights_destroy(w.dead_weights), LPGEMM_INVALID_HANDLE, "weights");
    REFUSED(lpgemm_destroy((lpgemm_handle_t)(void *)w.weights), LPGEMM_INVALID_HANDLE, "handle");
    REFUSED(lpgemm_weights_destroy((lpgemm_weights_t)(void *)w.handle), LPGEMM_INVALID_HANDLE, "weights");
    CHECK_INT(lpgemm_get_backend(w.handle), test_backend()); /* both are still alive */
    CHECK(strlen(lpgemm_device_name(w.handle)) > 0);
    CHECK_STATUS(lpgemm_prepare(w.handle, w.weights, 1), LPGEMM_SUCCESS);
  }
}

/* ---- lpgemm_create ---- */

#define REFUSE_CONFIG(change, want, word)                                                            \
  do {                                                                                               \
    lpgemm_config_t config = {.size = sizeof config};                                                \
    config.backend = LPGEMM_BACKEND_CPU;                                                             \
    change;                                                                                          \
    REFUSED(lpgemm_create(OUT(lpgemm_handle_t), &config), want, word);                               \
    REFUSED(lpgemm_device_supports(&config, &w.source.desc, LPGEMM_F16, LPGEMM_F16, 1), want, word); \
  } while (0)

static void create(void) {
  if (!test_case("misuse/create")) return;
  REFUSED(lpgemm_create(NULL, NULL), LPGEMM_NULL_POINTER, "handle");
  REFUSE_CONFIG(config.size = 0, LPGEMM_INVALID_STRUCT, "config");
  REFUSE_CONFIG(config.size = offsetof(lpgemm_config_t, parallel_for) - 1, LPGEMM_INVALID_STRUCT, "config");
  REFUSE_CONFIG(config.parallel_context = &config, LPGEMM_NULL_POINTER, "parallel_for");
  REFUSE_CONFIG(config.size = SIZE_MAX, LPGEMM_INVALID_STRUCT, "config");
  REFUSE_CONFIG(config.backend = (lpgemm_backend_t)3, LPGEMM_INVALID_ARGUMENT, "backend");
  REFUSE_CONFIG(config.backend = (lpgemm_backend_t)-1, LPGEMM_INVALID_ARGUMENT, "backend");
  REFUSE_CONFIG(config.device = -1, LPGEMM_INVALID_ARGUMENT, "device");
  REFUSE_CONFIG(config.num_threads = -1, LPGEMM_INVALID_ARGUMENT, "num_threads");
  REFUSE_CONFIG(config.num_threads = INT32_MAX, LPGEMM_INVALID_ARGUMENT, "num_threads");
  REFUSE_CONFIG(config.default_type = LPGEMM_I8, LPGEMM_INVALID_TYPE, "default_type");
  REFUSE_CONFIG(config.default_type = 0x7fffffff, LPGEMM_INVALID_TYPE, "default_type");
  for (int i = 0; i < 3; i++) REFUSE_CONFIG(config.reserved[i] = 1, LPGEMM_INVALID_STRUCT, "reserved");
  struct {
    lpgemm_config_t config;
    uint8_t tail[24];
  } later = {{.size = sizeof later}, {0}};
  later.config.backend = LPGEMM_BACKEND_CPU;
  lpgemm_handle_t handle = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &later.config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  later.tail[23] = 1;
  REFUSED(lpgemm_create(OUT(lpgemm_handle_t), &later.config), LPGEMM_INVALID_STRUCT, "config");
  CHECK_INT(lpgemm_backend_available(LPGEMM_BACKEND_CPU), 1);
  CHECK_INT(lpgemm_backend_available((lpgemm_backend_t)9), 0);
}

static void no_backend(void) {
  if (!test_case("misuse/no_backend")) return;
  if (lpgemm_backend_available(LPGEMM_BACKEND_CUDA)) {
    REFUSE_CONFIG((config.backend = LPGEMM_BACKEND_CUDA, config.device = 1000), LPGEMM_NO_BACKEND, "device");
  } else {
    REFUSE_CONFIG(config.backend = LPGEMM_BACKEND_CUDA, LPGEMM_NO_BACKEND, "backend");
  }
}

static void environment(void) {
  if (!test_case("misuse/environment")) return;
  static const struct {
    const char *name, *value;
    lpgemm_status_t want;
  } rows[] = {
      {"LPGEMM_BACKEND", "gpu", LPGEMM_INVALID_ARGUMENT},
      {"LPGEMM_LOG", "loud", LPGEMM_INVALID_ARGUMENT},
      {"LPGEMM_KERNEL", "no.such.kernel", LPGEMM_INVALID_ARGUMENT},
      {"LPGEMM_KERNEL", "blocked", LPGEMM_INVALID_ARGUMENT}, /* not whole: the sentence has a whole one */
      {"LPGEMM_TUNING_FILE", "/nowhere/at/all", LPGEMM_IO_ERROR},
  };
  for (int i = 0; i < 5; i++) {
    const char *found = getenv(rows[i].name);
    char *before = found ? strdup(found) : NULL;
    CHECK_INT(setenv(rows[i].name, rows[i].value, 1), 0);
    REFUSED(lpgemm_create(OUT(lpgemm_handle_t), NULL), rows[i].want, rows[i].value);
    CHECK_INT(before ? setenv(rows[i].name, before, 1) : unsetenv(rows[i].name), 0);
    free(before);
  }
}

static void settings(void) {
  if (!test_case("misuse/settings")) return;
  REFUSED(lpgemm_set_workspace(w.handle, NULL, 256), LPGEMM_NULL_POINTER, "workspace");
  for (int offset = 1; offset < 256; offset *= 2) {
    REFUSED(lpgemm_set_workspace(w.handle, w.out + offset, 1024), LPGEMM_MISALIGNED, "workspace");
  }
  REFUSED(lpgemm_set_pointer_mode(w.handle, (lpgemm_pointer_mode_t)2), LPGEMM_INVALID_ARGUMENT, "mode");
  REFUSED(lpgemm_set_pointer_mode(w.handle, (lpgemm_pointer_mode_t)-1), LPGEMM_INVALID_ARGUMENT, "mode");
}

/* ---- descriptions of weights ---- */

/* A wrong description, wherever one is taken. */
static void bad_desc(int line, const char *change, const lpgemm_weight_desc_t *desc, lpgemm_status_t want,
                     const char *word) {
  lpgemm_weights_t *made = OUT(lpgemm_weights_t);
  forget_error();
  refused(line, change, lpgemm_packed_size(desc, OUT(size_t)), want, word);
  forget_error();
  refused(line, change, lpgemm_pack_weights(w.handle, desc, &w.source.source, w.out + 256, ARENA - 256, made), want,
          word);
  forget_error();
  refused(line, change,
          lpgemm_quantize_weights(w.handle, desc, LPGEMM_QUANTIZE_ABSMAX, w.in, LPGEMM_F16, 0, w.out + 256, ARENA - 256,
                                  made),
          want, word);
  forget_error();
  refused(line, change, lpgemm_supports(w.handle, desc, LPGEMM_F16, LPGEMM_F16, 1), want, word);
  forget_error();
  refused(line, change, lpgemm_device_supports(NULL, desc, LPGEMM_F16, LPGEMM_F16, 1), want, word);
}

#define REFUSE_DESC(base, change, want, word)       \
  do {                                              \
    lpgemm_weight_desc_t desc = base;               \
    change;                                         \
    bad_desc(__LINE__, #change, &desc, want, word); \
  } while (0)

static void descriptions(void) {
  if (!test_case("misuse/desc")) return;
  const lpgemm_weight_desc_t plain = w.source.desc, q4k = sample_desc_q4k(N, 256);
  const lpgemm_weight_desc_t zeros = sample_desc_zeros(N, K, LPGEMM_UINT(4), 32, LPGEMM_F16, LPGEMM_U8);
  const lpgemm_weight_desc_t book = sample_desc(N, K, LPGEMM_CODEBOOK(2), 32, LPGEMM_F16);
  lpgemm_weight_desc_t ordered = plain;
  ordered.columns = LPGEMM_COLUMNS_ORDERED;
  bad_desc(__LINE__, "desc = NULL", NULL, LPGEMM_NULL_POINTER, "desc");
  REFUSED(lpgemm_packed_size(&plain, NULL), LPGEMM_NULL_POINTER, "bytes");

  REFUSE_DESC(plain, desc.size = 0, LPGEMM_INVALID_STRUCT, "size");
  REFUSE_DESC(plain, desc.size = offsetof(lpgemm_weight_desc_t, group_n) - 1, LPGEMM_INVALID_STRUCT, "size");
  REFUSE_DESC(plain, desc.n = -1, LPGEMM_INVALID_SIZE, "desc.n");
  REFUSE_DESC(plain, desc.k = -64, LPGEMM_INVALID_SIZE, "desc.k");
  REFUSE_DESC(plain, desc.n = INT64_MIN, LPGEMM_INVALID_SIZE, "desc.n");
  REFUSE_DESC(plain, desc.n = INT64_C(1) << 31, LPGEMM_SIZE_OVERFLOW, "desc.n");
  REFUSE_DESC(plain, desc.k = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "desc.k");
  REFUSE_DESC(plain, desc.n = desc.k = 0x7fffffff, LPGEMM_SIZE_OVERFLOW, "desc.n");

  REFUSE_DESC(plain, desc.group_k = 8, LPGEMM_INVALID_ARGUMENT, "group_k");
  REFUSE_DESC(plain, desc.group_k = 33, LPGEMM_INVALID_ARGUMENT, "group_k");
  REFUSE_DESC(plain, desc.group_k = -32, LPGEMM_INVALID_ARGUMENT, "group_k");
  REFUSE_DESC(plain, desc.super_k = 64, LPGEMM_INVALID_ARGUMENT, "super_k");
  REFUSE_DESC(q4k, desc.super_k = 48, LPGEMM_INVALID_ARGUMENT, "super_k");
  REFUSE_DESC(q4k, desc.super_k = -256, LPGEMM_INVALID_ARGUMENT, "super_k");
  REFUSE_DESC(q4k, desc.group_k = 0, LPGEMM_INVALID_ARGUMENT, "super_k");

  static const lpgemm_dtype_t no_weights[] = {0,
                                              LPGEMM_F16,
                                              LPGEMM_BF16,
                                              LPGEMM_F32,
                                              LPGEMM_E8M0,
                                              LPGEMM_U16,
                                              LPGEMM_I32,
                                              LPGEMM_INT(1),
                                              LPGEMM_UINT(9),
                                              LPGEMM_BIPOLAR(9),
                                              LPGEMM_CODEBOOK(5),
                                              LPGEMM_FLOAT(4, 4),
                                              LPGEMM_FLOAT(0, 3),
                                              LPGEMM_FLOAT(1, 0),
                                              0xffffffff};
  for (size_t i = 0; i < sizeof no_weights / sizeof no_weights[0]; i++) {
    REFUSE_DESC(plain, desc.type = no_weights[i], LPGEMM_INVALID_TYPE, "desc.type");
  }
  static const lpgemm_dtype_t no_scales[] = {LPGEMM_U8, LPGEMM_UINT(4), LPGEMM_I8, LPGEMM_E5M2, LPGEMM_FLOAT(3, 2), 7};
  for (size_t i = 0; i < sizeof no_scales / sizeof no_scales[0]; i++) {
    REFUSE_DESC(plain, desc.scale_type = no_scales[i], LPGEMM_INVALID_TYPE, "desc.scale_type");
  }
  REFUSE_DESC(q4k, desc.scale_type = LPGEMM_F16, LPGEMM_INVALID_TYPE, "desc.scale_type");
  REFUSE_DESC(q4k, desc.scale_type = 0, LPGEMM_INVALID_TYPE, "desc.scale_type");
  REFUSE_DESC(q4k, desc.super_scale_type = LPGEMM_E4M3, LPGEMM_INVALID_TYPE, "super_scale_type");
  REFUSE_DESC(q4k, desc.super_zero_type = LPGEMM_U8, LPGEMM_INVALID_TYPE, "super_zero_type");
  REFUSE_DESC(q4k, desc.zero_type = LPGEMM_F16, LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(q4k, desc.super_zero_type = 0, LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(q4k, (desc.super_scale_type = 0, desc.super_k = 0, desc.scale_type = LPGEMM_F16), LPGEMM_INVALID_ARGUMENT,
              "super_zero_type");

  REFUSE_DESC(plain, desc.zero = (lpgemm_zero_t)4, LPGEMM_INVALID_ARGUMENT, "desc.zero");
  REFUSE_DESC(plain, desc.zero = (lpgemm_zero_t)-1, LPGEMM_INVALID_ARGUMENT, "desc.zero");
  REFUSE_DESC(plain, desc.zero_type = LPGEMM_F16, LPGEMM_INVALID_ARGUMENT, "zero_type");
  REFUSE_DESC(plain, desc.super_zero_type = LPGEMM_F16, LPGEMM_INVALID_ARGUMENT, "super_zero_type");
  REFUSE_DESC(zeros, desc.zero_type = 0, LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(zeros, desc.zero_type = LPGEMM_I8, LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(zeros, desc.zero_type = LPGEMM_UINT(4), LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(zeros, desc.zero = LPGEMM_ZERO_MINIMUM, LPGEMM_INVALID_TYPE, "zero_type");
  REFUSE_DESC(zeros, desc.zero = LPGEMM_ZERO_CONSTANT, LPGEMM_INVALID_ARGUMENT, "zero_type");
  REFUSE_DESC(plain, desc.zero_constant = 1.0f, LPGEMM_INVALID_ARGUMENT, "zero_constant");
  REFUSE_DESC(plain, (desc.zero = LPGEMM_ZERO_CONSTANT, desc.zero_constant = NAN), LPGEMM_INVALID_ARGUMENT,
              "zero_constant");
  REFUSE_DESC(plain, (desc.zero = LPGEMM_ZERO_CONSTANT, desc.zero_constant = -INFINITY), LPGEMM_INVALID_ARGUMENT,
              "zero_constant");
  REFUSE_DESC(plain, desc.global_scale = NAN, LPGEMM_INVALID_ARGUMENT, "global_scale");
  REFUSE_DESC(plain, desc.global_scale = INFINITY, LPGEMM_INVALID_ARGUMENT, "global_scale");
  REFUSE_DESC(plain, desc.codebook[0] = 1.0f, LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSE_DESC(book, desc.codebook[4] = 1.0f, LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSE_DESC(book, desc.codebook[3] = NAN, LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSE_DESC(plain, desc.experts = -1, LPGEMM_INVALID_ARGUMENT, "experts");
  REFUSE_DESC(plain, desc.rows = (lpgemm_rows_t)2, LPGEMM_INVALID_ARGUMENT, "rows");

  REFUSE_DESC(plain, desc.columns = (lpgemm_columns_t)2, LPGEMM_INVALID_ARGUMENT, "desc.columns");
  REFUSE_DESC(plain, desc.x_k = K, LPGEMM_INVALID_ARGUMENT, "desc.x_k");
  REFUSE_DESC(ordered, desc.x_k = K - 1, LPGEMM_INVALID_SIZE, "desc.x_k");
  REFUSE_DESC(ordered, desc.x_k = INT64_C(1) << 31, LPGEMM_INVALID_SIZE, "desc.x_k");
  REFUSE_DESC(ordered, desc.x_k = -1, LPGEMM_INVALID_SIZE, "desc.x_k");
  REFUSE_DESC(plain, desc.row_scales = LPGEMM_F16, LPGEMM_INVALID_TYPE, "desc.row_scales");
  static const int64_t no_shared[] = {-16, 2, 15, 17, 40, INT64_MIN};
  for (int i = 0; i < 6; i++) REFUSE_DESC(plain, desc.group_n = no_shared[i], LPGEMM_INVALID_ARGUMENT, "group_n");
  REFUSE_DESC(plain, desc.group_n = INT64_C(1) << 31, LPGEMM_SIZE_OVERFLOW, "group_n");
}

/* Structs of a later version of the header: larger, with a tail that this library does not know. */
static void later_structs(void) {
  if (!test_case("misuse/later_structs")) return;
  struct {
    lpgemm_weight_desc_t known;
    uint8_t tail[40];
  } desc = {w.source.desc, {0}};
  struct {
    lpgemm_weight_source_t known;
    uint8_t tail[40];
  } source = {w.source.source, {0}};
  struct {
    lpgemm_run_args_t known;
    uint8_t tail[40];
  } args = {run_args(), {0}};
  struct {
    lpgemm_weights_info_t known;
    uint8_t tail[40];
  } info = {{.size = sizeof info}, {0}};
  struct {
    lpgemm_autotune_options_t known;
    uint8_t tail[40];
  } options = {{.size = sizeof options}, {0}};
  desc.known.size = sizeof desc;
  source.known.size = sizeof source;
  args.known.size = sizeof args;
  lpgemm_weights_t weights = NULL;
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(&desc.known, &bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_pack_weights(w.handle, &desc.known, &source.known, NULL, 0, &weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_weights_info(weights, &info.known), LPGEMM_SUCCESS);
  CHECK_INT(info.known.size, sizeof info);
  CHECK_INT(info.known.desc.size, sizeof info.known.desc);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_workspace_size(w.handle, w.weights, M, &args.known, &bytes), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_autotune(w.handle, w.weights, NULL, 0, &options.known), LPGEMM_SUCCESS);
  desc.tail[0] = source.tail[39] = args.tail[20] = info.tail[1] = options.tail[2] = 1;
  REFUSED(lpgemm_packed_size(&desc.known, OUT(size_t)), LPGEMM_INVALID_STRUCT, "desc");
  REFUSED(lpgemm_pack_weights(w.handle, &w.source.desc, &source.known, NULL, 0, OUT(lpgemm_weights_t)),
          LPGEMM_INVALID_STRUCT, "source");
  REFUSED(lpgemm_run(w.handle, &args.known), LPGEMM_INVALID_STRUCT, "args has");
  REFUSED(lpgemm_explain(w.handle, &args.known, (char *)w.out, ARENA), LPGEMM_INVALID_STRUCT, "args has");
  REFUSED(lpgemm_workspace_size(w.handle, w.weights, M, &args.known, OUT(size_t)), LPGEMM_INVALID_STRUCT, "args has");
  REFUSED(lpgemm_weights_info(w.weights, &info.known), LPGEMM_INVALID_STRUCT, "info");
  REFUSED(lpgemm_autotune(w.handle, w.weights, NULL, 0, &options.known), LPGEMM_INVALID_STRUCT, "options");
}

/* ---- packing, quantising, looking ---- */

static void packing(void) {
  if (!test_case("misuse/pack")) return;
  const lpgemm_weight_desc_t *desc = &w.source.desc;
  const lpgemm_weight_source_t *source = &w.source.source;
  lpgemm_weights_t *made = OUT(lpgemm_weights_t);
  uint8_t *memory = w.out + 256;
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(desc, &bytes), LPGEMM_SUCCESS);
  REFUSED(lpgemm_pack_weights(w.handle, desc, NULL, NULL, 0, made), LPGEMM_NULL_POINTER, "source");
  REFUSED(lpgemm_pack_weights(w.handle, desc, source, memory, bytes, NULL), LPGEMM_NULL_POINTER, "weights");
  REFUSED(lpgemm_pack_weights(w.handle, desc, source, NULL, bytes, made), LPGEMM_NULL_POINTER, "memory");
  REFUSED(lpgemm_pack_weights(w.handle, desc, source, memory, bytes - 1, made), LPGEMM_BUFFER_TOO_SMALL, "memory");
  const lpgemm_weight_desc_t no_book = {.size = sizeof no_book, .type = LPGEMM_CODEBOOK(4), .n = 16, .k = 64};
  REFUSED(lpgemm_pack_weights(w.handle, &no_book, source, NULL, 0, made), LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSED(lpgemm_weights_create(w.handle, &no_book, NULL, 0, made), LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSED(lpgemm_quantize_weights(w.handle, &no_book, LPGEMM_QUANTIZE_ABSMAX, w.in, LPGEMM_F16, 0, NULL, 0, made),
          LPGEMM_INVALID_ARGUMENT, "codebook");
  REFUSED(lpgemm_pack_weights(w.handle, desc, source, memory + 32, bytes, made), LPGEMM_MISALIGNED, "memory");
  lpgemm_weight_source_t wrong = *source;
  wrong.size = 8;
  REFUSED(lpgemm_pack_weights(w.handle, desc, &wrong, memory, bytes, made), LPGEMM_INVALID_STRUCT, "source");
  wrong.size = sizeof wrong + SIZE_MAX / 2;
  REFUSED(lpgemm_pack_weights(w.handle, desc, &wrong, memory, bytes, made), LPGEMM_INVALID_STRUCT, "source");
}

static void quantizing(void) {
  if (!test_case("misuse/quantize")) return;
  const lpgemm_weight_desc_t *desc = &w.source.desc;
  lpgemm_weights_t *made = OUT(lpgemm_weights_t);
  const lpgemm_quantize_method_t absmax = LPGEMM_QUANTIZE_ABSMAX;
  uint8_t *memory = w.out + 256;
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_packed_size(desc, &bytes), LPGEMM_SUCCESS);
#define QUANTIZE(method, from, type, ldw, to, size, out, want, word) \
  REFUSED(lpgemm_quantize_weights(w.handle, desc, method, from, type, ldw, to, size, out), want, word)
  QUANTIZE(absmax, NULL, LPGEMM_F16, 0, memory, bytes, made, LPGEMM_NULL_POINTER, "w is");
  QUANTIZE(absmax, w.in, LPGEMM_F16, 0, memory, bytes, NULL, LPGEMM_NULL_POINTER, "weights");
  QUANTIZE(absmax, w.in, LPGEMM_F16, 0, NULL, bytes, made, LPGEMM_NULL_POINTER, "memory");
  QUANTIZE((lpgemm_quantize_method_t)3, w.in, LPGEMM_F16, 0, memory, bytes, made, LPGEMM_INVALID_ARGUMENT, "method");
  QUANTIZE((lpgemm_quantize_method_t)-1, w.in, LPGEMM_F16, 0, memory, bytes, made, LPGEMM_INVALID_ARGUMENT, "method");
  QUANTIZE(LPGEMM_QUANTIZE_MINMAX, w.in, LPGEMM_F16, 0, memory, bytes, made, LPGEMM_INVALID_ARGUMENT, "zero");
  QUANTIZE(absmax, w.in, LPGEMM_I8, 0, memory, bytes, made, LPGEMM_INVALID_TYPE, "w_type");
  QUANTIZE(absmax, w.in, 0, 0, memory, bytes, made, LPGEMM_INVALID_TYPE, "w_type");
  QUANTIZE(absmax, w.in + 1, LPGEMM_F16, 0, memory, bytes, made, LPGEMM_MISALIGNED, "w is");
  QUANTIZE(absmax, w.in + 2, LPGEMM_F32, 0, memory, bytes, made, LPGEMM_MISALIGNED, "w is");
  QUANTIZE(absmax, w.in, LPGEMM_F16, K - 1, memory, bytes, made, LPGEMM_INVALID_SIZE, "ldw");
  QUANTIZE(absmax, w.in, LPGEMM_F16, -K, memory, bytes, made, LPGEMM_INVALID_SIZE, "ldw");
  QUANTIZE(absmax, w.in, LPGEMM_F16, INT64_MAX, memory, bytes, made, LPGEMM_SIZE_OVERFLOW, "ldw");
  QUANTIZE(absmax, w.in, LPGEMM_F16, 0, memory, bytes - 1, made, LPGEMM_BUFFER_TOO_SMALL, "memory_bytes");
  QUANTIZE(absmax, w.in, LPGEMM_F16, 0, memory + 8, bytes, made, LPGEMM_MISALIGNED, "memory");
  lpgemm_weight_desc_t unplain = *desc;
  unplain.group_n = 16;
  desc = &unplain;
  QUANTIZE(absmax, w.in, LPGEMM_F16, 0, NULL, 0, made, LPGEMM_NOT_SUPPORTED, "group_n");
#undef QUANTIZE
}

static void looking(void) {
  if (!test_case("misuse/look")) return;
  lpgemm_weights_info_t info = {.size = sizeof info - 1};
  REFUSED(lpgemm_weights_info(w.weights, NULL), LPGEMM_NULL_POINTER, "info");
  REFUSED(lpgemm_weights_info(w.weights, &info), LPGEMM_INVALID_STRUCT, "info");

#define UNPACK(type, out, ldo, want, word) \
  REFUSED(lpgemm_unpack_weights(w.handle, w.weights, type, out, ldo), want, word)
  UNPACK(LPGEMM_U8, NULL, 0, LPGEMM_NULL_POINTER, "out");
  UNPACK(LPGEMM_I8, w.out, 0, LPGEMM_INVALID_TYPE, "out_type");
  UNPACK(0, w.out, 0, LPGEMM_INVALID_TYPE, "out_type");
  UNPACK(0xffffffff, w.out, 0, LPGEMM_INVALID_TYPE, "out_type");
  UNPACK(LPGEMM_U8, w.out, K - 1, LPGEMM_INVALID_SIZE, "ldo");
  UNPACK(LPGEMM_U8, w.out, -1, LPGEMM_INVALID_SIZE, "ldo");
  UNPACK(LPGEMM_U8, w.out, INT64_MAX, LPGEMM_SIZE_OVERFLOW, "ldo");
  UNPACK(LPGEMM_F16, w.out + 1, 0, LPGEMM_MISALIGNED, "out");
  UNPACK(LPGEMM_F32, w.out + 2, 0, LPGEMM_MISALIGNED, "out");
#undef UNPACK

  const lpgemm_part_t scales = LPGEMM_PART_SCALES;
  size_t bytes = N * 2 * 2;
#define PART(weights, part, out, size, want, word) \
  REFUSED(lpgemm_unpack_part(w.handle, weights, part, out, size), want, word)
  PART(w.weights, (lpgemm_part_t)0, w.out, bytes, LPGEMM_INVALID_ARGUMENT, "part");
  PART(w.weights, (lpgemm_part_t)5, w.out, bytes, LPGEMM_INVALID_ARGUMENT, "part");
  PART(w.weights, LPGEMM_PART_ZEROS, w.out, bytes, LPGEMM_INVALID_ARGUMENT, "part");
  PART(w.weights, LPGEMM_PART_SUPER_SCALES, w.out, bytes, LPGEMM_INVALID_ARGUMENT, "part");
  PART(w.integers, scales, w.out, bytes, LPGEMM_INVALID_ARGUMENT, "part");
  PART(w.weights, scales, w.out, bytes - 1, LPGEMM_BUFFER_TOO_SMALL, "out_bytes");
  PART(w.weights, scales, NULL, bytes, LPGEMM_NULL_POINTER, "out");
  PART(w.weights, scales, w.out + 1, bytes, LPGEMM_MISALIGNED, "out");
  PART(w.two_level, LPGEMM_PART_SUPER_ZEROS, w.out + 1, ARENA - 1, LPGEMM_MISALIGNED, "out");
#undef PART
}

/* ---- lpgemm_run and what describes a run ---- */

#define REFUSE_RUN(base, change, want, word)          \
  do {                                                \
    lpgemm_run_args_t args = base;                    \
    change;                                           \
    REFUSED(lpgemm_run(w.handle, &args), want, word); \
  } while (0)

/* What needs no pointer is refused by lpgemm_explain() and, sizes apart, by lpgemm_workspace_size() as well. */
#define REFUSE_OPTION(base, change, want, word)                                                \
  do {                                                                                         \
    lpgemm_run_args_t args = base;                                                             \
    change;                                                                                    \
    REFUSED(lpgemm_run(w.handle, &args), want, word);                                          \
    REFUSED(lpgemm_explain(w.handle, &args, (char *)w.out, ARENA), want, word);                \
    REFUSED(lpgemm_workspace_size(w.handle, args.weights, M, &args, OUT(size_t)), want, word); \
  } while (0)

static void options(void) {
  if (!test_case("misuse/run/options")) return;
  REFUSED(lpgemm_run(w.handle, NULL), LPGEMM_NULL_POINTER, "args");
  REFUSED(lpgemm_explain(w.handle, NULL, (char *)w.out, ARENA), LPGEMM_NULL_POINTER, "args");
  REFUSE_OPTION(run_args(), args.size = 0, LPGEMM_INVALID_STRUCT, "size");
  REFUSE_OPTION(run_args(), args.size = offsetof(lpgemm_run_args_t, n_begin) - 1, LPGEMM_INVALID_STRUCT, "size");
  REFUSE_OPTION(run_args(), args.n_begin = -16, LPGEMM_INVALID_SIZE, "n_begin");
  REFUSE_OPTION(run_args(), args.n_begin = 16, LPGEMM_INVALID_SIZE, "n_begin"); /* no end */
  REFUSE_OPTION(run_args(), args.n_end = N + 1, LPGEMM_INVALID_SIZE, "n_end");
  REFUSE_OPTION(run_args(), args.n_end = N + 16, LPGEMM_INVALID_SIZE, "n_end");
  REFUSE_OPTION(run_args(), args.n_end = INT64_MIN, LPGEMM_INVALID_SIZE, "n_end");
  REFUSE_OPTION(run_args(), (args.n_begin = 8, args.n_end = N), LPGEMM_INVALID_SIZE, "n_begin is 8");
  REFUSE_OPTION(run_args(), args.n_end = 8, LPGEMM_INVALID_SIZE, "n_end is 8");
  for (int i = 0; i < 2; i++) REFUSE_OPTION(run_args(), args.reserved[i] = 1, LPGEMM_INVALID_STRUCT, "reserved");
  static const lpgemm_dtype_t no_x[] = {LPGEMM_I32, LPGEMM_U16, LPGEMM_E8M0, LPGEMM_CODEBOOK(4), LPGEMM_FLOAT(3, 2), 9};
  for (size_t i = 0; i < sizeof no_x / sizeof no_x[0]; i++) {
    REFUSE_OPTION(run_args(), args.x_type = no_x[i], LPGEMM_INVALID_TYPE, "x_type");
  }
  static const lpgemm_dtype_t no_y[] = {LPGEMM_I8, LPGEMM_U8, LPGEMM_E4M3, LPGEMM_E8M0, LPGEMM_UINT(4), 0x80000000};
  for (size_t i = 0; i < sizeof no_y / sizeof no_y[0]; i++) {
    REFUSE_OPTION(run_args(), args.y_type = no_y[i], LPGEMM_INVALID_TYPE, "y_type");
  }
  REFUSE_OPTION(run_args(), args.activation = (lpgemm_activation_t)LPG_ACTIVATION_COUNT, LPGEMM_INVALID_ARGUMENT,
                "activation");
  REFUSE_OPTION(run_args(), args.activation = (lpgemm_activation_t)-1, LPGEMM_INVALID_ARGUMENT, "activation");
  REFUSE_OPTION(run_args(), args.x_scale_mode = (lpgemm_x_scale_t)3, LPGEMM_INVALID_ARGUMENT, "x_scale_mode");
  REFUSE_OPTION(run_args(), args.x_scale_mode = LPGEMM_X_SCALE_ROW, LPGEMM_INVALID_ARGUMENT, "x_scale_mode");
  REFUSE_OPTION(run_args(), args.level = (lpgemm_level_t)2, LPGEMM_INVALID_ARGUMENT, "level");
  REFUSE_OPTION(run_args(), args.batch_invariant = 2, LPGEMM_INVALID_ARGUMENT, "batch_invariant");
  REFUSE_OPTION(run_args(), args.batch_invariant = -1, LPGEMM_INVALID_ARGUMENT, "batch_invariant");
  REFUSE_OPTION(run_args(), args.quantize_x = LPGEMM_F16, LPGEMM_INVALID_TYPE, "quantize_x");
  REFUSE_OPTION(run_args(), args.quantize_x = LPGEMM_E5M2, LPGEMM_INVALID_TYPE, "quantize_x");
  REFUSE_OPTION(run_args(), (args.quantize_x = LPGEMM_I8, args.x_type = LPGEMM_I8), LPGEMM_INVALID_ARGUMENT,
                "quantize_x");
  REFUSE_OPTION(run_args(), (args.bias = w.in, args.bias_type = LPGEMM_I8), LPGEMM_INVALID_TYPE, "bias_type");
  REFUSE_RUN(run_args(), args.kernel = "no.such.kernel", LPGEMM_INVALID_ARGUMENT, "kernel");
  /* int32 output */
  REFUSE_OPTION(integer_args(), args.x_type = LPGEMM_F16, LPGEMM_NOT_SUPPORTED, "y_type");
  REFUSE_OPTION(integer_args(), args.weights = w.weights, LPGEMM_NOT_SUPPORTED, "y_type");
  REFUSE_OPTION(integer_args(), args.activation = LPGEMM_ACTIVATION_RELU, LPGEMM_NOT_SUPPORTED, "y_type");
  REFUSE_OPTION(integer_args(), args.x_scale_mode = LPGEMM_X_SCALE_ROW, LPGEMM_NOT_SUPPORTED, "y_type");
}

static void sizes(void) {
  if (!test_case("misuse/run/sizes")) return;
  REFUSE_RUN(run_args(), args.m = -1, LPGEMM_INVALID_SIZE, "m is -1");
  REFUSE_RUN(run_args(), args.m = INT64_MIN, LPGEMM_INVALID_SIZE, "m is");
  REFUSE_RUN(run_args(), args.m = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "m is");
  REFUSE_RUN(run_args(), args.ldx = K - 1, LPGEMM_INVALID_SIZE, "ldx");
  REFUSE_RUN(run_args(), args.ldx = -K, LPGEMM_INVALID_SIZE, "ldx");
  REFUSE_RUN(run_args(), args.ldx = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "ldx");
  REFUSE_RUN(run_args(), args.ldy = N - 1, LPGEMM_INVALID_SIZE, "ldy");
  REFUSE_RUN(run_args(), args.ldy = -1, LPGEMM_INVALID_SIZE, "ldy");
  REFUSE_RUN(run_args(), args.ldy = INT64_MAX / 2, LPGEMM_SIZE_OVERFLOW, "ldy");
  REFUSE_RUN(run_args(), args.ldc = N - 1, LPGEMM_INVALID_SIZE, "ldc");
  REFUSE_RUN(run_args(), args.ldc = INT64_MAX, LPGEMM_SIZE_OVERFLOW, "ldc");
  REFUSED(lpgemm_workspace_size(w.handle, w.weights, -1, NULL, OUT(size_t)), LPGEMM_INVALID_SIZE, "m_max is -1");
  REFUSED(lpgemm_workspace_size(w.handle, w.weights, INT64_MAX, NULL, OUT(size_t)), LPGEMM_SIZE_OVERFLOW, "m_max is");
  REFUSED(lpgemm_workspace_size(w.handle, w.weights, M, NULL, NULL), LPGEMM_NULL_POINTER, "bytes");
  REFUSED(lpgemm_prepare(w.handle, w.weights, -1), LPGEMM_INVALID_SIZE, "m_max");
  REFUSED(lpgemm_prepare(w.handle, w.weights, INT64_MAX), LPGEMM_SIZE_OVERFLOW, "m_max");
  REFUSED(lpgemm_supports(w.handle, &w.source.desc, LPGEMM_F16, LPGEMM_F16, -1), LPGEMM_INVALID_SIZE, "m is -1");
  REFUSED(lpgemm_matmul(w.handle, w.weights, M, w.in, K - 1, w.out, 0), LPGEMM_INVALID_SIZE, "ldx");
  REFUSED(lpgemm_matmul(w.handle, w.weights, M, w.in, 0, w.out, 1), LPGEMM_INVALID_SIZE, "ldy");
  REFUSED(lpgemm_matmul(w.handle, w.weights, -M, w.in, 0, w.out, 0), LPGEMM_INVALID_SIZE, "m is -3");
}

static void pointers(void) {
  if (!test_case("misuse/run/pointers")) return;
  const float one = 1.0f;
  REFUSE_RUN(run_args(), args.x = NULL, LPGEMM_NULL_POINTER, "x is");
  REFUSE_RUN(run_args(), args.y = NULL, LPGEMM_NULL_POINTER, "y is");
  REFUSE_RUN(run_args(), args.x = w.in + 1, LPGEMM_MISALIGNED, "x is");
  REFUSE_RUN(run_args(), (args.x = w.in + 2, args.x_type = LPGEMM_F32), LPGEMM_MISALIGNED, "x is");
  REFUSE_RUN(run_args(), args.y = w.out + 2, LPGEMM_MISALIGNED, "y is");
  REFUSE_RUN(run_args(), args.x = w.out, LPGEMM_INVALID_ARGUMENT, "must not overlap");
  REFUSE_RUN(run_args(), args.x = OUT_AT(uint16_t, 2), LPGEMM_INVALID_ARGUMENT, "must not overlap");
  REFUSE_RUN(run_args(), args.x = OUT_AT(uint16_t, M * N * 4 - 2), LPGEMM_INVALID_ARGUMENT, "must not overlap");
  REFUSE_RUN(run_args(), args.beta = &one, LPGEMM_NULL_POINTER, "c is");
  REFUSE_RUN(run_args(), (args.beta = &one, args.c = w.in + 1), LPGEMM_MISALIGNED, "c is");
  REFUSE_RUN(run_args(), (args.beta = &one, args.c = args.y, args.ldc = N + 1), LPGEMM_INVALID_ARGUMENT, "ldc");
  REFUSE_RUN(run_args(), (args.bias = w.in + 2), LPGEMM_MISALIGNED, "bias is"); /* of y's type */
  REFUSE_RUN(run_args(), (args.bias = w.in + 1, args.bias_type = LPGEMM_BF16), LPGEMM_MISALIGNED, "bias is");
  REFUSE_RUN(run_args(), args.x_scale = OUT(float), LPGEMM_INVALID_ARGUMENT, "x_scale");
  REFUSE_RUN(run_args(), (args.x_type = LPGEMM_I8, args.x_scale_mode = LPGEMM_X_SCALE_ROW), LPGEMM_NULL_POINTER,
             "x_scale");
  REFUSE_RUN(run_args(),
             (args.x_type = LPGEMM_I8, args.x_scale_mode = LPGEMM_X_SCALE_TENSOR,
              args.x_scale = (const float *)(const void *)(w.in + 1)),
             LPGEMM_MISALIGNED, "x_scale");
  REFUSED(lpgemm_matmul(w.handle, w.weights, M, NULL, 0, w.out, 0), LPGEMM_NULL_POINTER, "x is");
  REFUSED(lpgemm_matmul(w.handle, w.weights, M, w.in, 0, NULL, 0), LPGEMM_NULL_POINTER, "y is");
  const float half = 0.5f;
  REFUSE_RUN(integer_args(), args.alpha = &half, LPGEMM_INVALID_ARGUMENT, "alpha");
  REFUSE_RUN(integer_args(), (args.beta = &half, args.c = w.in), LPGEMM_INVALID_ARGUMENT, "beta");
  REFUSE_RUN(integer_args(), (args.bias = w.in, args.bias_type = LPGEMM_F32), LPGEMM_NOT_SUPPORTED, "y_type");
}

/* Sums that int32 could not hold. */
static void int32_overflow(void) {
  if (!test_case("misuse/run/int32_overflow")) return;
  static const struct {
    float zero;
    int64_t k;
    lpgemm_status_t want;
  } rows[] = {
      {0.0f, 131071, LPGEMM_SUCCESS},       /* 128 * 128 * 131071 < 2^31 */
      {0.0f, 131072, LPGEMM_SIZE_OVERFLOW}, /* 128 * 128 * 131072 = 2^31 */
      {127.0f, 65536, LPGEMM_SUCCESS},      /* 255 * 128 * 65536 */
      {127.0f, 131071, LPGEMM_SIZE_OVERFLOW}, {1e30f, 16, LPGEMM_NOT_SUPPORTED}, {-1e9f, 16, LPGEMM_NOT_SUPPORTED},
      {0.5f, 16, LPGEMM_NOT_SUPPORTED},       {256.0f, 16, LPGEMM_SUCCESS},      {257.0f, 16, LPGEMM_NOT_SUPPORTED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    lpgemm_weight_desc_t desc = sample_desc(N, rows[i].k, LPGEMM_INT(8), 0, 0);
    if (rows[i].zero != 0.0f) {
      desc.zero = LPGEMM_ZERO_CONSTANT;
      desc.zero_constant = rows[i].zero;
    }
    lpgemm_status_t got = lpgemm_supports(w.handle, &desc, LPGEMM_I8, LPGEMM_I32, M);
    if (got != rows[i].want) {
      test_fail(__FILE__, __LINE__, "k %d, zero %g: %s", (int)rows[i].k, (double)rows[i].zero,
                lpgemm_status_string(got));
    }
  }
}

static void workspaces(void) {
  if (!test_case("misuse/run/workspace")) return;
  lpgemm_run_args_t args = run_args();
  args.quantize_x = LPGEMM_I8;
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_workspace_size(w.handle, w.weights, M, &args, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes >= M * K + M * 4);
  REFUSED(lpgemm_run(w.handle, &args), LPGEMM_WORKSPACE_TOO_SMALL, "workspace");
  CHECK_STATUS(lpgemm_set_workspace(w.handle, w.out + 16384, 255), LPGEMM_SUCCESS);
  REFUSED(lpgemm_run(w.handle, &args), LPGEMM_WORKSPACE_TOO_SMALL, "workspace");
  uint8_t *workspace = test_alloc(bytes); /* canaries behind it */
  float *y = test_alloc(M * N * sizeof *y);
  CHECK_STATUS(lpgemm_set_workspace(w.handle, workspace, bytes), LPGEMM_SUCCESS);
  args.y = y;
  CHECK_STATUS(lpgemm_run(w.handle, &args), LPGEMM_SUCCESS);
  test_wait();
  CHECK_STATUS(lpgemm_set_workspace(w.handle, NULL, 0), LPGEMM_SUCCESS);
  test_free(y);
  test_free(workspace);
}

/* ---- activations ---- */

static void activations(void) {
  if (!test_case("misuse/activations")) return;
  float *scale = OUT_AT(float, 4096);
#define QUANTIZE(m, k, x, x_type, ldx, type, out, ldo, scale, mode, want, word) \
  REFUSED(lpgemm_quantize_activations(w.handle, m, k, x, x_type, ldx, type, out, ldo, scale, mode), want, word)
#define ROW LPGEMM_X_SCALE_ROW
  QUANTIZE(-1, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_INVALID_SIZE, "m is");
  QUANTIZE(M, -1, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_INVALID_SIZE, "k is");
  QUANTIZE(INT64_MAX, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_SIZE_OVERFLOW, "m is");
  QUANTIZE(M, INT64_MAX, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_SIZE_OVERFLOW, "k is");
  QUANTIZE(M, K, NULL, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_NULL_POINTER, "x is");
  QUANTIZE(M, K, w.in + 1, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_MISALIGNED, "x is");
  QUANTIZE(M, K, w.in, LPGEMM_I8, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_INVALID_TYPE, "x_type");
  QUANTIZE(M, K, w.in, 0, 0, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_INVALID_TYPE, "x_type");
  QUANTIZE(M, K, w.in, LPGEMM_F16, K - 1, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_INVALID_SIZE, "ldx");
  QUANTIZE(M, K, w.in, LPGEMM_F16, INT64_MAX, LPGEMM_I8, w.out, 0, scale, ROW, LPGEMM_SIZE_OVERFLOW, "ldx");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_U16, w.out, 0, scale, ROW, LPGEMM_INVALID_TYPE, "out_type");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_E5M2, w.out, 0, scale, ROW, LPGEMM_INVALID_TYPE, "out_type");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, NULL, 0, scale, ROW, LPGEMM_NULL_POINTER, "out is");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, K - 1, scale, ROW, LPGEMM_INVALID_SIZE, "ldo");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, INT64_MAX, scale, ROW, LPGEMM_SIZE_OVERFLOW, "ldo");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, NULL, ROW, LPGEMM_NULL_POINTER, "scale");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, OUT_AT(float, 4098), ROW, LPGEMM_MISALIGNED, "scale");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, LPGEMM_X_SCALE_NONE, LPGEMM_INVALID_ARGUMENT, "mode");
  QUANTIZE(M, K, w.in, LPGEMM_F16, 0, LPGEMM_I8, w.out, 0, scale, (lpgemm_x_scale_t)3, LPGEMM_INVALID_ARGUMENT, "mode");
#undef QUANTIZE
#undef ROW
}

static void prepared_x(void) {
  if (!test_case("misuse/prepared_x")) return;
  lpgemm_run_args_t args = run_args();
  if (test_backend() == LPGEMM_BACKEND_CUDA) { /* no kernel there reads it */
    REFUSED(lpgemm_prepared_x_size(w.handle, &args, OUT(size_t)), LPGEMM_NOT_SUPPORTED, "CPU");
    REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, ARENA), LPGEMM_NOT_SUPPORTED, "CPU");
    REFUSE_RUN(run_args(), (args.prepared_x = w.in, args.prepared_x_bytes = ARENA), LPGEMM_NOT_SUPPORTED, "prepared_x");
    return;
  }
  size_t bytes = 0;
  CHECK_STATUS(lpgemm_prepared_x_size(w.handle, &args, &bytes), LPGEMM_SUCCESS);
  CHECK(bytes > 0 && bytes <= ARENA);
  REFUSED(lpgemm_prepared_x_size(w.handle, &args, NULL), LPGEMM_NULL_POINTER, "bytes");
  REFUSED(lpgemm_prepared_x_size(w.handle, NULL, OUT(size_t)), LPGEMM_NULL_POINTER, "args");
  REFUSED(lpgemm_prepare_x(w.handle, NULL, w.out, bytes), LPGEMM_NULL_POINTER, "args");
  REFUSED(lpgemm_prepare_x(w.handle, &args, NULL, bytes), LPGEMM_NULL_POINTER, "prepared");
  REFUSED(lpgemm_prepare_x(w.handle, &args, w.out + 8, bytes), LPGEMM_MISALIGNED, "prepared");
  REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, bytes - 1), LPGEMM_BUFFER_TOO_SMALL, "prepared_bytes");
#define PREPARE(change, want, word)                                            \
  do {                                                                         \
    args = run_args();                                                         \
    change;                                                                    \
    REFUSED(lpgemm_prepared_x_size(w.handle, &args, OUT(size_t)), want, word); \
    REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, bytes), want, word);      \
  } while (0)
  PREPARE(args.size = 8, LPGEMM_INVALID_STRUCT, "args.size");
  PREPARE(args.weights = NULL, LPGEMM_NULL_POINTER, "weights");
  PREPARE(args.m = -1, LPGEMM_INVALID_SIZE, "m is");
  PREPARE(args.ldx = K - 1, LPGEMM_INVALID_SIZE, "ldx");
  PREPARE(args.x_type = LPGEMM_E8M0, LPGEMM_INVALID_TYPE, "x_type");
  PREPARE(args.kernel = "no.such.kernel", LPGEMM_INVALID_ARGUMENT, "kernel");
#undef PREPARE
  args = run_args();
  args.x = NULL;
  REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, bytes), LPGEMM_NULL_POINTER, "x is");
  args.x = w.in + 1;
  REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, bytes), LPGEMM_MISALIGNED, "x is");
  args.x = w.out;
  REFUSED(lpgemm_prepare_x(w.handle, &args, w.out, bytes), LPGEMM_INVALID_ARGUMENT, "must not overlap");
  REFUSE_RUN(run_args(), (args.prepared_x = w.in, args.prepared_x_bytes = 64), LPGEMM_BUFFER_TOO_SMALL,
             "prepared_x_bytes");
  REFUSE_RUN(run_args(), (args.prepared_x = w.in + 4, args.prepared_x_bytes = ARENA), LPGEMM_MISALIGNED, "prepared_x");
  REFUSE_RUN(run_args(), (args.prepared_x = w.in, args.prepared_x_bytes = ARENA), LPGEMM_INVALID_ARGUMENT,
             "no prepared X");
  REFUSE_RUN(run_args(), args.prepared_x_bytes = ARENA, LPGEMM_NULL_POINTER, "prepared_x is NULL");
}

static void int_to_bipolar(void) {
  if (!test_case("misuse/int_to_bipolar")) return;
  lpgemm_dtype_t *type = OUT(lpgemm_dtype_t);
  float *scale = OUT_AT(float, 64), *zero = OUT_AT(float, 128);
  uint8_t *flip = w.out + 192;
  static const lpgemm_dtype_t wrong[] = {0, LPGEMM_BIPOLAR(4), LPGEMM_CODEBOOK(4), LPGEMM_E4M3, LPGEMM_U16, LPGEMM_I32};
  for (int i = 0; i < 6; i++) {
    REFUSED(lpgemm_int_to_bipolar(wrong[i], 1.0f, 0.0f, type, scale, zero, flip), LPGEMM_INVALID_TYPE, "type");
  }
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, 1, 0, NULL, scale, zero, flip), LPGEMM_NULL_POINTER, "bipolar_type");
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, 1, 0, type, NULL, zero, flip), LPGEMM_NULL_POINTER, "bipolar_scale");
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, 1, 0, type, scale, NULL, flip), LPGEMM_NULL_POINTER, "bipolar_zero");
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, 1, 0, type, scale, zero, NULL), LPGEMM_NULL_POINTER, "code_xor");
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, NAN, 0, type, scale, zero, flip), LPGEMM_INVALID_ARGUMENT, "scale");
  REFUSED(lpgemm_int_to_bipolar(LPGEMM_I8, 1, INFINITY, type, scale, zero, flip), LPGEMM_INVALID_ARGUMENT, "zero");
}

/* ---- in place of cuBLAS ---- */

typedef struct gemm { /* the arguments of lpgemm_gemm_strided_batched_ex() */
  int transa, transb, m, n, k;
  const void *alpha;
  const lpgemm_weights_t *a;
  int64_t stride_a;
  const void *b;
  int b_type, ldb;
  int64_t stride_b;
  const void *beta;
  void *c;
  int c_type, ldc;
  int64_t stride_c;
  int batch, compute;
} gemm;

static lpgemm_status_t batched(const gemm *g) {
  return lpgemm_gemm_strided_batched_ex(w.handle, g->transa, g->transb, g->m, g->n, g->k, g->alpha, g->a, 2, K,
                                        g->stride_a, g->b, g->b_type, g->ldb, g->stride_b, g->beta, g->c, g->c_type,
                                        g->ldc, g->stride_c, g->batch, g->compute, -1);
}

static lpgemm_status_t single(const gemm *g) {
  return lpgemm_gemm_ex(w.handle, g->transa, g->transb, g->m, g->n, g->k, g->alpha, g->a ? *g->a : NULL, 2, K, g->b,
                        g->b_type, g->ldb, g->beta, g->c, g->c_type, g->ldc, g->compute, -1);
}

#define REFUSE_BATCHED(change, want, word) \
  do {                                     \
    gemm g = good;                         \
    change;                                \
    REFUSED(batched(&g), want, word);      \
  } while (0)

#define REFUSE_GEMM(change, want, word) \
  do {                                  \
    gemm g = good;                      \
    change;                             \
    REFUSED(single(&g), want, word);    \
    REFUSED(batched(&g), want, word);   \
  } while (0)

static void cublas(void) {
  if (!test_case("misuse/cublas")) return;
  const float one = 1.0f, zero = 0.0f;
  const lpgemm_weights_t array[2] = {w.weights, w.weights};
  const gemm good = {1, 0, N, M, K, &one, array, 1, w.in, 2, K, M * K, &zero, w.out, 2, N, M * N, 2, 68};
  for (int a = 0; a < 3; a++) {
    for (int b = 0; b < 3; b++) {
      if (a != 1 || b != 0) REFUSE_GEMM((g.transa = a, g.transb = b), LPGEMM_NOT_SUPPORTED, "trans");
    }
  }
  REFUSE_GEMM(g.m = N - 1, LPGEMM_INVALID_SIZE, "m =");
  REFUSE_GEMM(g.k = K + 1, LPGEMM_INVALID_SIZE, "k =");
  REFUSE_GEMM(g.n = -1, LPGEMM_INVALID_SIZE, "n");
  REFUSE_GEMM(g.m = -N, LPGEMM_INVALID_SIZE, "m");
  REFUSE_GEMM(g.ldb = K - 1, LPGEMM_INVALID_SIZE, "ldb");
  REFUSE_GEMM(g.ldb = -1, LPGEMM_INVALID_SIZE, "ldb");
  REFUSE_GEMM(g.ldc = N - 1, LPGEMM_INVALID_SIZE, "ldc");
  REFUSE_GEMM(g.alpha = NULL, LPGEMM_NULL_POINTER, "alpha");
  REFUSE_GEMM(g.beta = NULL, LPGEMM_NULL_POINTER, "beta");
  REFUSE_GEMM(g.a = NULL, LPGEMM_NULL_POINTER, "is NULL");
  REFUSE_GEMM(g.b = NULL, LPGEMM_NULL_POINTER, "is NULL");
  REFUSE_GEMM(g.c = NULL, LPGEMM_NULL_POINTER, "is NULL");
  REFUSE_GEMM(g.b = w.in + 1, LPGEMM_MISALIGNED, "align");
  REFUSE_GEMM(g.c = w.out + 1, LPGEMM_MISALIGNED, "align");
  REFUSE_GEMM(g.b_type = 1, LPGEMM_NOT_SUPPORTED, "Btype");
  REFUSE_GEMM(g.c_type = 99, LPGEMM_NOT_SUPPORTED, "Ctype");
  REFUSE_GEMM(g.compute = 70, LPGEMM_NOT_SUPPORTED, "compute_type");
  REFUSE_GEMM(g.compute = LPGEMM_COMPUTE_32I, LPGEMM_NOT_SUPPORTED, "compute_type");
  REFUSE_BATCHED(g.batch = -1, LPGEMM_INVALID_SIZE, "batch_count");
  REFUSE_BATCHED(g.stride_a = 2, LPGEMM_INVALID_ARGUMENT, "strideA");
  REFUSE_BATCHED(g.stride_a = -1, LPGEMM_INVALID_ARGUMENT, "strideA");
  REFUSE_BATCHED(g.stride_b = -1, LPGEMM_INVALID_SIZE, "strideB");
  REFUSE_BATCHED(g.stride_c = M * N - 1, LPGEMM_INVALID_SIZE, "strideC");
  REFUSE_BATCHED(g.stride_c = INT64_MAX, LPGEMM_INVALID_SIZE, "strideC");
  const uint16_t half[1] = {0x3c00};
#define HGEMM(transa, m, n, k, alpha, a, b, ldb, beta, c, ldc, want, word) \
  REFUSED(lpgemm_hgemm(w.handle, transa, 0, m, n, k, alpha, a, K, b, ldb, beta, c, ldc), want, word)
  HGEMM(0, N, M, K, half, w.weights, w.in, K, half, w.out, N, LPGEMM_NOT_SUPPORTED, "transa");
  HGEMM(1, N, M, K - 1, half, w.weights, w.in, K, half, w.out, N, LPGEMM_INVALID_SIZE, "k =");
  HGEMM(1, N, M, K, NULL, w.weights, w.in, K, half, w.out, N, LPGEMM_NULL_POINTER, "alpha");
  HGEMM(1, N, M, K, half, w.weights, NULL, K, half, w.out, N, LPGEMM_NULL_POINTER, "is NULL");
  HGEMM(1, N, M, K, half, w.weights, w.in, K - 1, half, w.out, N, LPGEMM_INVALID_SIZE, "ldb");
  HGEMM(1, N, M, K, half, w.weights, w.in, K, NULL, w.out, N, LPGEMM_NULL_POINTER, "beta");
  HGEMM(1, N, M, K, half, w.weights, w.in, K, half, NULL, N, LPGEMM_NULL_POINTER, "is NULL");
  HGEMM(1, N, M, K, half, w.weights, w.in, K, half, w.out, N - 1, LPGEMM_INVALID_SIZE, "ldc");
#undef HGEMM
}

/* ---- choice ---- */

static void choice(void) {
  if (!test_case("misuse/choice")) return;
  lpgemm_run_args_t args = run_args();
  REFUSED(lpgemm_explain(w.handle, &args, NULL, 100), LPGEMM_NULL_POINTER, "text");
  REFUSED(lpgemm_explain(w.handle, &args, (char *)w.out, 0), LPGEMM_BUFFER_TOO_SMALL, "text_bytes");
  char one[1];
  CHECK_STATUS(lpgemm_explain(w.handle, &args, one, 1), LPGEMM_SUCCESS);
  CHECK_INT(one[0], 0);

  size_t count = 0;
  CHECK_STATUS(lpgemm_list_kernels(NULL, 0, &count), LPGEMM_SUCCESS);
  CHECK(count > 0);
  REFUSED(lpgemm_list_kernels(NULL, 0, NULL), LPGEMM_NULL_POINTER, "count");
  REFUSED(lpgemm_list_kernels(NULL, 1, OUT(size_t)), LPGEMM_NULL_POINTER, "list");
  lpgemm_kernel_info_t list[2] = {{.size = sizeof list[0]}, {.size = 4}};
  REFUSED(lpgemm_list_kernels(list, 2, OUT(size_t)), LPGEMM_INVALID_STRUCT, "list.size");
  CHECK(list[0].name == NULL); /* the first record was right, but nothing is written */

  REFUSED(lpgemm_supports(w.handle, &w.source.desc, LPGEMM_E8M0, LPGEMM_F16, 1), LPGEMM_INVALID_TYPE, "x_type");
  REFUSED(lpgemm_supports(w.handle, &w.source.desc, LPGEMM_F16, LPGEMM_I8, 1), LPGEMM_INVALID_TYPE, "y_type");
  REFUSED(lpgemm_supports(w.handle, &w.source.desc, LPGEMM_F16, LPGEMM_I32, 1), LPGEMM_NOT_SUPPORTED, "y_type");
}

static void tuning(void) {
  if (!test_case("misuse/tuning")) return;
  const int64_t rows[2] = {1, -1};
  REFUSED(lpgemm_autotune(w.handle, w.weights, NULL, 1, NULL), LPGEMM_NULL_POINTER, "rows");
  REFUSED(lpgemm_autotune(w.handle, w.weights, rows, 2, NULL), LPGEMM_INVALID_SIZE, "rows[1] is -1");
  lpgemm_autotune_options_t options = {.size = sizeof options};
  options.seconds = -1;
  REFUSED(lpgemm_autotune(w.handle, w.weights, rows, 1, &options), LPGEMM_INVALID_ARGUMENT, "seconds");
  options.seconds = (double)NAN;
  REFUSED(lpgemm_autotune(w.handle, w.weights, rows, 1, &options), LPGEMM_INVALID_ARGUMENT, "seconds");
  options.seconds = 0;
  options.size = 1;
  REFUSED(lpgemm_autotune(w.handle, w.weights, rows, 1, &options), LPGEMM_INVALID_STRUCT, "options");
  options.size = sizeof options;
  lpgemm_run_args_t args = run_args();
  args.y_type = LPGEMM_U8;
  options.args = &args;
  REFUSED(lpgemm_autotune(w.handle, w.weights, rows, 1, &options), LPGEMM_INVALID_TYPE, "y_type");

  int *used = OUT(int), *refused_lines = OUT_AT(int, 64);
  REFUSED(lpgemm_tuning_save(w.handle, NULL), LPGEMM_NULL_POINTER, "path");
  REFUSED(lpgemm_tuning_save(w.handle, "/nowhere/at/all"), LPGEMM_IO_ERROR, "/nowhere/at/all");
  REFUSED(lpgemm_tuning_load(w.handle, NULL, used, refused_lines), LPGEMM_NULL_POINTER, "path");
  REFUSED(lpgemm_tuning_load(w.handle, "/nowhere/at/all", used, refused_lines), LPGEMM_IO_ERROR, "/nowhere/at/all");
  char path[] = "/tmp/lpgemm-test-XXXXXX";
  int file = mkstemp(path);
  CHECK(file >= 0);
  CHECK_INT(write(file, "no tuning file\n", 15), 15);
  CHECK_INT(close(file), 0);
  REFUSED(lpgemm_tuning_load(w.handle, path, used, refused_lines), LPGEMM_CORRUPT_DATA, "tuning file");
  CHECK_INT(unlink(path), 0);
}

void suite_misuse(void) {
  open_world();
  statuses();
  dead_objects();
  create();
  no_backend();
  environment();
  settings();
  descriptions();
  later_structs();
  packing();
  quantizing();
  looking();
  options();
  sizes();
  pointers();
  int32_overflow();
  workspaces();
  activations();
  prepared_x();
  int_to_bipolar();
  cublas();
  choice();
  tuning();
  close_world();
}
