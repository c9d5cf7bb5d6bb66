#include "grid.h"

void lpgemm_i_make_grid(lpgemm_dtype_t type, const float *codebook, lpg_grid *grid) {
  memset(grid, 0, sizeof *grid);
  for (uint32_t code = 0; code < 1u << lpg_bits(type); code++) {
    double value = (double)lpg_code_value(type, code, codebook);
    if (!(value - value == 0.0)) continue; /* infinities and NaN */
    int at = grid->count;
    while (at > 0 && grid->value[at - 1] > value) at--;
    if (at > 0 && grid->value[at - 1] == value) continue;
    for (int i = grid->count; i > at; i--) {
      grid->value[i] = grid->value[i - 1];
      grid->code[i] = grid->code[i - 1];
    }
    grid->value[at] = value;
    grid->code[at] = (uint8_t)code;
    grid->count++;
  }
  grid->half = 1;
  while (2 * grid->half < grid->count) grid->half *= 2;
  grid->first = grid->value[0];
  if (lpg_is_integer_kind(type)) {
    grid->gap = (double)lpg_integer_step(type);
    grid->per_gap = 1.0 / grid->gap; /* 1 or 1/2 */
  }
  for (int i = 0; i + 1 < grid->count; i++) grid->middle[i] = (grid->value[i] + grid->value[i + 1]) / 2.0;
}
