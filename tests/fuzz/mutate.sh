#!/bin/sh
# Long runs from one file each, for which CI has no time: mutate.sh DIRECTORY SECONDS FILE...
# DIRECTORY is what `make fuzz` has built into: build/fuzz. Each file is mutated for so long by the fuzzer of its
# format, with half the memory of run.sh, and gets a line that says how many runs that were. Finds are left as
# DIRECTORY/mutate-NAME-crash-*.
set -eu
directory=$1 seconds=$2
shift 2

failed=0
for file in "$@"; do
  case $file in
    *.safetensors) fuzzer=fuzz_safetensors ;;
    *.gguf) fuzzer=fuzz_gguf ;;
    *) fuzzer=fuzz_container ;;
  esac
  name=$(basename "$file")
  corpus=$directory/mutate/$name log=$directory/mutate-$name.log
  rm -rf "$corpus" && mkdir -p "$corpus" && cp "$file" "$corpus/seed"
  status=ok
  "$directory/$fuzzer" -max_total_time="$seconds" -max_len=36864 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=128 \
    -print_final_stats=1 -artifact_prefix="$directory/mutate-$name-" "$corpus" >"$log" 2>&1 || status=FAIL failed=1
  echo "$status $name with $fuzzer: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s"
done
exit $failed
