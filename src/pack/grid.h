/* The finite values that a type of up to 8 bits can hold, in order, and which of them is nearest to a number. */
#ifndef LPG_PACK_GRID_H
#define LPG_PACK_GRID_H

#include "../layouts/number.h"

typedef struct lpg_grid {
  int count;                      /* distinct values */
  double first, gap;              /* integers: value[i] = first + gap * i; gap is 0 for other types */
  double value[256], middle[256]; /* middle[i] lies between value[i] and value[i + 1] */
  uint8_t code[256];
} lpg_grid;

/* Of two codes with one value (+0 and -0, or a codebook's) the smaller is used. codebook may be NULL. */
void lpgemm_i_make_grid(lpgemm_dtype_t type, const float *codebook, lpg_grid *grid);

/* x >= 0, below 2^51, to the nearest integer, ties to even. */
static inline double lpg_round_even(double x) { return (x + 4503599627370496.0) - 4503599627370496.0; }

static inline double lpg_clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* Index of the value nearest to x; a tie goes to the even code, or to the smaller value if both are even or odd. */
static inline int lpg_grid_nearest(const lpg_grid *grid, double x) {
  if (grid->gap != 0.0) return (int)lpg_round_even(lpg_clamp((x - grid->first) / grid->gap, 0.0, grid->count - 1));
  int i = 0;
  for (int half = 128; half > 0; half /= 2) {
    if (i + half < grid->count && grid->middle[i + half - 1] < x) i += half;
  }
  int tie = i + 1 < grid->count && grid->middle[i] == x;
  return tie && grid->code[i] % 2 == 1 && grid->code[i + 1] % 2 == 0 ? i + 1 : i;
}

#endif
