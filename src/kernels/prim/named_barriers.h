/* The numbers of a CTA's named barriers (0 is that of __syncthreads()), for threads_meet() and threads_arrive(). */
#pragma once

namespace lpg {
namespace { /* nothing here is a symbol of the library */

enum named_barrier {
  parts_are_multiplied = 1, /* split_k.cuh: all consumer warps have multiplied */
  tables_are_filled = 2,    /* gemm.cuh: the consumer warps have filled the tables of scales and of codes */
  sums_are_added = 3,       /* split_k_exchange.cuh: the CTA's receive buffers have been read */
  outputs_are_there = 4 /* store_fast.cuh: outputs lie in shared memory, or have left it; one for each group of warps */
};

}  // namespace
}  // namespace lpg
