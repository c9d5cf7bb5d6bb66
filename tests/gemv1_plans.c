#include "gemv1_plans.h"

#include <math.h>

#include "devices.h"
#include "test.h"

static void check_shares(const lpg_gemv1_plan *p, const lpg_device *device) {
  CHECK(p->split_k == 1 || p->split_k == 2 || p->split_k == 4 || p->split_k == 8);
  CHECK(p->clusters <= (p->split_k == 1 ? device->sms : device->clusters[p->split_k]));
  CHECK(p->k_part.each * p->split_k + p->k_part.more == p->blocks && p->k_part.more < p->split_k);
  CHECK(p->n_part.each * p->clusters + p->n_part.more == p->super_tiles && p->n_part.more < p->clusters);
  CHECK(p->n_part.each >= 1 && p->shared_bytes <= device->shared_memory);
}

void check_gemv1_plans(const char *family, int most_rows, lpg_gemv1_mode (*form_of)(int bits, int64_t m),
                       void (*check)(const lpg_gemv1_plan *p, const lpg_packed *weights, int64_t m)) {
  static const lpg_device *const devices[] = {&sm90, &h100_pcie};
  for (int d = 0; d < 2; d++) {
    int found = 0;
    if (!test_case("%s/plan/%d", family, d)) continue;
    for (int i = 0; i < 1000; i++) {
      lpgemm_weight_desc_t desc = {.size = sizeof desc, .type = LPGEMM_UINT((uint32_t)test_between(1, 2))};
      desc.n = test_between(1, test_between(0, 1) ? 100 : 70000);
      desc.k = test_between(0, test_between(0, 1) ? 3000 : 30000);
      lpg_packed w;
      lpg_gemv1_plan p = {0};
      double cost;
      CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
      const int64_t m = test_between(1, most_rows);
      if (!lpg_gemv1_make_plan(&w, form_of(w.bits, m), devices[d], &p, &cost)) continue;
      CHECK(isfinite(cost) && cost > 0);
      check_shares(&p, devices[d]);
      check(&p, &w, m);
      found++;
    }
    CHECK(found > 500);
  }
}
