#!/bin/sh
# program.sh FOLDER FORM PROGRAM SOURCE LIBRARIES COMPILER OPTION ...: a program with the shared libraries of ggml that get.sh
# built in FOLDER/FORM. It runs where it was built.
set -eu
sources=$1/llama.cpp libraries=$(cd "$1" && pwd)/$2/bin program=$3 source=$4 libs=$5
shift 5
# shellcheck disable=SC3013 # every sh that we know has -nt
[ "$program" -nt "$source" ] && exit 0
echo "ggml: building $(basename "$program")"
# shellcheck disable=SC2086 # libs are words
"$@" -isystem "$sources/ggml/include" -isystem "$sources/ggml/src" -isystem "$sources/include" "$source" -o "$program" \
  -L"$libraries" -Wl,-rpath,"$libraries" -Wl,--allow-shlib-undefined $libs -lm -lpthread ||
  { echo "ggml: $source does not compile" >&2; exit 1; }
