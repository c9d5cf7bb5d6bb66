#!/bin/sh
# carry.sh FOLDER MODULE OUT: `make ggml-gpu`. What ggml's tests need on a machine with a GPU that has no compiler: the
# module, test-backend-ops, parts, and libraries, ggml's for AVX2. There ops.sh and gpu_bench.py run them.
set -eu
folder=$1 module=$2 out=$3
here=$(dirname "$0")
"$here/get.sh" "$folder" portable
mkdir -p "$out"
build() {
  program=$1 source=$2
  shift 2
  "$here/program.sh" "$folder" portable "$folder/$program" "$source" "-lggml -lggml-base -lggml-cpu" "$@"
}
build test-backend-ops "$folder/llama.cpp/tests/test-backend-ops.cpp" "$CXX" -std=c++17 -O1 -w
build parts "$here/check/parts.c" "$CC" -std=c11 -O2 -Wall -Wextra -Werror
for file in "$folder/test-backend-ops" "$folder/parts" "$module"; do strip -o "$out/$(basename "$file")" "$file"; done
ldd "$folder/test-backend-ops" | awk '/lib(ggml|gomp|stdc|gcc_s)/ {print $3}' | while read -r library; do
  name=$(basename "$library")
  case $name in libggml*) library=$folder/portable/bin/$name ;; esac
  strip -o "$out/$name" "$library"
done
echo "ggml: carry $out: $(du -sh "$out" | cut -f1)"
