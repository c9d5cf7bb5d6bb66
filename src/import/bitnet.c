/* BitNet b1.58: a byte has the same column of four rows, which lie a quarter of the matrix apart. */
#include "bits.h"
#include "import.h"

static lpgemm_status_t open_bitnet(const lpgemm_import_t *import, int divides, lpg_part *part) {
  static const lpgemm_dtype_t bytes[] = {LPGEMM_U8, 0}, real[] = {LPGEMM_BF16, LPGEMM_F16, LPGEMM_F32, 0};
  const lpgemm_tensor_t *scale;
  char text[LPG_SHAPE_TEXT];
  LPG_TRY(lpgemm_i_no_stack(import, "BitNet"));
  LPG_CHECK(import->bits == 0 || import->bits == 2, LPGEMM_NOT_SUPPORTED, "bits is %d; BitNet is stored in 2",
            (int)import->bits);
  LPG_TRY(lpgemm_i_need_tensor(import, "weight", bytes, &part->codes));
  LPG_TRY(lpgemm_i_may_have_tensor(import, "weight_scale", real, &scale));
  LPG_CHECK(part->codes->dims == 2, LPGEMM_INVALID_SIZE, "weight is %s; it must be [N / 4][K]",
            lpgemm_i_shape_text(part->codes, text));
  part->desc.n = part->codes->shape[0] * 4, part->desc.k = part->codes->shape[1];
  part->desc.type = LPGEMM_UINT(2);
  part->desc.zero = LPGEMM_ZERO_CONSTANT, part->desc.zero_constant = 1.0f;
  return scale ? lpgemm_i_global_scale(scale, 0, 1, divides, part) : LPGEMM_SUCCESS;
}

static lpgemm_status_t open_divides(const lpgemm_import_t *import, lpg_part *part) {
  return open_bitnet(import, 1, part);
}

static lpgemm_status_t open_multiplies(const lpgemm_import_t *import, lpg_part *part) {
  return open_bitnet(import, 0, part);
}

static void read_codes(const lpg_part *part, int64_t row, int64_t rows, uint8_t *codes) {
  const int64_t k = part->desc.k, quarter = part->desc.n / 4;
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t *from = part->code_data + (row + i) % quarter * k;
    const int shift = 2 * (int)((row + i) / quarter);
    for (int64_t c = 0; c < k; c++) codes[i * k + c] = (uint8_t)(from[c] >> shift & 3u);
  }
}

const lpg_reader lpgemm_i_read_bitnet = {LPGEMM_FORMAT_BITNET, "BitNet", open_divides, read_codes, NULL};
const lpg_reader lpgemm_i_read_bitnet_auto = {LPGEMM_FORMAT_BITNET_AUTO, "BitNet", open_multiplies, read_codes, NULL};
