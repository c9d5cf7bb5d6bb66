/* Kinds of weights, each with its least and most bits: a line is all that the lists of the choice (src/dispatch/) and
 * of the generator (tools/gen_kernels.py, which reads this file) need to know of one. */
#ifndef LPG_LAYOUTS_KINDS_H
#define LPG_LAYOUTS_KINDS_H

#define LPG_WEIGHT_KINDS(KIND) \
  KIND(UINT, 1, 8)             \
  KIND(INT, 2, 8)              \
  KIND(BIPOLAR, 1, 8)          \
  KIND(CODEBOOK, 1, 4)         \
  KIND(FLOAT, 3, 8)

#endif
