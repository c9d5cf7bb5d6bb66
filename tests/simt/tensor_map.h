/* Tensor maps as runtime.cc fills them, in place of the driver's. */
#ifndef SIMT_TENSOR_MAP_H
#define SIMT_TENSOR_MAP_H

#include <vector>

#include "simt.h"

namespace simt {

/* Innermost dimension first; pitch[0] belongs to dimension 1. */
struct tensor_map {
  const uint8_t *base;
  uint64_t size[4], pitch[3];
  uint16_t box[4];
  uint8_t dimensions, element, is_swizzled;

  /* Copies the box at `first` to shared memory; zeros for what lies outside. Returns the bytes of the box. */
  int64_t copy_box(uint32_t to, const std::vector<int> &first) const {
    return each_element(to, first, [this](uint8_t *at, uint8_t *element_at) {
      if (element_at) {
        memcpy(at, element_at, element);
      } else {
        memset(at, 0, element);
      }
    });
  }

  /* Copies a box in shared memory to the matrix, as far as it lies inside. */
  void store_box(uint32_t from, const std::vector<int> &first) const {
    each_element(from, first, [this](uint8_t *at, uint8_t *element_at) {
      if (element_at) memcpy(element_at, at, element);
    });
  }

  /* Calls visit(place in shared memory, place in the matrix or NULL) for each element of a box. */
  template <class Visit>
  int64_t each_element(uint32_t shared, const std::vector<int> &first, const Visit &visit) const {
    if ((int)first.size() != dimensions) fail("a box of %zu dimensions of a map of %d", first.size(), dimensions);
    if (shared % (is_swizzled ? 1024 : 128) != 0) fail("a box at %u", shared);
    const uint32_t row_bytes = (uint32_t)box[0] * element;
    int64_t rows = 1;
    for (int d = 1; d < dimensions; d++) rows *= box[d];
    for (int64_t row = 0; row < rows; row++) {
      const uint8_t *line = base;
      bool is_inside = true;
      int64_t left = row;
      for (int d = 1; d < dimensions; d++, left /= box[d - 1]) {
        const int64_t at = first[(size_t)d] + left % box[d];
        is_inside = is_inside && at >= 0 && at < (int64_t)size[d];
        line += at * (int64_t)pitch[d - 1];
      }
      for (uint32_t i = 0; i < box[0]; i++) {
        const int64_t column = first[0] + (int64_t)i;
        const uint32_t linear = shared + (uint32_t)row * row_bytes + i * element;
        uint8_t *const at = memory_at(is_swizzled ? linear ^ (linear >> 7 & 7) << 4 : linear, element);
        const bool is_there = is_inside && column >= 0 && column < (int64_t)size[0];
        visit(at, is_there ? const_cast<uint8_t *>(line) + column * element : nullptr);
      }
    }
    return rows * row_bytes;
  }
};
static_assert(sizeof(tensor_map) <= 128, "a tensor map has 128 bytes");

}  // namespace simt

#endif
