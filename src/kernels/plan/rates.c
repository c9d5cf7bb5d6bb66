#include "rates.h"

#include <stdio.h>

static const lpg_rates table[] = {
    /* clang-format off */
    /* name             arch  sms  dram    l2  copy  mma wgmma  wg8     b1  int float book clock */
    /* Measured, 2026-11-22: what lpgemm-bench reads; mma.sync from the published 989 of wgmma, by the two forms of
     * dequant; wgmma of 8 and of 1 bit, and what is dequantised, by kernels that do nothing else. */
    {"NVIDIA H200",       90, 132, 4610, 6336, 8712, 550,  900, 1700, 15000, 62.0, 45.0, 47.0, 1980},
    /* Not measured, 2026-11-22 (of these only the H100 with HBM3 was run): peaks of NVIDIA's data sheets and white papers (a kernel reads about 0.96 of them).
     * mma.sync of 9.0, 10.0 and 12.0 is not published: an SM's as on the H200, by its clock. All else, too. */
    {"H100 PCIe",         90, 114, 2039, 4850, 6669, 421,  689, 1301, 11482, 55.0, 39.9, 41.7, 1755},
    {"H100 NVL",          90, 132, 3938, 5712, 7854, 496,  811, 1533, 13523, 55.9, 40.6, 42.4, 1785},
    {"H100",              90, 132, 3350, 6336, 8712, 550,  900, 1700, 15000, 62.0, 45.0, 47.0, 1980},
    {"B200",             100, 148, 8000, 7050, 9694, 612,    0,    0,     0, 61.5, 44.7, 46.6, 1965},
    {"RTX 5090",         120, 170, 1792, 9930, 13657, 210,    0,    0,     0, 75.5, 54.8, 57.2, 2410},
    {"L40S",              89, 142,  864, 8675, 11928, 362,    0,    0,     0, 78.9, 57.3, 59.8, 2520},
    {"RTX 4090",          89, 128, 1008, 7820, 10752, 165,    0,    0,     0, 78.9, 57.3, 59.8, 2520},
    {"A100-SXM4-40",      80, 108, 1555, 3692, 5076, 312,    0,    0,     0, 44.2, 32.0, 33.5, 1410},
    {"A100-PCIE-40",      80, 108, 1555, 3692, 5076, 312,    0,    0,     0, 44.2, 32.0, 33.5, 1410},
    {"A100 80GB PCIe",    80, 108, 1935, 3692, 5076, 312,    0,    0,     0, 44.2, 32.0, 33.5, 1410},
    {"A100",              80, 108, 2039, 3692, 5076, 312,    0,    0,     0, 44.2, 32.0, 33.5, 1410},
    {"A10",               86,  72,  600, 2958, 4068, 125,    0,    0,     0, 53.1, 38.5, 40.2, 1695},
    /* clang-format on */
};
enum { ROWS = sizeof table / sizeof table[0] };

void lpgemm_i_set_rates(lpg_device *device) {
  device->rates = NULL;
  for (int i = ROWS - 1; i >= 0; i--) {
    if (table[i].arch == device->arch) device->rates = &table[i];
  }
  for (int i = ROWS - 1; i >= 0; i--) {
    if (table[i].arch == device->arch && strstr(device->name, table[i].name)) device->rates = &table[i];
  }
}

const lpg_rates *lpgemm_i_rates_of(const lpg_device *device) { return device->rates ? device->rates : &table[0]; }

double lpgemm_i_alu_speed(const lpg_device *device) { return lpgemm_i_rates_of(device)->clock / table[0].clock; }

double lpgemm_i_mma_speed(const lpg_device *device) {
  const lpg_rates *r = lpgemm_i_rates_of(device);
  return r->mma_f16 / r->sms / (table[0].mma_f16 / table[0].sms);
}

/* H100 (h100-order.json, 2026-11-25): 0.9 to 3.4 with one row, 2.6 to 7.3 with 16, 4 to 13 with 512 of 8192. */
double lpgemm_i_gather_us(const lpg_problem *problem, const lpg_device *device) {
  const lpg_packed *w = problem->weights;
  if (!w->desc.columns || device->backend != LPGEMM_BACKEND_CUDA) return 0.0;
  return 2.5 + 2.0 * (double)problem->m * (double)w->desc.k * lpg_bytes(problem->x_type) / 1e3 /
                   lpgemm_i_rates_of(device)->dram;
}

/* ---- what bounds a plan ---- */

static double dequant_rate(const lpg_rates *r, lpgemm_dtype_t type) {
  return lpg_is_integer_kind(type)                ? r->dequant_int
         : lpg_kind(type) == LPGEMM_KIND_CODEBOOK ? r->codebook
                                                  : r->dequant_float;
}

static double mma_rate(const lpg_rates *r, lpg_mma mma) {
  switch (mma) {
    case LPG_MMA_SYNC_F16: return r->mma_f16;
    case LPG_WGMMA_F16: return r->wgmma_f16;
    case LPG_WGMMA_8: return r->wgmma_8;
    case LPG_MMA_B1:
    case LPG_WGMMA_B1: return r->b1;
    default: return 0.0;
  }
}

void lpgemm_i_describe_bounds(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device,
                              const lpg_launch *l, char *text, size_t bytes) {
  const lpg_rates *r = lpgemm_i_rates_of(device);
  const lpgemm_weight_desc_t *d = &problem->weights->desc;
  const double m_tiles = l->tile_m > 0 ? (double)lpg_ceil_div(problem->m, l->tile_m) : 0.0;
  const double rate = mma_rate(r, planner->mma), weights = (double)d->n * (double)d->k;
  const double passes = planner->dequantises == LPG_DEQUANT_PER_TILE ? m_tiles
                        : planner->dequantises == LPG_DEQUANT_ONCE   ? 1.0
                                                                     : 0.0;
  *text = 0;
  if (device->backend != LPGEMM_BACKEND_CUDA) return;
  const double read = (double)problem->weights->total_bytes / r->dram / 1e3;
  const double dequantise = weights * passes / (dequant_rate(r, d->type) * r->sms) / 1e3;
  const double planes = planner->mma == LPG_WGMMA_B1 ? (double)problem->weights->bits * lpg_bits(problem->x_type) : 1.0;
  const double multiply = rate > 0.0 ? 2.0 * m_tiles * l->tile_m * weights * planes / rate / 1e6 : 0.0;
  const char *bound = read >= dequantise && read >= multiply ? "reading"
                      : dequantise >= multiply               ? "dequantising"
                                                             : "mma";
  snprintf(text, bytes, "read %.1f, dequantise %.1f, mma %.1f us: bound by %s", read, dequantise, multiply, bound);
}
