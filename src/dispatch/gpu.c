/* How fast a GPU's SMs are against those of the H200 that estimates were fitted to. */
#include "cost.h"
#include "dispatch.h"

/* By name, else the first of that architecture; NULL for one that nobody put into the table. */
static const lpg_gpu *find_gpu(const lpg_device *device) {
  const int count = (int)(sizeof lpg_gpus / sizeof lpg_gpus[0]);
  for (int i = 0; i < count; i++) {
    if (lpg_gpus[i].arch == device->arch && strstr(device->name, lpg_gpus[i].name)) return &lpg_gpus[i];
  }
  for (int i = 0; i < count; i++) {
    if (lpg_gpus[i].arch == device->arch) return &lpg_gpus[i];
  }
  return NULL;
}

void lpgemm_i_set_pace(lpg_device *device) {
  const lpg_gpu *gpu = find_gpu(device), *fitted = &lpg_gpus[0];
  /* `wide` takes every GPU of 9.0 for an H200, and what is compared must be scaled alike. */
  if (!gpu || device->arch == fitted->arch) return;
  device->pace.read = gpu->read / gpu->units / (fitted->read / fitted->units);
  device->pace.mma = gpu->mma / gpu->units / (fitted->mma / fitted->units);
  device->pace.alu = gpu->clock / fitted->clock;
}
