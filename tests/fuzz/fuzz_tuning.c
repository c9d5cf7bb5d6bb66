/* libFuzzer: hostile tuning files. What was parsed must be found, saved and cleared without harm. */
#include <stdint.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "dispatch/dispatch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lpg_device device;
  if (lpgemm_i_cpu_device(1, &device) != LPGEMM_SUCCESS) abort();
  lpg_tuning *tuning = lpgemm_i_tuning_create();
  if (!tuning) abort();
  int used = 0, refused = 0;
  lpgemm_status_t status = lpgemm_i_tuning_parse(tuning, &device, (const char *)data, size, &used, &refused);
  if (used < 0 || refused < 0 || (status != LPGEMM_SUCCESS && used > 0)) abort();

  lpgemm_weight_desc_t desc = {.size = sizeof desc};
  desc.n = 48;
  desc.k = 64;
  desc.type = LPGEMM_UINT(4);
  desc.group_k = 32;
  desc.scale_type = LPGEMM_F16;
  lpg_packed packed;
  if (lpgemm_i_make_packed(&desc, &packed) != LPGEMM_SUCCESS) abort();
  lpg_problem problem = {.weights = &packed, .m = 3, .x_type = LPGEMM_F16, .y_type = LPGEMM_F16};
  lpg_choice chosen = {0};
  if (lpgemm_i_select(lpgemm_i_registry, lpgemm_i_registry_count, &problem, &device, tuning, NULL, &chosen) !=
          LPGEMM_SUCCESS ||
      !chosen.kernel) {
    abort();
  }
  lpgemm_i_tuning_clear(tuning);
  lpgemm_i_tuning_destroy(tuning);
  return 0;
}
