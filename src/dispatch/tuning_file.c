/* Measured choices as a text file that a person can read and compare.
 *
 *     # lpgemm tuning 2
 *     # version 0.1.0
 *     # device NVIDIA H200
 *     # threads 8
 *     # weights group scale zero x y mode n k m kernel us
 *     u4 128 f16 constant f16 f16 exact 4096 4096 16 blocked.any.any.16x16.avx512 812.400
 *
 * The columns before the kernel are the key, in the order in which the lines are sorted. Version, device and threads
 * (CPU; without it, any number) hold for the lines that follow them; every other line that starts with # is a comment.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kinds.h"
#include "tuning.h"

enum {
  MAX_FILE_BYTES = 16 << 20,
  LINE_BYTES = 256, /* of an entry, with its final 0 */
  PATH_BYTES = 4096
};
#define MAGIC "# lpgemm tuning 2"
#define OLD_MAGIC "# lpgemm tuning 1" /* its kernels had other names */
#define THREADS "# threads "
#define MAX_SIZE INT64_C(0x7fffffff)
#define MAX_ROWS (INT64_C(1) << 62)

/* ---- the columns of a key ---- */

/* Columns of a line: those of a key but for the threads, which are said in front of them. */
enum { FIRST = LPG_KEY_THREADS + 1, COLUMNS = LPG_KEY_COLUMNS - FIRST, MAX_THREADS = 1 << 20 };

/* In the order of the numbers in the key. */
#define SCALE_WORD(name, word, type) word,
#define ZERO_WORD(name, word) word,
static const char *const scale_words[] = {LPG_SCALE_KINDS(SCALE_WORD) NULL};
static const char *const zero_words[] = {LPG_ZERO_KINDS(ZERO_WORD) NULL};
static const char *const mode_words[] = {"exact", "fast", "exact,invariant", "fast,invariant", NULL};

/* A column holds one of the words, or a number of at most `most`, or else the name of a type. */
static const struct {
  const char *title;
  const char *const *words;
  int64_t most;
} columns[LPG_KEY_COLUMNS] = {
    {"threads", NULL, MAX_THREADS}, /* not of a line */
    {"weights", NULL, 0},
    {"group", NULL, MAX_SIZE},
    {"scale", scale_words, 0},
    {"zero", zero_words, 0},
    {"x", NULL, 0},
    {"y", NULL, 0},
    {"mode", mode_words, 0},
    {"n", NULL, MAX_SIZE},
    {"k", NULL, MAX_SIZE},
    {"m", NULL, MAX_ROWS},
};

/* ---- writing ---- */

static void version_text(char text[16]) {
  int version = lpgemm_version();
  snprintf(text, 16, "%d.%d.%d", version / 10000 % 100, version / 100 % 100, version % 100);
}

static void write_entry(FILE *file, const lpg_entry *e) {
  for (int i = FIRST; i < LPG_KEY_COLUMNS; i++) {
    if (columns[i].words) {
      fprintf(file, "%s ", columns[i].words[e->key[i]]);
    } else if (columns[i].most) {
      fprintf(file, "%lld ", (long long)e->key[i]);
    } else {
      fprintf(file, "%s ", lpgemm_dtype_name((lpgemm_dtype_t)e->key[i]));
    }
  }
  long long nanoseconds = llround(e->microseconds * 1000.0); /* no %f: its decimal point depends on the locale */
  fprintf(file, "%s %lld.%03lld\n", e->kernel, nanoseconds / 1000, nanoseconds % 1000);
}

static int write_all(FILE *file, const lpg_tuning *t, const lpg_device *device) {
  char version[16];
  version_text(version);
  fprintf(file, MAGIC "\n# version %s\n# device %s\n", version, device->name);
  fprintf(file, "#");
  for (int i = FIRST; i < LPG_KEY_COLUMNS; i++) fprintf(file, " %s", columns[i].title);
  fprintf(file, " kernel us\n");
  int64_t threads = 0;
  for (int i = 0; i < t->count; i++) { /* sorted by the number of threads first */
    const lpg_entry *e = &t->entries[i];
    if (e->key[LPG_KEY_THREADS] != threads) {
      threads = e->key[LPG_KEY_THREADS];
      fprintf(file, THREADS "%lld\n", (long long)threads);
    }
    write_entry(file, e);
  }
  return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

/* Writes a new file beside the old one and puts it in its place when it is whole. */
lpgemm_status_t lpgemm_i_tuning_save(const lpg_tuning *tuning, const lpg_device *device, const char *path) {
  static atomic_uint saves;
  char temporary[PATH_BYTES];
  int length =
      snprintf(temporary, sizeof temporary, "%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&saves, 1));
  LPG_CHECK(length > 0 && length < PATH_BYTES, LPGEMM_INVALID_ARGUMENT, "path is too long; it may have %d characters",
            PATH_BYTES - 40);
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
  LPG_CHECK(descriptor >= 0, LPGEMM_IO_ERROR, "path \"%.200s\" cannot be written: %s", path, strerror(errno));
  FILE *file = fdopen(descriptor, "w");
  int good = file && write_all(file, tuning, device);
  int error = errno;
  if ((file ? fclose(file) : close(descriptor)) != 0 && good) {
    good = 0;
    error = errno;
  }
  if (good && rename(temporary, path) != 0) {
    good = 0;
    error = errno;
  }
  if (!good) unlink(temporary);
  LPG_CHECK(good, LPGEMM_IO_ERROR, "path \"%.200s\" cannot be written: %s", path, strerror(error));
  return LPGEMM_SUCCESS;
}

/* ---- reading ---- */

/* Nothing that a log or a terminal must not see, and no 0 that would hide the rest of a line. */
static int is_text(const char *line, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)line[i];
    if ((c < ' ' && c != '\t') || c == 0x7f) return 0;
  }
  return 1;
}

static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* Splits a line in place; returns the number of fields, at most max + 1. */
static int split(char *line, char **fields, int max) {
  int count = 0;
  for (char *s = line; *s;) {
    while (is_blank(*s)) *s++ = 0;
    if (!*s) break;
    if (count == max) return max + 1;
    fields[count++] = s;
    while (*s && !is_blank(*s)) s++;
  }
  return count;
}

/* Digits only, at most `most`; -1 for anything else. */
static int64_t read_number(const char *text, int64_t most) {
  int64_t value = 0;
  if (!*text) return -1;
  for (; *text; text++) {
    int digit = *text - '0';
    if (digit < 0 || digit > 9 || value > (most - digit) / 10) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/* "812.4"; -1 for anything else. No strtod: its decimal point depends on the locale. */
static double read_microseconds(char *text) {
  char *point = strchr(text, '.');
  double fraction = 0.0;
  if (point) {
    *point = 0;
    int64_t digits = read_number(point + 1, 999999999);
    if (digits < 0) return -1.0;
    fraction = (double)digits / pow(10.0, (double)strlen(point + 1));
  }
  int64_t whole = read_number(text, (int64_t)LPG_TUNING_MICROSECONDS - 1);
  return whole < 0 ? -1.0 : (double)whole + fraction;
}

static int64_t read_word(const char *text, const char *const *words) {
  for (int i = 0; words[i]; i++) {
    if (strcmp(text, words[i]) == 0) return i;
  }
  return -1;
}

static int64_t read_type(const char *text, int column) {
  lpgemm_dtype_t type;
  if (lpgemm_dtype_parse(text, &type) != LPGEMM_SUCCESS) return -1;
  int fits = column == LPG_KEY_WEIGHTS ? lpg_is_weight_type(type)
             : column == LPG_KEY_X     ? lpg_is_x_type(type)
                                       : lpg_is_y_type(type);
  return fits ? (int64_t)type : -1;
}

static lpgemm_status_t read_key(char **fields, int64_t *key) {
  for (int i = FIRST; i < LPG_KEY_COLUMNS; i++) {
    const char *field = fields[i - FIRST];
    key[i] = columns[i].words  ? read_word(field, columns[i].words)
             : columns[i].most ? read_number(field, columns[i].most)
                               : read_type(field, i);
    LPG_CHECK(key[i] >= 0, LPGEMM_CORRUPT_DATA, "column %s is \"%.40s\", which it cannot be", columns[i].title, field);
  }
  LPG_CHECK(key[LPG_KEY_GROUP] % LPG_STEP_K == 0, LPGEMM_CORRUPT_DATA,
            "column group is %lld; it must be a multiple of %d", (long long)key[LPG_KEY_GROUP], LPG_STEP_K);
  LPG_CHECK(key[LPG_KEY_M] == 0 || !(key[LPG_KEY_MODE] & LPG_MODE_INVARIANT), LPGEMM_CORRUPT_DATA,
            "column m is %lld; it must be 0 for invariant modes", (long long)key[LPG_KEY_M]);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_entry(const char *line, size_t length, const lpg_device *device, lpg_entry *entry) {
  char text[LINE_BYTES];
  LPG_CHECK(length < sizeof text, LPGEMM_CORRUPT_DATA, "it has %zu characters; at most %d make sense", length,
            LINE_BYTES - 1);
  LPG_CHECK(is_text(line, length), LPGEMM_CORRUPT_DATA, "it holds control characters");
  memcpy(text, line, length);
  text[length] = 0;
  char *fields[COLUMNS + 2];
  int count = split(text, fields, COLUMNS + 2);
  LPG_CHECK(count == COLUMNS + 2, LPGEMM_CORRUPT_DATA, "it does not have %d columns", COLUMNS + 2);
  LPG_TRY(read_key(fields, entry->key));
  const lpg_kernel *kernel = lpgemm_i_find_kernel(lpgemm_i_registry, lpgemm_i_registry_count, fields[COLUMNS]);
  LPG_CHECK(kernel && kernel->backend == device->backend, LPGEMM_NOT_SUPPORTED,
            "kernel %.80s is not in this build for this device", fields[COLUMNS]);
  memcpy(entry->kernel, kernel->name, strlen(kernel->name) + 1);
  entry->microseconds = read_microseconds(fields[COLUMNS + 1]);
  LPG_CHECK(entry->microseconds >= 0.0, LPGEMM_CORRUPT_DATA, "column us is not a number of microseconds");
  return LPGEMM_SUCCESS;
}

/* What a header line said: the text after its words. */
typedef struct lpg_said {
  const char *text;
  size_t length;
} lpg_said;

static int said(lpg_said s, const char *text) {
  return s.length == strlen(text) && memcmp(s.text, text, s.length) == 0;
}

/* If the line starts with the words, keeps what follows them, and returns 1. */
static int listen(const char *line, size_t length, const char *words, lpg_said *s) {
  size_t n = strlen(words);
  if (length < n || memcmp(line, words, n) != 0 || !is_text(line, length)) return 0;
  s->text = line + n;
  s->length = length - n;
  return 1;
}

/* 0 if no line said it. */
static lpgemm_status_t read_threads(lpg_said s, int64_t *threads) {
  char text[16] = "0";
  if (s.text) snprintf(text, sizeof text, "%.*s", s.length < sizeof text ? (int)s.length : (int)sizeof text, s.text);
  *threads = read_number(text, MAX_THREADS);
  LPG_CHECK(*threads >= 0, LPGEMM_CORRUPT_DATA, "the line \"" THREADS "%.15s\" in front of it has no such number",
            text);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t take_line(lpg_tuning *tuning, const lpg_device *device, const char *line, size_t length,
                                 lpg_said version, lpg_said name, lpg_said threads) {
  char ours[16];
  version_text(ours);
  LPG_CHECK(said(version, ours), LPGEMM_VERSION_MISMATCH, "it was measured with lpgemm %.*s; this is %s",
            version.length < 32 ? (int)version.length : 32, version.text, ours);
  LPG_CHECK(said(name, device->name), LPGEMM_WRONG_DEVICE, "it was measured on \"%.*s\"; this is \"%s\"",
            name.length < 64 ? (int)name.length : 64, name.text, device->name);
  lpg_entry entry;
  LPG_TRY(read_entry(line, length, device, &entry));
  LPG_TRY(read_threads(threads, &entry.key[LPG_KEY_THREADS]));
  return lpgemm_i_tuning_insert(tuning, &entry);
}

lpgemm_status_t lpgemm_i_tuning_parse(lpg_tuning *tuning, const lpg_device *device, const char *text, size_t bytes,
                                      int *used, int *refused) {
  int taken = 0, left = 0;
  LPG_CHECK(bytes <= MAX_FILE_BYTES, LPGEMM_CORRUPT_DATA, "a tuning file has at most %d bytes", MAX_FILE_BYTES);
  size_t magic = strlen(MAGIC);
  LPG_CHECK(bytes < magic || memcmp(text, OLD_MAGIC, magic) != 0, LPGEMM_VERSION_MISMATCH,
            "this tuning file is of version 1, whose kernels had other names: tune again");
  LPG_CHECK(bytes > magic && memcmp(text, MAGIC, magic) == 0 && (text[magic] == '\n' || text[magic] == '\r'),
            LPGEMM_CORRUPT_DATA, "this is no tuning file: its first line must be \"" MAGIC "\"");
  lpg_said version = {"(not said)", 10}, name = {"(not said)", 10}, threads = {NULL, 0};
  char first[512] = "";
  lpgemm_status_t status = LPGEMM_SUCCESS;
  int number = 0;
  for (size_t at = 0; at < bytes;) {
    const char *line = text + at;
    const char *end = memchr(line, '\n', bytes - at);
    size_t length = end ? (size_t)(end - line) : bytes - at;
    at += length + 1;
    number++;
    if (length > 0 && line[length - 1] == '\r') length--;
    (void)listen(line, length, "# version ", &version);
    if (listen(line, length, "# device ", &name)) threads.text = NULL;
    (void)listen(line, length, THREADS, &threads);
    if (length == 0 || line[0] == '#') continue;
    lpgemm_status_t result = end ? take_line(tuning, device, line, length, version, name, threads)
                                 : lpgemm_i_fail(LPGEMM_CORRUPT_DATA, __FILE__, __LINE__,
                                                 "it does not end with a newline: the file was cut short");
    if (result == LPGEMM_SUCCESS) {
      taken++;
    } else if (++left == 1) {
      status = result;
      snprintf(first, sizeof first, "line %d is refused: %.400s", number, lpgemm_last_error());
    }
  }
  /* The first refusal is what the caller reads; loading the other lines is a success all the same. */
  if (left) lpgemm_i_fail(status, __FILE__, __LINE__, "%s (%d of %d lines are)", first, left, taken + left);
  if (used) *used = taken;
  if (refused) *refused = left;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_tuning_load(lpg_tuning *tuning, const lpg_device *device, const char *path, int *used,
                                     int *refused) {
  FILE *file = fopen(path, "rb");
  LPG_CHECK(file, LPGEMM_IO_ERROR, "path \"%.200s\" cannot be read: %s", path, strerror(errno));
  char *text = NULL;
  size_t bytes = 0, capacity = 0;
  lpgemm_status_t status = LPGEMM_SUCCESS;
  while (status == LPGEMM_SUCCESS && bytes == capacity && bytes <= MAX_FILE_BYTES) {
    capacity = capacity ? 2 * capacity : 65536;
    char *larger = realloc(text, capacity);
    if (larger) {
      text = larger;
      bytes += fread(text + bytes, 1, capacity - bytes, file);
    } else {
      status = lpgemm_i_fail(LPGEMM_OUT_OF_MEMORY, __FILE__, __LINE__, "no memory for the file \"%.200s\"", path);
    }
  }
  if (status == LPGEMM_SUCCESS && ferror(file)) {
    status =
        lpgemm_i_fail(LPGEMM_IO_ERROR, __FILE__, __LINE__, "path \"%.200s\" cannot be read: %s", path, strerror(errno));
  }
  fclose(file);
  if (status == LPGEMM_SUCCESS) {
    status = lpgemm_i_tuning_parse(tuning, device, text, bytes, used, refused);
    if (status != LPGEMM_SUCCESS) {
      char why[512];
      snprintf(why, sizeof why, "%s", lpgemm_last_error());
      lpgemm_i_fail(status, __FILE__, __LINE__, "path \"%.200s\": %s", path, why);
    }
  }
  free(text);
  return status;
}
