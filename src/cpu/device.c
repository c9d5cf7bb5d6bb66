/* What the CPU backend runs on. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(LPG_HAVE_LATER_X86) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "cpu.h"

#if defined(__x86_64__) || defined(__i386__)
/* 1 if the processor multiplies tiles of bf16 and the system lets this process, which is asked once: Linux saves 8 KB
 * more of a thread's state from then on. */
static int has_tiles(void) {
#if defined(LPG_HAVE_LATER_X86) && defined(__linux__)
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl() */
  enum { UNKNOWN, NO, YES };
  static int answer;
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known == UNKNOWN) {
    const unsigned needed = 1u << 22 | 1u << 24; /* bf16 and tiles */
    unsigned a, b, c, d;
    const int there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & needed) == needed;
    known = there && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 ? YES : NO;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
  }
  return known == YES;
#else
  return 0;
#endif
}

/* 1 if it has VPDPBUSD without AVX-512, which __builtin_cpu_supports() does not know everywhere. */
static int has_avxvnni(void) {
#if defined(LPG_HAVE_LATER_X86) && defined(__linux__)
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
#else
  return 0;
#endif
}

/* All but tiles, which has_tiles() is asked for only where they may be used. */
static int find_sets(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LPG_ISA_BASE;
  int sets = LPG_ISA_AVX2 | (has_avxvnni() ? LPG_ISA_AVXVNNI : 0);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return sets;
  }
  sets |= LPG_ISA_AVX512;
  if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vnni") ||
      !__builtin_cpu_supports("gfni")) {
    return sets;
  }
  return sets | LPG_ISA_VBMI;
}
#elif defined(__aarch64__)
static int find_sets(void) {
  int sets = LPG_ISA_NEON;
#if defined(__linux__)
  const unsigned long dot_product = 1ul << 20; /* HWCAP_ASIMDDP */
  if (getauxval(AT_HWCAP) & dot_product) sets |= LPG_ISA_DOTPROD;
#endif
  return sets;
}
#else
static int find_sets(void) { return LPG_ISA_BASE; }
#endif

/* Words of LPGEMM_CPU, and what a processor of that has. */
static const struct {
  const char *word;
  int sets;
} levels[] = {
    {"base", LPG_ISA_BASE},
#if defined(__x86_64__) || defined(__i386__)
    {"avx2", LPG_ISA_AVX2},
    {"avxvnni", LPG_ISA_AVX2 | LPG_ISA_AVXVNNI},
    {"avx512", LPG_ISA_AVX2 | LPG_ISA_AVX512},
    {"vbmi", LPG_ISA_AVX2 | LPG_ISA_AVX512 | LPG_ISA_VBMI},
    {"amx", LPG_ISA_AVX2 | LPG_ISA_AVX512 | LPG_ISA_VBMI | LPG_ISA_AVXVNNI | LPG_ISA_AMX},
#elif defined(__aarch64__)
    {"neon", LPG_ISA_NEON},
    {"dotprod", LPG_ISA_NEON | LPG_ISA_DOTPROD},
#endif
};

/* The sets that the environment leaves. */
static lpgemm_status_t read_word(int32_t *sets) {
  enum { LEVELS = (int)(sizeof levels / sizeof levels[0]) };
  const char *text = getenv("LPGEMM_CPU");
  char words[128] = "";
  *sets = ~0;
  if (!text || !*text) return LPGEMM_SUCCESS;
  for (int i = 0; i < LEVELS; i++) {
    if (strcmp(text, levels[i].word) == 0) {
      *sets = levels[i].sets;
      return LPGEMM_SUCCESS;
    }
    const size_t at = strlen(words);
    snprintf(words + at, sizeof words - at, "%s%s", i == 0 ? "" : i == LEVELS - 1 ? " or " : ", ", levels[i].word);
  }
  LPG_CHECK(0, LPGEMM_INVALID_ARGUMENT, "LPGEMM_CPU is \"%.32s\"; it must be %s", text, words);
}

lpgemm_status_t lpgemm_i_cpu_isa(int32_t *sets) {
  static int known = -1; /* of the processor; asking it may trap in a virtual machine */
  int32_t left;
  LPG_TRY(read_word(&left));
  int all = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (all < 0) {
    all = find_sets();
    __atomic_store_n(&known, all, __ATOMIC_RELAXED);
  }
  *sets = all & left;
#if defined(__x86_64__) || defined(__i386__)
  if (*sets & LPG_ISA_VBMI && left & LPG_ISA_AMX && has_tiles()) *sets |= LPG_ISA_AMX;
#endif
  return LPGEMM_SUCCESS;
}

/* The processor's name from the kernel's table, "cpu" where it has none. */
static void read_name(char *name, size_t size) {
  snprintf(name, size, "cpu");
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (!file) return;
  char line[256];
  while (fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    const char *text = colon + 1 + strspn(colon + 1, " \t");
    int length = (int)strcspn(text, "\n");
    if (length > 0) snprintf(name, size, "%.*s", length, text);
    break;
  }
  fclose(file);
  for (char *c = name; *c; c++) {
    if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
  }
}

lpgemm_status_t lpgemm_i_cpu_device(int threads, lpg_device *device) {
  memset(device, 0, sizeof *device);
  device->backend = LPGEMM_BACKEND_CPU;
  device->threads = threads;
  read_name(device->name, sizeof device->name);
  return lpgemm_i_cpu_isa(&device->isa);
}
