#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>

enum { CLOCK_SM = 1, POWER_INSTANT = 186 }; /* nvml.h: NVML_CLOCK_SM, NVML_FI_DEV_POWER_INSTANT */

typedef struct field_value { /* nvmlFieldValue_t */
  unsigned field, scope;
  long long timestamp, latency;
  int type, status;
  union {
    double number;
    unsigned milliwatts;
  } value;
} field_value;

static void *device; /* NULL: nothing is read */
static int (*get_clock)(void *device, int kind, unsigned *mhz);
static int (*get_fields)(void *device, int count, field_value *values);

static bench_error read_driver(void *library, char *driver, unsigned size) {
  int (*start)(void), (*get)(char *, unsigned);
  snprintf(driver, size, "unknown driver");
  BENCH_CHECK(library, "NVML is not here");
  int found = bench_symbol(library, "nvmlInit_v2", &start) && bench_symbol(library, "nvmlSystemGetDriverVersion", &get);
  BENCH_CHECK(found && start() == 0, "NVML does not start");
  if (get(driver, size) != 0) snprintf(driver, size, "unknown driver");
  return NULL;
}

static bench_error find_device(void *library, const char *pci, void **found) {
  int (*by_pci)(const char *, void **);
  unsigned mhz = 0;
  int there = bench_symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_pci) &&
              bench_symbol(library, "nvmlDeviceGetClockInfo", &get_clock) &&
              bench_symbol(library, "nvmlDeviceGetFieldValues", &get_fields);
  BENCH_CHECK(there, "NVML lacks a function that is needed");
  int status = by_pci(pci, found);
  BENCH_CHECK(status == 0, "NVML does not find the GPU %s: status %d", pci, status);
  status = get_clock(*found, CLOCK_SM, &mhz);
  BENCH_CHECK(status == 0, "NVML does not read the SM clock: status %d", status);
  return NULL;
}

bench_error bench_nvml_open(const char *pci, char *driver, unsigned size) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *found = NULL;
  BENCH_TRY(read_driver(library, driver, size));
  BENCH_TRY(find_device(library, pci, &found));
  device = found;
  return NULL;
}

/* The power is that of the moment: the one that nvidia-smi shows by default is the mean of a second, which knows the
 * program before. */
void bench_nvml_read(bench_readings *readings) {
  unsigned mhz = 0;
  field_value power = {.field = POWER_INSTANT};
  if (!device) return;
  if (get_clock(device, CLOCK_SM, &mhz) == 0) {
    readings->mhz += mhz;
    readings->clocks++;
  }
  if (get_fields(device, 1, &power) == 0 && power.status == 0) {
    readings->watts += power.value.milliwatts * 1e-3;
    readings->powers++;
  }
}
