/* gemm: lowers the flags of stream-K before the kernel that raises them. A kernel and no memset: the next one may begin
 * while it runs (PDL). */
#include "../../cuda/cuda.h"
#include "../launch/launch.cuh"
#include "../prim/pdl.cuh"
#include "gemm_mode.h"

namespace lpg {
namespace { /* nothing here is a symbol of the library */

struct flags_args {
  uint32_t *flags;
  int32_t count;
};

static __global__ void __launch_bounds__(1024) lower_flags_kernel(const flags_args a) {
  pdl_launch_next();
  pdl_wait(); /* the kernel before may use the same workspace */
  for (int i = threadIdx.x; i < a.count; i += 1024) a.flags[i] = 0;
}

}  // namespace
}  // namespace lpg

lpgemm_status_t lpgemm_i_cuda_gemm_lower_flags(uint32_t *flags, int32_t count, lpgemm_stream_t stream) {
  const lpg::flags_args args = {flags, count};
  return lpg::launch_cluster((const void *)lpg::lower_flags_kernel, dim3(1), 1, 1024, 0, stream, args, true);
}

lpgemm_status_t lpgemm_i_cuda_load_gemm_lower_flags(void) {
  return lpg::allow_shared((const void *)lpg::lower_flags_kernel, 0);
}
