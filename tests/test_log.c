/* What LPGEMM_LOG makes the library print, and to whom. */
#include <unistd.h>

#include "test.h"

void suite_log(void);

enum { N = 32, K = 64, M = 3 };

static char printed[65536];

/* Makes calls under a value of LPGEMM_LOG, and keeps what comes out of stderr. */
static void run_logged(const char *value, void (*calls)(void)) {
  lpgemm_handle_t handle = NULL;
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU};
  FILE *file = tmpfile();
  CHECK(file != NULL);
  if (!file) return;
  int own = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  setenv("LPGEMM_LOG", value, 1);
  calls();
  setenv("LPGEMM_LOG", "off", 1); /* the level is the process's */
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
  unsetenv("LPGEMM_LOG");
  fflush(stderr);
  dup2(own, STDERR_FILENO);
  close(own);
  rewind(file);
  printed[fread(printed, 1, sizeof printed - 1, file)] = 0;
  fclose(file);
}

/* A product twice, and one that fails. */
static void multiply(void) {
  static const float w[N * K], x[M * K];
  static float y[M * N];
  lpgemm_config_t config = {.size = sizeof config, .backend = LPGEMM_BACKEND_CPU, .default_type = LPGEMM_F32};
  lpgemm_weight_desc_t desc = {.size = sizeof desc, .n = N, .k = K, .type = LPGEMM_UINT(4), .group_k = 32};
  lpgemm_handle_t handle = NULL;
  lpgemm_weights_t weights = NULL;
  desc.scale_type = LPGEMM_F16;
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_quantize_weights(handle, &desc, LPGEMM_QUANTIZE_ABSMAX, w, LPGEMM_F32, 0, NULL, 0, &weights),
               LPGEMM_SUCCESS);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(lpgemm_matmul(handle, weights, M, x, 0, y, 0), LPGEMM_SUCCESS);
  }
  CHECK_STATUS(lpgemm_matmul(handle, weights, -1, x, 0, y, 0), LPGEMM_INVALID_SIZE);
  CHECK_STATUS(lpgemm_weights_destroy(weights), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_destroy(handle), LPGEMM_SUCCESS);
}

static void create_wrongly(void) {
  lpgemm_handle_t handle = NULL;
  lpgemm_config_t config = {.size = sizeof config, .num_threads = -1};
  CHECK_STATUS(lpgemm_create(&handle, &config), LPGEMM_INVALID_ARGUMENT);
}

static int count(const char *part) {
  int found = 0;
  for (const char *at = printed; (at = strstr(at, part)); at++) found++;
  return found;
}

void suite_log(void) {
  if (test_case("log/off")) {
    run_logged("off", multiply);
    CHECK_INT(strlen(printed), 0);
  }
  if (test_case("log/error")) {
    run_logged("error", multiply);
    CHECK_INT(count("\n"), 1);
    CHECK_INT(count("m is -1"), 1);
  }
  if (test_case("log/dispatch")) {
    run_logged("dispatch", multiply);
    CHECK_INT(count("lpgemm: u4 (n 32, k 64) by f32 (m 3) to f32: "), 2);
    CHECK_INT(count(" thread"), 2); /* the plan */
    CHECK_INT(count("m is -1"), 1);
    CHECK_INT(count("profile,"), 0);
  }
  if (test_case("log/config")) { /* the environment is read before the config is checked */
    run_logged("error", create_wrongly);
    CHECK_INT(count("config.num_threads is -1"), 1);
  }
  if (test_case("log/profile")) {
    run_logged("profile", multiply); /* the first lines may be the head */
    CHECK_INT(count("lpgemm: profile,u4,32,f32,f32,32,64,3,"), 2);
    CHECK_INT(count("m is -1"), 1);
    CHECK_INT(count("by the cost model"), 0);
    char kernel[64];
    long long us = -1, fraction = -1;
    const char *line = strstr(printed, "lpgemm: profile,u4");
    CHECK(line &&
          sscanf(line, "lpgemm: profile,u4,32,f32,f32,32,64,3,%63[^,],%lld.%3lld\n", kernel, &us, &fraction) == 3);
    CHECK(us >= 0 && us < 1000000 && fraction >= 0);
    int heads = count("lpgemm: profile,weights,group,x,y,n,k,m,kernel,us\n");
    run_logged("profile", multiply);
    CHECK_INT(heads + count("lpgemm: profile,weights,"), 1); /* once a process */
  }
}
