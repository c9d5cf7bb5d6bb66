/* The finite values that a type of up to 8 bits can hold, in order, and which of them is nearest to a number. */
#ifndef LPG_PACK_GRID_H
#define LPG_PACK_GRID_H

#include "../layouts/number.h"

typedef struct lpg_grid {
  int count; /* distinct values */
  int half;  /* the largest power of two below count, at least 1: where a search starts */
  double first;
  double gap, per_gap;            /* integers: value[i] = first + gap * i, and 1 / gap; both are 0 for other types */
  double value[256], middle[256]; /* middle[i] lies between value[i] and value[i + 1] */
  uint8_t code[256];
} lpg_grid;

/* Of two codes with one value (+0 and -0, or a codebook's) the smaller is used. codebook may be NULL. */
void lpgemm_i_make_grid(lpgemm_dtype_t type, const float *codebook, lpg_grid *grid);

/* x >= 0, below 2^51, to the nearest integer, ties to even. */
LPG_BITS_FN double lpg_round_even(double x) { return (x + 4503599627370496.0) - 4503599627370496.0; }

LPG_BITS_FN double lpg_clamp(double x, double low, double high) {
  double y = x > low ? x : low; /* in this form it compiles to a maximum and a minimum, without branches */
  return y < high ? y : high;
}

/* The index of the value nearest to x among integers, as fp64. */
LPG_BITS_FN double lpg_grid_integer(const lpg_grid *grid, double x) {
  return lpg_round_even(lpg_clamp((x - grid->first) * grid->per_gap, 0.0, (double)(grid->count - 1)));
}

/* Index of the value nearest to x; a tie goes to the even code, or to the smaller value if both are even or odd. */
LPG_BITS_FN int lpg_grid_nearest(const lpg_grid *grid, double x) {
  if (grid->gap != 0.0) return (int)lpg_grid_integer(grid, x);
  int i = 0;
  for (int half = grid->half; half > 0; half /= 2) {
    if (i + half < grid->count && grid->middle[i + half - 1] < x) i += half;
  }
  int tie = i + 1 < grid->count && grid->middle[i] == x;
  return tie && grid->code[i] % 2 == 1 && grid->code[i + 1] % 2 == 0 ? i + 1 : i;
}

/* The value nearest to x. */
LPG_BITS_FN double lpg_grid_round(const lpg_grid *grid, double x) {
  return grid->gap != 0.0 ? grid->first + grid->gap * lpg_grid_integer(grid, x)
                          : grid->value[lpg_grid_nearest(grid, x)];
}

#endif
