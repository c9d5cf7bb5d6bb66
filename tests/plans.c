#include "plans.h"

#include <math.h>

#include "devices.h"
#include "test.h"

lpg_problem plan_problem(const lpg_packed *weights, lpgemm_dtype_t x_type, int64_t m) {
  const lpg_problem problem = {.weights = weights,
                               .scale_span = 255,
                               .m = m,
                               .x_type = x_type,
                               .y_type = lpg_bits(x_type) == 16 ? x_type : LPGEMM_F16,
                               .workspace = SIZE_MAX};
  return problem;
}

int plan_of(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device, void *plan) {
  lpg_planned planned;
  const char *reason = lpgemm_i_plan(planner, problem, device, &planned);
  if (reason) {
    CHECK(reason == planner->no_plan);
    return 0;
  }
  const lpg_launch *launch = &planned.launch;
  CHECK(isfinite(launch->us) && launch->us > 0);
  CHECK(launch->tile_n > 0 && launch->tile_m > 0 && launch->passes >= 0 && launch->work_tiles >= 0);
  CHECK(launch->threads >= 32 && launch->threads % 32 == 0 && launch->threads <= 1024);
  CHECK(launch->shared_bytes >= 0 && launch->shared_bytes <= device->shared_memory);
  CHECK(launch->clusters <= launch->at_once || !launch->at_once || launch->clusters == launch->work_tiles);
  memcpy(plan, planned.words, (size_t)planner->plan_bytes);
  return 1;
}

void check_parts(lpg_partition s, int parts, int count) {
  CHECK(s.each * parts + s.more == count);
  CHECK(s.more >= 0 && s.more < parts);
}

static void check_common(const lpg_gemv1_plan *p, const lpg_device *device) {
  CHECK(p->split_k == 1 || p->split_k == 2 || p->split_k == 4 || p->split_k == 8);
  CHECK(p->clusters <= (p->split_k == 1 ? device->sms : device->clusters[p->split_k]));
  check_parts(p->k_part, p->split_k, p->blocks);
  check_parts(p->n_part, p->clusters, p->super_tiles);
  CHECK(p->n_part.each >= 1 && p->shared_bytes <= device->shared_memory);
}

void check_gemv1_plans(const char *family, const lpg_planner *planner, lpgemm_dtype_t x_type, int most_rows,
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
      lpg_gemv1_plan p;
      CHECK_STATUS(lpgemm_i_make_packed(&desc, &w), LPGEMM_SUCCESS);
      const lpg_problem problem = plan_problem(&w, x_type, test_between(1, most_rows));
      if (!plan_of(planner, &problem, devices[d], &p)) continue;
      check_common(&p, devices[d]);
      check(&p, &w, problem.m);
      found++;
    }
    CHECK(found > 500);
  }
}
