#include "devices.h"

#define CPU(words, level) \
  { .backend = LPGEMM_BACKEND_CPU, .name = words, .isa = level, .threads = 4 }
/* SMs, KiB of shared memory a block may use, and how many clusters of 0, 1, 2 ... blocks run at once, of the real ones.
 */
#define GPU(words, capability, count, shared, ...)                                                                   \
  {                                                                                                                  \
    .backend = LPGEMM_BACKEND_CUDA, .name = words, .arch = capability, .sms = count, .shared_memory = shared * 1024, \
    .clusters = {                                                                                                    \
      __VA_ARGS__                                                                                                    \
    }                                                                                                                \
  }

const lpg_device cpu_base = CPU("CPU of 2005", LPG_ISA_BASE);
const lpg_device cpu_avx2 = CPU("CPU of 2015", LPG_ISA_AVX2);
const lpg_device cpu_avxvnni = CPU("CPU of 2021", LPG_ISA_AVX2 | LPG_ISA_AVXVNNI);
const lpg_device cpu_avx512 = CPU("CPU of 2020", LPG_ISA_AVX2 | LPG_ISA_AVX512);
const lpg_device cpu_vbmi = CPU("CPU of 2022", LPG_ISA_AVX2 | LPG_ISA_AVX512 | LPG_ISA_VBMI);
const lpg_device cpu_amx =
    CPU("CPU of 2023", LPG_ISA_AVX2 | LPG_ISA_AVX512 | LPG_ISA_VBMI | LPG_ISA_AVXVNNI | LPG_ISA_AMX);
const lpg_device sm80 = GPU("NVIDIA A100-SXM4-80GB", 80, 108, 163, 0), sm86 = GPU("NVIDIA A10", 86, 72, 99, 0),
                 sm89 = GPU("NVIDIA L40S", 89, 142, 99, 0),
                 h100_pcie = GPU("NVIDIA H100 PCIe", 90, 114, 227, 0, 114, 57, 0, 26),
                 h100 = GPU("NVIDIA H100 80GB HBM3", 90, 132, 227, 0, 132, 66, 39, 30, 0, 17, 0, 15),
                 sm90 = GPU("NVIDIA H200", 90, 132, 227, 0, 132, 66, 39, 30, 0, 17, 0, 15),
                 sm100 = GPU("NVIDIA B200", 100, 148, 227, 0), /* PTX of sm_80 has no clusters */
    sm120 = GPU("NVIDIA GeForce RTX 5090", 120, 170, 99, 0);
