/* What importing on the GPU adds to the readers: where codes and numbers of a part lie, and packing from there. */
#ifndef LPG_IMPORT_DEVICE_H
#define LPG_IMPORT_DEVICE_H

#include "../pack/at.h"
#include "import.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *at from a part whose data is where its pointers say. 0: kernels do not read it. */
int lpgemm_i_find_at(const lpg_part *part, lpg_at *at);

/* Bytes of the grid that it has; 0: none. */
size_t lpgemm_i_grid_bytes(const lpg_at *at);

/* 1 if its pointers have the alignment that kernels need. */
int lpgemm_i_is_aligned(const lpg_at *at);

/* The kernels of arrangements and widths that are constants in them (pack_rows.cuh), one function a .cu file; NULL: it
 * has none for this one. */
const void *lpgemm_i_kernel_of_words(int arrangement, int bits);
const void *lpgemm_i_kernel_of_streams(int arrangement, int bits);
const void *lpgemm_i_kernel_of_bytes(int arrangement, int bits);
const void *lpgemm_i_kernel_of_gguf(int arrangement, int bits);
const void *lpgemm_i_kernel_of_k(int arrangement, int bits);
const void *lpgemm_i_kernel_of_iq(int arrangement, int bits);

/* Of nibbles.cuh, for GPTQ and AWQ of 4 bits. */
const void *lpgemm_i_kernel_of_nibbles(int arrangement);

/* Of iq2.cuh, for IQ2_XXS and IQ2_XS. */
const void *lpgemm_i_kernel_of_iq2(int arrangement);

/* Of ordered.cuh, for GPTQ's widths; 4 bits with as many threads as ordered.h names, others with all. */
const void *lpgemm_i_kernel_of_ordered(int bits, int threads);

#ifdef __cplusplus
}
#endif

#endif
