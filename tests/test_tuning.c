/* The memory of measurements, and its file. */
#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "made_up.h"

/* ---- tuning: the list ---- */

static void test_tuning_find(void) {
  problem q;
  if (test_case("dispatch/tuning/nearest-rows")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 16);
    CHECK(lpgemm_i_tuning_find(t, &q.p, 0) == NULL);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "at16", 10.0), LPGEMM_SUCCESS);
    q.p.m = 64;
    CHECK(lpgemm_i_tuning_find(t, &q.p, 0) == NULL); /* two octaves away */
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "at64", 10.0), LPGEMM_SUCCESS);
    static const struct {
      int64_t m;
      const char *want;
    } rows[] = {{7, NULL},    {8, "at16"},   {16, "at16"}, {31, "at16"}, {33, "at64"},
                {64, "at64"}, {128, "at64"}, {129, NULL},  {0, NULL}};
    for (int i = 0; i < COUNT(rows); i++) {
      q.p.m = rows[i].m;
      const char *found = lpgemm_i_tuning_find(t, &q.p, 0);
      CHECK_TEXT(found ? found : "none", rows[i].want ? rows[i].want : "none");
    }
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/threads")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 16);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 8, "by 8", 10.0), LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 8), "by 8");
    CHECK(lpgemm_i_tuning_find(t, &q.p, 1) == NULL);
    CHECK(lpgemm_i_tuning_find(t, &q.p, 0) == NULL);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "by any", 10.0), LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 8), "by 8");
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 1), "by any");
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/nearest-shape")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), 4096, 4096);
    make(&q, &d, LPGEMM_F16, 16);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "square", 10.0), LPGEMM_SUCCESS);
    d.n = 5120;
    make(&q, &d, LPGEMM_F16, 16);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "square"); /* 0.32 octaves */
    d.k = 8192;
    make(&q, &d, LPGEMM_F16, 16);
    CHECK(lpgemm_i_tuning_find(t, &q.p, 0) == NULL); /* 1.32 */
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "gemm", 10.0), LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "gemm");
    d.k = 6000; /* 0.55 + 0.32 from square, 0.45 from wide */
    make(&q, &d, LPGEMM_F16, 16);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "gemm");
    /* the same shape comes first, however near another one is */
    d.n = 4100;
    d.k = 4096;
    make(&q, &d, LPGEMM_F16, 30);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "same", 10.0), LPGEMM_SUCCESS);
    q.p.m = 16;
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "same");
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/same-types")) { /* nothing that differs in a type or an option is near */
    lpg_tuning *t = lpgemm_i_tuning_create();
    problem other;
    make_changed(&q, NOTHING);
    q.p.level = LPGEMM_LEVEL_EXACT;
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "k", 10.0), LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "k");
    for (int what = WEIGHTS; what <= Y; what++) {
      make_changed(&other, (change)what);
      other.p.level = LPGEMM_LEVEL_EXACT;
      CHECK(lpgemm_i_tuning_find(t, &other.p, 0) == NULL);
    }
    other = q;
    other.p.level = LPGEMM_LEVEL_FAST;
    CHECK(lpgemm_i_tuning_find(t, &other.p, 0) == NULL);
    other = q;
    other.p.batch_invariant = 1;
    CHECK(lpgemm_i_tuning_find(t, &other.p, 0) == NULL);
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/batch-invariant")) { /* one answer for all rows */
    lpg_tuning *t = lpgemm_i_tuning_create();
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 1);
    q.p.batch_invariant = 1;
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "first", 10.0), LPGEMM_SUCCESS);
    q.p.m = 5000;
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "first");
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "second", 10.0), LPGEMM_SUCCESS);
    q.p.m = 1;
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), "second");
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/refused")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    char name[80];
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 1);
    memset(name, 'k', sizeof name);
    name[LPG_KERNEL_NAME_BYTES] = 0;
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, name, 1.0), LPGEMM_INVALID_ARGUMENT);
    name[LPG_KERNEL_NAME_BYTES - 1] = 0;
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, name, 1.0), LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), name);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "k", -1.0), LPGEMM_INVALID_ARGUMENT);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "k", NAN), LPGEMM_INVALID_ARGUMENT);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "k", INFINITY), LPGEMM_INVALID_ARGUMENT);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), name);
    lpgemm_i_tuning_destroy(t);
  }
}

/* ---- tuning: the file ---- */

static char directory[256], path[300];

static int make_directory(void) {
  const char *base = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/lpgemm-test-XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(directory)) return 0;
  snprintf(path, sizeof path, "%s/tuning.txt", directory);
  return 1;
}

static size_t read_whole(const char *name, char *text, size_t bytes) {
  FILE *file = fopen(name, "rb");
  CHECK(file != NULL);
  if (!file) return 0;
  size_t length = fread(text, 1, bytes - 1, file);
  text[length] = 0;
  fclose(file);
  return length;
}

/* The CPU kernels of this build, round and round: loading takes only names of kernels that the device can run. */
static const char *cpu_kernel(int i) {
  int at = -1;
  for (i++; i > 0; i -= lpgemm_i_registry[at].backend == LPGEMM_BACKEND_CPU) at = (at + 1) % lpgemm_i_registry_count;
  return lpgemm_i_registry[at].name;
}

/* Entries of every kind, in no order. */
static int put_many(lpg_tuning *t) {
  static const lpgemm_dtype_t types[] = {LPGEMM_FLOAT(2, 1), LPGEMM_UINT(4), LPGEMM_CODEBOOK(4), LPGEMM_BIPOLAR(1)};
  int count = 0;
  for (int i = 0; i < 24; i++) {
    lpgemm_weight_desc_t d = desc_of(types[i % 4], 4096 - 16 * (i % 3), 4096);
    problem q;
    d.group_k = i % 5 ? 128 : 0;
    if (i % 7 == 1) d.scale_type = LPGEMM_UINT(6), d.super_scale_type = LPGEMM_F16;
    if (i % 7 == 2) d.zero = LPGEMM_ZERO_CONSTANT;
    if (i % 7 == 3) d.zero = LPGEMM_ZERO_PER_GROUP, d.zero_type = LPGEMM_U8;
    if (i % 7 == 4) d.zero = LPGEMM_ZERO_PER_GROUP, d.zero_type = LPGEMM_BF16;
    if (i % 7 == 5) d.zero = LPGEMM_ZERO_MINIMUM, d.zero_type = LPGEMM_F16, d.scale_type = LPGEMM_E4M3;
    if (i % 7 == 6) d.scale_type = 0;
    make(&q, &d, i % 2 ? LPGEMM_BIPOLAR(3) : LPGEMM_F16, 1000 - 7 * i);
    q.p.y_type = i % 3 ? LPGEMM_F32 : LPGEMM_BF16;
    q.p.level = i % 2 ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
    q.p.batch_invariant = i % 4 == 2;
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, i % 5 < 3 ? 0 : i % 5, cpu_kernel(i), 100.0 / 3.0 + i * 1e4),
                 LPGEMM_SUCCESS);
    count++;
  }
  return count;
}

static void test_tuning_round_trip(void) {
  static char text[65536], again[65536];
  if (!test_case("dispatch/tuning/save-load")) return;
  if (!make_directory()) {
    test_fail(__FILE__, __LINE__, "no temporary directory");
    return;
  }
  lpg_tuning *t = lpgemm_i_tuning_create(), *u = lpgemm_i_tuning_create();
  int entries = put_many(t), used = -1, refused = -1;
  CHECK_STATUS(lpgemm_i_tuning_save(t, &cpu_avx512, path), LPGEMM_SUCCESS);
  size_t length = read_whole(path, text, sizeof text);
  CHECK(strncmp(text, "# lpgemm tuning 2\n# version ", 28) == 0);
  CHECK_HAS(text, "\n# device CPU of 2020\n# weights group scale zero x y mode n k m kernel us\n");
  CHECK_HAS(text, "\n# threads 3\n");
  CHECK_HAS(text, "\n# threads 4\n");
  CHECK_STATUS(lpgemm_i_tuning_load(u, &cpu_avx512, path, &used, &refused), LPGEMM_SUCCESS);
  CHECK_INT(used, entries);
  CHECK_INT(refused, 0);
  CHECK_STATUS(lpgemm_i_tuning_load(u, &cpu_avx512, path, NULL, NULL), LPGEMM_SUCCESS); /* nothing twice */
  CHECK_STATUS(lpgemm_i_tuning_save(u, &cpu_avx512, path), LPGEMM_SUCCESS);
  CHECK_INT(read_whole(path, again, sizeof again), length);
  CHECK(memcmp(text, again, length) == 0);

  /* A failed save leaves the old file and nothing else. */
  char elsewhere[400];
  snprintf(elsewhere, sizeof elsewhere, "%s/none/tuning.txt", directory);
  CHECK_STATUS(lpgemm_i_tuning_save(u, &cpu_avx512, elsewhere), LPGEMM_IO_ERROR);
  CHECK_HAS(lpgemm_last_error(), elsewhere);
  CHECK_STATUS(lpgemm_i_tuning_save(u, &cpu_avx512, directory), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_i_tuning_load(u, &cpu_avx512, elsewhere, &used, &refused), LPGEMM_IO_ERROR);
  CHECK_STATUS(lpgemm_i_tuning_load(u, &cpu_avx512, directory, &used, &refused), LPGEMM_IO_ERROR);
  int files = 0;
  DIR *listing = opendir(directory);
  for (struct dirent *e = listing ? readdir(listing) : NULL; e; e = readdir(listing)) files += e->d_name[0] != '.';
  if (listing) closedir(listing);
  CHECK_INT(files, 1);
  unlink(path);
  rmdir(directory);
  lpgemm_i_tuning_destroy(t);
  lpgemm_i_tuning_destroy(u);
}

#define KERNEL "reference.any.any.1x1.cpu"
#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)
#define VERSION TEXT(LPGEMM_VERSION_MAJOR) "." TEXT(LPGEMM_VERSION_MINOR) "." TEXT(LPGEMM_VERSION_PATCH)
#define HEAD "# lpgemm tuning 2\n# version " VERSION "\n# device CPU of 2020\n"
#define KEY "u4 128 f16 constant f16 f16 exact 4096 4096 16 "

static void test_tuning_refusals(void) {
  static const struct {
    const char *text;
    lpgemm_status_t status;
    int used, refused;
    const char *says;
  } rows[] = {
      {HEAD, LPGEMM_SUCCESS, 0, 0, NULL},
      {HEAD KEY KERNEL " 812.4\n", LPGEMM_SUCCESS, 1, 0, NULL},
      {HEAD KEY KERNEL " 812.4\r\n\r\n", LPGEMM_SUCCESS, 1, 0, NULL},
      {HEAD "  u4\t128 f16 constant f16 f16 exact  4096 4096 16 " KERNEL " 0 \n", LPGEMM_SUCCESS, 1, 0, NULL},
      {HEAD "# threads 8\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 1, 0, NULL},
      {HEAD "# threads many\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "\"# threads many\" in front of it"},
      {HEAD "# threads 12345678901234567890\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "has no such number"},
      {HEAD "# a comment\n\n" KEY KERNEL " 5.\n", LPGEMM_SUCCESS, 0, 1, "line 6 is refused: column us is not"},
      {"", LPGEMM_CORRUPT_DATA, 0, 0, "first line must be"},
      {"# lpgemm tuning 1\n# version " VERSION "\n", LPGEMM_VERSION_MISMATCH, 0, 0,
       "is of version 1, whose kernels had other names"},
      {"# lpgemm tuning 3\n", LPGEMM_CORRUPT_DATA, 0, 0, "first line must be"},
      {"# lpgemm tuning 2", LPGEMM_CORRUPT_DATA, 0, 0, "first line must be"},
      {"# lpgemm tuning 20\n", LPGEMM_CORRUPT_DATA, 0, 0, "first line must be"},
      {"\x7f"
       "ELF",
       LPGEMM_CORRUPT_DATA, 0, 0, "first line must be"},
      {"# lpgemm tuning 2\n# version 0.0.9\n# device CPU of 2020\n" KEY KERNEL " 1\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS,
       0, 2, "line 4 is refused: it was measured with lpgemm 0.0.9; this is " VERSION " (2 of 2 lines are)"},
      {"# lpgemm tuning 2\n# version " VERSION "\n# device CPU of 2015\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1,
       "it was measured on \"CPU of 2015\"; this is \"CPU of 2020\""},
      {"# lpgemm tuning 2\n# device CPU of 2020\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "(not said)"},
      {HEAD KEY KERNEL " 1\n# device CPU of 2015\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 1, 1, "line 6 is refused"},
      {HEAD KEY "nobody.any.any.1x1.cpu 1\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 1, 1,
       "kernel nobody.any.any.1x1.cpu is not in this build"},
      {HEAD KEY KERNEL "\n", LPGEMM_SUCCESS, 0, 1, "it does not have 12 columns"},
      {HEAD KEY KERNEL " 1 1\n", LPGEMM_SUCCESS, 0, 1, "it does not have 12 columns"},
      {HEAD "garbage\n" KEY KERNEL " 1\n", LPGEMM_SUCCESS, 1, 1, "line 4 is refused: it does not have 12 columns"},
      {HEAD KEY KERNEL " 1\n" KEY KERNEL " 1", LPGEMM_SUCCESS, 1, 1,
       "line 5 is refused: it does not end with a newline"},
      {HEAD "u9 128 f16 constant f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "weights is \"u9\""},
      {HEAD "f16 128 f16 constant f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "weights is \"f16\""},
      {HEAD "u4 100 f16 constant f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "group is 100"},
      {HEAD "u4 -16 f16 constant f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "group is \"-16\""},
      {HEAD "u4 128 f64 constant f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "scale is \"f64\""},
      {HEAD "u4 128 f16 one f16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "zero is \"one\""},
      {HEAD "u4 128 f16 none u16 f16 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "x is \"u16\""},
      {HEAD "u4 128 f16 none f16 i8 exact 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "y is \"i8\""},
      {HEAD "u4 128 f16 none f16 f16 quick 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "mode is \"quick\""},
      {HEAD "u4 128 f16 none f16 f16 exact 2147483648 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "n is \"2147"},
      {HEAD "u4 128 f16 none f16 f16 exact 64 0x40 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "k is \"0x40\""},
      {HEAD "u4 128 f16 none f16 f16 exact 64 64 99999999999999999999 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1,
       "m is \"9"},
      {HEAD "u4 128 f16 none f16 f16 exact,invariant 64 64 16 " KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "m is 16"},
      {HEAD "u4 128 f16 none f16 f16 exact,invariant 64 64 0 " KERNEL " 1\n", LPGEMM_SUCCESS, 1, 0, NULL},
      {HEAD KEY KERNEL " nan\n" KEY KERNEL " 1e3\n" KEY KERNEL " -1\n" KEY KERNEL " 1000000000000\n", LPGEMM_SUCCESS, 0,
       4, "line 4 is refused: column us is not"},
      {HEAD "\x1b[2J " KEY KERNEL " 1\n", LPGEMM_SUCCESS, 0, 1, "control characters"},
  };
  for (int i = 0; i < COUNT(rows); i++) {
    if (!test_case("dispatch/tuning/file/%d", i)) continue;
    lpg_tuning *t = lpgemm_i_tuning_create();
    int used = -1, refused = -1;
    CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, rows[i].text, strlen(rows[i].text), &used, &refused),
                 rows[i].status);
    int loaded = rows[i].status == LPGEMM_SUCCESS; /* a failed call writes nothing */
    CHECK_INT(used, loaded ? rows[i].used : -1);
    CHECK_INT(refused, loaded ? rows[i].refused : -1);
    if (rows[i].says) CHECK_HAS(lpgemm_last_error(), rows[i].says);
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/file/other-backend")) {
    static const char text[] = "# lpgemm tuning 2\n# version " VERSION "\n# device NVIDIA H200\n" KEY KERNEL " 1\n";
    lpg_tuning *t = lpgemm_i_tuning_create();
    int used = -1, refused = -1;
    CHECK_STATUS(lpgemm_i_tuning_parse(t, &sm90, text, strlen(text), &used, &refused), LPGEMM_SUCCESS);
    CHECK(used == 0 && refused == 1);
    CHECK_HAS(lpgemm_last_error(), "not in this build for this device");
    lpgemm_i_tuning_destroy(t);
  }
  if (test_case("dispatch/tuning/file/replaces")) {
    lpg_tuning *t = lpgemm_i_tuning_create();
    lpgemm_weight_desc_t d = desc_of(LPGEMM_UINT(4), 4096, 4096);
    problem q;
    d.zero = LPGEMM_ZERO_CONSTANT;
    make(&q, &d, LPGEMM_F16, 16);
    CHECK_STATUS(lpgemm_i_tuning_put(t, &q.p, 0, "old", 1.0), LPGEMM_SUCCESS);
    CHECK_STATUS(
        lpgemm_i_tuning_parse(t, &cpu_avx512, HEAD KEY KERNEL " 9\n", strlen(HEAD KEY KERNEL " 9\n"), NULL, NULL),
        LPGEMM_SUCCESS);
    CHECK_TEXT(lpgemm_i_tuning_find(t, &q.p, 0), KERNEL);
    lpgemm_i_tuning_destroy(t);
  }
}

/* Any bytes at all: counted, never believed, no harm. */
static void test_tuning_hostile(void) {
  static const char good[] = HEAD KEY KERNEL " 812.4\n" KEY KERNEL " 12.5\n";
  if (test_case("dispatch/tuning/hostile/truncated")) {
    for (size_t length = 0; length <= strlen(good); length++) {
      char *copy = test_alloc(length + 1); /* canaries stand right behind */
      lpg_tuning *t = lpgemm_i_tuning_create();
      int used = -1, refused = -1;
      memcpy(copy + 1, good, length);
      lpgemm_status_t status = lpgemm_i_tuning_parse(t, &cpu_avx512, copy + 1, length, &used, &refused);
      CHECK_INT(status, length > strlen("# lpgemm tuning 2") ? LPGEMM_SUCCESS : LPGEMM_CORRUPT_DATA);
      int lines = 0, rest = 0; /* entry lines that are whole, and one that is not */
      for (size_t i = strlen(HEAD); i < length; i++) lines += good[i] == '\n';
      rest = length > strlen(HEAD) && good[length - 1] != '\n';
      CHECK_INT(used, status == LPGEMM_SUCCESS ? lines : -1);
      CHECK_INT(refused, status == LPGEMM_SUCCESS ? rest : -1);
      lpgemm_i_tuning_destroy(t);
      test_free(copy);
    }
  }
  if (test_case("dispatch/tuning/hostile/flipped")) {
    for (int i = 0; i < 20000; i++) {
      char copy[sizeof good];
      lpg_tuning *t = lpgemm_i_tuning_create();
      int used = -1, refused = -1;
      memcpy(copy, good, sizeof good);
      for (int64_t flips = test_between(1, 4); flips > 0; flips--) {
        copy[test_between(18, (int64_t)strlen(good) - 1)] = (char)test_random();
      }
      CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, copy, strlen(good), &used, &refused), LPGEMM_SUCCESS);
      CHECK(used >= 0 && refused >= 0);
      lpgemm_i_tuning_destroy(t);
    }
  }
  if (test_case("dispatch/tuning/hostile/junk")) {
    for (int i = 0; i < 200; i++) {
      size_t length = (size_t)test_between(0, 5000);
      char *junk = test_alloc(length + 18);
      lpg_tuning *t = lpgemm_i_tuning_create();
      int used = -1, refused = -1;
      memcpy(junk, "# lpgemm tuning 2\n", 18);
      for (size_t j = 0; j < length; j++) junk[18 + j] = (char)test_random();
      CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, junk, length + 18, &used, &refused), LPGEMM_SUCCESS);
      CHECK_INT(used, 0);
      CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, junk + 18, length, &used, &refused), LPGEMM_CORRUPT_DATA);
      lpgemm_i_tuning_destroy(t);
      test_free(junk);
    }
  }
  if (test_case("dispatch/tuning/hostile/large")) {
    static const char head[] = HEAD;
    size_t limit = (size_t)16 << 20;
    char *text = malloc(limit + 1);
    lpg_tuning *t = lpgemm_i_tuning_create();
    int used = -1, refused = -1;
    memset(text, 'x', limit + 1);
    memcpy(text, head, strlen(head));
    CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, text, limit + 1, &used, &refused), LPGEMM_CORRUPT_DATA);
    text[limit - 1] = '\n';
    CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, text, limit, &used, &refused), LPGEMM_SUCCESS);
    CHECK(used == 0 && refused == 1);
    CHECK_HAS(lpgemm_last_error(), "at most 255");
    /* more entries than are kept */
    size_t length = strlen(head);
    for (int m = 9000; m > 0; m--) {
      length += (size_t)snprintf(text + length, 256, "u4 128 f16 none f16 f16 exact 64 64 %d " KERNEL " 1\n", m);
    }
    CHECK_STATUS(lpgemm_i_tuning_parse(t, &cpu_avx512, text, length, &used, &refused), LPGEMM_SUCCESS);
    CHECK_INT(used, 8192);
    CHECK_INT(refused, 9000 - 8192);
    CHECK_HAS(lpgemm_last_error(), "8192 tuning results already");
    lpgemm_i_tuning_destroy(t);
    free(text);
  }
}

/* ---- lpgemm_autotune() ---- */

/* Where time is over at once, nothing is chosen but what is chosen untuned. */
static void test_autotune(void) {
  if (!test_case("dispatch/tuning/out-of-time")) return;
  enum { N = 512, K = 1024 };
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  lpgemm_handle_t handle = NULL;
  lpgemm_weights_t weights = NULL;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  lpgemm_weight_desc_t desc = desc_of(LPGEMM_UINT(4), N, K);
  float *values = calloc((size_t)N * K, sizeof *values);
  CHECK_STATUS(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, values, LPGEMM_F32, 0, NULL, 0, &weights),
               LPGEMM_SUCCESS);
  free(values);
  static const int64_t rows[] = {1, 2, 64};
  lpgemm_autotune_options_t options = {.size = sizeof options, .seconds = 1e-5};
  for (int i = 0; i < COUNT(rows); i++) {
    lpgemm_run_args_t args = {.size = sizeof args, .weights = weights, .m = rows[i]};
    char untuned[256] = "", tuned[256] = "";
    CHECK_STATUS(lpgemm_explain(handle, &args, untuned, sizeof untuned), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_autotune(handle, weights, &rows[i], 1, &options), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_explain(handle, &args, tuned, sizeof tuned), LPGEMM_SUCCESS);
    CHECK_INT(strcspn(tuned, ":"), strcspn(untuned, ":"));
    CHECK(strncmp(tuned, untuned, strcspn(untuned, ":")) == 0);
    CHECK_STATUS(lpgemm_tuning_clear(handle), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

void dispatch_tuning(void) {
  test_autotune();
  test_tuning_find();
  test_tuning_round_trip();
  test_tuning_refusals();
  test_tuning_hostile();
}
