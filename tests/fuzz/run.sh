#!/bin/sh
# Runs the fuzzers that `make fuzz` has built: run.sh DIRECTORY SECONDS fuzz_NAME...
# Finds are left as DIRECTORY/fuzz_NAME-crash-*; rerun one with DIRECTORY/fuzz_NAME FILE.
set -eu
directory=$1 seconds=$2
shift 2

for name in "$@"; do mkdir -p "$directory/corpus/$name"; done
"$directory/seeds" "$directory/corpus"
formats=$(dirname "$0")/../golden/formats
cp "$formats"/*.safetensors "$directory/corpus/fuzz_safetensors"
cp "$formats"/*.gguf "$directory/corpus/fuzz_gguf"

failed=0
for name in "$@"; do
  if "$directory/$name" -max_total_time="$seconds" -max_len=36864 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 \
      -print_final_stats=1 \
      -artifact_prefix="$directory/$name-" "$directory/corpus/$name" >"$directory/$name.log" 2>&1; then
    echo "ok   $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$directory/$name.log") runs in $seconds s"
  else
    echo "FAIL $name: the end of $directory/$name.log:"
    tail -n 30 "$directory/$name.log"
    failed=1
  fi
done
exit $failed
