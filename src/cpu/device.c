/* What the CPU backend runs on. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif

#include <stdio.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(LPG_HAVE_AMX) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "cpu.h"

#if defined(__x86_64__) || defined(__i386__)
/* 1 if the processor multiplies tiles of bf16 and the system lets this process, which is asked once: Linux saves 8 KB
 * more of a thread's state from then on. */
static int has_tiles(void) {
#if defined(LPG_HAVE_AMX) && defined(__linux__)
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
#endif

int lpgemm_i_cpu_isa(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  int vbmi =
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("gfni");
  if (avx2 && avx512 && vbmi) return has_tiles() ? LPG_ISA_AMX : LPG_ISA_VBMI;
  if (avx2 && avx512) return LPG_ISA_AVX512;
  return avx2 ? LPG_ISA_AVX2 : LPG_ISA_BASE;
#elif defined(__aarch64__)
#if defined(__linux__)
  enum { DOT_PRODUCT = 1 << 20 }; /* HWCAP_ASIMDDP */
  if (getauxval(AT_HWCAP) & DOT_PRODUCT) return LPG_ISA_DOTPROD;
#endif
  return LPG_ISA_NEON;
#else
  return LPG_ISA_BASE;
#endif
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

void lpgemm_i_cpu_device(int threads, lpg_device *device) {
  memset(device, 0, sizeof *device);
  device->backend = LPGEMM_BACKEND_CPU;
  device->isa = lpgemm_i_cpu_isa();
  device->threads = threads;
  read_name(device->name, sizeof device->name);
}
