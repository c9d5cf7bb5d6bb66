/* src/kernels/prim/ in C++: every function that is PTX there, as simt.h does it. Each guard below stands for the file
 * of that name, which then is not read. */
#ifndef SIMT_PRIM_H
#define SIMT_PRIM_H

#define LPG_PRIM_ASYNC_CUH
#define LPG_PRIM_BARRIER_CUH
#define LPG_PRIM_CLUSTER_CUH
#define LPG_PRIM_FLAG_CUH
#define LPG_PRIM_LOGIC_CUH
#define LPG_PRIM_MMA_CUH
#define LPG_PRIM_MMA_B1_CUH
#define LPG_PRIM_PDL_CUH
#define LPG_PRIM_SHARED_CUH
#define LPG_PRIM_TABLE_CUH
#define LPG_PRIM_WGMMA_CUH

#include "product.h"
#include "tensor_map.h"

#define LPG_SHARED_MEMORY(type, alignment) type *const memory = (type *)simt::now->own_cta->memory
#define LPG_SHARED_VARIABLE(type, name) type &name = *(type *)simt::variable(#name, sizeof(type))

namespace lpg {
namespace {

/* ---- shared.cuh, table.cuh ---- */

inline uint32_t shared_address(const void *pointer) { return simt::address_of(pointer); }

template <class T>
inline T load_at(uint32_t address) {
  T value;
  if (address % sizeof value != 0) simt::fail("a load of %zu bytes at %u", sizeof value, address);
  memcpy(&value, simt::memory_at(address, sizeof value), sizeof value);
  return value;
}

template <class T>
inline void store_to(uint32_t address, T value) {
  if (address % sizeof value != 0) simt::fail("a store of %zu bytes at %u", sizeof value, address);
  memcpy(simt::memory_at(address, sizeof value), &value, sizeof value);
}

template <int Offset>
inline int read_entry(uint32_t address) {
  return load_at<int>(address + Offset);
}

/* ---- async.cuh ---- */

/* Done at once, or when it is waited for. */
inline void copy_later(uint32_t to, const void *from, int size, int bytes) {
  if (to % size || (uintptr_t)from % size || bytes < 0 || bytes > size) {
    simt::fail("cp.async of %d of %d bytes from %p to %u", bytes, size, from, to);
  }
  const auto copy = [=] {
    uint8_t *const at = simt::memory_at(to, (size_t)size);
    memset(at, 0, (size_t)size);
    memcpy(at, from, (size_t)bytes);
  };
  if (simt::random() % 4 == 0) {
    copy();
  } else {
    simt::now->copies->push_back(copy);
  }
}
inline void copy_some_async(uint32_t to, const void *from, int bytes) { copy_later(to, from, 16, bytes); }
inline void copy16_async(uint32_t to, const void *from, bool valid = true) { copy_later(to, from, 16, valid ? 16 : 0); }
inline void copy8_async(uint32_t to, const void *from, bool valid) { copy_later(to, from, 8, valid ? 8 : 0); }

inline void run_all(std::vector<simt::action> &actions) {
  for (const simt::action &a : actions) a();
  actions.clear();
}
inline void commit_copies() {
  simt::now->copying.push_back(simt::now->copies);
  simt::now->copies = std::make_shared<simt::copy_group::element_type>();
}
template <int Left>
inline void wait_copies() {
  auto &groups = simt::now->copying;
  while (groups.size() > Left) {
    run_all(*groups.front());
    groups.erase(groups.begin());
  }
}
inline void wait_all_copies() {
  wait_copies<0>();
  run_all(*simt::now->copies);
}

inline void copy_to_blocks(uint32_t to, const void *from, int bytes, uint32_t barrier, uint16_t ctas) {
  if (to % 16 || (uintptr_t)from % 16 || bytes % 16) simt::fail("a bulk copy of %d bytes to %u", bytes, to);
  simt::later([=] {
    for (int rank = 0; rank < 16; rank++) {
      if (!(ctas >> rank & 1)) continue;
      memcpy(simt::memory_at(simt::in_cta(to, (uint32_t)rank), (size_t)bytes), from, (size_t)bytes);
      simt::change_mbarrier(simt::in_cta(barrier, (uint32_t)rank), 0, -bytes);
    }
  });
}
inline void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
  copy_to_blocks(to, from, bytes, barrier, (uint16_t)(1 << simt::now->own_cta->rank));
}

inline void copy_box_to(uint32_t to, const void *map, std::vector<int> first, uint32_t barrier, uint16_t ctas) {
  const simt::tensor_map own = *(const simt::tensor_map *)map; /* a kernel parameter, whose copy ends with the thread */
  simt::later([=] {
    for (int rank = 0; rank < 16; rank++) {
      if (!(ctas >> rank & 1)) continue;
      const int64_t bytes = own.copy_box(simt::in_cta(to, (uint32_t)rank), first);
      simt::change_mbarrier(simt::in_cta(barrier, (uint32_t)rank), 0, -bytes);
    }
  });
}
inline void copy_box_to_blocks(uint32_t to, const void *map, int column, int row, uint32_t barrier, uint16_t ctas) {
  copy_box_to(to, map, {column, row}, barrier, ctas);
}
inline uint16_t own_block() { return (uint16_t)(1 << simt::now->own_cta->rank); }
inline void copy_box(uint32_t to, const void *map, int column, int row, uint32_t barrier) {
  copy_box_to(to, map, {column, row}, barrier, own_block());
}
inline uint64_t l2_policy(bool) { return 0; }
inline void copy_box(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier, uint64_t) {
  copy_box_to(to, map, {x, y, z}, barrier, own_block());
}
inline void copy_box(uint32_t to, const void *map, int x, int y, int z, int w, uint32_t barrier, uint64_t) {
  copy_box_to(to, map, {x, y, z, w}, barrier, own_block());
}

/* Shared memory is read as late as may be. */
inline void store_box(const void *map, int column, int row, uint32_t from) {
  const simt::tensor_map own = *(const simt::tensor_map *)map;
  simt::now->stores.push_back([=] { own.store_box(from, {column, row}); });
}
inline void commit_stores() {}
inline void wait_stores_read() { run_all(simt::now->stores); }

inline bool is_elected() {
  simt::exchange("elect.sync", 0);
  return simt::now->lane == 0;
}
inline void prefetch_map(const void *) {}
inline void prefetch_to_l2(const void *) {}

inline void load16(const void *from, uint32_t *word) {
  if ((uintptr_t)from % 16 != 0) simt::fail("a load of 16 bytes at %p", from);
  memcpy(word, from, 16);
}
inline void load16_if_more(int count, int index, const void *from, uint32_t *word) {
  if (count > index) load16(from, word);
}
template <int Bytes>
inline uint32_t load_small(const void *from) {
  uint32_t word = 0;
  if ((uintptr_t)from % Bytes != 0) simt::fail("a load of %d bytes at %p", Bytes, from);
  memcpy(&word, from, Bytes);
  return word;
}

struct alignas(16) four_words {
  uint32_t word[4];
};
inline void load_words(uint32_t from, uint32_t *word) {
  const four_words v = load_at<four_words>(from);
  memcpy(word, v.word, sizeof v);
}
inline void load_two_words(uint32_t from, uint32_t *word) {
  const uint64_t v = load_at<uint64_t>(from);
  memcpy(word, &v, sizeof v);
}
inline float4 load_four(uint32_t from) { return load_at<float4>(from); }
inline uint32_t load_word(uint32_t from) { return load_at<uint32_t>(from); }
inline uint32_t load_half(uint32_t from) { return load_at<uint16_t>(from); }
inline void store_words(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  store_to(to, four_words{{a, b, c, d}});
}

/* ---- barrier.cuh ---- */

inline void init_barrier(uint32_t barrier, int arrivals) { simt::init_mbarrier(barrier, arrivals); }
inline void fence_barriers() {}
inline bool barrier_is_over(uint32_t barrier, uint32_t parity) { return simt::is_over(barrier, parity); }
inline void wait_barrier(uint32_t barrier, uint32_t parity) { simt::wait_mbarrier(barrier, parity); }
inline void wait_for_written(uint32_t barrier, uint32_t parity) { wait_barrier(barrier, parity); }
inline void arrive(uint32_t barrier) { simt::change_mbarrier(barrier, 1, 0); }
inline void arrive_and_expect(uint32_t barrier, int bytes) { simt::change_mbarrier(barrier, 1, bytes); }
inline void expect_bytes(uint32_t barrier, int bytes) { simt::change_mbarrier(barrier, 0, bytes); }
inline void arrive_when_copied(uint32_t barrier) {
  simt::later([=, groups = simt::now->copying, copies = simt::now->copies] {
    for (const simt::copy_group &group : groups) run_all(*group);
    run_all(*copies);
    simt::change_mbarrier(barrier, 1, 0);
  });
}
inline void arrive_remote(uint32_t barrier, uint32_t rank) { arrive(simt::in_cta(barrier, rank)); }
inline void arrive_written(uint32_t barrier, uint32_t rank) { arrive_remote(barrier, rank); }
inline simt::meeting &numbered_barrier(int barrier) {
  if (barrier < 0 || barrier > 15) simt::fail("there is no barrier %d", barrier);
  return simt::now->own_cta->numbered[barrier];
}
inline void threads_meet(int barrier, int threads) { simt::meet("bar.sync", numbered_barrier(barrier), threads, true); }
inline void threads_arrive(int barrier, int threads) {
  simt::meet("bar.arrive", numbered_barrier(barrier), threads, false);
}
inline void fence_for_tensor_cores() {}
template <int Registers>
inline void release_registers() {}
template <int Registers>
inline void take_registers() {}

/* ---- cluster.cuh ---- */

inline int cluster_rank() { return simt::now->own_cta->rank; }
inline int cluster_number() { return simt::now->own_cta->own_cluster->number; }
inline void cluster_arrive() { simt::arrive_at_cluster(); }
inline void cluster_arrive_only() { cluster_arrive(); }
inline void cluster_wait() {
  simt::wait_until("barrier.cluster.wait",
                   [] { return simt::now->own_cta->own_cluster->all.number != simt::now->cluster_phase; });
}
inline uint32_t address_in_block(uint32_t address, uint32_t rank) { return simt::in_cta(address, rank); }
inline void store_to_block(uint32_t address, uint32_t rank, float4 v) { store_to(simt::in_cta(address, rank), v); }
inline void store_to_block(uint32_t address, uint32_t rank, float v) { store_to(simt::in_cta(address, rank), v); }
inline void store_to_block(uint32_t address, uint32_t rank, int32_t v) { store_to(simt::in_cta(address, rank), v); }
inline void store_at(uint32_t remote, uint32_t value) { store_to(remote, value); }
inline float load_one_at(uint32_t remote) { return load_at<float>(remote); }
inline float4 load_four_at(uint32_t remote) { return load_at<float4>(remote); }

/* ---- flag.cuh, pdl.cuh ---- */

inline void raise_flag(uint64_t *flag, uint64_t number) { *flag = number; }
inline void wait_flag(const uint64_t *flag, uint64_t number) {
  simt::wait_until("a flag in global memory", [=] { return *(const volatile uint64_t *)flag == number; });
}
inline void pdl_launch_next() {}
inline void pdl_wait() {}

/* ---- logic.cuh ---- */

inline uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) { return (a & mask) | bits; }
inline uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t bits) { return (a & mask) ^ bits; }
inline uint32_t in_register(uint32_t constant) { return constant; }
inline uint32_t e4m3_values(uint32_t word, bool upper) {
  const uint32_t two = upper ? word >> 16 : word & 0xffff;
  uint32_t values = 0;
  for (int i = 0; i < 2; i++) {
    const __half_raw half = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(two >> 8 * i), __NV_E4M3);
    values |= (uint32_t)half.x << 16 * i;
  }
  return values;
}
inline uint32_t tf32_value(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (bits + 0x1000u) & 0xffffe000u;
}
inline uint32_t upper_tf32(float x) { return __float_as_uint(x) & 0xffffe000u; }
inline float reciprocal(float x) { return fabsf(x) < 0x1p-126f ? copysignf(INFINITY, x) : 1.0f / x; }
inline int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }
inline int keep(int x) { return x; }
inline uint32_t keep(uint32_t x) { return x; }
inline float keep(float x) { return x; }

/* ---- mma.cuh, mma_b1.cuh ---- */

inline void load_matrices(uint32_t address, uint32_t (&b)[4]) {
  const auto row = simt::exchange("ldmatrix", address);
  const int g = simt::now->lane / 4, t = simt::now->lane % 4;
  for (int j = 0; j < 4; j++) {
    if (row[8 * j + g] % 16 != 0) simt::fail("ldmatrix of a row at %u", row[8 * j + g]);
    b[j] = load_at<uint32_t>(row[8 * j + g] + 4 * (uint32_t)t);
  }
  simt::exchange("ldmatrix", address); /* it is done for all lanes at once */
}

struct mma_f16 : simt::mma<simt::of_f16, float> {};
struct mma_bf16 : simt::mma<simt::of_bf16, float> {};
struct mma_tf32 : simt::mma<simt::of_tf32, float> {};
struct mma_i8 : simt::mma<simt::of_i8, int> {};

inline void add_and_popc_256(int (&d)[4], const uint32_t *a, uint32_t b0, uint32_t b1) {
  simt::mma<simt::of_b1, int>::multiply(d, {a[0], a[1], a[2], a[3]}, b0, b1);
}
inline void and_popc_256(int (&d)[4], const uint32_t *a, uint32_t b0, uint32_t b1) {
  for (int i = 0; i < 4; i++) d[i] = 0;
  add_and_popc_256(d, a, b0, b1);
}
inline void and_popc_128(int (&d)[4], const uint32_t *a, uint32_t b) {
  const uint32_t both[4] = {a[0], a[1], 0, 0};
  and_popc_256(d, both, b, 0);
}

/* ---- wgmma.cuh ---- */

inline void wgmma_fence() {}
inline void wgmma_commit() {
  simt::now->groups.push_back(std::move(simt::now->products));
  simt::now->products.clear();
}
template <int Left>
inline void wgmma_wait() {
  auto &groups = simt::now->groups;
  while (groups.size() > Left) {
    run_all(groups.front());
    groups.erase(groups.begin());
  }
  simt::exchange("wgmma.wait_group", 0); /* it is over for all lanes at once */
}
inline uint32_t swizzled_place(uint32_t address) { return address / 16 | 1 << 16; }
inline uint64_t swizzled_rows(uint32_t place) {
  const uint32_t eight_rows = 1024 / 16, swizzle_128 = 1u << 30;
  return (uint64_t)(eight_rows | swizzle_128) << 32 | place;
}

template <class Type>
struct wgmma_16 : simt::wgmma<Type, Type, float> {
  using simt::wgmma<Type, Type, float>::multiply;
  template <int Count>
  static void start(float (&d)[Count], const uint32_t (&a)[4], uint64_t rows, int columns) {
    simt::wgmma<Type, Type, float>::from_registers(d, a, rows, true, whole<Count>(columns));
    wgmma_commit();
  }
  template <int Count>
  static void start_four(float (&d)[Count], uint64_t a, uint64_t rows, int columns) {
    for (int i = 0; i < 4; i++)
      simt::wgmma<Type, Type, float>::from_shared(d, a + 2 * i, rows + 2 * i, true, whole<Count>(columns));
    wgmma_commit();
  }

 private:
  template <int Count>
  static int whole(int columns) {
    return Count == 64     ? (columns > 96 ? 128 : 96)
           : columns > 192 ? (columns > 224 ? 256 : 224)
                           : (columns > 160 ? 192 : 160);
  }
};
struct wgmma_f16 : wgmma_16<simt::of_f16> {};
struct wgmma_bf16 : wgmma_16<simt::of_bf16> {};
struct wgmma_i8 : simt::wgmma<simt::of_i8, simt::of_i8, int> {};
struct wgmma_e4m3 : simt::wgmma<simt::of_e4m3, simt::of_e4m3, float> {};
struct wgmma_e4m3_by_e5m2 : simt::wgmma<simt::of_e4m3, simt::of_e5m2, float> {};
struct wgmma_tf32 : simt::wgmma<simt::of_tf32, simt::of_tf32, float> {};
struct wgmma_b1 : simt::wgmma<simt::of_b1, simt::of_b1, int> {};
struct wgmma_i8_skinny : simt::wgmma<simt::of_i8, simt::of_i8, int> {};
struct wgmma_u8_by_i8 : simt::wgmma<simt::of_u8, simt::of_i8, int> {};
template <bool Adds>
struct wgmma_i8_in : simt::wgmma<simt::of_i8, simt::of_i8, int, Adds> {};
template <bool Adds>
struct wgmma_e4m3_in : simt::wgmma<simt::of_e4m3, simt::of_e4m3, float, Adds> {};

/* Lane 8 i + c has the address of column c of matrix i, of 8 rows; lane 4 g + t its elements (g, 2 t) and (g, 2 t + 1).
 */
inline void store_transposed(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  if (to % 16 != 0) simt::fail("stmatrix to %u", to);
  const auto column = simt::exchange("stmatrix", to);
  const uint32_t pair[4] = {a, b, c, d};
  const uint32_t g = (uint32_t)simt::now->lane / 4, t = (uint32_t)simt::now->lane % 4;
  for (uint32_t i = 0; i < 4; i++) {
    for (uint32_t k = 0; k < 2; k++) {
      store_to(column[(int)(8 * i + 2 * t + k)] + 2 * g, (uint16_t)(pair[i] >> 16 * k));
    }
  }
  simt::exchange("stmatrix", to);
}
inline void store_matrices(uint32_t to, const uint32_t (&a)[4]) {
  if (to % 16 != 0) simt::fail("stmatrix to %u", to);
  const auto row = simt::exchange("stmatrix", to);
  const uint32_t g = (uint32_t)simt::now->lane / 4, t = (uint32_t)simt::now->lane % 4;
  for (uint32_t i = 0; i < 4; i++) store_to(row[(int)(8 * i + g)] + 4 * t, a[i]);
  simt::exchange("stmatrix", to);
}
inline void load_transposed(uint32_t from, uint32_t (&pair)[4]) {
  if (from % 16 != 0) simt::fail("ldmatrix from %u", from);
  const auto column = simt::exchange("ldmatrix.trans", from);
  const uint32_t g = (uint32_t)simt::now->lane / 4, t = (uint32_t)simt::now->lane % 4;
  for (uint32_t i = 0; i < 4; i++) {
    pair[i] = 0;
    for (uint32_t k = 0; k < 2; k++) {
      pair[i] |= (uint32_t)load_at<uint16_t>(column[(int)(8 * i + 2 * t + k)] + 2 * g) << 16 * k;
    }
  }
  simt::exchange("ldmatrix.trans", from);
}

}  // namespace
}  // namespace lpg

#endif
