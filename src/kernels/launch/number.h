/* Numbers of launches. */
#ifndef LPG_KERNELS_LAUNCH_NUMBER_H
#define LPG_KERNELS_LAUNCH_NUMBER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A number that no other call in this process returns, that is not 0, and that memory of unknown content does not hold
 * by chance: 64 bits, as if at random. Flags in a workspace are raised to it (prim/flag.cuh), so nobody needs to lower
 * them first. */
uint64_t lpgemm_i_launch_number(void);

#ifdef __cplusplus
}
#endif

#endif
