/* Runs cases: data, check, time. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "machine.h"

/* Fills the result; what goes wrong becomes result->error, and then there is no time. */
void bench_run_case(bench_machine *machine, const bench_case *c, bench_result *result);

/* Frees what is kept from case to case. */
void bench_run_done(const bench_machine *machine);

/* The parts of bench_run_case(). */
bench_error bench_run_gemm(const bench_machine *machine, const bench_case *c, bench_result *result);
void bench_free_gemm(const bench_machine *machine);
bench_error bench_run_choose(const bench_machine *machine, const bench_case *c, bench_result *result);
bench_error bench_run_regret(const bench_machine *machine, const bench_case *c, bench_result *result);
void bench_free_regret(const bench_machine *machine);
bench_error bench_run_quantize(const bench_machine *machine, const bench_case *c, bench_result *result);
bench_error bench_run_import(const bench_machine *machine, const bench_case *c, bench_result *result);
bench_error bench_run_experts(const bench_machine *machine, const bench_case *c, bench_result *result);
bench_error bench_run_token(const bench_machine *machine, const bench_case *c, bench_result *result);
bench_error bench_run_pack(const bench_machine *machine, const bench_case *c, bench_result *result);

#endif
