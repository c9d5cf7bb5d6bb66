/* What the planner of generic knows of its kernels. */
#ifndef LPG_KERNELS_GENERIC_PLAN_H
#define LPG_KERNELS_GENERIC_PLAN_H

/* Bytes of shared memory, at most, without the rows of X of experts. */
enum { LPG_GENERIC_SHARED = 72 * 1024 };

#endif
