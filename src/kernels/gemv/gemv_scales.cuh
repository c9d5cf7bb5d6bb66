/* gemv: scales and zeros in fp32, in a table of the warp's own in shared memory, a chunk of k blocks at a time.
 *
 * A weight is (factor * d + rest) * scale + minimum, where d is what the dequantiser gives. The sum over a group is
 * then scale * sum(d x) + shift * sum(x). To keep weights exact that nearly cancel, d counts from the integer next
 * to the group's zero (the centre), and only the rest of the zero goes into shift. The packed values come by
 * cp.async, a chunk ahead, and are converted by the warp that uses them. */
#pragma once

#include "gemv_work.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The pairs of the table that a lane fills: pair lane + 32 i is of rows g and g + 8 of a row tile, for one scale
 * group of one block of the chunk. */
template <class T>
struct lane_pairs {
  static constexpr int all = T::chunk * T::pairs, count = (all + 31) / 32;

  /* Where the packed values of the lane's pair i begin. */
  __device__ static const uint8_t *values_at(const scale_section &s, const uint8_t *raw, int lane, int i) {
    const int pair = (lane + 32 * i) / 8, scale_group = pair % T::scale_groups,
              r = pair / T::scale_groups % T::row_tiles;
    const int block = pair / T::scale_groups / T::row_tiles;
    return raw + s.offset + r * s.bytes + block * s.block_bytes +
           scale_group * s.groups / T::scale_groups * s.slot_bytes;
  }

  __device__ static void fill(float2 (&v)[count], float value) {
#pragma unroll
    for (int i = 0; i < count; i++) v[i] = make_float2(value, value);
  }

  __device__ static bool has(int lane, int i) { return all % 32 == 0 || lane + 32 * i < all; }

  /* Loads a section's values for all pairs of the lane. Upper: the section is the upper of two levels. */
  template <bool Upper>
  __device__ static void load(const scale_section &s, const uint8_t *raw, int lane, float2 (&v)[count]) {
    const auto each = [&](auto read) {
#pragma unroll
      for (int i = 0; i < count; i++) {
        if (has(lane, i)) v[i] = read(values_at(s, raw, lane, i), lane % 8);
      }
    };
#if __CUDA_ARCH__ >= 890
    if (!Upper && s.type == LPGEMM_E4M3) {
      each([](const uint8_t *slot, int g) {
        return __half22float2(f16_x::in(e4m3_values(((const uint16_t *)slot)[g], false)));
      });
      return;
    }
#endif
    if (Upper) {
      with_upper_reader(s.type, each);
    } else {
      with_reader(s.type, each);
    }
  }
};

/* Scale, shift and centre of one row and scale group. */
struct row_scales {
  float scale, shift, center;
};

/* From scale_code * super_scale and zero_code * super_zero. The rounding errors of both products are added back,
 * since they count where the two cancel. */
__device__ inline row_scales combine(const scales_args &a, float scale_code, float super_scale, float zero_code,
                                     float super_zero) {
  row_scales to;
  const float scale = scale_code * super_scale, zero = zero_code * super_zero;
  const float level = a.mode == zero_minimum ? __fdividef(-zero, scale) : zero;
  to.scale = scale * a.factor;
  to.center =
      fminf(fmaxf(rintf((level - a.offset) * a.inverse_step), 0.0f), a.most); /* any integer near the zero will do */
  const float value = fmaf(to.center, a.step, a.offset);
  if (a.mode == zero_minimum) {
    const float scale_error = fmaf(scale_code, super_scale, -scale), zero_error = fmaf(zero_code, super_zero, -zero);
    to.shift = fmaf(value, scale, zero) + fmaf(value, scale_error, zero_error);
  } else {
    to.shift = scale * (value - zero);
  }
  return to;
}

/* Two bytes as numbers. */
__device__ inline float2 byte_values(uint32_t two) {
  return make_float2(lpg_bits_f32((two & 255) | 0x4b000000u) - 0x1p23f, lpg_bits_f32(two >> 8 | 0x4b000000u) - 0x1p23f);
}

/* The warp's table: pairs (rows g and g + 8) for each row tile, scale group and g. */
struct scale_table {
  bool has_shift; /* all lanes of the warp agree */
  float2 *scale, *shift;
  uint32_t *center; /* two numbers of X's type; used where zeros differ */

  __device__ void to_next_block(int pairs) {
    scale += pairs;
    shift += pairs;
    center += pairs;
  }
};

/* Fills the table from the packed values of a chunk: scales of fp16 with zeros that are codes, so that nothing is left
 * of a zero but beyond the largest code. */
template <class T>
__device__ inline void convert_f16_zeros(const scales_args &a, const uint8_t *raw, scale_table &table, int lane) {
  using lane_pairs = lane_pairs<T>;
  bool beyond = false;
#pragma unroll
  for (int i = 0; i < lane_pairs::count; i++) {
    if (!lane_pairs::has(lane, i)) continue;
    const float2 scale = __half22float2(((const __half2 *)lane_pairs::values_at(a.section[0], raw, lane, i))[lane % 8]);
    const float2 zero = byte_values(((const uint16_t *)lane_pairs::values_at(a.section[1], raw, lane, i))[lane % 8]);
    const float2 center = make_float2(fminf(zero.x, a.most), fminf(zero.y, a.most));
    beyond |= zero.x > a.most || zero.y > a.most;
    table.scale[lane + 32 * i] = scale;
    table.shift[lane + 32 * i] = make_float2(scale.x * (center.x - zero.x), scale.y * (center.y - zero.y));
    table.center[lane + 32 * i] = T::X::round_two(center.x, center.y);
  }
  table.has_shift = __ballot_sync(0xffffffffu, beyond) != 0;
}

/* The same of any types. */
template <class T>
__device__ inline void convert_scales(const scales_args &a, const uint8_t *raw, scale_table &table, int lane) {
  using lane_pairs = lane_pairs<T>;
  constexpr int count = lane_pairs::count;
  if (T::Shifted && a.form == form_f16_zeros) return convert_f16_zeros<T>(a, raw, table, lane);
  table.has_shift = T::Shifted;
  float2 scale[count], super_scale[count];
  if (a.form == form_f16) {
#pragma unroll
    for (int i = 0; i < count; i++) {
      if (!lane_pairs::has(lane, i)) continue;
      scale[i] = __half22float2(((const __half2 *)lane_pairs::values_at(a.section[0], raw, lane, i))[lane % 8]);
    }
  } else if (a.which[role_scale] >= 0) {
    lane_pairs::template load<false>(a.section[a.which[role_scale]], raw, lane, scale);
  } else {
    lane_pairs::fill(scale, 1.0f);
  }
  lane_pairs::fill(super_scale, 1.0f);
  if (a.which[role_super_scale] >= 0)
    lane_pairs::template load<true>(a.section[a.which[role_super_scale]], raw, lane, super_scale);
  if (!T::Shifted || a.mode == zero_fixed) {
#pragma unroll
    for (int i = 0; i < count; i++) {
      if (!lane_pairs::has(lane, i)) continue;
      float2 s = scale[i];
      if (a.which[role_super_scale] >= 0) s = make_float2(s.x * super_scale[i].x, s.y * super_scale[i].y);
      if (T::Shifted) table.shift[lane + 32 * i] = make_float2(s.x * a.fixed_shift, s.y * a.fixed_shift);
      if (T::Shifted) s = make_float2(s.x * a.factor, s.y * a.factor); /* else the factor goes on the sums */
      table.scale[lane + 32 * i] = s;
    }
    return;
  }
  float2 zero[count], super_zero[count];
  lane_pairs::template load<false>(a.section[a.which[role_zero]], raw, lane, zero);
  lane_pairs::fill(super_zero, 1.0f);
  if (a.which[role_super_zero] >= 0)
    lane_pairs::template load<true>(a.section[a.which[role_super_zero]], raw, lane, super_zero);
#pragma unroll
  for (int i = 0; i < count; i++) {
    if (!lane_pairs::has(lane, i)) continue;
    const row_scales first = combine(a, scale[i].x, super_scale[i].x, zero[i].x, super_zero[i].x);
    const row_scales second = combine(a, scale[i].y, super_scale[i].y, zero[i].y, super_zero[i].y);
    table.scale[lane + 32 * i] = make_float2(first.scale, second.scale);
    table.shift[lane + 32 * i] = make_float2(first.shift, second.shift);
    table.center[lane + 32 * i] = T::X::round_two(first.center, second.center);
  }
}

/* The stream of a warp's scales and zeros, copied a chunk ahead. */
template <class T>
struct scale_stream {
  const scales_args &a;
  const work &w;
  cursor at;                       /* the next chunk to copy */
  int first_row_tile, first_block; /* of the CTA */
  int row_tiles, lane;             /* row_tiles: of the matrix */
  const uint8_t *raw;
  bool waited; /* all copies so far have been waited for */
  scale_table table;

  __device__ scale_stream(const gemv_args &args, const work &w, const cursor &first, int first_row_tile,
                          int first_block, int lane, uint8_t *memory)
      : a(args.scale_data),
        w(w),
        at(first),
        first_row_tile(first_row_tile),
        first_block(first_block),
        row_tiles(args.row_tiles),
        lane(lane),
        raw(memory + args.plan.scale_table_bytes),
        waited(false) {
    constexpr int all = lane_pairs<T>::all;
    table.scale = (float2 *)memory;
    table.shift = (float2 *)memory + all;
    table.center = (uint32_t *)((float2 *)memory + 2 * all);
  }

  __device__ void copy_next() {
    if (at.run > 0) {
      const int block = first_block + at.first_block + at.block;
      const int row_tile = first_row_tile + at.tile * T::row_tiles;
      if (__builtin_expect(a.one_copy, 1)) {
        copy_one<T::row_tiles, T::chunk>(a.section[0], lane, row_tile, row_tiles, block, shared_address(raw));
      } else {
        copy_all<T::row_tiles, T::chunk>(a, lane, row_tile, row_tiles, block, shared_address(raw));
      }
      at.block += T::chunk;
      at.run -= T::chunk;
      if (at.run <= 0) at.next_run_or_turn(w);
    }
    commit_copies();
  }

  /* Converts the next chunk, and starts to copy the one after it. If all copies have been waited for already, it
   * must not wait again: X of the next phase may be in flight. */
  __device__ void take() {
    if (!waited) wait_copies<0>();
    waited = false;
    __syncwarp();
    convert_scales<T>(a, raw, table, lane);
    __syncwarp();
    copy_next();
  }
};

}  // namespace
}  // namespace lpg
