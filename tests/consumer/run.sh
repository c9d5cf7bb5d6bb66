#!/bin/sh
# Uses the installed library as an engine would: run.sh DESTDIR PREFIX BUILD, after `make install DESTDIR= PREFIX=`.
# One line a check; the last line counts them.
set -u
stage=$1 prefix=$2 build=$3
CC=${CC:-cc} CXX=${CXX:-c++}
here=$(dirname "$0")
work=$build/consumer
passed=0 failed=0 skipped=0
strict="-Wall -Wextra -pedantic -Werror"
include=$stage$prefix/include

rm -rf "$work" && mkdir -p "$work"

# check NAME COMMAND...: quiet if the command succeeds.
check() {
  name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok   $name"
    passed=$((passed + 1))
  else
    echo "FAIL $name: $*"
    tail -n 20 "$work/log" | sed 's/^/     /'
    failed=$((failed + 1))
  fi
}

skip() {
  echo "skip $1: $2 is not installed"
  skipped=$((skipped + 1))
}

have() { command -v "$1" >/dev/null 2>&1; }

# ---- the header ----

echo '#include <lpgemm.h>' >"$work/header.c"
cp "$work/header.c" "$work/header.cpp"
check 'header is C99' $CC -std=c99 $strict -I"$include" -c "$work/header.c" -o "$work/header.o"
if have "$CXX"; then
  check 'header is C++11' $CXX -std=c++11 $strict -I"$include" -c "$work/header.cpp" -o "$work/header.o"
else
  skip 'header is C++11' "$CXX"
fi

# ---- the archive ----

only_our_names() {
  nm -g --defined-only "$stage$prefix/lib/liblpgemm.a" >"$work/names" && grep -q ' T lpgemm_run$' "$work/names" &&
    ! awk 'NF == 3 && $3 !~ /^lpgemm_/' "$work/names" | grep .
}
check 'every global symbol starts with lpgemm_' only_our_names

# ---- pkg-config: the installed files say $prefix, the test has them in $stage ----

flags() {
  PKG_CONFIG_PATH=$stage$prefix/lib/pkgconfig pkg-config --define-variable=prefix="$stage$prefix" \
    --define-variable=libdir="$stage$prefix/lib" --define-variable=includedir="$include" "$@" lpgemm
}

version_agrees() {
  test "$(flags --modversion)" = "$(awk '/define LPGEMM_VERSION_(MAJOR|MINOR|PATCH) / {printf "%s%s", d, $3; d = "."}' \
    "$include/lpgemm.h")"
}

no_cxx_runtime() { readelf -d "$1" >"$work/dynamic" && ! grep -e 'libstdc++' -e 'libc++' "$work/dynamic"; }

if have pkg-config; then
  check 'pkg-config knows the version of the header' version_agrees
  check 'C11 program builds with pkg-config' \
    $CC -std=c11 $strict "$here/consumer.c" $(flags --cflags --libs --static) -o "$work/consumer_c"
  check 'C11 program runs' "$work/consumer_c"
  check 'C11 program needs no C++ runtime' no_cxx_runtime "$work/consumer_c"
  if have "$CXX"; then
    check 'C++11 program builds with pkg-config' \
      $CXX -std=c++11 $strict "$here/consumer.cpp" $(flags --cflags --libs --static) -o "$work/consumer_cpp"
    check 'C++11 program runs' "$work/consumer_cpp"
  else
    skip 'C++11 program with pkg-config' "$CXX"
  fi
else
  skip 'programs with pkg-config' pkg-config
fi

# ---- CMake, from another place than where it was installed ----

cmake_programs() {
  cp -r "$stage$prefix" "$work/moved" && cp "$here/CMakeLists.txt" "$here/consumer.c" "$here/consumer.cpp" "$work/" &&
    CC=$CC CXX=$CXX cmake -S "$work" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$(cd "$work/moved" && pwd)" &&
    cmake --build "$work/cmake" && "$work/cmake/consumer_c" && "$work/cmake/consumer_cpp"
}
if have cmake && have "$CXX"; then
  check 'C and C++ programs build with CMake from a moved tree, and run' cmake_programs
else
  skip 'programs with CMake' 'cmake or a C++ compiler'
fi

# ---- README and examples ----

# The first C program of README.md, without the fence around it.
readme_example() {
  awk '/^```c$/ {inside = 1; next} /^```$/ && inside {exit} inside' README.md >"$work/readme.c" &&
    grep -q lpgemm_matmul "$work/readme.c" &&
    $CC -std=c11 $strict "$work/readme.c" -I"$include" -L"$stage$prefix/lib" -llpgemm \
      $(sed -n 's/^Libs.private: *//p' "$stage$prefix/lib/pkgconfig/lpgemm.pc") -o "$work/readme" && "$work/readme"
}
check 'the example of README.md compiles and runs' readme_example
for example in quantize_and_run replace_cublas checkpoints; do
  check "examples/$example.c runs" "$build/examples/$example"
done
check 'examples/block runs on the CPU' "$build/examples/block" --cpu

# ---- programs ----

for program in lpgemm-info lpgemm-tune lpgemm-convert; do
  check "$program is installed and runs" "$stage$prefix/bin/$program" --help
done

# ---- uninstall ----

uninstalled() {
  env -u MAKEFLAGS -u MFLAGS make uninstall DESTDIR="$stage" PREFIX="$prefix" && ! find "$stage" -type f | grep .
}
check 'uninstall leaves no file' uninstalled

echo "$passed passed, $failed failed, $skipped skipped"
test "$failed" = 0
