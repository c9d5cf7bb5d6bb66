/* The test framework of test.h: filter, counts, seeded random numbers, memory with canaries. */
#include "framework.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif

#ifdef TEST_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { ALIGNMENT = 256 };

/* ---- the host as a device ---- */

static void *host_allocate(size_t bytes) { return aligned_alloc(ALIGNMENT, bytes); }
static void host_wait(void) {}

static void *host_map(size_t bytes) {
  int file = open("/dev/zero", O_RDWR);
  void *pages = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (file >= 0) close(file);
  return pages == MAP_FAILED ? NULL : pages;
}

static void host_lock(void *pages, size_t bytes) { mprotect(pages, bytes, PROT_NONE); }
static void host_unlock(void *pages, size_t bytes) { mprotect(pages, bytes, PROT_READ | PROT_WRITE); }
static void host_unmap(void *pages, size_t bytes) { munmap(pages, bytes); }

static const test_device host = {host_allocate, free, host_wait, host_map, host_lock, host_unlock, host_unmap};

typedef struct test_counts {
  int passed, failed, skipped;
} test_counts;

static struct {
  const char *program, *filter, *only;
  int list;
  uint64_t seed;
  test_counts total;
  char name[256]; /* the open case; "" = none */
  int failed, skipped;
  uint64_t random;
  pthread_mutex_t lock; /* checks may fail in any thread */
  lpgemm_backend_t backend;
  const test_device *device;
} run = {.seed = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .backend = LPGEMM_BACKEND_CPU, .device = &host};

lpgemm_backend_t test_backend(void) { return run.backend; }
void test_wait(void) { run.device->wait(); }

/* ---- cases ---- */

static void close_case(void) {
  if (run.name[0] == 0) return;
  if (run.failed) {
    run.total.failed++;
  } else if (run.skipped) {
    run.total.skipped++;
  } else {
    run.total.passed++;
  }
  run.name[0] = 0;
}

static int selected(const char *name) {
  if (run.only) return strcmp(name, run.only) == 0;
  if (!run.filter) return 1;
  if (strpbrk(run.filter, "*?[")) return fnmatch(run.filter, name, 0) == 0;
  return strstr(name, run.filter) != NULL;
}

int test_case(const char *format, ...) {
  close_case();
  char name[sizeof run.name];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);
  if (!selected(name)) return 0;
  if (run.list) {
    puts(name);
    return 0;
  }
  memcpy(run.name, name, sizeof name);
  run.failed = run.skipped = 0;
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *p = name; *p; p++) hash = (hash ^ (uint8_t)*p) * 1099511628211u;
  test_seed(hash ^ run.seed * 0x9E3779B97F4A7C15u);
  return 1;
}

void test_fail(const char *file, int line, const char *format, ...) {
  pthread_mutex_lock(&run.lock);
  if (run.name[0] == 0) snprintf(run.name, sizeof run.name, "outside any case");
  if (!run.failed) {
    run.failed = 1;
    printf("FAIL %s\n  %s:%d: ", run.name, file, line);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n  again: %s%s --seed %llu --only '%s'\n", run.program,
           run.backend == LPGEMM_BACKEND_CUDA ? " --backend cuda" : "", (unsigned long long)run.seed, run.name);
    fflush(stdout);
  }
  pthread_mutex_unlock(&run.lock);
}

void test_skip(const char *format, ...) {
  pthread_mutex_lock(&run.lock);
  if (!run.skipped) {
    run.skipped = 1;
    printf("skip %s: ", run.name);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
  }
  pthread_mutex_unlock(&run.lock);
}

/* ---- random numbers: splitmix64 ---- */

void test_seed(uint64_t seed) { run.random = seed; }

uint64_t test_random(void) {
  uint64_t z = run.random += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t test_between(int64_t low, int64_t high) { return low + (int64_t)(test_random() % (uint64_t)(high - low + 1)); }

double test_uniform(double low, double high) {
  return low + (high - low) * ((double)(test_random() >> 11) / 9007199254740992.0);
}

/* ---- memory: [head][canary][the caller's bytes][canary] ---- */

enum { BEFORE = 512, AFTER = 256, CANARY = 0xA5, FILL = 0xCD };

static const uint64_t magic = 0x6C70672D74657374u;

typedef struct test_block {
  uint64_t magic;
  size_t bytes, offset;
} test_block;

void *test_alloc(size_t bytes) { return test_alloc_at(bytes, 0); }

void *test_alloc_at(size_t bytes, size_t offset) {
  size_t total = (BEFORE + offset + bytes + AFTER + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  uint8_t *base = offset < ALIGNMENT ? run.device->allocate(total) : NULL;
  if (!base) {
    fprintf(stderr, "test_alloc_at: cannot give %zu bytes at offset %zu\n", bytes, offset);
    abort();
  }
  uint8_t *memory = base + BEFORE + offset;
  memset(base, CANARY, total);
  memset(memory, FILL, bytes);
  *(test_block *)(void *)base = (test_block){magic, bytes, offset};
  ASAN_POISON_MEMORY_REGION(base, BEFORE);
  ASAN_POISON_MEMORY_REGION(memory + bytes, (size_t)(base + total - (memory + bytes)));
  return memory;
}

void test_free(void *memory) {
  if (!memory) return;
  uint8_t *user = memory;
  uint8_t *base = user - (uintptr_t)user % ALIGNMENT - BEFORE;
  ASAN_UNPOISON_MEMORY_REGION(base, BEFORE);
  test_block block = *(test_block *)(void *)base;
  if (block.magic != magic || base + BEFORE + block.offset != user) {
    test_fail(__FILE__, __LINE__, "the head of a test buffer was overwritten, or test_free got a stray pointer");
    return;
  }
  size_t total = (BEFORE + block.offset + block.bytes + AFTER + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  ASAN_UNPOISON_MEMORY_REGION(base, total);
  for (uint8_t *p = base + sizeof block; p < user; p++) {
    if (*p == CANARY) continue;
    test_fail(__FILE__, __LINE__, "written %td bytes before a buffer of %zu bytes", user - p, block.bytes);
    break;
  }
  for (uint8_t *p = user + block.bytes; p < base + total; p++) {
    if (*p == CANARY) continue;
    test_fail(__FILE__, __LINE__, "written %td bytes past a buffer of %zu bytes", p - user - (ptrdiff_t)block.bytes + 1,
              block.bytes);
    break;
  }
  run.device->release(base);
}

void *test_map(size_t bytes) {
  void *pages = run.device->map(bytes);
  if (!pages) abort();
  return pages;
}

void test_lock(void *pages, size_t bytes) { run.device->lock(pages, bytes); }
void test_unlock(void *pages, size_t bytes) { run.device->unlock(pages, bytes); }
void test_unmap(void *pages, size_t bytes) { run.device->unmap(pages, bytes); }

/* ---- the program ---- */

static int use_backend(const char *name) {
  if (strcmp(name, "cpu") == 0) return 1;
  if (strcmp(name, "cuda") != 0) return 0;
  run.backend = LPGEMM_BACKEND_CUDA;
  run.device = &test_cuda;
  return 1;
}

/* 0 with a sentence if the backend under test is not in this program or this machine. */
static int has_backend(void) {
  lpgemm_config_t config = {.size = sizeof config};
  lpgemm_handle_t handle;
  config.backend = run.backend;
  config.num_threads = 1;
  if (!run.device || lpgemm_create(&handle, &config) != LPGEMM_SUCCESS) {
    fprintf(stderr, "%s: nothing was tested: %s\n", run.program,
            run.device ? lpgemm_last_error() : "this program was built without CUDA");
    return 0;
  }
  return lpgemm_destroy(handle) == LPGEMM_SUCCESS;
}

static int usage(void) {
  fprintf(stderr,
          "usage: %s [--backend cpu|cuda] [--list] [--seed N] [--only CASE | FILTER]\n"
          "  FILTER  runs the cases whose names contain it, or match it if it has * ? [\n"
          "  --only  runs the case with exactly this name\n"
          "  --list  prints the names of the cases instead of running them\n"
          "  --seed  another seed for the random numbers, default 1\n",
          run.program);
  return 2;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int test_main(int argc, char **argv, const test_suite *suites, int count) {
  run.program = argv[0];
  for (int i = 1; i < argc; i++) {
    char *end = NULL;
    if (strcmp(argv[i], "--list") == 0) {
      run.list = 1;
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      run.seed = strtoull(argv[++i], &end, 0);
      if (*end || end == argv[i]) return usage();
    } else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
      if (!use_backend(argv[++i])) return usage();
    } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      run.only = argv[++i];
    } else if (argv[i][0] != '-' && !run.filter) {
      run.filter = argv[i];
    } else {
      return usage();
    }
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!has_backend()) return 1;
  for (int i = 0; i < count; i++) {
    if (!(suites[i].backends & (run.backend == LPGEMM_BACKEND_CUDA ? TEST_ON_CUDA : TEST_ON_CPU))) continue;
    test_counts before = run.total;
    double start = seconds();
    if (suites[i].run) {
      suites[i].run();
    } else if (test_case("%s/missing", suites[i].name)) {
      if (suites[i].backends & TEST_NEEDS_NVCC) {
        test_skip("this build has no nvcc");
      } else {
        test_fail(__FILE__, __LINE__, "the suite %s is not in this program", suites[i].name);
      }
    }
    close_case();
    test_counts own = {run.total.passed - before.passed, run.total.failed - before.failed,
                       run.total.skipped - before.skipped};
    if (own.passed + own.failed + own.skipped == 0) continue;
    printf("%-12s %5d passed, %d failed, %d skipped  %6.1f s\n", suites[i].name, own.passed, own.failed, own.skipped,
           seconds() - start);
  }
  if (run.list) return 0;
  printf("%d passed, %d failed, %d skipped\n", run.total.passed, run.total.failed, run.total.skipped);
  return run.total.failed > 0 || run.total.passed == 0;
}
