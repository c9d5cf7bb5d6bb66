/* In place of the toolkit's header of that name. */
#ifndef SIMT_CUDA_PIPELINE_H
#define SIMT_CUDA_PIPELINE_H

#include "prim.h"

inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
  simt::now->copies->push_back([=] { memcpy(to, from, bytes); });
}
inline void __pipeline_commit() { lpg::commit_copies(); }
inline void __pipeline_wait_prior(int left) {
  while (simt::now->copying.size() > (size_t)left) {
    lpg::run_all(*simt::now->copying.front());
    simt::now->copying.erase(simt::now->copying.begin());
  }
}

#endif
