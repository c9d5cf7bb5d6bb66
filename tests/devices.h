/* Devices, so that plans and choices are tested for every architecture without one. */
#ifndef DEVICES_H
#define DEVICES_H

#include "dispatch/dispatch.h"

/* sm90 is an H200, whose clusters of every size were counted. */
extern const lpg_device cpu_base, cpu_avx2, cpu_avxvnni, cpu_avx512, cpu_vbmi, cpu_amx, sm80, sm86, sm89, h100,
    h100_pcie, sm90, sm100, sm120;

#endif
