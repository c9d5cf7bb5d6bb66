/* What the bits of small floats stand for. */
#include "product.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace simt {

namespace {

template <class Value>
std::vector<float> table(size_t count, Value value) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; i++) values[i] = value(i);
  return values;
}

float half_value(size_t bits) {
  __half_raw raw;
  raw.x = (unsigned short)bits;
  return __half2float((__half)raw);
}

float bf16_value(size_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

void read_halves(const std::vector<float> &values, const uint8_t *bytes, double *numbers) {
  for (int i = 0; i < ROW_BYTES / 2; i++) {
    uint16_t bits;
    memcpy(&bits, bytes + 2 * i, sizeof bits);
    numbers[i] = values[bits];
  }
}

void read_bytes(const std::vector<float> &values, const uint8_t *bytes, double *numbers) {
  for (int i = 0; i < ROW_BYTES; i++) numbers[i] = values[bytes[i]];
}

float eight_bits(size_t bits, __nv_fp8_interpretation_t type) {
  return half_value(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)bits, type).x);
}

}  // namespace

void of_f16::read(const uint8_t *bytes, double *numbers) {
  static const std::vector<float> values = table(1 << 16, half_value);
  read_halves(values, bytes, numbers);
}

void of_bf16::read(const uint8_t *bytes, double *numbers) {
  static const std::vector<float> values = table(1 << 16, bf16_value);
  read_halves(values, bytes, numbers);
}

void of_tf32::read(const uint8_t *bytes, double *numbers) {
  for (int i = 0; i < count; i++) {
    uint32_t bits;
    float value;
    memcpy(&bits, bytes + 4 * i, sizeof bits);
    bits &= 0xffffe000u; /* the lower 13 bits do not count */
    memcpy(&value, &bits, sizeof value);
    numbers[i] = value;
  }
}

void of_e4m3::read(const uint8_t *bytes, double *numbers) {
  static const std::vector<float> values = table(1 << 8, [](size_t bits) { return eight_bits(bits, __NV_E4M3); });
  read_bytes(values, bytes, numbers);
}

void of_e5m2::read(const uint8_t *bytes, double *numbers) {
  static const std::vector<float> values = table(1 << 8, [](size_t bits) { return eight_bits(bits, __NV_E5M2); });
  read_bytes(values, bytes, numbers);
}

}  // namespace simt
