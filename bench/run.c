#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "baseline.h"
#include "limit.h"

static bench_error run_blas(const bench_machine *machine, const bench_case *c, bench_result *r) {
  snprintf(r->kernel, sizeof r->kernel, "%s", machine->blas);
  snprintf(r->checked, sizeof r->checked, "sampled outputs by fp64");
  return bench_time_baseline(machine, c, r);
}

static bench_error run(bench_machine *machine, const bench_case *c, bench_result *r) {
  BENCH_TRY(machine->use_threads(machine, c->threads));
  switch (c->operation) {
    case BENCH_GEMM:
    case BENCH_PREPARE:
    case BENCH_CALL: return bench_run_gemm(machine, c, r);
    case BENCH_REGRET: return bench_run_regret(machine, c, r);
    case BENCH_CHOOSE: return bench_run_choose(machine, c, r);
    case BENCH_BLAS: return run_blas(machine, c, r);
    case BENCH_QUANTIZE: return bench_run_quantize(machine, c, r);
    case BENCH_IMPORT: return bench_run_import(machine, c, r);
    case BENCH_EXPERTS: return bench_run_experts(machine, c, r);
    case BENCH_TOKEN: return bench_run_token(machine, c, r);
    default: return bench_run_pack(machine, c, r);
  }
}

void bench_run_case(bench_machine *machine, const bench_case *c, bench_result *r) {
  int writes = c->operation == BENCH_PACK || c->operation == BENCH_UNPACK || c->operation == BENCH_QUANTIZE;
  *r = (bench_result){.baseline = {.us = (double)NAN}, .regret = {.best_us = (double)NAN, .tuned_us = (double)NAN}};
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
