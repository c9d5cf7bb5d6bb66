/* From a plan to the launch of its kernel: the one way for every family. */
#pragma once

#include <string.h>

#include "../../cuda/cuda.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

/* The family's own plan, as its planner made it. */
template <class Plan>
static inline Plan plan_of(const lpg_call &call) {
  static_assert(sizeof(Plan) <= sizeof call.planned->words, "LPG_PLAN_WORDS are too few for a plan");
  Plan plan;
  memcpy(&plan, call.planned->words, sizeof plan);
  return plan;
}

/* Launches kernel(args) in the clusters that the plan says, or in so many of them. pdl: the kernel waits for the one
 * before by itself (prim/pdl.cuh), so it may start while that one ends; for 9.0 and later. */
template <class Args>
static inline lpgemm_status_t launch_planned(const lpg_call &call, const void *kernel, const Args &args, bool pdl,
                                             int64_t clusters) {
  const lpg_launch &l = call.planned->launch;
  const int cluster = l.split_k * l.multicast;
  return launch_cluster(kernel, dim3((unsigned)(clusters * cluster)), cluster, l.threads, (size_t)l.shared_bytes,
                        call.stream, args, pdl);
}

template <class Args>
static inline lpgemm_status_t launch_planned(const lpg_call &call, const void *kernel, const Args &args, bool pdl) {
  return launch_planned(call, kernel, args, pdl, call.planned->launch.clusters);
}

/* Loads kernels on the current device and lets them use all of its shared memory. */
template <class... Kernels>
static inline lpgemm_status_t load_kernels(const lpg_device *device, Kernels... kernels) {
  for (const void *kernel : {(const void *)kernels...}) LPG_TRY(allow_shared(kernel, (size_t)device->shared_memory));
  return LPGEMM_SUCCESS;
}

}  // namespace
}  // namespace lpg
