/* Programs as a user starts them. */
#include "program.h"

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

enum { PATH_BYTES = PROGRAM_PATH };
char program_output[PROGRAM_OUTPUT];
const char *program_folder = "/tmp";

/* ---- running ---- */

int program_find(const char *name, char path[PROGRAM_PATH]) {
  char self[PATH_BYTES / 2];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = 0;
  char *slash = strrchr(self, '/');
  if (slash) *slash = 0;
  snprintf(path, PATH_BYTES, "%s/%s", self, name);
  if (access(path, X_OK) == 0) return 1;
  test_fail(__FILE__, __LINE__, "there is no %s; `make tests` with the same BUILD makes it", path);
  return 0;
}

int program_run(const char *command, int all) {
  char name[32], path[PATH_BYTES], line[4 * PATH_BYTES];
  size_t length = strcspn(command, " ");
  snprintf(name, sizeof name, memchr(command, '/', length) ? "%.*s" : "bin/lpgemm-%.*s", (int)length, command);
  program_output[0] = 0;
  if (!program_find(name, path)) return -1;
  snprintf(line, sizeof line, "TMPDIR='%s' '%s'%s %s", program_folder, path, command + length,
           all ? "2>&1" : "2>/dev/null");
  fflush(stdout);
  FILE *pipe = popen(line, "r");
  if (!pipe) return -1;
  size_t bytes = fread(program_output, 1, sizeof program_output - 1, pipe);
  program_output[bytes] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void program_check(const char *command, int want, const char *part) {
  int got = program_run(command, 1);
  if (got != want) test_fail(__FILE__, __LINE__, "%s: exit code %d, not %d: %s", command, got, want, program_output);
  if (!strstr(program_output, part))
    test_fail(__FILE__, __LINE__, "%s: no \"%s\" in: %s", command, part, program_output);
}

int program_lines(const char *part) {
  int count = 0;
  for (const char *line = program_output; *line; line = strchr(line, '\n') + 1) {
    const char *found = strstr(line, part);
    count += found && found < strchr(line, '\n');
  }
  return count;
}

/* ---- JSON: where a value ends, NULL if it is none ---- */

static const char *skip_blanks(const char *s) { return s + strspn(s, " \n"); }

static const char *skip_text(const char *s) {
  if (*s++ != '"') return NULL;
  for (; *s && *s != '"'; s++) {
    if ((unsigned char)*s < ' ' || (*s == '\\' && !*++s)) return NULL;
  }
  return *s ? s + 1 : NULL;
}

static const char *skip_value(const char *s) {
  static const char *const words[] = {"true", "false", "null"};
  s = skip_blanks(s);
  if (*s == '"') return skip_text(s);
  for (int i = 0; i < COUNT(words); i++) {
    if (strncmp(s, words[i], strlen(words[i])) == 0) return s + strlen(words[i]);
  }
  if (*s != '{' && *s != '[') {
    size_t digits = strspn(s, "+-0123456789.e");
    return digits ? s + digits : NULL;
  }
  char end = *s == '{' ? '}' : ']';
  s = skip_blanks(s + 1);
  if (*s == end) return s + 1;
  for (;; s++) {
    if (end == '}') {
      s = skip_text(skip_blanks(s));
      if (!s || *s++ != ':') return NULL;
    }
    s = skip_value(s);
    if (!s) return NULL;
    s = skip_blanks(s);
    if (*s == end) return s + 1;
    if (*s != ',') return NULL;
  }
}

void program_check_json(const char *command, int want, const char *part) {
  CHECK_INT(program_run(command, 0), want);
  const char *end = skip_value(program_output);
  if (!end || *skip_blanks(end)) test_fail(__FILE__, __LINE__, "%s printed no JSON: %s", command, program_output);
  if (!strstr(program_output, part)) test_fail(__FILE__, __LINE__, "%s: no %s in: %s", command, part, program_output);
}
