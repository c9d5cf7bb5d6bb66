/* Packing on the GPU: the bytes of pack.c, from device memory to device memory, without scratch. Codes and numbers that
 * are too large are noticed on the way and make garbage of a blob that gets no header; which one came first is looked
 * for only then. */
#include <cuda_pipeline.h>

#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "check_device.cuh"
#include "pack.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

static constexpr int hash_sums = 256; /* partial sums of the payload's hash, so that blocks do not queue for one */

/* What the kernels report back, in device memory; it starts as zeros. */
struct report {
  unsigned long long hash[hash_sums];
  unsigned scale_span;
  int any_bad; /* a code or a number is too large */
  struct {
    unsigned long long code, number[LPG_SECTIONS];
  } first_bad; /* written only if there is one */
};

/* ---- codes ---- */

struct codes_args {
  const uint8_t *source;
  int64_t ld;
  int in_bits; /* a dense stream, not bytes */
  int64_t n, k, k_tiles;
  uint32_t flip;
  uint8_t *codes;
  int64_t first_byte; /* of `codes` in the payload */
  report *found;      /* or NULL */
};

/* The stored code at (row, k); 0 in the padding. */
template <int Bits>
__device__ inline uint32_t stored_code(const codes_args &a, int64_t row, int64_t k) {
  if (row >= a.n || k >= a.k) return 0;
  const int64_t i = row * a.ld + k;
  if (!a.in_bits) return a.source[i] ^ a.flip;
  const uint64_t at = (uint64_t)i * Bits;
  const int shift = (int)(at % 8);
  uint32_t code = a.source[at / 8] >> shift;
  if (shift + Bits > 8) code |= (uint32_t)a.source[at / 8 + 1] << (8 - shift);
  return (code & ((1u << Bits) - 1u)) ^ a.flip;
}

/* Every tile_k divides chunk_k. Rows are padded by 16 bytes, so that they stay aligned for vectors and the 32 lanes of
 * a warp find their columns in different banks. */
static constexpr int chunk_k = 1024, row_bytes = chunk_k + 16;

/* 16 rows of 1024 codes, as the source has them, on their way into shared memory, 16 bytes a thread and turn; what is
 * no code reads as stored 0. */
template <int Bits>
__device__ inline void stage_codes(const codes_args &a, int64_t row0, int64_t k0, uint8_t *staged) {
#pragma unroll
  for (int turn = 0; turn < LPG_TILE_ROWS * chunk_k / 16 / 256; turn++) {
    const int i = turn * 256 + threadIdx.x, r = i / (chunk_k / 16), c = i % (chunk_k / 16) * 16;
    const int64_t row = row0 + r, k = k0 + c;
    const uint8_t *from = a.source + row * a.ld + k;
    uint8_t *to = staged + r * row_bytes + c;
    if (!a.in_bits && row < a.n && k + 16 <= a.k && (uintptr_t)from % 16 == 0) {
      __pipeline_memcpy_async(to, from, 16);
    } else {
      for (int j = 0; j < 16; j++) to[j] = (uint8_t)(stored_code<Bits>(a, row, k + j) ^ a.flip);
    }
  }
  __pipeline_commit();
}

/* The words of one unit of a lane's row, from staged codes; `stride` words apart. Collects in `seen` which bits the
 * codes have; a flip does not change those above the width. */
template <int Bits>
__device__ inline void build_unit(const uint8_t *codes, uint32_t flips, uint32_t *word, int stride, uint32_t *seen) {
#pragma unroll
  for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
    const uint32_t two = *(const uint16_t *)(codes + pair / 2 * LPG_STEP_K + pair % 2 * 8) ^ flips;
    *seen |= two;
    lpg_unit_put_pair(Bits, word, stride, pair, __byte_perm(two, 0, 0x4140));
  }
}

/* Adds what the threads of a block found to one of the partial sums of the payload's hash. */
__device__ inline void add_hash(unsigned long long *sums, unsigned long long sum) {
  for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  __shared__ unsigned long long of_warp[8];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 8; i++) sum += of_warp[i];
  atomicAdd(&sums[(blockIdx.x + blockIdx.y * gridDim.x) % hash_sums], sum); /* integers: the order does not matter */
}

__device__ inline unsigned long long hash_vector(uint4 v, uint64_t index) {
  return lpg_hash_word(v.x | (uint64_t)v.y << 32, index) + lpg_hash_word(v.z | (uint64_t)v.w << 32, index + 1);
}

/* Builds and stores a staged chunk: a thread takes all that a lane has of a tile. Returns its part of the hash. */
template <int Bits>
__device__ inline unsigned long long store_chunk(const codes_args &a, const uint8_t *staged, int64_t row_tile,
                                                 int64_t first_tile, uint32_t *seen) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_lane_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  unsigned long long hash = 0;
  const int tiles = (int)min((int64_t)(chunk_k / tile_k), a.k_tiles - first_tile);
  for (int i = threadIdx.x; i < 32 * tiles; i += 256) {
    const int lane = i % 32, tile = i / 32;
    uint32_t word[words] = {};
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int unit = 0; unit < tile_k / unit_k; unit++) {
        const int k = tile * tile_k + unit * unit_k + lane % 4 * 2;
        build_unit<Bits>(staged + (lane / 4 + 8 * half) * row_bytes + k, a.flip * 0x0101u,
                         word + 2 * unit * lpg_unit_words(Bits) + half, 2, seen);
      }
    }
    const int64_t offset = lpg_tile_offset(Bits, a.k_tiles, row_tile, first_tile + tile);
#pragma unroll
    for (int v = 0; v < words; v += 4) {
      const uint4 vector = make_uint4(word[v], word[v + 1], word[v + 2], word[v + 3]);
      const int64_t at = offset + lpg_word_offset(lane, v);
      __stcs((uint4 *)(a.codes + at), vector);
      hash += hash_vector(vector, (uint64_t)(a.first_byte + at) / 8);
    }
  }
  return hash;
}

/* A block packs 16 rows of chunks_a_block chunks, and stages one while it stores the one before. */
static constexpr int chunks_a_block = 4;

template <int Bits>
__global__ void __launch_bounds__(256) pack_codes_kernel(const codes_args a) {
  __shared__ alignas(16) uint8_t staged[2][LPG_TILE_ROWS * row_bytes];
  constexpr uint32_t too_high = 0xffffu & ~(((1u << Bits) - 1u) * 0x0101u); /* in two codes */
  constexpr int tiles = chunk_k / lpg_tile_k(Bits);
  const int64_t row_tile = blockIdx.y, row0 = row_tile * LPG_TILE_ROWS;
  const int64_t first = (int64_t)blockIdx.x * chunks_a_block;
  const int64_t end = min(first + chunks_a_block, lpg_ceil_div(a.k_tiles, tiles));
  unsigned long long hash = 0;
  uint32_t seen = 0;
  stage_codes<Bits>(a, row0, first * chunk_k, staged[0]);
  for (int64_t chunk = first; chunk < end; chunk++) {
    if (chunk + 1 < end) {
      stage_codes<Bits>(a, row0, (chunk + 1) * chunk_k, staged[(chunk + 1 - first) % 2]);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    hash += store_chunk<Bits>(a, staged[(chunk - first) % 2], row_tile, chunk * tiles, &seen);
    __syncthreads();
  }
  if (!a.found) return;
  if (seen & too_high) a.found->any_bad = 1;
  add_hash(a.found->hash, hash);
}

/* ---- numbers: scales, zeros and the like ---- */

struct scales_args {
  lpg_packed packed;
  lpg_section_id id;
  const void *source;
  int column_major;
  uint8_t *blob;
  uint32_t largest;
  int *any_bad;
};

__device__ inline uint32_t source_number(const scales_args &a, int bytes, int64_t row, int64_t j) {
  const int64_t count = lpg_section_axis(&a.packed, a.id)->count;
  if (row >= a.packed.desc.n || j >= count) return 0;
  const int64_t i = a.column_major ? j * a.packed.desc.n + row : row * count + j;
  return bytes == 1   ? ((const uint8_t *)a.source)[i]
         : bytes == 2 ? ((const uint16_t *)a.source)[i]
                      : ((const uint32_t *)a.source)[i];
}

/* A thread writes rows g and g + 8 of a tile for one group, which UINT(4) keeps in one byte. Neighbours write
 * neighbouring pairs. */
static __global__ void __launch_bounds__(256) pack_numbers_kernel(const scales_args a) {
  const lpgemm_dtype_t type = lpg_section_type(&a.packed.desc, a.id);
  const int64_t padded = lpg_section_axis(&a.packed, a.id)->padded, total = a.packed.row_tiles * padded * 8;
  uint8_t *section = a.blob + a.packed.section[a.id].offset;
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < total; i += (int64_t)gridDim.x * 256) {
    const int64_t j = i / 8 % padded, row = i / 8 / padded * LPG_TILE_ROWS + i % 8;
    const int bytes = lpg_bytes(type);
    const uint32_t first = source_number(a, bytes, row, j), second = source_number(a, bytes, row + 8, j);
    if (max(first, second) > a.largest) *a.any_bad = 1;
    uint8_t *at = section + lpg_value_offset(type, padded, row, j);
    if (type == LPGEMM_UINT(4)) {
      *at = (uint8_t)(first | second << 4);
    } else if (bytes == 1) {
      *(uint16_t *)at = (uint16_t)(first | second << 8);
    } else if (bytes == 2) {
      *(uint32_t *)at = first | second << 16;
    } else {
      *(uint2 *)at = make_uint2(first, second);
    }
  }
}

/* ---- what is derived: row exponents, the hash ---- */

struct seal_args {
  lpg_packed packed;
  uint8_t *blob;
  unsigned *scale_span;
};

__device__ inline int min_of_8(int x) {
  for (int offset = 4; offset; offset /= 2) x = min(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

__device__ inline int max_of_8(int x) { return -min_of_8(-x); }

/* Eight lanes share a row. */
static __global__ void __launch_bounds__(256) row_exponents_kernel(const seal_args a) {
  const int64_t row = (int64_t)blockIdx.x * 32 + threadIdx.x / 8;
  lpg_exponents found = lpg_no_exponents();
  if (row < a.packed.desc.n) found = lpg_scan_exponents(&a.packed, a.blob, row, threadIdx.x % 8, 8);
  found.low = min_of_8(found.low);
  found.high = max_of_8(found.high);
  found.bad = max_of_8(found.bad);
  if (threadIdx.x % 8 != 0 || row >= a.packed.n_padded) return;
  ((int8_t *)a.blob + a.packed.section[LPG_SECTION_ROW_EXPONENTS].offset)[row] = lpg_row_exponent_of(found);
  const uint32_t span = lpg_span_of(found);
  if (span > 0) atomicMax(a.scale_span, span);
}

/* Zeroes what lies between a section's end and the next one's start. */
struct gaps_args {
  uint64_t from[LPG_SECTIONS], to[LPG_SECTIONS];
  uint8_t *blob;
};

static __global__ void __launch_bounds__(256) clear_gaps_kernel(const gaps_args a) {
  const uint64_t at = a.from[blockIdx.x] + threadIdx.x;
  if (at < a.to[blockIdx.x]) a.blob[at] = 0;
}

struct hash_args {
  const uint8_t *data;
  uint64_t first_byte, bytes; /* of the payload; multiples of 16 */
  unsigned long long *sums;
};

static __global__ void __launch_bounds__(256) hash_kernel(const hash_args a) {
  const uint4 *v = (const uint4 *)(a.data + a.first_byte);
  unsigned long long sum = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < a.bytes / 16; i += (uint64_t)gridDim.x * 256) {
    sum += hash_vector(v[i], a.first_byte / 8 + 2 * i);
  }
  add_hash(a.sums, sum);
}

/* ---- on the host ---- */

static lpgemm_status_t read_report(const report *on_device, report *found, cudaStream_t stream) {
  LPG_CUDA(cudaMemcpyAsync(found, on_device, sizeof *found, cudaMemcpyDeviceToHost, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

template <int Bits>
static lpgemm_status_t put_codes(const lpg_packed *packed, const codes_args &args, int64_t first_row, int64_t rows,
                                 cudaStream_t stream) {
  codes_args part = args;
  constexpr int64_t most = 65535 * LPG_TILE_ROWS; /* rows a launch */
  for (int64_t done = 0; done < rows; done += most) {
    const int64_t now = rows - done < most ? rows - done : most;
    part.n = now;
    part.first_byte = lpg_tile_offset(Bits, args.k_tiles, (first_row + done) / LPG_TILE_ROWS, 0);
    part.codes = args.codes + part.first_byte;
    part.source = args.source + (args.in_bits ? done * args.ld * Bits / 8 : done * args.ld); /* 16 rows: whole bytes */
    LPG_TRY(launch((const void *)pack_codes_kernel<Bits>,
                   dim3((unsigned)lpg_ceil_div(packed->k_padded, chunk_k * chunks_a_block),
                        (unsigned)lpg_ceil_div(now, LPG_TILE_ROWS)),
                   256, 0, stream, part));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t pack_numbers(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *blob,
                                    report *on_device, cudaStream_t stream) {
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    if (packed->section[i].bytes == 0) continue;
    const scales_args args = {*packed,
                              id,
                              lpgemm_i_source_array(source, id),
                              source->order == LPGEMM_COLUMN_MAJOR,
                              blob,
                              lpg_largest_number(packed, id),
                              &on_device->any_bad};
    const int64_t pairs = packed->row_tiles * lpg_section_axis(packed, id)->padded * 8;
    LPG_TRY(launch((const void *)pack_numbers_kernel, dim3(blocks_for(pairs, 256)), 256, 0, stream, args));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t clear_gaps(const lpg_packed *packed, uint8_t *blob, cudaStream_t stream) {
  gaps_args args = {};
  args.blob = blob;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    const uint64_t end = packed->section[i].offset + packed->section[i].bytes;
    args.from[i] = end;
    args.to[i] = (end + LPG_SECTION_ALIGN - 1) / LPG_SECTION_ALIGN * LPG_SECTION_ALIGN;
  }
  return launch((const void *)clear_gaps_kernel, dim3(LPG_SECTIONS), 256, 0, stream, args);
}

static lpgemm_status_t start_report(report *on_device, cudaStream_t stream) {
  LPG_CUDA(cudaMemsetAsync(on_device, 0, sizeof *on_device, stream));
  return LPGEMM_SUCCESS;
}

/* Row exponents, gaps and the rest of the hash; waits for everything and reads the report. hashed: bytes of the payload
 * that are in the partial sums already. */
static lpgemm_status_t derive(const lpg_packed *packed, uint8_t *blob, report *on_device, uint64_t hashed,
                              report *found, cudaStream_t stream) {
  if (packed->section[LPG_SECTION_ROW_EXPONENTS].bytes > 0) {
    const seal_args args = {*packed, blob, &on_device->scale_span};
    LPG_TRY(launch((const void *)row_exponents_kernel, dim3((unsigned)lpg_ceil_div(packed->n_padded, 32)), 256, 0,
                   stream, args));
  }
  LPG_TRY(clear_gaps(packed, blob, stream));
  const uint64_t payload = packed->total_bytes - LPG_HEADER_BYTES;
  if (payload > hashed) {
    const hash_args args = {blob + LPG_HEADER_BYTES, hashed, payload - hashed, on_device->hash};
    LPG_TRY(
        launch((const void *)hash_kernel, dim3(blocks_for((int64_t)(args.bytes / 16), 1024)), 256, 0, stream, args));
  }
  return read_report(on_device, found, stream);
}

static lpgemm_status_t put_header(const lpg_packed *packed, const report &found, uint8_t *blob, lpg_content *content,
                                  cudaStream_t stream) {
  content->scale_span = found.scale_span;
  content->payload_hash = 0;
  for (int i = 0; i < hash_sums; i++) content->payload_hash += found.hash[i];
  uint8_t header[LPG_HEADER_BYTES];
  lpgemm_i_write_header(packed, content, header);
  LPG_CUDA(cudaMemcpyAsync(blob, header, sizeof header, cudaMemcpyHostToDevice, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

/* ---- refusing ---- */

/* Looks for the first code and the first number of each part that are too large. */
static lpgemm_status_t find_bad(const lpg_packed *packed, const lpgemm_weight_source_t *source, report *on_device,
                                cudaStream_t stream) {
  const lpgemm_weight_desc_t &d = packed->desc;
  LPG_CUDA(cudaMemsetAsync(&on_device->first_bad, 0xff, sizeof on_device->first_bad, stream)); /* `none` everywhere */
  if (source->code_layout == LPGEMM_CODES_BYTES && packed->bits < 8) {
    LPG_TRY(check_array({(const uint8_t *)source->codes, d.n, d.k, source->codes_ld, 0, 1, (1u << packed->bits) - 1u,
                         &on_device->first_bad.code},
                        stream));
  }
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    const uint32_t largest = lpg_largest_number(packed, id);
    if (packed->section[i].bytes == 0 || largest == UINT32_MAX) continue;
    LPG_TRY(check_array({(const uint8_t *)lpgemm_i_source_array(source, id), 1,
                         d.n * lpg_section_axis(packed, id)->count, 0, source->order == LPGEMM_COLUMN_MAJOR ? d.n : 0,
                         lpg_bytes(lpg_section_type(&d, id)), largest, &on_device->first_bad.number[i]},
                        stream));
  }
  return LPGEMM_SUCCESS;
}

/* The refusal of a source in which something is too large: codes come before numbers, as on the host. */
static lpgemm_status_t refuse_bad(const lpg_packed *packed, const lpgemm_weight_source_t *source, report *on_device,
                                  cudaStream_t stream) {
  report found;
  LPG_TRY(find_bad(packed, source, on_device, stream));
  LPG_TRY(read_report(on_device, &found, stream));
  if (found.first_bad.code != none) {
    uint8_t code = 0;
    LPG_CUDA(cudaMemcpy(&code, (const uint8_t *)source->codes + found.first_bad.code, 1, cudaMemcpyDefault));
    return lpgemm_i_refuse_code(packed, code, (int64_t)(found.first_bad.code / (uint64_t)source->codes_ld),
                                (int64_t)(found.first_bad.code % (uint64_t)source->codes_ld));
  }
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const uint64_t at = found.first_bad.number[i];
    if (at == none) continue;
    const lpg_section_id id = (lpg_section_id)i;
    const int bytes = lpg_bytes(lpg_section_type(&packed->desc, id));
    const uint64_t count = (uint64_t)lpg_section_axis(packed, id)->count, n = (uint64_t)packed->desc.n;
    const uint64_t row = at / count, group = at % count,
                   index = source->order == LPGEMM_COLUMN_MAJOR ? group * n + row : at;
    uint16_t number = 0;
    LPG_CUDA(cudaMemcpy(&number, (const uint8_t *)lpgemm_i_source_array(source, id) + index * (uint64_t)bytes,
                        (size_t)bytes, cudaMemcpyDefault));
    return lpgemm_i_refuse_number(packed, id, number, (int64_t)row, (int64_t)group);
  }
  LPG_CHECK(0, LPGEMM_INVALID_CODE,
            "source held a code or number that is too large, and no longer does; it must not change meanwhile");
}

/* ---- the whole ---- */

/* found: or NULL, where neither hash nor checks are wanted. */
static lpgemm_status_t put_all_codes(const lpg_packed *packed, const uint8_t *codes, int64_t ld, int in_bits,
                                     int64_t first_row, int64_t rows, uint8_t *blob, report *found,
                                     cudaStream_t stream) {
  const codes_args args = {codes,
                           ld,
                           in_bits,
                           rows,
                           packed->desc.k,
                           packed->k_tiles,
                           lpg_stored_flip(packed->desc.type),
                           blob + packed->section[LPG_SECTION_CODES].offset,
                           0,
                           found};
  if (rows == 0 || packed->desc.k == 0) return LPGEMM_SUCCESS;
  switch (packed->bits) {
    case 1: return put_codes<1>(packed, args, first_row, rows, stream);
    case 2: return put_codes<2>(packed, args, first_row, rows, stream);
    case 3: return put_codes<3>(packed, args, first_row, rows, stream);
    case 4: return put_codes<4>(packed, args, first_row, rows, stream);
    case 5: return put_codes<5>(packed, args, first_row, rows, stream);
    case 6: return put_codes<6>(packed, args, first_row, rows, stream);
    case 7: return put_codes<7>(packed, args, first_row, rows, stream);
    default: return put_codes<8>(packed, args, first_row, rows, stream);
  }
}

static lpgemm_status_t pack(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *blob,
                            lpg_content *content, report *on_device, cudaStream_t stream) {
  LPG_TRY(start_report(on_device, stream));
  const uint8_t *codes = (const uint8_t *)source->codes;
  const int in_bits = source->code_layout == LPGEMM_CODES_BITS;
  LPG_TRY(put_all_codes(packed, codes, source->codes_ld, in_bits, 0, packed->desc.n, blob, on_device, stream));
  LPG_TRY(pack_numbers(packed, source, blob, on_device, stream));
  report found;
  LPG_TRY(derive(packed, blob, on_device, packed->section[LPG_SECTION_CODES].bytes, &found, stream));
  if (!found.any_bad) return put_header(packed, found, blob, content, stream);
  LPG_CUDA(cudaMemsetAsync(blob, 0, LPG_HEADER_BYTES, stream)); /* an older blob's would stand before garbage */
  return refuse_bad(packed, source, on_device, stream);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_put_codes(const lpg_packed *packed, const uint8_t *codes, int64_t ld, int64_t first_row,
                                        int64_t rows, uint8_t *blob, cudaStream_t stream) {
  return lpg::put_all_codes(packed, codes, ld, 0, first_row, rows, blob, NULL, stream);
}

lpgemm_status_t lpgemm_i_cuda_pack(const lpg_packed *packed, const lpgemm_weight_source_t *source, uint8_t *blob,
                                   lpg_content *content, void *scratch, cudaStream_t stream) {
  static_assert(sizeof(lpg::report) <= LPG_HANDLE_SCRATCH, "the report must fit");
  return lpg::pack(packed, source, blob, content, (lpg::report *)scratch, stream);
}

lpgemm_status_t lpgemm_i_cuda_seal(const lpg_packed *packed, uint8_t *blob, lpg_content *content, void *scratch,
                                   cudaStream_t stream) {
  lpg::report *on_device = (lpg::report *)scratch;
  lpg::report found;
  LPG_TRY(lpg::start_report(on_device, stream));
  LPG_TRY(lpg::derive(packed, blob, on_device, 0, &found, stream));
  return lpg::put_header(packed, found, blob, content, stream);
}
