/* The CPU as a backend: host memory, and the host functions of pack/ and this folder. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise */
#endif

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "../pack/pack.h"
#include "cpu.h"

enum { LARGE_PAGE = 2 << 20 };

static lpgemm_status_t open_cpu(int32_t index, int32_t threads, lpg_device *device) {
  LPG_CHECK(index == 0, LPGEMM_NO_BACKEND, "config.device is %d, but the CPU backend has only device 0", index);
  return lpgemm_i_cpu_device(threads, device);
}

static lpgemm_status_t allocate(int32_t device, size_t bytes, void **memory) {
  (void)device;
  const size_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : 256;
  *memory = aligned_alloc(align, (bytes + align - 1) / align * align);
  LPG_CHECK(*memory, LPGEMM_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
#ifdef __linux__
  if (align == LARGE_PAGE) { /* weights are read from end to end; what no large page fills takes small ones */
    (void)madvise(*memory, bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
  }
#endif
  return LPGEMM_SUCCESS;
}

static void release(int32_t device, void *memory) {
  (void)device;
  free(memory);
}

static int can_read(int32_t device, const void *memory) {
  (void)device;
  return memory != NULL;
}

static lpgemm_status_t copy(lpgemm_handle_t handle, void *to, const void *from, size_t bytes) {
  (void)handle;
  memcpy(to, from, bytes);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t synchronize(lpgemm_handle_t handle) {
  (void)handle;
  return LPGEMM_SUCCESS;
}

static int equals(lpgemm_handle_t handle, const void *memory, const void *host, size_t bytes) {
  (void)handle;
  return memcmp(memory, host, bytes) == 0;
}

static lpgemm_status_t begin(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob) {
  (void)handle;
  lpgemm_i_begin_host(packed, blob);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t finish(lpgemm_handle_t handle, const lpg_packed *packed, uint8_t *blob, lpg_content *content) {
  (void)handle;
  lpgemm_i_finish_host(packed, blob, content);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t quantize(lpgemm_handle_t handle, const lpg_packed *packed, lpgemm_quantize_method_t method,
                                const void *w, lpgemm_dtype_t w_type, int64_t ldw, uint8_t *blob,
                                lpg_content *content) {
  (void)handle;
  return lpgemm_i_quantize_host(packed, method, w, w_type, ldw, blob, content);
}

static lpgemm_status_t unpack(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                              lpgemm_dtype_t out_type, void *out, int64_t ldo) {
  (void)handle;
  lpgemm_i_unpack_host(packed, blob, out_type, out, ldo);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t unpack_part(lpgemm_handle_t handle, const lpg_packed *packed, const uint8_t *blob,
                                   lpg_section_id id, void *out) {
  (void)handle;
  lpgemm_i_unpack_part_host(packed, blob, id, out);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t quantize_activations(lpgemm_handle_t handle, int64_t m, int64_t k, const void *x,
                                            lpgemm_dtype_t x_type, int64_t ldx, lpgemm_dtype_t out_type, void *out,
                                            int64_t ldo, float *scale, lpgemm_x_scale_t mode) {
  (void)handle;
  lpgemm_i_quantize_activations_host(m, k, x, x_type, ldx, out_type, out, ldo, scale, mode);
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t pair_rows(lpgemm_handle_t handle, const lpg_packed *own, const uint8_t *rows,
                                 const lpg_packed *packed, int half, int64_t output, uint8_t *blob) {
  (void)handle;
  lpgemm_i_pair_rows_host(own, rows, packed, half, output, blob);
  return LPGEMM_SUCCESS;
}

const lpg_backend lpgemm_i_cpu_backend = {
    .open = open_cpu,
    .allocate = allocate,
    .release = release,
    .can_read = can_read,
    .copy_in = copy,
    .copy_out = copy,
    .equals = equals,
    .synchronize = synchronize,
    .begin = begin,
    .pack_rows = lpgemm_i_pack_rows_parallel,
    .pair_rows = pair_rows,
    .finish = finish,
    .quantize = quantize,
    .unpack = unpack,
    .unpack_part = unpack_part,
    .quantize_activations = quantize_activations,
    .gather = lpgemm_i_gather_host,
    .route = lpgemm_i_route_host,
    .gather_rows = lpgemm_i_gather_rows_host,
    .combine = lpgemm_i_combine_host,
    .by_expert = 1,
};
