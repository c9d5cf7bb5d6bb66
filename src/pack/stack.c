/* Stacks: the blobs of experts, one after the other. */
#include "pack.h"

void lpgemm_i_add_expert(lpg_content *sum, int64_t experts, int64_t expert, const lpg_content *one) {
  if (one->scale_span > sum->scale_span) sum->scale_span = one->scale_span;
  sum->payload_hash += experts == 1 ? one->payload_hash : lpg_hash_word(one->payload_hash, (uint64_t)expert);
  sum->is_whole = 1;
}

/* A header has all of a description, and no byte but its fields. */
int lpgemm_i_same_stack(const lpg_packed *a, const lpg_packed *b) {
  const lpg_content none = {0};
  const lpg_packed *const both[2] = {a, b};
  uint8_t header[2][LPG_HEADER_BYTES];
  for (int i = 0; i < 2; i++) {
    lpg_packed packed = *both[i];
    packed.desc.global_scale = 1.0f;
    lpgemm_i_write_header(&packed, &none, header[i]);
  }
  return memcmp(header[0], header[1], LPG_HEADER_BYTES) == 0;
}

int64_t lpgemm_i_experts_of(const uint8_t *bytes, uint64_t size) {
  const uint64_t one = lpgemm_i_header_total(bytes, size);
  if (one < LPG_HEADER_BYTES || size % one != 0 || size / one > LPG_MOST_EXPERTS) return 1;
  return (int64_t)(size / one);
}

/* The plan of the stack that an expert of it begins. */
static lpgemm_status_t plan_stack(const lpg_packed *first, int64_t experts, lpg_packed *packed) {
  lpgemm_weight_desc_t desc = first->desc;
  desc.experts = (int32_t)experts;
  LPG_CHECK(lpgemm_i_make_packed(&desc, packed) == LPGEMM_SUCCESS, LPGEMM_CORRUPT_DATA,
            "%lld blobs of %llu bytes are no legal stack", (long long)experts, (unsigned long long)first->total_bytes);
  return LPGEMM_SUCCESS;
}

/* headers_only: at bytes lie the headers alone, one after the other. */
static lpgemm_status_t check(const uint8_t *bytes, uint64_t size, int64_t experts, int headers_only, int skip_checksum,
                             lpg_packed *packed, lpg_content *content) {
  const uint64_t one_size = size / (uint64_t)experts, step = headers_only ? LPG_HEADER_BYTES : one_size;
  lpg_packed first = {0};
  lpg_content sum = {0};
  for (int64_t e = 0; e < experts; e++) {
    lpg_packed one;
    lpg_content c;
    const uint8_t *at = bytes + (uint64_t)e * step;
    LPG_TRY(headers_only ? lpgemm_i_read_header(at, one_size, &one, &c)
                         : lpgemm_i_check_blob(at, one_size, skip_checksum, &one, &c));
    if (e == 0) first = one;
    LPG_CHECK(lpgemm_i_same_stack(&first, &one), LPGEMM_CORRUPT_DATA,
              "the header of expert %lld has another description than that of expert 0; in a stack only global_scale "
              "may differ",
              (long long)e);
    lpgemm_i_add_expert(&sum, experts, e, &c);
  }
  LPG_TRY(plan_stack(&first, experts, packed));
  *content = sum;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_check_stack(const uint8_t *bytes, uint64_t size, int skip_checksum, lpg_packed *packed,
                                     lpg_content *content) {
  return check(bytes, size, lpgemm_i_experts_of(bytes, size), 0, skip_checksum, packed, content);
}

lpgemm_status_t lpgemm_i_check_headers(const uint8_t *headers, uint64_t size, int64_t experts, lpg_packed *packed,
                                       lpg_content *content) {
  return check(headers, size, experts, 1, 1, packed, content);
}
