/* Block types of GGUF: number, name, columns and bytes of a block. Plain types (F32, F16, ...) are not among them:
 * readers give them by the library's own codes. */
#ifndef LPG_LAYOUTS_GGML_H
#define LPG_LAYOUTS_GGML_H

#define LPG_GGML_TYPES(TYPE)   \
  TYPE(2, "q4_0", 32, 18)      \
  TYPE(3, "q4_1", 32, 20)      \
  TYPE(6, "q5_0", 32, 22)      \
  TYPE(7, "q5_1", 32, 24)      \
  TYPE(8, "q8_0", 32, 34)      \
  TYPE(9, "q8_1", 32, 36)      \
  TYPE(10, "q2_k", 256, 84)    \
  TYPE(11, "q3_k", 256, 110)   \
  TYPE(12, "q4_k", 256, 144)   \
  TYPE(13, "q5_k", 256, 176)   \
  TYPE(14, "q6_k", 256, 210)   \
  TYPE(15, "q8_k", 256, 292)   \
  TYPE(16, "iq2_xxs", 256, 66) \
  TYPE(17, "iq2_xs", 256, 74)  \
  TYPE(18, "iq3_xxs", 256, 98) \
  TYPE(19, "iq1_s", 256, 50)   \
  TYPE(20, "iq4_nl", 32, 18)   \
  TYPE(21, "iq3_s", 256, 110)  \
  TYPE(22, "iq2_s", 256, 82)   \
  TYPE(23, "iq4_xs", 256, 136) \
  TYPE(29, "iq1_m", 256, 56)   \
  TYPE(34, "tq1_0", 256, 54)   \
  TYPE(35, "tq2_0", 256, 66)   \
  TYPE(39, "mxfp4", 32, 17)    \
  TYPE(40, "nvfp4", 64, 36)    \
  TYPE(41, "q1_0", 128, 18)    \
  TYPE(42, "q2_0", 64, 18)

#endif
