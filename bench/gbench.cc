#include "gbench.h"

#include <benchmark/benchmark.h>

namespace {

class Quiet : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context &) override { return true; }
  void ReportRuns(const std::vector<Run> &) override {}
};

void run(benchmark::State &state, gbench_function function, void *context) {
  for (auto _ : state) {
    gbench_report report = {};
    function(context, &report);
    if (report.error) {
      state.SkipWithError(report.error);
      return;
    }
    state.SetIterationTime(report.seconds);
    for (int i = 0; i < report.counters; i++) state.counters[report.counter[i].name] = report.counter[i].value;
    if (report.label) state.SetLabel(report.label);
  }
}

}  // namespace

void gbench_start(int *argc, char **argv) { benchmark::Initialize(argc, argv); }

void gbench_context(const char *key, const char *value) { benchmark::AddCustomContext(key, value); }

void gbench_register(const char *name, gbench_function function, void *context) {
  benchmark::RegisterBenchmark(name, run, function, context)
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMicrosecond);
}

int gbench_run(int quiet) {
  Quiet reporter;
  return static_cast<int>(quiet ? benchmark::RunSpecifiedBenchmarks(&reporter) : benchmark::RunSpecifiedBenchmarks());
}
