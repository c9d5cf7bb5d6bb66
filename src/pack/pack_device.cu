/* Packing on the GPU: the bytes of pack.c, from device memory to device memory, without scratch but for an order of
 * rows. Codes and numbers that are too large are noticed on the way and make garbage of rows that do not count; which
 * one came first is looked for only then. */
#include "check_device.cuh"
#include "pack_rows.cuh"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* ---- codes ---- */

struct byte_codes {
  static constexpr bool copies = true, rows_first = false, has_numbers = false, has_wide = false;
  static constexpr int grid_entries = 0;
  template <int Bits>
  static __device__ bool is_wide(const lpg_at &at) {
    return false;
  }
  template <int Bits, bool IsWide>
  static __device__ lpg_codes16 codes(const lpg_at &at, int64_t n, int64_t k) {
    return lpg_at_bytes_codes(&at, Bits, n, k);
  }
  template <int Bits>
  static __device__ uint32_t code(const lpg_at &at, int64_t n, int64_t k) {
    return lpg_at_bytes_code(&at, Bits, n, k);
  }
};

struct stream_codes {
  static constexpr bool copies = false, rows_first = false, has_numbers = false, has_wide = true;
  static constexpr int grid_entries = 0;
  template <int Bits>
  static __device__ bool is_wide(const lpg_at &at) {
    return lpg_is_stream_wide(&at, Bits);
  }
  template <int Bits, bool IsWide>
  static __device__ lpg_codes16 codes(const lpg_at &at, int64_t n, int64_t k) {
    return IsWide ? lpg_wide_stream_codes(&at, Bits, n, k) : lpg_at_stream_codes(&at, Bits, n, k);
  }
  template <int Bits>
  static __device__ uint32_t code(const lpg_at &at, int64_t n, int64_t k) {
    return lpg_at_stream_code(&at, Bits, n, k);
  }
};

template <class Reader>
static const void *kernel_of(int bits) {
  switch (bits) {
    case 1: return (const void *)pack_rows_kernel<Reader, 1>;
    case 2: return (const void *)pack_rows_kernel<Reader, 2>;
    case 3: return (const void *)pack_rows_kernel<Reader, 3>;
    case 4: return (const void *)pack_rows_kernel<Reader, 4>;
    case 5: return (const void *)pack_rows_kernel<Reader, 5>;
    case 6: return (const void *)pack_rows_kernel<Reader, 6>;
    case 7: return (const void *)pack_rows_kernel<Reader, 7>;
    default: return (const void *)pack_rows_kernel<Reader, 8>;
  }
}

/* ---- numbers: scales, zeros and the like ---- */

struct numbers_args {
  lpg_array_at from;
  lpg_numbers_to to;
  const int32_t *row_order;
  int64_t rows, first_tile, tiles; /* tiles: of the section */
  int64_t group_n;                 /* rows that share them; 0: none do */
  int *any_bad;
};

__device__ inline uint32_t source_number(const numbers_args &a, int64_t row, int64_t group) {
  if (row >= a.rows || group >= a.to.count) return 0;
  return lpg_array_number(&a.from, a.row_order ? a.row_order[row] : row, group);
}

/* A thread writes rows g and g + 8 of a tile for one group. Neighbours write neighbouring pairs. */
static __global__ void __launch_bounds__(256) pack_numbers_kernel(const numbers_args a) {
  const int64_t padded = a.to.padded, total = a.tiles * padded * 8;
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < total; i += (int64_t)gridDim.x * 256) {
    const int64_t group = i / 8 % padded, tile = i / 8 / padded;
    const int64_t row = a.group_n ? tile * a.group_n : tile * LPG_TILE_ROWS + i % 8;
    const uint32_t first = source_number(a, row, group);
    const uint32_t second = a.group_n ? first : source_number(a, row + 8, group);
    if (max(first, second) > a.to.largest) *a.any_bad = 1;
    const uint32_t number[1][2] = {{first, second}};
    put_numbers<1, 0>(a.to, a.first_tile + tile, (unsigned)(i % 8), group, 1, number);
  }
}

struct row_scales_args {
  const uint32_t *from; /* or NULL: one for all */
  const int32_t *row_order;
  uint32_t one;
  int64_t rows;
  uint32_t *to;
};

/* And 0 for padding rows. */
static __global__ void __launch_bounds__(256) row_scales_kernel(const row_scales_args a) {
  const int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
  if (row >= lpg_round_up(a.rows, LPG_TILE_ROWS)) return;
  uint32_t scale = 0;
  if (row < a.rows) scale = a.from ? a.from[a.row_order ? a.row_order[row] : row] : a.one;
  a.to[row] = scale;
}

/* ---- what is derived: the hash; exponents_device.cu has row exponents ---- */

/* Zeroes the header, since an older blob's would stand before garbage, and what lies between a section's end and
 * the next one's start: less than 512 bytes each. */
struct gaps_args {
  uint64_t from[LPG_SECTIONS + 1], to[LPG_SECTIONS + 1];
  uint8_t *blob;
};

static __global__ void __launch_bounds__(LPG_HEADER_BYTES) clear_gaps_kernel(const gaps_args a) {
  const uint64_t at = a.from[blockIdx.x] + threadIdx.x;
  if (at < a.to[blockIdx.x]) a.blob[at] = 0;
}

/* A header comes with the launch: that is sooner there than a copy. */
struct header_args {
  uint4 header[LPG_HEADER_BYTES / 16];
  uint4 *blob;
};

static __global__ void __launch_bounds__(LPG_HEADER_BYTES / 16) header_kernel(const __grid_constant__ header_args a) {
  a.blob[threadIdx.x] = a.header[threadIdx.x];
}

struct hash_args {
  const uint8_t *payload;
  uint64_t first_byte, bytes; /* of the payload; multiples of 16 */
  unsigned long long *sums;
};

static __global__ void __launch_bounds__(256) hash_kernel(const hash_args a) {
  const uint4 *v = (const uint4 *)(a.payload + a.first_byte);
  unsigned long long sum = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < a.bytes / 16; i += (uint64_t)gridDim.x * 256) {
    sum += hash_vector(v[i], lpg_hash_key(a.first_byte / 8 + 2 * i));
  }
  add_hash(a.sums, sum);
}

/* ---- on the host ---- */

static lpgemm_status_t read_report(const lpg_pack_report *on_device, lpg_pack_report *found, cudaStream_t stream) {
  LPG_CUDA(cudaMemcpyAsync(found, on_device, sizeof *found, cudaMemcpyDeviceToHost, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

static void add_sums(const lpg_pack_report &found, lpg_content *content) {
  for (int i = 0; i < LPG_HASH_SUMS; i++) content->payload_hash += found.hash[i];
}

static lpg_array_at array_at(const lpg_packed *packed, const lpg_source *source, lpg_section_id id) {
  const int64_t ld = lpg_source_ld(source, id), rows_a_line = packed->desc.group_n ? packed->desc.group_n : 1;
  const int is_row_major = source->arrays.order == LPGEMM_ROW_MAJOR;
  lpg_array_at at = {};
  at.data = (const uint8_t *)lpgemm_i_source_array(&source->arrays, id);
  at.rows_a_line = rows_a_line;
  at.line = is_row_major ? ld : 1;
  at.group = is_row_major ? 1 : ld;
  at.bytes = lpg_bytes(lpg_section_type(&packed->desc, id));
  return at;
}

static lpgemm_status_t pack_numbers(const lpg_packed *packed, const lpg_source *source, const lpg_rows_args &rows,
                                    cudaStream_t stream) {
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    if (!rows.numbers[i].section || rows.rows == 0) continue;
    numbers_args args = {};
    args.from = array_at(packed, source, (lpg_section_id)i);
    args.to = rows.numbers[i];
    args.row_order = rows.row_order;
    args.rows = rows.rows;
    args.first_tile = rows.first_row / LPG_TILE_ROWS / packed->tiles_a_scale;
    args.tiles = lpg_ceil_div(rows.rows, LPG_TILE_ROWS * packed->tiles_a_scale);
    args.group_n = packed->desc.group_n;
    args.any_bad = &rows.found->any_bad;
    LPG_TRY(launch((const void *)pack_numbers_kernel, dim3(blocks_for(args.tiles * args.to.padded * 8, 256)), 256, 0,
                   stream, args));
  }
  return LPGEMM_SUCCESS;
}

static lpgemm_status_t hash_bytes(const lpg_packed *packed, uint64_t first, const uint8_t *blob,
                                  lpg_pack_report *report, cudaStream_t stream) {
  const uint64_t payload = packed->total_bytes - LPG_HEADER_BYTES;
  if (payload == first) return LPGEMM_SUCCESS;
  const hash_args args = {blob + LPG_HEADER_BYTES, first, payload - first, report->hash};
  return launch((const void *)hash_kernel, dim3(blocks_for((int64_t)(args.bytes / 16), 1024)), 256, 0, stream, args);
}

static lpgemm_status_t put_header(const lpg_packed *packed, const lpg_content *content, uint8_t *blob,
                                  cudaStream_t stream) {
  header_args args;
  args.blob = (uint4 *)blob;
  lpgemm_i_write_header(packed, content, (uint8_t *)args.header);
  LPG_TRY(launch((const void *)header_kernel, dim3(1), LPG_HEADER_BYTES / 16, 0, stream, args));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

/* ---- refusing ---- */

static lpgemm_status_t find_first(const find_args &args, lpg_pack_report *report, unsigned long long *at,
                                  cudaStream_t stream) {
  LPG_CUDA(cudaMemsetAsync(&report->first_bad, 0xff, sizeof report->first_bad, stream)); /* `none` */
  if (args.rows > 0 && args.columns > 0) {
    LPG_TRY(launch((const void *)find_kernel, dim3(blocks_for(args.rows * args.columns, 1024)), 256, 0, stream, args));
  }
  LPG_CUDA(cudaMemcpyAsync(at, &report->first_bad, sizeof *at, cudaMemcpyDeviceToHost, stream));
  LPG_CUDA(cudaStreamSynchronize(stream));
  return LPGEMM_SUCCESS;
}

/* Row and column of the source for the row and column, as they are packed, that were found. */
static void place_of(const lpg_source *source, const int32_t *order, int64_t at, int64_t columns, int64_t *row,
                     int64_t *column) {
  *row = lpg_source_row(source, at / columns);
  *column = order ? order[at % columns] : at % columns;
}

/* The refusal of a source in which something is too large: codes come before numbers, as on the host. */
static lpgemm_status_t refuse_bad(const lpg_packed *packed, const lpg_source *source, const lpg_rows_args &rows,
                                  cudaStream_t stream) {
  unsigned long long at;
  int64_t row, column;
  find_args find = {};
  find.at = rows.at;
  find.row_order = rows.row_order;
  find.column_order = rows.column_order;
  find.rows = rows.rows;
  find.columns = packed->desc.k;
  find.largest = (1u << packed->bits) - 1u;
  find.first_bad = &rows.found->first_bad;
  at = none;
  if (source->arrays.code_layout == LPGEMM_CODES_BYTES) LPG_TRY(find_first(find, rows.found, &at, stream));
  if (at != none) {
    uint8_t code = 0;
    place_of(source, packed->desc.columns ? source->arrays.column_order : NULL, (int64_t)at, find.columns, &row,
             &column);
    LPG_CUDA(cudaMemcpy(&code, rows.at.codes + row * source->arrays.codes_ld + column, 1, cudaMemcpyDefault));
    return lpgemm_i_refuse_code(packed, code, row, column);
  }
  find.column_order = NULL;
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    if (!rows.numbers[i].section || rows.numbers[i].largest == UINT32_MAX) continue;
    find.array = array_at(packed, source, id);
    find.columns = rows.numbers[i].count;
    find.largest = rows.numbers[i].largest;
    LPG_TRY(find_first(find, rows.found, &at, stream));
    if (at == none) continue;
    const lpg_array_at &a = find.array;
    place_of(source, NULL, (int64_t)at, find.columns, &row, &column);
    row /= a.rows_a_line;
    uint16_t number = 0;
    LPG_CUDA(
        cudaMemcpy(&number, a.data + (row * a.line + column * a.group) * a.bytes, (size_t)a.bytes, cudaMemcpyDefault));
    return lpgemm_i_refuse_number(packed, id, number, row, column);
  }
  LPG_CHECK(0, LPGEMM_INVALID_CODE,
            "source held a code or number that is too large, and no longer does; it must not change meanwhile");
}

/* ---- the whole ---- */

static void codes_of(const lpg_packed *packed, const lpg_source *source, lpg_at *at) {
  const int in_bits = source->arrays.code_layout == LPGEMM_CODES_BITS;
  at->codes = (const uint8_t *)source->arrays.codes;
  at->code_bytes = lpgemm_i_codes_bytes(packed, source);
  at->line = source->arrays.codes_ld * (in_bits ? packed->bits : 1);
}

static lpgemm_status_t pack_rows(const lpg_packed *packed, const lpg_source *source, int64_t first_row,
                                 const int32_t *row_order, uint8_t *blob, lpg_content *content, lpg_pack_report *report,
                                 cudaStream_t stream) {
  const int in_bits = source->arrays.code_layout == LPGEMM_CODES_BITS;
  lpg_rows_args args;
  int bad;
  lpgemm_i_cuda_rows_args(packed, first_row, source->rows, blob, report, &args);
  codes_of(packed, source, &args.at);
  args.row_order = row_order;
  LPG_TRY(lpgemm_i_cuda_start_report(report, stream));
  LPG_TRY(lpgemm_i_cuda_launch_rows(
      in_bits ? kernel_of<stream_codes>(packed->bits) : kernel_of<byte_codes>(packed->bits), &args, stream));
  LPG_TRY(pack_numbers(packed, source, args, stream));
  LPG_TRY(lpgemm_i_cuda_put_row_scales(packed, first_row, source->rows, (const float *)source->arrays.row_scales,
                                       row_order, 0.0f, blob, stream));
  LPG_TRY(lpgemm_i_cuda_end_rows(packed, first_row, source->rows, blob, report, content, &bad, stream));
  return bad ? refuse_bad(packed, source, args, stream) : LPGEMM_SUCCESS;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_start_report(lpg_pack_report *report, cudaStream_t stream) {
  static_assert(sizeof *report <= LPG_HANDLE_SCRATCH, "the report must fit");
  LPG_CUDA(cudaMemsetAsync(report, 0, sizeof *report, stream));
  return LPGEMM_SUCCESS;
}

void lpgemm_i_cuda_rows_args(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob,
                             lpg_pack_report *found, lpg_rows_args *args) {
  memset(args, 0, sizeof *args);
  args->at.bits = packed->bits;
  args->each = packed->desc.columns != LPGEMM_COLUMNS_PLAIN;
  if (args->each) args->column_order = (const int32_t *)(blob + packed->section[LPG_SECTION_COLUMN_ORDER].offset);
  args->rows = rows;
  args->k = packed->desc.k;
  args->k_tiles = packed->k_tiles;
  args->first_row = first_row;
  args->flip = lpg_stored_flip(packed->desc.type);
  args->first_byte = lpg_tile_offset(packed->bits, packed->k_tiles, first_row / LPG_TILE_ROWS, 0);
  args->codes = blob + LPG_HEADER_BYTES + args->first_byte;
  args->chunks = lpg::chunks_a_block;
  args->row_tiles = 1;
  args->threads = 256;
  args->shares = packed->desc.group_n != 0;
  args->tiles_a_scale = packed->tiles_a_scale;
  args->found = found;
  for (int i = LPG_SECTION_SCALES; i <= LPG_SECTION_SUPER_ZEROS; i++) {
    const lpg_section_id id = (lpg_section_id)i;
    const lpg_axis *axis = lpg_section_axis(packed, id);
    const lpgemm_dtype_t type = lpg_section_type(&packed->desc, id);
    lpg_numbers_to *to = &args->numbers[i];
    if (packed->section[i].bytes == 0) continue;
    to->section = blob + packed->section[i].offset;
    to->bytes = type == LPGEMM_UINT(4) ? 0 : lpg_bytes(type);
    to->slot_bytes = lpg_slot_bytes(type);
    to->group_k = (uint32_t)axis->k;
    to->count = axis->count;
    to->padded = axis->padded;
    to->largest = lpg_largest_number(packed, id);
  }
}

lpgemm_status_t lpgemm_i_cuda_launch_rows(const void *kernel, const lpg_rows_args *args, cudaStream_t stream) {
  constexpr int64_t most = 65535 * LPG_TILE_ROWS; /* rows a launch */
  lpg_rows_args part = *args;
  const int64_t chunks = lpg_ceil_div(args->k_tiles * lpg_tile_k(args->at.bits), lpg::chunk_k);
  const int64_t blocks = lpg_ceil_div(chunks, args->chunks);
  const int64_t tile_row = lpg_tile_offset(args->at.bits, args->k_tiles, 1, 0);
  if (args->k_tiles == 0) return LPGEMM_SUCCESS;
  for (int64_t done = 0; done < args->rows; done += most) {
    part.rows = args->rows - done < most ? args->rows - done : most;
    part.first_source_row = args->first_source_row + done;
    if (args->row_order) part.row_order = args->row_order + done;
    part.first_row = args->first_row + done;
    part.codes = args->codes + done / LPG_TILE_ROWS * tile_row;
    part.first_byte = args->first_byte + done / LPG_TILE_ROWS * tile_row;
    const int64_t tiles = lpg_ceil_div(part.rows, LPG_TILE_ROWS);
    const dim3 grid((unsigned)blocks, (unsigned)lpg_ceil_div(tiles, part.row_tiles));
    const size_t shared_bytes = (size_t)part.shared_bytes;
    LPG_TRY(part.grid ? lpg::launch(kernel, grid, part.threads, shared_bytes, stream, part, *part.grid)
                      : lpg::launch(kernel, grid, part.threads, shared_bytes, stream, part));
  }
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_cuda_put_row_scales(const lpg_packed *packed, int64_t first_row, int64_t rows,
                                             const float *scales, const int32_t *row_order, float one, uint8_t *blob,
                                             cudaStream_t stream) {
  if (packed->section[LPG_SECTION_ROW_SCALES].bytes == 0 || rows == 0) return LPGEMM_SUCCESS;
  const lpg::row_scales_args args = {(const uint32_t *)scales, row_order, lpg_f32_bits(one), rows,
                                     (uint32_t *)(blob + packed->section[LPG_SECTION_ROW_SCALES].offset) + first_row};
  return lpg::launch((const void *)lpg::row_scales_kernel,
                     dim3((unsigned)lpg_ceil_div(lpg_round_up(rows, LPG_TILE_ROWS), 256)), 256, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_end_rows(const lpg_packed *packed, int64_t first_row, int64_t rows, uint8_t *blob,
                                       lpg_pack_report *report, lpg_content *content, int *bad, cudaStream_t stream) {
  lpg_pack_report found;
  const int is_whole = rows == packed->desc.n;
  LPG_TRY(lpgemm_i_cuda_put_exponents(packed, first_row, rows, blob, report, stream));
  if (is_whole) LPG_TRY(lpg::hash_bytes(packed, packed->section[LPG_SECTION_CODES].bytes, blob, report, stream));
  LPG_TRY(lpg::read_report(report, &found, stream));
  *bad = found.any_bad;
  content->scale_span = found.scale_span;
  content->payload_hash = 0;
  content->is_whole = is_whole;
  lpg::add_sums(found, content);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_cuda_put_codes(const lpg_packed *packed, const uint8_t *codes, int64_t ld, int64_t first_row,
                                        int64_t rows, uint8_t *blob, cudaStream_t stream) {
  lpg_rows_args args;
  lpgemm_i_cuda_rows_args(packed, first_row, rows, blob, NULL, &args);
  args.at.codes = codes;
  args.at.line = ld;
  return lpgemm_i_cuda_launch_rows(lpg::kernel_of<lpg::byte_codes>(packed->bits), &args, stream);
}

lpgemm_status_t lpgemm_i_cuda_begin(const lpg_packed *packed, uint8_t *blob, cudaStream_t stream) {
  lpg::gaps_args args = {};
  args.blob = blob;
  args.to[LPG_SECTIONS] = LPG_HEADER_BYTES;
  for (int i = 0; i < LPG_SECTIONS; i++) {
    const uint64_t end = packed->section[i].offset + packed->section[i].bytes;
    args.from[i] = end;
    args.to[i] = (end + LPG_SECTION_ALIGN - 1) / LPG_SECTION_ALIGN * LPG_SECTION_ALIGN;
  }
  return lpg::launch((const void *)lpg::clear_gaps_kernel, dim3(LPG_SECTIONS + 1), LPG_HEADER_BYTES, 0, stream, args);
}

lpgemm_status_t lpgemm_i_cuda_pack_rows(const lpg_packed *packed, const lpg_source *source, int64_t first_row,
                                        uint8_t *blob, lpg_content *content, void *scratch, cudaStream_t stream) {
  int32_t *order = NULL;
  const size_t bytes = (size_t)source->rows * sizeof *order;
  if (!source->arrays.row_order || bytes == 0) {
    return lpg::pack_rows(packed, source, first_row, NULL, blob, content, (lpg_pack_report *)scratch, stream);
  }
  LPG_CUDA(cudaMalloc((void **)&order, bytes));
  cudaError_t error = cudaMemcpyAsync(order, source->arrays.row_order, bytes, cudaMemcpyHostToDevice, stream);
  lpgemm_status_t status = LPGEMM_CUDA_ERROR;
  if (error == cudaSuccess) {
    status = lpg::pack_rows(packed, source, first_row, order, blob, content, (lpg_pack_report *)scratch, stream);
  }
  cudaFree(order);
  LPG_CUDA(error);
  return status;
}

lpgemm_status_t lpgemm_i_cuda_hash_rows(const lpg_packed *packed, int64_t first_row, int64_t rows, const uint8_t *blob,
                                        lpg_content *content, void *scratch, cudaStream_t stream) {
  lpg_pack_report *report = (lpg_pack_report *)scratch, found;
  const uint64_t first = (uint64_t)lpg_tile_offset(packed->bits, packed->k_tiles, first_row / LPG_TILE_ROWS, 0);
  const uint64_t bytes = (uint64_t)lpg_tile_offset(packed->bits, packed->k_tiles, lpg_ceil_div(rows, LPG_TILE_ROWS), 0);
  content->payload_hash = 0;
  if (bytes == 0) return LPGEMM_SUCCESS;
  const lpg::hash_args args = {blob + LPG_HEADER_BYTES, first, bytes, report->hash};
  LPG_TRY(lpgemm_i_cuda_start_report(report, stream));
  LPG_TRY(lpg::launch((const void *)lpg::hash_kernel, dim3(lpg::blocks_for((int64_t)(bytes / 16), 1024)), 256, 0,
                      stream, args));
  LPG_TRY(lpg::read_report(report, &found, stream));
  lpg::add_sums(found, content);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_cuda_finish(const lpg_packed *packed, uint8_t *blob, lpg_content *content, void *scratch,
                                     cudaStream_t stream) {
  lpg_pack_report *report = (lpg_pack_report *)scratch, found;
  if (!content->is_whole) {
    LPG_TRY(lpgemm_i_cuda_start_report(report, stream));
    LPG_TRY(lpg::hash_bytes(packed, packed->section[LPG_SECTION_CODES].bytes, blob, report, stream));
    LPG_TRY(lpg::read_report(report, &found, stream));
    lpg::add_sums(found, content);
    content->is_whole = 1;
  }
  return lpg::put_header(packed, content, blob, stream);
}

lpgemm_status_t lpgemm_i_cuda_seal(const lpg_packed *packed, uint8_t *blob, lpg_content *content, void *scratch,
                                   cudaStream_t stream) {
  lpg_pack_report *report = (lpg_pack_report *)scratch, found;
  LPG_TRY(lpgemm_i_cuda_start_report(report, stream));
  LPG_TRY(lpgemm_i_cuda_put_exponents(packed, 0, packed->desc.n, blob, report, stream));
  LPG_TRY(lpg::hash_bytes(packed, 0, blob, report, stream));
  LPG_TRY(lpg::read_report(report, &found, stream));
  *content = {found.scale_span, 0, 1};
  lpg::add_sums(found, content);
  return lpg::put_header(packed, content, blob, stream);
}
