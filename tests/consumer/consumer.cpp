// A C++11 program against the installed library: the same as consumer.c, with owners.
#include <lpgemm.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

static void check(lpgemm_status_t status) {
  if (status != LPGEMM_SUCCESS) throw std::runtime_error(lpgemm_last_error());
}

struct Destroy {
  void operator()(lpgemm_handle_t handle) const { lpgemm_destroy(handle); }
  void operator()(lpgemm_weights_t weights) const { lpgemm_weights_destroy(weights); }
};
using Handle = std::unique_ptr<std::remove_pointer<lpgemm_handle_t>::type, Destroy>;
using Weights = std::unique_ptr<std::remove_pointer<lpgemm_weights_t>::type, Destroy>;

int main() try {
  const int n = 3, k = 32;
  std::vector<std::uint8_t> codes(n * k);
  std::vector<float> x(k), y(n);
  for (int i = 0; i < n * k; i++) codes[i] = static_cast<std::uint8_t>(i % 3);
  for (int i = 0; i < k; i++) x[i] = static_cast<float>(i);

  lpgemm_config_t config = lpgemm_config_t();
  config.size = sizeof config;
  config.backend = LPGEMM_BACKEND_CPU;
  config.default_type = LPGEMM_F32;
  lpgemm_handle_t raw_handle;
  check(lpgemm_create(&raw_handle, &config));
  Handle handle(raw_handle);

  lpgemm_weight_desc_t desc = lpgemm_weight_desc_t();
  desc.size = sizeof desc;
  desc.n = n;
  desc.k = k;
  desc.type = LPGEMM_UINT(2);
  desc.zero = LPGEMM_ZERO_CONSTANT;
  desc.zero_constant = 1.0f;
  lpgemm_weight_source_t source = lpgemm_weight_source_t();
  source.size = sizeof source;
  source.codes = codes.data();
  source.codes_bytes = codes.size();
  lpgemm_weights_t raw_weights;
  check(lpgemm_pack_weights(handle.get(), &desc, &source, nullptr, 0, &raw_weights));
  Weights weights(raw_weights);

  check(lpgemm_matmul(handle.get(), weights.get(), 1, x.data(), 0, y.data(), 0));
  for (int i = 0; i < n; i++) {
    int sum = 0;
    for (int j = 0; j < k; j++) sum += j * ((i * k + j) % 3 - 1);
    if (y[i] != static_cast<float>(sum)) throw std::runtime_error("a wrong product");
  }
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
