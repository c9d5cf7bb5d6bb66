/* The one epilogue of all CPU kernels. */
#ifndef LPG_CPU_EPILOGUE_H
#define LPG_CPU_EPILOGUE_H

#include "../internal.h"

/* Writes Y[m, n] = activation(alpha * x_scale * sum + beta * C[m, n] + bias[n]), computed in fp64 and rounded once.
 * sum is that of value(X) * w over k, the global scale included; it is not looked at if call->skip_product. Int32
 * output wraps: there alpha and beta are 0 or 1, and sum is an integer. */
void lpgemm_i_epilogue(const lpg_call *call, int64_t m, int64_t n, double sum);

#endif
