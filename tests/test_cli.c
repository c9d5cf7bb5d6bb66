/* lpgemm-info and lpgemm-tune as a user starts them: exit codes, what they print, what they leave. */
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "test.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static char folder[] = "/tmp/lpgemm-cli-XXXXXX"; /* where a case's files go */

/* ---- lpgemm-info ---- */

static int count_cpu_kernels(void) {
  size_t count;
  int cpu = 0;
  CHECK_STATUS(lpgemm_list_kernels(NULL, 0, &count), LPGEMM_SUCCESS);
  lpgemm_kernel_info_t *list = calloc(count, sizeof *list);
  for (size_t i = 0; list && i < count; i++) list[i].size = sizeof *list;
  CHECK_STATUS(lpgemm_list_kernels(list, count, &count), LPGEMM_SUCCESS);
  for (size_t i = 0; list && i < count; i++) cpu += list[i].backend == LPGEMM_BACKEND_CPU;
  free(list);
  return cpu;
}

static void check_kernel_names(void) {
  program_check("info --kernels --backend cpu", 0, "reference.any.any.1x1.cpu\n");
  CHECK_INT(program_lines("."), count_cpu_kernels());
  program_check("info --kernels blocked --backend cpu", 0, "blocked.any.any.16x16.base");
  CHECK_INT(program_lines("blocked"), program_lines("."));
  program_check("info --backend cpu --kernels 'reference.*.1x1.*'", 0, "reference");
  CHECK_INT(program_lines("."), 1);
  program_check("info --kernels nothing.like.it", 1, "fits 'nothing.like.it'");
}

/* Reasons are counted, or with --all each kernel has its line, once. */
static void check_all_kernels(void) {
  static const char product[] = "--backend cpu --explain 64 128 u4 3 --group 64 --scale f16";
  static const char narrow[] = "lut.u1.any.4.base";
  char command[256], part[256];
  snprintf(command, sizeof command, "info %s", product);
  snprintf(part, sizeof part, "not possible, it does not take weights of this many bits: ");
  program_check(command, 0, part);
  CHECK_INT(program_lines(part), 1);
  snprintf(command, sizeof command, "info --all %s", product);
  snprintf(part, sizeof part, "\n%s: not possible, it does not take weights of this many bits\n", narrow);
  program_check(command, 0, part);
  CHECK_INT(program_lines(narrow), 1);
  CHECK_INT(program_lines(": chosen, "), 1);
  CHECK_INT(program_lines(": "), count_cpu_kernels() + 1); /* and the plan */
}

static void check_info(void) {
  if (test_case("cli/info/summary")) {
    program_check("info --backend cpu", 0, lpgemm_build_info());
    CHECK(strstr(program_output, "cpu ") && strstr(program_output, "reference"));
    CHECK(!strstr(program_output, "cuda "));
  }
  if (test_case("cli/info/full")) program_check("info --backend cpu >/dev/full", 1, "");
  if (test_case("cli/info/kernels")) check_kernel_names();
  if (test_case("cli/info/explain")) {
    program_check("info --backend cpu --explain 64 128 u4 3 --group 64 --scale f16 --zero 8", 0, ": chosen, ");
    CHECK(strstr(program_output, "\n  plan: "));
    program_check("info --backend cpu --explain 64 128 u4 3 --group rows --scale f16", 2, "a multiple of 16, or row");
    program_check("info --backend cpu --explain 64 128 u4 3 --scale f16 --x i8 --y i32", 1, "none: y_type is i32");
    program_check("info --backend cpu --explain 64 128 u4 3 --scale f16 --x i8 --y i32 --all", 1,
                  "none: y_type is i32");
  }
  if (test_case("cli/info/explain/all")) check_all_kernels();
  if (test_case("cli/info/supports")) {
    program_check("info --backend cpu --supports 64 128 u4 3 --x i8 --y i32", 0, "supported\n");
    program_check("info --backend cpu --supports 64 128 u4 3 --y i32", 1, "not supported: y_type is i32");
  }
  static const char *const layers[] = {"u1 1 --group 64 --scale f16 --zero 0.5",
                                       "i8 1 --scale f32 --x bf16 --y f32",
                                       "b2 4 --x b3 --y i32",
                                       "e2m1 1 --group 32 --scale e8m0",
                                       "e4m3 1 --group 16 --scale e4m3 --x e4m3",
                                       "nf4 1 --group 64 --scale bf16 --x bf16",
                                       "c3 1",
                                       "u4 1 --group 128 --scale f16 --zero u8",
                                       "u8 1 --group 128 --scale f16 --zero u16",
                                       "u3 0 --group row --scale none --zero f16"};
  for (int i = 0; i < COUNT(layers); i++) { /* weights of each kind can be made */
    char command[256];
    snprintf(command, sizeof command, "info --backend cpu --explain 33 130 %s", layers[i]);
    if (test_case("cli/info/layer/%s", layers[i])) program_check(command, 0, ": chosen, ");
  }
  if (test_case("cli/info/json")) {
    program_check_json("info --json", 0, "\"version\": \"");
    program_check_json("info --json --backend cpu", 0, "\"device\": \"");
    program_check_json("info --json --kernels lut --backend cpu", 0, "\"family\": \"lut\"");
    program_check_json("info --json --backend cpu --explain 64 128 nf4 3 --group 64 --scale f16", 0,
                       "\"weights\": \"nf4\"");
    program_check_json("info --json --backend cpu --explain 64 128 nf4 3 --group 64 --scale f16", 0, ", \"plan\": \"");
    CHECK(strstr(program_output, ", \"says\": \"not possible, ") && strstr(program_output, ", \"kernels\": "));
    program_check_json("info --json --backend cpu --explain 64 128 nf4 3 --all", 0, ", \"plan\": \"");
    CHECK(strstr(program_output, ", \"says\": \"not possible, ") && !strstr(program_output, ", \"kernels\": "));
    program_check_json("info --json --backend cpu --explain 64 128 u4 3 --y i32 --x i8 --scale f16", 1,
                       "\"kernel\": null");
    program_check_json("info --json --backend cpu --supports 64 128 u4 3 --zero 1.5", 0, "\"supported\": true");
    program_check_json("info --json --backend cpu --supports 64 128 u4 3 --y i32", 1, "\"supported\": false");
  }
}

/* ---- lpgemm-tune ---- */

/* The table in cli/models.c is the list of the tests. */
static void check_models(void) {
  char path[PROGRAM_PATH], line[256], name[64];
  const char *slash = strrchr(__FILE__, '/');
  snprintf(path, sizeof path, "%.*sshapes/model.txt", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
  FILE *file = fopen(path, "r");
  long long n, k, own_n, own_k;
  int lines = 0;
  program_check("tune --models", 0, "llama3-8b.qkv");
  const char *at = program_output;
  CHECK(file);
  while (file && fgets(line, sizeof line, file)) {
    char own[64] = "";
    if (line[0] == '#' || sscanf(line, "%63s %lld %lld", name, &n, &k) != 3) continue;
    lines++;
    if (sscanf(at, "%63s %lld %lld", own, &own_n, &own_k) != 3 || strcmp(own, name) || own_n != n || own_k != k) {
      test_fail(__FILE__, __LINE__, "%s has %s, cli/models.c has %s", path, name, own);
      break;
    }
    at = strchr(at, '\n') + 1;
  }
  CHECK_INT(*at, 0); /* and nothing more */
  CHECK(lines > 0);
  if (file) fclose(file);
}

static void check_lines(const char *path, int want) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = 1};
  lpgemm_handle_t handle;
  int used = -1, refused = -1;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_tuning_load(handle, path, &used, &refused), LPGEMM_SUCCESS);
  CHECK_INT(used, want);
  CHECK_INT(refused, 0);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void check_files(void) {
  char file[PROGRAM_PATH], command[4 * PROGRAM_PATH];
  snprintf(file, sizeof file, "%s/tuned", folder);
  snprintf(
      command, sizeof command,
      "tune --backend cpu --shape 64x128 --shape 48x80 --weights u4 --scale f16 --rows 1,5 --seconds 1 --output %s",
      file);
  program_check(command, 0, "64 x 128");
  check_lines(file, 4);
  snprintf(command, sizeof command,
           "tune --backend cpu --shape 64x128 --weights i8 --rows 5 --seconds 1 --load %s --output %s", file, file);
  program_check(command, 0, "4 lines taken, 0 refused");
  check_lines(file, 5);
  snprintf(command, sizeof command, "tune --backend cpu --shape 64x128 --weights u4 --load %s/none", folder);
  program_check(command, 1, "cannot be read");
  snprintf(command, sizeof command, "tune --backend cpu --shape 64x128 --weights u4 --rows 1 --output %s/none/none",
           folder);
  program_check(command, 1, "cannot be written");
  CHECK_INT(unlink(file), 0);
}

static void check_tune(void) {
  if (test_case("cli/tune/models")) check_models();
  if (test_case("cli/tune/files")) check_files();
  if (test_case("cli/tune/model")) {
    program_check("tune --backend cpu --model gpt-oss.expert_down --weights u2 --rows 1 --seconds 0.1", 0,
                  "2880 x 2880");
    CHECK_INT(program_lines("packing"), 1);
  }
  if (test_case("cli/tune/seconds")) { /* the last numbers of rows get their turn when the time is over */
    program_check("tune --backend cpu --shape 512x512 --weights u4 --rows 1,2,3,4 --seconds 0.001", 0, "512 x 512");
    CHECK_INT(program_lines("timing M ="), 4);
  }
  if (test_case("cli/tune/json")) {
    program_check_json("tune --json --backend cpu --shape 64x128 --weights fp4 --rows 1,2 --seconds 1", 0,
                       "\"tuned\": \"");
  }
}

/* ---- wrong usage ---- */

void suite_cli(void) {
  static const struct {
    const char *command, *part;
  } wrong[] = {
      {"info --jason", "'--jason' is no option"},
      {"info more", "'more' is no option"},
      {"info --backend gpu", "--backend is 'gpu'; it must be cpu or cuda"},
      {"info --backend", "--backend has no value"},
      {"info --group 32", "need --explain or --supports"},
      {"info --kernels --explain 1 1 u4 1", "--kernels and --explain exclude each other"},
      {"info --supports 64 64 u4 1 --all", "--all needs --explain"},
      {"info --explain 64 64 u4", "four values, N K TYPE M"},
      {"info --explain 0 64 u4 1", "N is '0'; it must be a whole number from 1"},
      {"info --explain 64 64k u4 1", "K is '64k'"},
      {"info --explain 64 64 u9 1", "TYPE is 'u9'; it must be u1..u8"},
      {"info --supports 64 64 f16 1", "TYPE is 'f16'; it must be u1..u8"},
      {"info --supports 64 64 u4 -1", "M is '-1'"},
      {"info --supports 64 64 u4 1 --group 7", "--group is '7'; it must be a multiple of 16"},
      {"info --supports 64 64 u4 1 --scale u4", "--scale is 'u4'; it must be f16"},
      {"info --supports 64 64 u4 1 --zero i3", "--zero is 'i3'; it must be a number"},
      {"info --supports 64 64 u4 1 --zero nan", "--zero is 'nan'"},
      {"info --supports 64 64 u4 1 --x e8m0", "--x is 'e8m0'; it must be f16"},
      {"info --supports 64 64 u4 1 --y u16", "--y is 'u16'; it must be f16"},
      {"tune", "needs --model NAME or --shape NxK"},
      {"tune --model llama9 --weights u4", "--model is 'llama9'; the models are llama3-8b, llama3-70b, "},
      {"tune --model llama3 --weights u4", "--model is 'llama3'"},
      {"tune --shape 64 --weights u4", "--shape is '64'; it must be NxK"},
      {"tune --shape 64x0 --weights u4", "K of --shape is '0'; it must be a whole number from 1"},
      {"tune --shape 64x64x64 --weights u4", "--shape is '64x64x64'"},
      {"tune --shape 64x64", "--weights is missing"},
      {"tune --shape 64x64 --weights q4", "--weights is 'q4'; it must be u1..u8"},
      {"tune --shape 64x64 --weights u4 --rows 1,,2", "a number of --rows is ''"},
      {"tune --shape 64x64 --weights u4 --rows 0", "a number of --rows is '0'"},
      {"tune --shape 64x64 --weights u4 --seconds 0", "--seconds is '0'; it must be a number above 0"},
      {"tune --shape 64x64 --weights u4 --output --json", "--output is followed by the option --json"},
  };
  static const char *const programs[] = {"info", "tune"};
  if (!mkdtemp(folder) && test_case("cli/folder")) test_fail(__FILE__, __LINE__, "cannot make %s", folder);
  program_folder = folder;
  for (int i = 0; i < COUNT(programs); i++) {
    if (test_case("cli/%s/help", programs[i])) {
      char command[32], part[32];
      snprintf(command, sizeof command, "%s --help", programs[i]);
      snprintf(part, sizeof part, "usage: lpgemm-%s ", programs[i]);
      program_check(command, 0, part);
    }
  }
  check_info();
  check_tune();
  for (int i = 0; i < COUNT(wrong); i++) {
    if (!test_case("cli/wrong/%s", wrong[i].command)) continue;
    program_check(wrong[i].command, 2, wrong[i].part);
    CHECK(strstr(program_output, " --help lists the options."));
  }
  if (test_case("cli/leaves-nothing")) CHECK_INT(rmdir(folder), 0);
  rmdir(folder);
}
