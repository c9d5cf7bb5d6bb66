/* What the kernels around the products of experts share. */
#pragma once

#include "../../cuda/cuda.h"
#include "../../kernels/prim/pdl.cuh"
#include "../routing.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* Whether kernels may start while the one before ends (pdl.cuh): code of PTX before sm_90 would not wait for it. */
static inline bool may_follow(const lpg_device *device) { return device->clusters[1] > 0; }

}  // namespace
}  // namespace lpg
