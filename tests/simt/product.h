/* The products of tensor cores: mma.sync of a warp, wgmma of four. A row of A and a column of B are 32 bytes each, of
 * 16-bit numbers, bytes, fp32 or bits; of floats the sum of their products is that of fp64, and is rounded
 * into D once. */
#ifndef SIMT_PRODUCT_H
#define SIMT_PRODUCT_H

#include "simt.h"

namespace simt {

enum { ROW_BYTES = 32 };

/* What the bytes are: so many numbers, and how to read them. */
template <class Number, int Count>
struct numbers_in_row {
  using number = Number;
  static constexpr int count = Count;
};
struct of_f16 : numbers_in_row<double, 16> {
  static void read(const uint8_t *bytes, double *numbers);
};
struct of_bf16 : numbers_in_row<double, 16> {
  static void read(const uint8_t *bytes, double *numbers);
};
struct of_tf32 : numbers_in_row<double, 8> {
  static void read(const uint8_t *bytes, double *numbers);
};
struct of_e4m3 : numbers_in_row<double, 32> {
  static void read(const uint8_t *bytes, double *numbers);
};
struct of_e5m2 : numbers_in_row<double, 32> {
  static void read(const uint8_t *bytes, double *numbers);
};
struct of_i8 : numbers_in_row<int, 32> {
  static void read(const uint8_t *bytes, int *numbers) {
    for (int i = 0; i < count; i++) numbers[i] = (int8_t)bytes[i];
  }
};
struct of_u8 : numbers_in_row<int, 32> {
  static void read(const uint8_t *bytes, int *numbers) {
    for (int i = 0; i < count; i++) numbers[i] = bytes[i];
  }
};
struct of_b1 : numbers_in_row<int, 256> {
  static void read(const uint8_t *bytes, int *numbers) {
    for (int i = 0; i < count; i++) numbers[i] = bytes[i / 8] >> i % 8 & 1;
  }
};

template <class Type>
struct numbers_of {
  typename Type::number number[Type::count];

  explicit numbers_of(const uint8_t *bytes) { Type::read(bytes, number); }
};

/* D += or = the dot product. */
template <class A, class B, class D>
void add(D &d, const numbers_of<A> &a, const numbers_of<B> &b, bool adds) {
  typename A::number sum = 0;
  for (int i = 0; i < A::count; i++) sum += a.number[i] * b.number[i];
  d = adds ? (D)(d + sum) : (D)sum;
}

/* Rows g and g + 8 of A. */
template <class Type>
struct two_numbers {
  numbers_of<Type> row[2];

  explicit two_numbers(const uint8_t (&bytes)[2][ROW_BYTES])
      : row{numbers_of<Type>(bytes[0]), numbers_of<Type>(bytes[1])} {}
};

/* Their bytes, of which each lane of four has four of each half row. */
struct two_rows {
  uint8_t row[2][ROW_BYTES];

  two_rows(const char *what, const uint32_t (&a)[4]) {
    struct words {
      uint32_t word[4];
    };
    const auto lanes = exchange(what, words{{a[0], a[1], a[2], a[3]}});
    for (int t = 0; t < 4; t++) {
      const words own = lanes[now->lane / 4 * 4 + t];
      for (int i = 0; i < 4; i++) memcpy(row[i % 2] + 16 * (i / 2) + 4 * t, &own.word[i], 4);
    }
  }
};

template <class Type, class D>
struct mma {
  static void multiply(D (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const two_rows rows("mma.sync", a);
    const two_numbers<Type> numbers(rows.row);
    const auto b = exchange("mma.sync", (uint64_t)b1 << 32 | b0);
    for (int column = 0; column < 2; column++) {
      uint8_t bytes[ROW_BYTES];
      for (int t = 0; t < 4; t++) {
        const uint64_t two = b[4 * (now->lane % 4 * 2 + column) + t];
        memcpy(bytes + 4 * t, &two, 4);
        memcpy(bytes + 16 + 4 * t, (const uint8_t *)&two + 4, 4);
      }
      const numbers_of<Type> others(bytes);
      for (int half = 0; half < 2; half++) add(d[2 * half + column], numbers.row[half], others, true);
    }
  }
};

/* Where row `row` of an operand in shared memory lies, by its descriptor; with the 128-byte swizzle, which moves
 * 16-byte pieces by bits of the address. */
struct swizzled {
  uint32_t begin, eight_rows;

  explicit swizzled(uint64_t descriptor)
      : begin((uint32_t)(descriptor & 0x3fff) * 16), eight_rows((uint32_t)(descriptor >> 32 & 0x3fff) * 16) {
    if (descriptor >> 62 != 1) fail("an operand of wgmma that has no swizzle of 128 bytes");
  }
  void read(int row, uint8_t *bytes) const {
    const uint32_t at = begin + (uint32_t)(row / 8) * eight_rows + (uint32_t)(row % 8) * 128;
    for (uint32_t piece = 0; piece < ROW_BYTES; piece += 16) {
      const uint32_t linear = at + piece;
      memcpy(bytes + piece, memory_at(linear ^ (linear >> 7 & 7) << 4, 16), 16);
    }
  }
};

/* The instruction is done between its start and the wait for it. In which order a thread's products are done decides
 * what sums are rounded to, so it is always the same. */
inline void start_product(action a) {
  if (now->products.empty() && now->groups.empty() && random() % 2 == 0) {
    a();
  } else {
    now->products.push_back(std::move(a));
  }
}

template <class A, class B, class D, bool Always = true>
struct wgmma {
  static void multiply_rows(D *d, const uint8_t (&rows)[2][ROW_BYTES], uint64_t b, bool adds, int columns) {
    const swizzled columns_of(b);
    const two_numbers<A> numbers(rows);
    const int t = now->lane % 4;
    for (int j = 0; j < columns / 8; j++) {
      for (int c = 0; c < 2; c++) {
        uint8_t bytes[ROW_BYTES];
        columns_of.read(8 * j + 2 * t + c, bytes);
        const numbers_of<B> others(bytes);
        for (int half = 0; half < 2; half++) add(d[4 * j + 2 * half + c], numbers.row[half], others, adds);
      }
    }
  }

  /* A in registers; `columns` of the columns that D has. */
  template <int Count>
  static void from_registers(D (&d)[Count], const uint32_t (&a)[4], uint64_t b, bool adds, int columns) {
    const two_rows rows("wgmma", a);
    D *const sums = d;
    start_product([=] { multiply_rows(sums, rows.row, b, adds, columns); });
  }
  template <int Count>
  static void multiply(D (&d)[Count], const uint32_t (&a)[4], uint64_t b) {
    from_registers(d, a, b, Always, Count * 2);
  }

  /* A in shared memory. */
  template <int Count>
  static void from_shared(D (&d)[Count], uint64_t a, uint64_t b, bool adds, int columns) {
    exchange("wgmma", 0);
    D *const sums = d;
    start_product([=] {
      uint8_t rows[2][ROW_BYTES];
      const int warp = (int)now->index.x / LANES % 4;
      for (int half = 0; half < 2; half++) swizzled(a).read(16 * warp + now->lane / 4 + 8 * half, rows[half]);
      multiply_rows(sums, rows, b, adds, columns);
    });
  }
  template <int Count>
  static void multiply(D (&d)[Count], uint64_t a, uint64_t b, bool adds) {
    from_shared(d, a, b, adds, Count * 2);
  }
};

}  // namespace simt

#endif
