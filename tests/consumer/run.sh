#!/bin/sh
# Uses the installed library as an engine would: run.sh DESTDIR PREFIX BUILD, after `make install DESTDIR= PREFIX=`.
# One line a check; the last line counts them.
set -u
stage=$1 prefix=$2 build=$3
CC=${CC:-cc} CXX=${CXX:-c++}
here=$(dirname "$0")
work=$build/consumer
strict="-Wall -Wextra -pedantic -Werror"
include=$stage$prefix/include lib=$stage$prefix/lib
archive=$lib/liblpgemm.a shared=$lib/liblpgemm.so

rm -rf "$work" && mkdir -p "$work"

. "$here/../checks.sh"

have() { command -v "$1" >/dev/null 2>&1; }

# ---- the header ----

echo '#include <lpgemm.h>' >"$work/header.c"
cp "$work/header.c" "$work/header.cpp"
check 'header is C99' $CC -std=c99 $strict -I"$include" -c "$work/header.c" -o "$work/header.o"
if have "$CXX"; then
  check 'header is C++11' $CXX -std=c++11 $strict -I"$include" -c "$work/header.cpp" -o "$work/header.o"
else
  skip 'header is C++11' "$CXX is not installed"
fi

# ---- the archive ----

only_our_names() {
  nm -g --defined-only "$archive" >"$work/names" && grep -q ' T lpgemm_run$' "$work/names" &&
    ! awk 'NF == 3 && $3 !~ /^lpgemm_/' "$work/names" | grep .
}
check 'every global symbol starts with lpgemm_' only_our_names

all_hidden() { ! readelf -sW "$archive" | awk '$5 ~ "GLOBAL|WEAK" && $6 != "HIDDEN" && $7 != "UND" {print $8}' | grep .; }
check 'a plugin exports nothing of the archive' all_hidden

# ---- the shared library ----

# What the header declares: names with a parenthesis behind, outside of comments.
tr '\n' ' ' <"$include/lpgemm.h" | sed 's:/\*:\n&:g; s:\*/:&\n:g' | grep -v '^/\*' | grep -o '[ *]lpgemm_[a-z0-9_]*(' |
  tr -d ' *(' | sort >"$work/declared"

exactly_declared() {
  grep -q '^lpgemm_run$' "$work/declared" &&
    nm -D --defined-only "$shared" | awk '$2 != "A" {sub("@.*", "", $3); print $2, $3}' | sort >"$work/exported" &&
    sed 's/^/T /' "$work/declared" | diff - "$work/exported"
}
check 'liblpgemm.so exports exactly what lpgemm.h declares' exactly_declared

needs() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'; }

system_only() { needs "$shared" >"$work/needed" && ! grep -v -E '^(lib(c|m|pthread|dl|rt)|ld-linux.*)\.so\.' "$work/needed"; }
check 'liblpgemm.so needs the C library alone' system_only

so_names() {
  soname=$(readelf -d "$shared" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p') &&
    test "$(readlink -f "$lib/$soname")" = "$(readlink -f "$shared")" &&
    awk '/define LPGEMM_VERSION_(MAJOR|MINOR) / {printf ".%s", $3}' "$include/lpgemm.h" >"$work/abi" &&
    test "$soname" = "liblpgemm.so$(cat "$work/abi")"
}
check 'the soname is that of the version' so_names

# ---- pkg-config: the installed files say $prefix, the test has them in $stage ----

# flags PACKAGE OPTION...
flags() {
  package=$1
  shift
  PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$stage$prefix" "$@" "$package"
}

header_version() { awk '/define LPGEMM_VERSION_(MAJOR|MINOR|PATCH) / {printf "%s%s", d, $3; d = "."}' "$include/lpgemm.h"; }

version_agrees() {
  test "$(flags lpgemm --modversion)" = "$(header_version)" &&
    test "$(flags lpgemm-shared --modversion)" = "$(header_version)"
}

no_cxx_runtime() { needs "$1" >"$work/needed" && ! grep -e 'libstdc++' -e 'libc++' "$work/needed"; }

# Programs of the shared library are told where it is.
run_shared() { LD_LIBRARY_PATH=$lib "$@"; }
is_shared() { needs "$1" | grep -q '^liblpgemm\.so\.'; }
is_static() { ! is_shared "$1"; }

# A plugin that contains the archive: neither shows nor seeks a symbol of lpgemm.
plugin() {
  $CC -std=c11 $strict -shared -fPIC -Dmain=product "$here/consumer.c" $(flags lpgemm --cflags --libs) -o "$1" &&
    nm -D "$1" >"$work/names" && grep -q ' T product$' "$work/names" && ! grep lpgemm "$work/names"
}
plugin_host() {
  $CC -std=c11 $strict -Dmain=product -c "$here/consumer.c" $(flags lpgemm-shared --cflags) -o "$work/product.o" &&
    $CC -std=gnu11 -Wall -Wextra "$here/plugins.c" "$work/product.o" $(flags lpgemm-shared --libs) -ldl -rdynamic \
      -o "$work/plugins" && is_shared "$work/plugins"
}

if have pkg-config; then
  check 'pkg-config knows the version of the header' version_agrees
  check 'C11 program builds with pkg-config' \
    $CC -std=c11 $strict "$here/consumer.c" $(flags lpgemm --cflags --libs) -o "$work/consumer_c"
  check 'C11 program runs' "$work/consumer_c"
  check 'C11 program contains the archive' is_static "$work/consumer_c"
  check 'C11 program needs no C++ runtime' no_cxx_runtime "$work/consumer_c"
  check 'C11 program builds with the shared library' \
    $CC -std=c11 $strict "$here/consumer.c" $(flags lpgemm-shared --cflags --libs) -o "$work/consumer_so"
  check 'C11 program runs with the shared library' run_shared "$work/consumer_so"
  check 'C11 program needs the shared library' is_shared "$work/consumer_so"
  check 'a plugin builds with the archive' plugin "$work/first.so"
  check 'another plugin builds with the archive' plugin "$work/second.so"
  check 'a program for plugins builds with the shared library' plugin_host
  check 'two plugins with the archive and a program with the shared library multiply in one process' \
    run_shared "$work/plugins" "$work/first.so" "$work/second.so"
  if have "$CXX"; then
    check 'C++11 program builds with pkg-config' \
      $CXX -std=c++11 $strict "$here/consumer.cpp" $(flags lpgemm --cflags --libs) -o "$work/consumer_cpp"
    check 'C++11 program runs' "$work/consumer_cpp"
  else
    skip 'C++11 program with pkg-config' "$CXX is not installed"
  fi
else
  skip 'programs and plugins with pkg-config' 'pkg-config is not installed'
fi

# ---- CMake, from another place than where it was installed ----

cmake_programs() {
  cp -r "$stage$prefix" "$work/moved" && cp "$here/CMakeLists.txt" "$here/consumer.c" "$here/consumer.cpp" "$work/" &&
    CC=$CC CXX=$CXX cmake -S "$work" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$(cd "$work/moved" && pwd)" &&
    cmake --build "$work/cmake" && "$work/cmake/consumer_c" && "$work/cmake/consumer_cpp" &&
    "$work/cmake/consumer_shared" && is_static "$work/cmake/consumer_c" && is_shared "$work/cmake/consumer_shared"
}
if have cmake && have "$CXX"; then
  check 'C and C++ programs build with CMake from a moved tree, and run' cmake_programs
else
  skip 'programs with CMake' 'cmake or a C++ compiler is not installed'
fi

# ---- README and examples ----

# The first C program of README.md, without the fence around it.
readme_example() {
  awk '/^```c$/ {inside = 1; next} /^```$/ && inside {exit} inside' README.md >"$work/readme.c" &&
    grep -q lpgemm_matmul "$work/readme.c" &&
    $CC -std=c11 $strict "$work/readme.c" -I"$include" "$archive" \
      $(sed -n 's/^Libs: *[^ ]*//p' "$lib/pkgconfig/lpgemm.pc") -o "$work/readme" && "$work/readme"
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
  env -u MAKEFLAGS -u MFLAGS make uninstall DESTDIR="$stage" PREFIX="$prefix" && ! find "$stage" ! -type d | grep .
}
check 'uninstall leaves no file' uninstalled

echo "$passed passed, $failed failed, $skipped skipped"
test "$failed" = 0
