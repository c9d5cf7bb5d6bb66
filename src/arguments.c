/* A caller's arguments -> checked ones: structs, sizes, handles that belong together. */
#include "internal.h"

lpgemm_status_t lpgemm_i_copy_struct(void *to, size_t known, size_t least, const void *from, const char *name) {
  size_t size;
  memcpy(&size, from, sizeof size);
  LPG_CHECK(size >= least && size <= 65536, LPGEMM_INVALID_STRUCT,
            "%s.size is %zu; set it to the struct's sizeof, %zu in this version", name, size, known);
  const uint8_t *bytes = from;
  for (size_t i = known; i < size; i++) {
    LPG_CHECK(bytes[i] == 0, LPGEMM_INVALID_STRUCT,
              "%s has %zu bytes, and byte %zu, which this version does not know, is not 0", name, size, i);
  }
  memset(to, 0, known);
  memcpy(to, from, size < known ? size : known);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_reserved(const uint32_t *reserved, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    LPG_CHECK(reserved[i] == 0, LPGEMM_INVALID_STRUCT, "%s.reserved[%d] is %u; it must be 0", name, i,
              (unsigned)reserved[i]);
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_ld(const char *name, int64_t ld, const char *what, int64_t columns, int64_t rows) {
  LPG_CHECK(ld >= columns, LPGEMM_INVALID_SIZE, "%s is %lld; it must be at least %s = %lld", name, (long long)ld, what,
            (long long)columns);
  LPG_CHECK(ld <= LPG_MOST_ELEMENTS / (rows + 1), LPGEMM_SIZE_OVERFLOW,
            "%s is %lld; %lld such rows cannot be addressed", name, (long long)ld, (long long)rows);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_m_max(int64_t m_max) {
  LPG_CHECK(m_max >= 0 && m_max <= INT32_MAX, m_max < 0 ? LPGEMM_INVALID_SIZE : LPGEMM_SIZE_OVERFLOW,
            "m_max is %lld; it must be 0 to %d", (long long)m_max, INT32_MAX);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_read_desc(const lpgemm_weight_desc_t *desc, lpg_packed *packed) {
  LPG_CHECK(desc, LPGEMM_NULL_POINTER, "desc is NULL");
  lpgemm_weight_desc_t d;
  LPG_TRY(lpgemm_i_copy_struct(&d, sizeof d, offsetof(lpgemm_weight_desc_t, group_n), desc, "desc"));
  return lpgemm_i_make_packed(&d, packed);
}

lpgemm_status_t lpgemm_i_check_device(lpgemm_handle_t handle, lpgemm_weights_t weights) {
  LPG_CHECK(weights->backend == handle->device.backend && weights->device == handle->device.index, LPGEMM_WRONG_DEVICE,
            "weights live on backend %d device %d, but the handle works on backend %d device %d", (int)weights->backend,
            weights->device, (int)handle->device.backend, handle->device.index);
  return LPGEMM_SUCCESS;
}
