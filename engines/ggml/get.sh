#!/bin/sh
# get.sh FOLDER FORM [TARGET ...]: ggml in FOLDER/FORM, for `make ggml-compare` and `make ggml-check`. FORM is native or
# avx2: static libraries for this machine or for AVX2 alone, without OpenMP; shared: shared libraries for this machine,
# as a user builds llama.cpp; portable: such libraries for AVX2; or sources: nothing is built. Targets are ggml and its CPU backend, or those that are named.
# Sources are the distribution of llama-cpp-python on PyPI, which holds all of llama.cpp; FOLDER/llama.cpp leads there.
# What is there already stays.
set -eu
version=0.3.36 # ggml 0.25.3
folder=$1 form=$2 here=$(dirname "$0")
shift 2
fail() {
  echo "ggml: $1" >&2
  exit 1
}
avx2="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
case $form in
  native) options="-DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF -DGGML_NATIVE=ON -DLLAMA_BUILD_TOOLS=OFF" ;;
  avx2) options="-DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TOOLS=OFF $avx2" ;;
  shared) options="-DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=ON -DLLAMA_BUILD_TOOLS=ON" ;;
  portable) options="-DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_TOOLS=OFF $avx2" ;;
  sources) ;;
  *) fail "the form is native, avx2, shared, portable or sources, not $form" ;;
esac
mkdir -p "$folder"
sources=$folder/llama_cpp_python-$version/vendor/llama.cpp
if [ ! -d "$sources" ]; then
  ${PYTHON:-python3} -m pip --version >/dev/null 2>&1 || fail "pip is needed: ${PYTHON:-python3} -m pip does not run"
  echo "ggml: downloading llama-cpp-python $version from PyPI (77 MB)"
  ${PYTHON:-python3} -m pip download --quiet --no-deps --no-binary :all: "llama-cpp-python==$version" -d "$folder" ||
    fail "pip could not download llama-cpp-python $version: is there a network?"
  (cd "$folder" && sha256sum --quiet -c) <"$here/sources.sha256" || fail "the download is not what was expected"
  mkdir -p "$folder/unpacking" # a folder of the right name is whole
  tar xzf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder/unpacking"
  rm -rf "$folder/llama_cpp_python-$version"
  mv "$folder/unpacking/llama_cpp_python-$version" "$folder"
fi
ln -sfn "llama_cpp_python-$version/vendor/llama.cpp" "$folder/llama.cpp"
[ "$form" != sources ] || exit 0
command -v cmake >/dev/null || fail "cmake is needed and is not on PATH"
command -v c++ >/dev/null || fail "a C++ compiler is needed, and there is no c++ on PATH"
if [ ! -f "$folder/$form/Makefile" ] && [ ! -f "$folder/$form/build.ninja" ]; then
  # shellcheck disable=SC2086 # options are words
  cmake -S "$sources" -B "$folder/$form" -DCMAKE_BUILD_TYPE=Release $options -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF \
    >"$folder/$form.log" 2>&1 || fail "cmake failed: $folder/$form.log says why"
fi
[ $# -gt 0 ] || set -- ggml ggml-base ggml-cpu
echo "ggml: building $*"
cmake --build "$folder/$form" --target "$@" -j "$(nproc)" >"$folder/$form.log" 2>&1 ||
  fail "the build failed: $folder/$form.log says why"
