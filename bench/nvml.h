/* The SM clock and the power of the GPU by NVML, which is looked up at run time. */
#ifndef BENCH_NVML_H
#define BENCH_NVML_H

#include "common.h"

/* Sums of what was read, and how many there are. */
typedef struct bench_readings {
  double mhz, watts;
  int clocks, powers;
} bench_readings;

/* Opens the GPU of a PCI address, as CUDA writes it. After an error, which says why its clock cannot be read, nothing
 * is read. `driver` gets the driver's version. */
bench_error bench_nvml_open(const char *pci, char *driver, unsigned size);

/* Adds what the GPU shows now. */
void bench_nvml_read(bench_readings *readings);

#endif
