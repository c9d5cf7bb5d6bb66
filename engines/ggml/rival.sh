#!/bin/sh
# rival.sh FOLDER OUT: ggml-cuda, as far as MUL_MAT of Q4_0, Q4_K and Q6_K needs it, as OUT/rival/libggml-cuda.so for
# gpu_bench.py: a few of its sources with its own flags, for sm_90. What those do not define ends the program if it is
# ever called; functions that say whether kernels for plain weights shall be used say no. FOLDER has
# ggml's sources and, after `make ggml-gpu`, its libraries.
set -eu
folder=$1 out=$2
sources=$folder/llama.cpp/ggml/src/ggml-cuda
cuda=${CUDA_HOME:-/usr/local/cuda}
objects=$folder/rival
mkdir -p "$objects" "$out/rival" # apart from the programs, since ggml loads what lies beside them
for name in ggml-cuda mmvq mmq quantize mmid template-instances/mmq-instance-q4_0 template-instances/mmq-instance-q4_k \
  template-instances/mmq-instance-q6_k; do
  object=$objects/$(basename "$name").o
  # shellcheck disable=SC3013 # every sh that we know has -nt
  [ "$object" -nt "$sources/$name.cu" ] && continue
  echo "rival: $name"
  "$cuda/bin/nvcc" -std=c++17 -O3 -DNDEBUG -use_fast_math -extended-lambda -gencode arch=compute_90,code=sm_90 -Xcompiler -fPIC -w \
    -I "$sources" -I "$sources/.." -I "$sources/../../include" -DGGML_CUDA_USE_GRAPHS -DGGML_CUDA_NO_FA -DGGML_CUDA_NO_VMM \
    -DGGML_BACKEND_DL -DGGML_BACKEND_BUILD -DGGML_BACKEND_SHARED -DGGML_SHARED -c "$sources/$name.cu" -o "$object"
done
link() {
  c++ -shared "$objects"/*.o -o "$out/rival/libggml-cuda.so" -L "$folder/portable/bin" -lggml-base -L "$cuda/lib64" -lcudart_static \
    -ldl -lrt -lpthread -Wl,--no-demangle "$@"
}
rm -f "$objects/missing.o"
{
  printf '.section .note.GNU-stack,"",@progbits\n.text\n'
  link -Wl,-z,defs 2>&1 | sed -n "s/.*undefined reference to \`\([^']*\)'.*/\1/p" | sort -u |
    while read -r symbol; do
      case $symbol in *_should_use_* | *_use_fwht*) code='xor %eax, %eax; ret' ;; *) code=ud2 ;; esac
      printf '.globl %s\n%s: %s\n' "$symbol" "$symbol" "$code"
    done
} >"$objects/missing.s"
cc -c "$objects/missing.s" -o "$objects/missing.o"
link -Wl,-z,defs -s
