/* Where the tables of a call lie. */
#include "../cpu/cpu.h"
#include "lut.h"

size_t lpgemm_i_lut_workspace(const lpg_problem *problem, const lpg_device *device) {
  size_t row = lpg_lut_bytes(1, problem->weights->desc.k);
  (void)device;
  return problem->tables || problem->m == 0 || row <= LPG_SHARED_BYTES ? 0 : row;
}
