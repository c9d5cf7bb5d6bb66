/* X in the order of the columns of the weights. */
#include "cpu.h"

enum { TASK_ELEMENTS = 1 << 14 }; /* some ten microseconds */

typedef struct job {
  int64_t m, k, ldx, ldo, rows; /* rows: of a task */
  const void *x;
  const int32_t *order;
  void *out;
  int bytes;
} job;

#define GATHER(type)                                     \
  for (int64_t i = 0; i < j->k; i++) {                   \
    ((type *)to)[i] = ((const type *)from)[j->order[i]]; \
  }

static void gather_task(void *context, int64_t index, void *unused) {
  const job *j = context;
  (void)unused;
  for (int64_t row = index * j->rows; row < (index + 1) * j->rows && row < j->m; row++) {
    const void *from = (const uint8_t *)j->x + row * j->ldx * j->bytes;
    void *to = (uint8_t *)j->out + row * j->ldo * j->bytes;
    switch (j->bytes) {
      case 1: GATHER(uint8_t) break;
      case 2: GATHER(uint16_t) break;
      default: GATHER(uint32_t) break;
    }
  }
}

lpgemm_status_t lpgemm_i_gather_host(lpgemm_handle_t handle, const lpg_packed *packed, int64_t m, const void *x,
                                     lpgemm_dtype_t x_type, int64_t ldx, const int32_t *order, void *out, int64_t ldo) {
  const int64_t k = packed->desc.k;
  job j = {m, k, ldx, ldo, lpg_ceil_div(TASK_ELEMENTS, k + 1), x, order, out, lpg_bytes(x_type)};
  return lpgemm_i_parallel(handle->pool, lpg_ceil_div(m, j.rows), gather_task, &j);
}
