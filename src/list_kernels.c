/* The kernels of this build, and which of them this machine runs. */
#include "dispatch/dispatch.h"
#include "internal.h"

lpgemm_status_t lpgemm_list_kernels(lpgemm_kernel_info_t *list, size_t capacity, size_t *count) {
  LPG_CHECK(count, LPGEMM_NULL_POINTER, "count is NULL");
  LPG_CHECK(list || capacity == 0, LPGEMM_NULL_POINTER, "list is NULL, but capacity is %zu", capacity);
  size_t total = (size_t)lpgemm_i_registry_count, filled = capacity < total ? capacity : total;
  size_t stride = filled ? list->size : 0; /* the caller's struct may be larger than ours */
  lpgemm_kernel_info_t info;
  for (size_t i = 0; i < filled; i++) {
    const uint8_t *at = (const uint8_t *)list + i * stride;
    LPG_TRY(lpgemm_i_copy_struct(&info, sizeof info, sizeof info, at, "list"));
    LPG_CHECK(info.size == stride, LPGEMM_INVALID_STRUCT, "list[%zu].size is %zu, but list[0].size is %zu", i,
              info.size, stride);
  }
  lpg_device devices[2];
  int present[2];
  for (int b = 0; b < 2; b++) {
    const lpg_backend *backend = lpgemm_i_backend((lpgemm_backend_t)(LPGEMM_BACKEND_CPU + b));
    present[b] = backend && backend->open(0, 0, &devices[b]) == LPGEMM_SUCCESS;
  }
  for (size_t i = 0; i < filled; i++) {
    const lpg_kernel *k = &lpgemm_i_registry[i];
    int b = (int)k->backend - (int)LPGEMM_BACKEND_CPU;
    info = (lpgemm_kernel_info_t){.size = stride, .name = k->name, .family = k->family, .backend = k->backend};
    info.arch = k->arch;
    info.available = present[b] && lpgemm_i_runs_on(k, &devices[b]);
    memcpy((uint8_t *)list + i * stride, &info, sizeof info);
  }
  *count = total;
  return LPGEMM_SUCCESS;
}
