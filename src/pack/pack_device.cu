/* Packing on the GPU: the bytes of pack.c, from device memory to device memory, without scratch. */
#include "../cuda/cuda.h"
#include "../layouts/unit.h"
#include "pack.h"
#include "sections.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- checking codes: nothing is written before all of them are known to fit ---- */

/* Where the first bad element lies, as its index in the row-major array; `none` if there is none. */
static constexpr unsigned long long none = ~0ull;

struct check_args {
  const uint8_t *data;
  int64_t rows, columns, ld; /* in elements */
  int64_t column_rows;       /* the one row is a column-major matrix of so many rows; 0 = it is not */
  int element_bytes;
  uint32_t largest;
  unsigned long long *first_bad;
};

__device__ inline uint32_t element(const check_args &a, int64_t at) {
  return a.element_bytes == 2 ? ((const uint16_t *)a.data)[at] : a.data[at];
}

__device__ inline void check_span(const check_args &a, int64_t from, int64_t to) {
  for (int64_t at = from; at < to; at++) {
    if (element(a, at) <= a.largest) continue;
    const int64_t n = a.column_rows;
    atomicMin(a.first_bad, (unsigned long long)(n ? at % n * (a.columns / n) + at / n : at));
    if (!n) return; /* in order, so that no smaller one follows */
  }
}

/* One warp a row and grid stride; 16 bytes a lane where the row is aligned. Bytes are compared through their high bits:
 * largest is 2^b - 1, so a byte is too large exactly if it has a bit above b. */
static __global__ void __launch_bounds__(256) check_kernel(const check_args a) {
  const int lane = threadIdx.x % 32;
  const bool masks = a.element_bytes == 1 && (a.largest & (a.largest + 1)) == 0;
  const uint32_t high = ~(a.largest * 0x01010101u);
  constexpr int64_t piece = 16384; /* columns that a warp takes at once */
  const int64_t pieces = lpg_ceil_div(a.columns, piece), total = a.rows * pieces;
  for (int64_t i = (int64_t)blockIdx.x * 8 + threadIdx.x / 32; i < total; i += (int64_t)gridDim.x * 8) {
    const int64_t row = i / pieces, c0 = i % pieces * piece;
    const int64_t from = row * a.ld + c0, to = row * a.ld + min(a.columns, c0 + piece);
    const bool vectors = masks && ((uintptr_t)a.data + (uintptr_t)from) % 16 == 0;
    const int64_t whole = vectors ? (to - from) / 16 : 0;
    const uint4 *v = (const uint4 *)(a.data + (vectors ? from : 0));
    uint32_t bad = 0;
#pragma unroll 4
    for (int64_t j = lane; j < whole; j += 32) {
      const uint4 w = __ldcs(v + j);
      bad |= (w.x | w.y | w.z | w.w) & high;
    }
    if (bad) check_span(a, from, to);
    for (int64_t at = from + whole * 16 + lane; at < to; at += 32) check_span(a, at, at + 1);
  }
}

/* ---- codes ---- */

struct codes_args {
  const uint8_t *source;
  int64_t ld;
  int in_bits; /* a dense stream, not bytes */
  int64_t n, k, k_tiles;
  uint32_t flip;
  uint8_t *codes;
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

static constexpr int chunk_k = 256,
                     row_bytes = chunk_k + 4; /* every tile_k divides 256; padded against bank conflicts */

/* 16 rows of 256 stored codes into shared memory, 16 bytes a thread. */
template <int Bits>
__device__ inline void stage_codes(const codes_args &a, int64_t row0, int64_t k0, uint8_t *staged) {
  const int r = threadIdx.x / 16, c = threadIdx.x % 16 * 16;
  const int64_t row = row0 + r, k = k0 + c;
  const uint8_t *from = a.source + row * a.ld + k;
  uint32_t *to = (uint32_t *)(staged + r * row_bytes + c);
  if (!a.in_bits && row < a.n && k + 16 <= a.k && (uintptr_t)from % 16 == 0) {
    const uint4 v = __ldcs((const uint4 *)from);
    const uint32_t flips = a.flip * 0x01010101u;
    to[0] = v.x ^ flips;
    to[1] = v.y ^ flips;
    to[2] = v.z ^ flips;
    to[3] = v.w ^ flips;
    return;
  }
  for (int i = 0; i < 4; i++) {
    uint32_t four = 0;
    for (int j = 0; j < 4; j++) four |= stored_code<Bits>(a, row, k + 4 * i + j) << 8 * j;
    to[i] = four;
  }
}

/* The words of one unit of a lane's row, from staged codes. */
template <int Bits>
__device__ inline void build_unit(const uint8_t *row, int k, uint32_t (&word)[lpg_unit_words(Bits)]) {
#pragma unroll
  for (int i = 0; i < lpg_unit_words(Bits); i++) word[i] = 0;
#pragma unroll
  for (int pair = 0; pair < lpg_unit_codes(Bits) / 2; pair++) {
    const uint32_t two = *(const uint16_t *)(row + k + pair / 2 * LPG_STEP_K + pair % 2 * 8);
    lpg_unit_put_pair(Bits, word, 1, pair, (two & 0xffu) | two >> 8 << 16);
  }
}

/* A block packs 16 rows by 256 columns: stage the codes, build the words in shared memory, store them in order. */
template <int Bits>
__global__ void __launch_bounds__(256) pack_codes_kernel(const codes_args a) {
  constexpr int tile_k = lpg_tile_k(Bits), words = lpg_unit_words(Bits), unit_k = 4 * lpg_unit_codes(Bits);
  constexpr int tiles = chunk_k / tile_k, units_a_tile = tile_k / unit_k;
  __shared__ alignas(16) uint8_t staged[LPG_TILE_ROWS * row_bytes];
  __shared__ alignas(16) uint32_t packed[LPG_TILE_ROWS * chunk_k * Bits / 32];
  const int64_t row_tile = blockIdx.y, k0 = (int64_t)blockIdx.x * chunk_k;
  stage_codes<Bits>(a, row_tile * LPG_TILE_ROWS, k0, staged);
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * units_a_tile * tiles; i += 256) {
    const int row_half = i % 2, lane = i / 2 % 32, unit = i / 64 % units_a_tile, tile = i / 64 / units_a_tile;
    uint32_t word[words];
    build_unit<Bits>(staged + (lane / 4 + 8 * row_half) * row_bytes, tile * tile_k + unit * unit_k + lane % 4 * 2,
                     word);
#pragma unroll
    for (int w = 0; w < words; w++) {
      packed[(tile * lpg_tile_bytes(Bits) + lpg_word_offset(lane, 2 * (unit * words + w) + row_half)) / 4] = word[w];
    }
  }
  __syncthreads();
  const int64_t first_tile = k0 / tile_k, last = min((int64_t)tiles, a.k_tiles - first_tile);
  uint4 *to = (uint4 *)(a.codes + lpg_tile_offset(Bits, a.k_tiles, row_tile, first_tile));
  for (int i = threadIdx.x; i < last * lpg_tile_bytes(Bits) / 16; i += 256) __stcs(to + i, ((const uint4 *)packed)[i]);
}

/* ---- numbers: scales, zeros and the like ---- */

struct numbers_args {
  lpg_plan plan;
  lpg_section_id id;
  const void *source;
  int column_major;
  uint8_t *blob;
};

__device__ inline uint32_t source_number(const numbers_args &a, int bytes, int64_t row, int64_t j) {
  const int64_t count = lpg_section_axis(&a.plan, a.id)->count;
  if (row >= a.plan.desc.n || j >= count) return 0;
  const int64_t i = a.column_major ? j * a.plan.desc.n + row : row * count + j;
  return bytes == 1   ? ((const uint8_t *)a.source)[i]
         : bytes == 2 ? ((const uint16_t *)a.source)[i]
                      : ((const uint32_t *)a.source)[i];
}

/* A thread writes rows g and g + 8 of a tile for one group, which UINT(4) keeps in one byte. */
static __global__ void __launch_bounds__(256) pack_numbers_kernel(const numbers_args a) {
  const lpgemm_dtype_t type = lpg_section_type(&a.plan.desc, a.id);
  const int64_t padded = lpg_section_axis(&a.plan, a.id)->padded, total = a.plan.row_tiles * padded * 8;
  uint8_t *section = a.blob + a.plan.section[a.id].offset;
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < total; i += (int64_t)gridDim.x * 256) {
    const int64_t j = i / 8 % padded, row = i / 8 / padded * LPG_TILE_ROWS + i % 8;
    const int bytes = lpg_bytes(type);
    const uint32_t first = source_number(a, bytes, row, j), second = source_number(a, bytes, row + 8, j);
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
  lpg_plan plan;
  uint8_t *blob;
  unsigned *scale_span;
};

static __global__ void __launch_bounds__(256) row_exponents_kernel(const seal_args a) {
  const int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
  if (row >= a.plan.n_padded) return;
  uint32_t span = 0;
  int8_t exponent = 0;
  if (row < a.plan.desc.n) exponent = lpg_row_exponent(&a.plan, a.blob, row, &span);
  ((int8_t *)a.blob + a.plan.section[LPG_SECTION_ROW_EXPONENTS].offset)[row] = exponent;
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
  uint64_t words;
  unsigned long long *sum;
};

static __global__ void __launch_bounds__(256) hash_kernel(const hash_args a) {
  const ulonglong2 *v = (const ulonglong2 *)a.data; /* the payload is a multiple of 256 bytes */
  unsigned long long sum = 0;
#pragma unroll 4
  for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < a.words / 2; i += (uint64_t)gridDim.x * 256) {
    const ulonglong2 two = v[i];
    sum += lpg_hash_word(two.x, 2 * i) + lpg_hash_word(two.y, 2 * i + 1);
  }
  for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(a.sum, sum); /* integers: the order does not matter */
}

/* ---- on the host ---- */

static constexpr unsigned many_blocks = 132 * 16;

static unsigned blocks_for(int64_t items, int64_t items_a_block) {
  const int64_t blocks = lpg_ceil_div(items, items_a_block);
  return (unsigned)(blocks < 1 ? 1 : blocks > many_blocks ? many_blocks : blocks);
}

/* What the kernels report back, in device memory. */
struct report {
  unsigned long long first_bad_code, first_bad_number[LPG_SECTIONS], hash;
  unsigned scale_span;
};

static lpgemm_status_t check_array(const check_args &args, cudaStream_t stream) {
  if (args.rows == 0 || args.columns == 0) return LPGEMM_SUCCESS;
  return launch((const void *)check_kernel, dim3(blocks_for(args.rows * lpg_ceil_div(args.columns, 16384), 8)), 256, 0,
                stream, args);
}

static lpgemm_status_t check_values(const lpg_plan *plan, const lpgemm_weight_source_t *source, report *on_device,
                                    cudaStream_t stream) {
  const lpgemm_weight_desc_t &d = plan->desc;
  if (source->code_layout == LPGEMM_CODES_BYTES && plan->bits < 8) {
    LPG_TRY(check_array({(const uint8_t *)source->codes, d.n, d.k, source->codes_ld, 0, 1, (1u << plan->bits) - 1u,
                         &on_device->first_bad_code},
                        stream));
  }
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    const uint32_t largest = lpg_largest_number(plan, id);
    if (plan->section[i].bytes == 0 || largest == UINT32_MAX) continue;
    LPG_TRY(check_array({(const uint8_t *)lpgemm_i_source_array(source, id), 1, d.n * lpg_section_axis(plan, id)->count,
                         0, source->order == LPGEMM_COLUMN_MAJOR ? d.n : 0, lpg_bytes(lpg_section_type(&d, id)),
                         largest, &on_device->first_bad_number[i]},
                        stream));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t refuse_bad(const lpg_plan *plan, const lpgemm_weight_source_t *source, const report &found) {
  if (found.first_bad_code != none) {
    uint8_t code = 0;
    LPG_CUDA(cudaMemcpy(&code, (const uint8_t *)source->codes + found.first_bad_code, 1, cudaMemcpyDefault));
    return lpgemm_i_refuse_code(plan, code, (int64_t)(found.first_bad_code / (uint64_t)source->codes_ld),
                                (int64_t)(found.first_bad_code % (uint64_t)source->codes_ld));
  }
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const uint64_t at = found.first_bad_number[i];
    if (at == none) continue;
    const lpg_section_id id = (lpg_section_id)i;
    const int bytes = lpg_bytes(lpg_section_type(&plan->desc, id));
    const uint64_t count = (uint64_t)lpg_section_axis(plan, id)->count, n = (uint64_t)plan->desc.n;
    const uint64_t row = at / count, group = at % count,
                   index = source->order == LPGEMM_COLUMN_MAJOR ? group * n + row : at;
    uint16_t number = 0;
    LPG_CUDA(cudaMemcpy(&number, (const uint8_t *)lpgemm_i_source_array(source, id) + index * (uint64_t)bytes,
                        (size_t)bytes, cudaMemcpyDefault));
    return lpgemm_i_refuse_number(plan, id, number, (int64_t)row, (int64_t)group);
  }
  return LPGEMM_SUCCESS;
}

template <int Bits>
static lpgemm_status_t put_codes(const lpg_plan *plan, const codes_args &args, int64_t first_row, int64_t rows,
                                 cudaStream_t stream) {
  codes_args part = args;
  constexpr int64_t most = 65535 * LPG_TILE_ROWS; /* rows a launch */
  for (int64_t done = 0; done < rows; done += most) {
    const int64_t now = rows - done < most ? rows - done : most;
    part.n = now;
    part.codes = args.codes + lpg_tile_offset(Bits, args.k_tiles, (first_row + done) / LPG_TILE_ROWS, 0);
    part.source = args.source + (args.in_bits ? done * args.ld * Bits / 8 : done * args.ld); /* 16 rows: whole bytes */
    LPG_TRY(launch((const void *)pack_codes_kernel<Bits>,
                   dim3((unsigned)lpg_ceil_div(plan->k_padded, chunk_k), (unsigned)lpg_ceil_div(now, LPG_TILE_ROWS)),
                   256, 0, stream, part));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t pack_numbers(const lpg_plan *plan, const lpgemm_weight_source_t *source, uint8_t *blob,
                                    cudaStream_t stream) {
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    if (plan->section[i].bytes == 0) continue;
    const numbers_args args = {*plan, id, lpgemm_i_source_array(source, id), source->order == LPGEMM_COLUMN_MAJOR,
                               blob};
    const int64_t pairs = plan->row_tiles * lpg_section_axis(plan, id)->padded * 8;
    LPG_TRY(launch((const void *)pack_numbers_kernel, dim3(blocks_for(pairs, 256)), 256, 0, stream, args));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t clear_gaps(const lpg_plan *plan, uint8_t *blob, cudaStream_t stream) {
  gaps_args args = {};
  args.blob = blob;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    const uint64_t end = plan->section[i].offset + plan->section[i].bytes;
    args.from[i] = end;
    args.to[i] = (end + LPG_SECTION_ALIGN - 1) / LPG_SECTION_ALIGN * LPG_SECTION_ALIGN;
  }
  return launch((const void *)clear_gaps_kernel, dim3(LPG_SECTIONS), 256, 0, stream, args);
}

static lpgemm_status_t start_report(report *on_device, cudaStream_t stream) {
  report nothing;
  memset(&nothing, 0xff, sizeof nothing); /* `none` everywhere */
  nothing.hash = 0;
  nothing.scale_span = 0;
  LPG_CUDA(cudaMemcpyAsync(on_device, &nothing, sizeof nothing, cudaMemcpyHostToDevice, stream));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t read_report(const report *on_device, report *found, cudaStream_t stream) {
  LPG_CUDA(cudaMemcpyAsync(found, on_device, sizeof *found, cudaMemcpyDeviceToHost, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t seal(const lpg_plan *plan, uint8_t *blob, report *on_device, lpg_content *content,
                            cudaStream_t stream) {
  if (plan->section[LPG_SECTION_ROW_EXPONENTS].bytes > 0) {
    const seal_args args = {*plan, blob, &on_device->scale_span};
    LPG_TRY(launch((const void *)row_exponents_kernel, dim3((unsigned)lpg_ceil_div(plan->n_padded, 256)), 256, 0,
                   stream, args));
  }
  LPG_TRY(clear_gaps(plan, blob, stream));
  const hash_args hash = {blob + LPG_HEADER_BYTES, (plan->total_bytes - LPG_HEADER_BYTES) / 8, &on_device->hash};
  if (hash.words > 0) {
    LPG_TRY(launch((const void *)hash_kernel, dim3(blocks_for((int64_t)hash.words / 2, 1024)), 256, 0, stream, hash));
  }
  report found;
  LPG_TRY(read_report(on_device, &found, stream));
  content->scale_span = found.scale_span;
  content->payload_hash = found.hash;
  uint8_t header[LPG_HEADER_BYTES];
  lpgemm_i_write_header(plan, content, header);
  LPG_CUDA(cudaMemcpyAsync(blob, header, sizeof header, cudaMemcpyHostToDevice, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t pack(const lpg_plan *plan, const lpgemm_weight_source_t *source, uint8_t *blob,
                            lpg_content *content, report *on_device, cudaStream_t stream) {
  report found;
  LPG_TRY(start_report(on_device, stream));
  LPG_TRY(check_values(plan, source, on_device, stream));
  LPG_TRY(read_report(on_device, &found, stream));
  LPG_TRY(refuse_bad(plan, source, found));
  LPG_TRY(lpgemm_i_cuda_put_codes(plan, (const uint8_t *)source->codes, source->codes_ld,
                                  source->code_layout == LPGEMM_CODES_BITS, 0, plan->desc.n, blob, stream));
  LPG_TRY(pack_numbers(plan, source, blob, stream));
  return seal(plan, blob, on_device, content, stream);
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_put_codes(const lpg_plan *plan, const uint8_t *codes, int64_t ld, int in_bits,
                                        int64_t first_row, int64_t rows, uint8_t *blob, cudaStream_t stream) {
  const lpg::codes_args args = {codes,
                                ld,
                                in_bits,
                                rows,
                                plan->desc.k,
                                plan->k_tiles,
                                lpg_stored_flip(plan->desc.type),
                                blob + plan->section[LPG_SECTION_CODES].offset};
  if (rows == 0 || plan->desc.k == 0) return LPGEMM_SUCCESS;
  switch (plan->bits) {
    case 1: return lpg::put_codes<1>(plan, args, first_row, rows, stream);
    case 2: return lpg::put_codes<2>(plan, args, first_row, rows, stream);
    case 3: return lpg::put_codes<3>(plan, args, first_row, rows, stream);
    case 4: return lpg::put_codes<4>(plan, args, first_row, rows, stream);
    case 5: return lpg::put_codes<5>(plan, args, first_row, rows, stream);
    case 6: return lpg::put_codes<6>(plan, args, first_row, rows, stream);
    case 7: return lpg::put_codes<7>(plan, args, first_row, rows, stream);
    default: return lpg::put_codes<8>(plan, args, first_row, rows, stream);
  }
}

lpgemm_status_t lpgemm_i_cuda_pack(const lpg_plan *plan, const lpgemm_weight_source_t *source, uint8_t *blob,
                                   lpg_content *content, cudaStream_t stream) {
  lpg::report *on_device;
  LPG_CUDA(cudaMalloc((void **)&on_device, sizeof *on_device));
  const lpgemm_status_t status = lpg::pack(plan, source, blob, content, on_device, stream);
  cudaFree(on_device);
  return status;
}

lpgemm_status_t lpgemm_i_cuda_seal(const lpg_plan *plan, uint8_t *blob, lpg_content *content, cudaStream_t stream) {
  lpg::report *on_device;
  LPG_CUDA(cudaMalloc((void **)&on_device, sizeof *on_device));
  lpgemm_status_t status = lpg::start_report(on_device, stream);
  if (status == LPGEMM_SUCCESS) status = lpg::seal(plan, blob, on_device, content, stream);
  cudaFree(on_device);
  return status;
}
