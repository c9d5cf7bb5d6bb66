#!/bin/sh
# rival.sh FOLDER OUT: ggml-cuda, as far as MUL_MAT of Q4_0, Q8_0, Q4_K and Q6_K and a Llama without flash attention need it,
# for gpu_bench.py and bench.py --gpu: OUT/rival/libggml-cuda.so as it is, OUT/patched/libggml-cuda.so with ggml-cuda.patch. Some of
# its sources with its own flags, for sm_90. What those do not define ends the program if it is ever called; functions
# that say whether something is supported or shall be used (kernels for plain weights with few columns) say no. FOLDER
# has ggml's sources and, after `make ggml-gpu`, its libraries.
set -eu
here=$(dirname "$0")
folder=$1 out=$2
sources=$folder/llama.cpp/ggml/src/ggml-cuda
cuda=${CUDA_HOME:-/usr/local/cuda}
objects=$folder/rival
mkdir -p "$objects" "$out/rival" "$out/patched" # apart from the programs, since ggml loads what lies beside them
compile() {
  source=$1 object=$2
  # shellcheck disable=SC3013 # every sh that we know has -nt
  [ "$object" -nt "$source" ] && return
  echo "rival: $(basename "$object" .o)"
  "$cuda/bin/nvcc" -std=c++17 -O3 -DNDEBUG -use_fast_math -extended-lambda -gencode arch=compute_90,code=sm_90 -Xcompiler -fPIC -w \
    -I "$sources" -I "$sources/.." -I "$sources/../../include" -DGGML_CUDA_USE_GRAPHS -DGGML_CUDA_NO_FA -DGGML_CUDA_NO_VMM \
    -DGGML_BACKEND_DL -DGGML_BACKEND_BUILD -DGGML_BACKEND_SHARED -DGGML_SHARED -c "$source" -o "$object"
}
instances=template-instances/mmq-instance
for name in mmvq mmq quantize mmid $instances-q4_0 $instances-q8_0 $instances-q4_k $instances-q6_k binbcast convert cpy getrows mmvf norm \
  rope scale set-rows softmax unary; do
  compile "$sources/$name.cu" "$objects/$(basename "$name").o"
done
mkdir -p "$objects/main"
compile "$sources/ggml-cuda.cu" "$objects/main/rival.o"
# shellcheck disable=SC3013 # every sh that we know has -nt
[ "$objects/main/patched.cu" -nt "$here/ggml-cuda.patch" ] ||
  patch --quiet -o "$objects/main/patched.cu" "$sources/ggml-cuda.cu" "$here/ggml-cuda.patch"
compile "$objects/main/patched.cu" "$objects/main/patched.o"
link() { # rival or patched
  form=$1
  shift
  c++ -shared "$objects/main/$form.o" "$objects"/*.o -o "$out/$form/libggml-cuda.so" -L "$folder/portable/bin" -lggml-base \
    -L "$cuda/lib64" -lcublas -lcudart_static -ldl -lrt -lpthread -Wl,--no-demangle "$@"
}
rm -f "$objects/missing.o"
{
  printf '.section .note.GNU-stack,"",@progbits\n.text\n'
  link patched -Wl,-z,defs 2>&1 | sed -n "s/.*undefined reference to \`\([^']*\)'.*/\1/p" | sort -u |
    while read -r symbol; do
      case $symbol in *_should_use_* | *_use_fwht* | *_supported*) code='xor %eax, %eax; ret' ;; *) code=ud2 ;; esac
      printf '.globl %s\n%s: %s\n' "$symbol" "$symbol" "$code"
    done
} >"$objects/missing.s"
cc -c "$objects/missing.s" -o "$objects/missing.o"
link rival -Wl,-z,defs -s
link patched -Wl,-z,defs -s
