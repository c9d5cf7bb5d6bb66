/* ggml's CPU backend works on OpenMP's threads where it is built with OpenMP, as it is by default. A parallel region of
 * as many threads gets the same ones, which still wait for work where ggml left them: so nobody has two pools on the
 * same cores. ggml's own pool (GGML_OPENMP=OFF) is not open to backends. */
#include <unistd.h>

#include "module.h"

void lpgemm_ggml_for_each(int threads, lpgemm_task_t task, void *work, int64_t count) {
  /* Always of the same size: libgomp ends threads that a smaller region leaves out, and makes them anew. */
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t i = 0; i < count; i++) task(work, i);
  (void)threads;
}

#ifdef _OPENMP
static void parallel_for(void *context, lpgemm_task_t task, void *work, int64_t count) {
  lpgemm_ggml_for_each(*(const int *)context, task, work, count);
}
#endif

lpgemm_config_t lpgemm_ggml_config(const int *threads) {
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .num_threads = *threads};
#ifdef _OPENMP
  config.parallel_for = parallel_for;
  config.parallel_context = (void *)threads;
#endif
  return config;
}

int lpgemm_ggml_all_threads(void) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 1 ? (int)cores : 1;
}
