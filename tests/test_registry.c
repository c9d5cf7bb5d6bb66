/* The registry of this build: names that say what the records say, and a kernel for everything that is legal. */
#include <math.h>
#include <unistd.h>

#include "made_up.h"

#define INTEGERS (LPG_W_UINT | LPG_W_INT | LPG_W_BIPOLAR)

/* ---- the registry ---- */

/* Reads up to the next dot or the end; NULL if nothing is there. */
static const char *next_word(const char **rest, char *word, size_t bytes) {
  size_t length = strcspn(*rest, ".");
  if (length == 0 || length >= bytes) return NULL;
  memcpy(word, *rest, length);
  word[length] = 0;
  *rest += length + ((*rest)[length] == '.');
  return word;
}

static void parse_weights(const char *word, const lpg_kernel *k) {
  int bits = word[0] && word[1] && !word[2] ? word[1] - '0' : 0;
  if (strcmp(word, "any") == 0) {
    CHECK_INT(k->weights, LPG_W_ANY);
    CHECK_INT(k->widths, 0x1fe);
  } else if (strcmp(word, "int") == 0) {
    CHECK_INT(k->weights, INTEGERS);
    CHECK(k->widths != 0 && (k->widths & ~0x1feu) == 0);
  } else {
    CHECK_INT(k->weights, word[0] == 'w'   ? LPG_W_ANY
                          : word[0] == 'u' ? INTEGERS
                          : word[0] == 'c' ? LPG_W_CODEBOOK
                                           : LPG_W_FLOAT);
    CHECK(strchr("wucf", word[0]) && bits >= 1 && bits <= 8);
    CHECK_INT(k->widths, 1 << bits);
  }
}

static void parse_activations(const char *word, const lpg_kernel *k) {
  static const struct {
    const char *word;
    uint32_t set, also; /* also: what kernels for fp16 may widen, which holds it, and codes that are int8 */
  } words[] = {{"any", LPG_X_ANY, 0},         {"f16", LPG_X_F16, LPG_X_I8 | LPG_X_E4M3 | LPG_X_E5M2 | LPG_X_CODES},
               {"bf16", LPG_X_BF16, 0},       {"f32", LPG_X_F32, 0},
               {"i8", LPG_X_I8, LPG_X_CODES}, {"e4m3", LPG_X_E4M3, 0},
               {"e5m2", LPG_X_E5M2, 0},       {"codes", LPG_X_CODES, 0}};
  int found = 0;
  for (int i = 0; i < COUNT(words); i++) {
    if (strcmp(word, words[i].word) != 0) continue;
    found = 1;
    CHECK(k->x_types == words[i].set || k->x_types == (words[i].set | words[i].also));
  }
  CHECK(found);
}

static void parse_arch(const char *word, const lpg_kernel *k) {
  static const struct {
    const char *word;
    int32_t isa;
  } words[] = {{"cpu", LPG_ISA_BASE},      {"base", LPG_ISA_BASE},       {"avx2", LPG_ISA_AVX2},
               {"avx512", LPG_ISA_AVX512}, {"vbmi", LPG_ISA_VBMI},       {"amx", LPG_ISA_AMX},
               {"neon", LPG_ISA_NEON},     {"avxvnni", LPG_ISA_AVXVNNI}, {"dotprod", LPG_ISA_DOTPROD}};
  if (strncmp(word, "sm", 2) == 0) {
    char *end;
    CHECK_INT(k->backend, LPGEMM_BACKEND_CUDA);
    const long arch = strtol(word + 2, &end, 10);
    if (*end != 'a' && k->arch_exact) { /* built for one sort of GPU alone, it runs nowhere else */
      CHECK(k->arch >= 90 && strncmp(k->name, "generic.", 8) != 0);
    } else {
      CHECK_INT(k->arch, arch);
      CHECK_INT(k->arch_exact, *end == 'a');
    }
  } else {
    CHECK_INT(k->backend, LPGEMM_BACKEND_CPU);
    int found = 0;
    CHECK(k->arch == 0 && k->arch_exact == 0);
    for (int i = 0; i < COUNT(words); i++) {
      if (strcmp(word, words[i].word) != 0) continue;
      found = 1;
      CHECK_INT(k->isa, words[i].isa);
    }
    CHECK(found);
  }
}

/* A name says what its record says: docs/kernels/README.md. */
static void check_name(const lpg_kernel *k) {
  char word[LPG_KERNEL_NAME_BYTES];
  const char *rest = k->name;
  CHECK(strlen(k->name) < LPG_KERNEL_NAME_BYTES);
  CHECK_TEXT(next_word(&rest, word, sizeof word), k->family);
  if (next_word(&rest, word, sizeof word)) parse_weights(word, k);
  if (next_word(&rest, word, sizeof word)) parse_activations(word, k);
  CHECK(next_word(&rest, word, sizeof word) && strspn(word, "0123456789x") == strlen(word));
  CHECK(next_word(&rest, word, sizeof word) != NULL);
  parse_arch(word, k);
  CHECK(*rest == 0);
}

static void test_registry(void) {
  for (int i = 0; i < test_every_kernel_count; i++) { /* also those that this build does not have */
    const lpg_kernel *k = &test_every_kernel[i];
    problem q;
    if (!test_case("dispatch/registry/%s", k->name)) continue;
    check_name(k);
    make_simple(&q, LPGEMM_UINT(4), LPGEMM_F16, 16);
    CHECK(k->planner && k->planner->cut && k->planner->finish && k->planner->no_plan);
    CHECK(isfinite(lpgemm_i_estimate(k, &q.p, k->backend == LPGEMM_BACKEND_CPU ? &cpu_base : &sm90)));
    CHECK(lpgemm_i_find_kernel(test_every_kernel, test_every_kernel_count, k->name) == k); /* no name twice */
    const lpg_kernel *built = lpgemm_i_find_kernel(lpgemm_i_registry, lpgemm_i_registry_count, k->name);
    CHECK(!built || built->launch);
  }
  if (test_case("dispatch/registry/subset")) { /* a build has no kernel that is not in the whole table */
    for (int i = 0; i < lpgemm_i_registry_count; i++) {
      CHECK(lpgemm_i_find_kernel(test_every_kernel, test_every_kernel_count, lpgemm_i_registry[i].name));
    }
  }
  for (int i = 0; i < COUNT(made_up); i++) {
    if (test_case("dispatch/names/%s", made_up[i].name)) check_name(&made_up[i]);
  }
}

/* Every legal combination finds a kernel on the oldest CPU. */
static void test_support(void) {
  static const lpgemm_dtype_t types[] = {LPGEMM_UINT(1),     LPGEMM_UINT(4),     LPGEMM_UINT(7),     LPGEMM_INT(2),
                                         LPGEMM_INT(8),      LPGEMM_BIPOLAR(3),  LPGEMM_CODEBOOK(4), LPGEMM_FLOAT(1, 1),
                                         LPGEMM_FLOAT(2, 1), LPGEMM_FLOAT(4, 3), LPGEMM_FLOAT(7, 0)};
  static const lpgemm_dtype_t x_types[] = {LPGEMM_F16,  LPGEMM_BF16, LPGEMM_F32,       LPGEMM_I8,
                                           LPGEMM_E4M3, LPGEMM_E5M2, LPGEMM_BIPOLAR(2)};
  static const lpgemm_dtype_t y_types[] = {LPGEMM_F16, LPGEMM_BF16, LPGEMM_F32};
  static const int64_t groups[] = {0, 16, 32, 48, 128, 4096};
  for (int t = 0; t < COUNT(types); t++) {
    if (!test_case("dispatch/support/%s", lpgemm_dtype_name(types[t]))) continue;
    for (int i = 0; i < COUNT(x_types) * COUNT(y_types) * COUNT(groups) * 4; i++) {
      lpgemm_weight_desc_t d = desc_of(types[t], 100, 300);
      lpg_choice chosen;
      problem q;
      d.group_k = groups[i / 4 % COUNT(groups)];
      d.zero = (lpgemm_zero_t)(i % 4);
      d.zero_type = d.zero == LPGEMM_ZERO_PER_GROUP ? LPGEMM_U8 : d.zero == LPGEMM_ZERO_MINIMUM ? LPGEMM_F16 : 0;
      make(&q, &d, x_types[i / 4 / COUNT(groups) % COUNT(x_types)], 1 + i % 40);
      q.p.y_type = y_types[i / 4 / COUNT(groups) / COUNT(x_types)];
      q.p.batch_invariant = i & 1;
      CHECK_STATUS(lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &q.p, &cpu_base, NULL, NULL, &chosen),
                   LPGEMM_SUCCESS);
    }
  }
}

/* ---- the generator ---- */

/* The output of a command, with its exit status. */
static int run_command(const char *command, char *output, size_t bytes) {
  FILE *pipe = popen(command, "r");
  if (!pipe) return -1;
  size_t length = fread(output, 1, bytes - 1, pipe);
  output[length] = 0;
  return pclose(pipe);
}

static void test_generator(void) {
  static char output[65536];
  int here = access("tools/gen_kernels.py", R_OK) == 0;
  if (test_case("dispatch/generator/selftest")) {
    if (!here) {
      test_skip("tools/gen_kernels.py is not here: run the tests in the root of the repository");
    } else if (run_command("python3 tools/gen_kernels.py --selftest 2>&1", output, sizeof output) != 0) {
      test_fail(__FILE__, __LINE__, "gen_kernels.py --selftest says: %s", output);
    }
  }
  if (test_case("dispatch/generator/list")) {
    if (!here) {
      test_skip("tools/gen_kernels.py is not here: run the tests in the root of the repository");
    } else {
      CHECK_INT(run_command("python3 tools/gen_kernels.py --list 2>&1", output, sizeof output), 0);
      for (int i = 0; i < lpgemm_i_registry_count; i++) {
        char line[LPG_KERNEL_NAME_BYTES + 2];
        snprintf(line, sizeof line, "%s\n", lpgemm_i_registry[i].name);
        if (lpgemm_i_registry[i].backend == LPGEMM_BACKEND_CPU) CHECK_HAS(output, line);
      }
    }
  }
}

void dispatch_registry(void) {
  test_registry();
  test_support();
  test_generator();
}
