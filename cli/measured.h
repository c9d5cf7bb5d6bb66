/* What a handle has measured, and the name of its device. lpgemm.h gives both in one place, the tuning file: one is
 * written to a temporary place and read. */
#ifndef CLI_MEASURED_H
#define CLI_MEASURED_H

#include "common.h"

typedef struct cli_measured {
  int64_t m;
  double us;
  char kernel[96]; /* the fastest; empty if nothing was measured for m */
} cli_measured;

enum { CLI_DEVICE_BYTES = 256 };

/* Fills the name of the device, and of each of `list`, whose m the caller has set, what stands in a line with that m:
 * the handle must have measured one matrix only. `other`, if not NULL, takes all lines. */
void cli_read_measured(lpgemm_handle_t handle, char device[CLI_DEVICE_BYTES], cli_measured *list, size_t count,
                       lpgemm_handle_t other);

#endif
