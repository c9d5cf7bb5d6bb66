#!/bin/sh
# get.sh FOLDER ISA: ggml's CPU backend as static libraries in FOLDER/ISA, for `make ggml-compare`. ISA is native, or avx2
# for no more than that. Sources are the distribution of llama-cpp-python on PyPI, which holds all of llama.cpp. Needs
# pip, cmake and a C++ compiler; what is there already stays.
set -eu
version=0.3.36 # ggml 0.25.3
sha=$(dirname "$0")/sources.sha256
mkdir -p "$1"
sources=$1/llama_cpp_python-$version/vendor/llama.cpp
if [ ! -d "$sources" ]; then
  ${PYTHON:-python3} -m pip download --no-deps --no-binary :all: "llama-cpp-python==$version" -d "$1"
  (cd "$1" && sha256sum -c) <"$sha"
  tar xzf "$1/llama_cpp_python-$version.tar.gz" -C "$1"
fi
ln -sfn "llama_cpp_python-$version/vendor/llama.cpp/ggml/include" "$1/include"
case $2 in
  native) isa="-DGGML_NATIVE=ON" ;;
  avx2) isa="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON" ;;
  *) echo "get.sh: ISA is native or avx2" >&2 && exit 1 ;;
esac
if [ ! -f "$1/$2/Makefile" ] && [ ! -f "$1/$2/build.ninja" ]; then
  # shellcheck disable=SC2086 # options are words
  cmake -S "$sources" -B "$1/$2" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF $isa \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF >/dev/null
fi
cmake --build "$1/$2" --target ggml ggml-base ggml-cpu -j "$(nproc)" >/dev/null
