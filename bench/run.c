#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "baseline.h"
#include "limit.h"

static bench_error run_blas(const bench_machine *machine, const bench_case *c, bench_result *r) {
  snprintf(r->kernel, sizeof r->kernel, "%s", machine->blas);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64");
  return bench_baseline(machine, c->baseline, c->m, c->desc.n, c->desc.k, c->threads, &r->time, &r->rms_error);
}

/* The CPU's baseline is fp32 whatever the case's types are. A baseline that is not there is no failure. */
static void add_baseline(const bench_machine *machine, const bench_case *c, bench_result *r) {
  lpgemm_dtype_t type = machine->backend == LPGEMM_BACKEND_CPU ? LPGEMM_F32 : c->baseline;
  bench_time time;
  double rms_error, start = bench_now();
  if (c->baseline == 0) return;
  bench_error error = bench_baseline(machine, type, c->m, c->desc.n, c->desc.k, c->threads, &time, &rms_error);
  if (error) {
    snprintf(r->baseline_note, sizeof r->baseline_note, "%s", error);
  } else {
    r->baseline_us = time.us;
  }
  r->spent.baseline = bench_now() - start;
}

static bench_error run(bench_machine *machine, const bench_case *c, bench_result *r) {
  BENCH_TRY(machine->use_threads(machine, c->threads));
  switch (c->operation) {
    case BENCH_GEMM:
      BENCH_TRY(bench_run_gemm(machine, c, r));
      add_baseline(machine, c, r);
      return NULL;
    case BENCH_REGRET: return bench_run_regret(machine, c, r);
    case BENCH_CALL: return bench_run_gemm(machine, c, r);
    case BENCH_CHOOSE: return bench_run_choose(machine, c, r);
    case BENCH_BLAS: return run_blas(machine, c, r);
    case BENCH_QUANTIZE: return bench_run_quantize(machine, c, r);
    case BENCH_TABLES: return bench_run_tables(machine, c, r);
    default: return bench_run_pack(machine, c, r);
  }
}

void bench_run_case(bench_machine *machine, const bench_case *c, bench_result *r) {
  int writes = c->operation == BENCH_PACK || c->operation == BENCH_UNPACK || c->operation == BENCH_QUANTIZE;
  *r = (bench_result){.baseline_us = (double)NAN, .regret = {.best_us = (double)NAN, .tuned_us = (double)NAN}};
  r->bytes = bench_ideal_bytes(c);
  r->limit_us = bench_limit_us(c, writes ? machine->copy_gbps : machine->read_gbps);
  r->time.us = r->time.us_min = r->time.us_max = (double)NAN;
  bench_error error = run(machine, c, r);
  if (!error) return;
  snprintf(r->error, sizeof r->error, "%s", error);
  r->time = (bench_time){(double)NAN, (double)NAN, (double)NAN, 0, 0, 0};
}

void bench_run_done(const bench_machine *machine) {
  bench_free_gemm(machine);
  bench_free_regret(machine);
  bench_free_baseline(machine);
}
