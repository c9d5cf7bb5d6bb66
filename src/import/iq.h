/* The grids of GGUF's IQ types; iq_grids.c says how they are encoded. */
#ifndef LPG_IMPORT_IQ_H
#define LPG_IMPORT_IQ_H

#include <stdint.h>

extern const uint16_t lpgemm_i_grid_iq2_xxs[256], lpgemm_i_grid_iq2_xs[512], lpgemm_i_grid_iq2_s[1024];
extern const uint16_t lpgemm_i_grid_iq3_xxs[256], lpgemm_i_grid_iq3_s[512];
extern const uint16_t lpgemm_i_grid_iq1[2048];

#endif
