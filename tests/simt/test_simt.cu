/* What the emulator must do, and what it must find: small kernels, right ones and wrong ones. */
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "kernels/prim/async.cuh"
#include "kernels/prim/barrier.cuh"
#include "kernels/prim/cluster.cuh"
#include "kernels/prim/mma.cuh"
#include "kernels/prim/wgmma.cuh"

extern "C" {
#include "test.h"
}

namespace lpg {
namespace {

enum { SHARED_BYTES = 8192, BUFFER = 1024 }; /* an mbarrier at 0, the buffer behind it */

struct kernel_args {
  float *out;
  const uint8_t *in;
};

/* ---- right ones ---- */

/* The sum of all lanes' numbers, in every lane. */
__global__ void sum_kernel(const kernel_args a) {
  float sum = (float)(threadIdx.x + 1);
  for (int mask = 16; mask; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  a.out[threadIdx.x] = sum;
}

/* Ones times twos: 16 rows by 8 columns by 16 k. */
__global__ void mma_kernel(const kernel_args a) {
  float d[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  const uint32_t ones[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
  mma_f16::multiply(d, ones, 0x40004000u, 0x40004000u);
  for (int i = 0; i < 4; i++) a.out[4 * threadIdx.x + i] = d[i];
}

/* A producer warp brings the bytes, a consumer warp waits for them; both have two turns. */
__global__ void pipeline_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t full = shared_address(memory), empty = full + 8, buffer = full + BUFFER;
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    init_barrier(empty, 1);
  }
  __syncthreads();
  for (uint32_t turn = 0; turn < 2; turn++) {
    if (threadIdx.x == 32) {
      wait_barrier(empty, 1 - turn);
      arrive_and_expect(full, 128);
      copy_bulk(buffer, a.in + 128 * turn, 128, full);
    } else if (threadIdx.x < 32) {
      wait_barrier(full, turn);
      a.out[32 * turn + threadIdx.x] = (float)load_word(buffer + 4 * threadIdx.x);
      __syncwarp();
      if (threadIdx.x == 0) arrive(empty);
    }
  }
}

/* Each CTA writes its rank to the next one of the cluster. */
__global__ void cluster_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t own = shared_address(memory) + 4 * threadIdx.x;
  cluster_arrive();
  cluster_wait();
  store_to_block(own, (uint32_t)(cluster_rank() + 1) % 4, cluster_rank());
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x == 0) a.out[blockIdx.x] = (float)load_word(own);
}

/* ---- wrong ones ---- */

__global__ void never_kernel(const kernel_args) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t barrier = shared_address(memory);
  if (threadIdx.x == 0) init_barrier(barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) arrive(barrier);
  wait_barrier(barrier, 0);
}

__global__ void diverged_kernel(const kernel_args) {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    same_in_warp(1);
  }
}

__global__ void beyond_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  a.out[0] = (float)load_word(shared_address(memory) + SHARED_BYTES);
}

#ifdef __SANITIZE_ADDRESS__
__global__ void by_pointer_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  a.out[0] = (float)memory[SHARED_BYTES + threadIdx.x];
}
#endif

__global__ void unprepared_kernel(const kernel_args) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  arrive(shared_address(memory) + 64);
}

__global__ void too_many_kernel(const kernel_args) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t barrier = shared_address(memory);
  if (threadIdx.x == 0) {
    init_barrier(barrier, 2);
    expect_bytes(barrier, 16);
    for (int i = 0; i < 3; i++) arrive(barrier);
  }
}

/* A CTA reads what another one has in a shared memory that is gone. */
__global__ void left_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  if (cluster_rank() == 1) return;
  cluster_arrive();
  cluster_wait();
  a.out[0] = load_one_at(address_in_block(shared_address(memory), 1));
}

/* Without a wait for the copy. */
__global__ void too_soon_kernel(const kernel_args a) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  const uint32_t buffer = shared_address(memory) + BUFFER;
  store_words(buffer, 7, 7, 7, 7);
  copy16_async(buffer, a.in);
  a.out[0] = (float)load_word(buffer);
  wait_all_copies();
  a.out[1] = (float)load_word(buffer);
}

__global__ void unfinished_kernel(const kernel_args) {
  LPG_SHARED_MEMORY(uint8_t, 1024);
  float d[8] = {};
  const uint32_t zeros[4] = {};
  wgmma_f16::multiply(d, zeros, swizzled_rows(swizzled_place(shared_address(memory))));
  wgmma_commit();
}

/* ---- the cases ---- */

struct run {
  uint32_t in[64];
  alignas(16) float out[128];

  explicit run(void (*kernel)(const kernel_args), int cluster, int ctas, int threads) {
    for (uint32_t i = 0; i < 64; i++) in[i] = 100 + i;
    const kernel_args args = {out, (const uint8_t *)in};
    launch_cluster((const void *)kernel, dim3((unsigned)ctas), cluster, threads, SHARED_BYTES, nullptr, args);
  }
};

/* The kernel ends the program with that sentence. */
void check_found(void (*kernel)(const kernel_args), int cluster, const char *sentence) {
  int ends[2];
  char text[4096] = "";
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    run(kernel, cluster, cluster, 32);
    _exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)got;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status != 0);
  if (!strstr(text, sentence)) test_fail(__FILE__, __LINE__, "it says: %s, not: %s", text, sentence);
}

}  // namespace
}  // namespace lpg

extern "C" void suite_simt(void) {
  using namespace lpg;
  if (test_case("simt/lanes")) {
    const run r(sum_kernel, 1, 1, 32);
    for (int i = 0; i < 32; i++) CHECK(r.out[i] == 528.0f);
  }
  if (test_case("simt/mma")) {
    const run r(mma_kernel, 1, 1, 32);
    for (int i = 0; i < 128; i++) CHECK(r.out[i] == 33.0f);
  }
  if (test_case("simt/pipeline")) {
    const run r(pipeline_kernel, 1, 1, 64);
    for (int i = 0; i < 64; i++) CHECK(r.out[i] == (float)(100 + i));
  }
  if (test_case("simt/cluster")) {
    const run r(cluster_kernel, 4, 8, 32);
    for (int i = 0; i < 8; i++) CHECK(r.out[i] == (float)((i + 3) % 4));
  }
  if (test_case("simt/too_soon")) {
    int late = 0;
    for (int i = 0; i < 64; i++) {
      const run r(too_soon_kernel, 1, 1, 1);
      CHECK(r.out[1] == 100.0f);
      late += r.out[0] == 7.0f;
    }
    CHECK(late > 0 && late < 64);
  }
  const struct {
    const char *name;
    void (*kernel)(const kernel_args);
    int cluster;
    const char *sentence;
  } wrong[] = {{"never", never_kernel, 1, "no thread can go on"},
               {"diverged", diverged_kernel, 1, "a lane is at"},
               {"beyond", beyond_kernel, 1, "4 bytes at 8192 of 8192 bytes of shared memory"},
#ifdef __SANITIZE_ADDRESS__
               {"by_pointer", by_pointer_kernel, 1, "heap-buffer-overflow"},
#endif
               {"unprepared", unprepared_kernel, 1, "that nobody has initialised"},
               {"too_many", too_many_kernel, 1, "one arrival too many"},
               {"left", left_kernel, 2, "the CTA of rank 1 has ended"},
               {"unfinished", unfinished_kernel, 1, "its wgmma are under way"}};
  for (const auto &w : wrong) {
    if (test_case("simt/%s", w.name)) check_found(w.kernel, w.cluster, w.sentence);
  }
}
