#!/bin/sh
# check.sh FOLDER MODULE [short]: `make ggml-check`. The bytes of tensors, ggml's own tests on the backend, then Llamas with
# random weights, whose logits are compared with those of the same models in fp32. short: without MUL_MAT_ID and Llamas.
set -eu
folder=$1 module=$2 form=${3:-whole}
here=$(dirname "$0")
sources=$folder/llama.cpp
fail() {
  echo "ggml-check: $1" >&2
  exit 1
}
[ "$form" = short ] && targets= || targets="ggml ggml-base ggml-cpu llama"
# shellcheck disable=SC2086 # targets are words
"$here/get.sh" "$folder" shared $targets

# build NAME SOURCE LIBRARIES COMPILER OPTION ...
build() {
  name=$1
  shift
  "$here/program.sh" "$folder" shared "$folder/$name" "$@" || exit 1
}

# ---- ggml's tests ----

build test-backend-ops "$sources/tests/test-backend-ops.cpp" "-lggml -lggml-base -lggml-cpu" "$CXX" -std=c++17 -O1 -w
build parts "$here/check/parts.c" "-lggml -lggml-base -lggml-cpu" "$CC" -std=c11 -O2 -Wall -Wextra -Werror
GGML_BACKEND_PATH=$module LPGEMM_GGML_DEVICE=cpu "$folder/parts" LPGEMM || fail "bytes of tensors differ"
"$here/ops.sh" "$folder" "$module" LPGEMM MUL_MAT
[ "$form" != short ] || { echo "ggml-check: all passed"; exit 0; }
# Left out: stacks that take ggml minutes to draw and to quantise. They are those of more than 2^29 weights (128 experts of
# 4096 x 2048), and of IQ3_S, whose points ggml searches for, those of more than 2^24 (512 and 1024 experts).
"$here/ops.sh" "$folder" "$module" LPGEMM MUL_MAT_ID \
  '^(?!type_a=iq3_s,.*n_mats=(512|1024),)(?!type_a=q4_K,.*n_mats=128,.*m=4096,)'

# ---- Llamas ----

build model "$here/check/model.c" "-lggml-base" "$CC" -std=c11 -O2 -Wall -Wextra -Werror
libs="-lllama -lggml -lggml-base -lggml-cpu"
build logits "$here/check/logits.c" "$libs" "$CC" -std=c11 -O2 -Wall -Wextra -Werror

# llama TYPE EXPERTS: how far its logits are from those in fp32: the median over tokens, and the mean while its routers are
# made to say what they say in fp32. FAST rounds X to 8 bits as ggml does or finer, so its errors are another draw of the
# same size: of fourteen models its medians were 0.95 to 1.09 times those of ggml, and the bound was set after that. The
# mean with free routers is printed and not held to it: a few tokens, whose two experts nearly tie, make most of it.
llama() {
  blocks=$folder/blocks.gguf fp32=$folder/fp32.gguf
  "$folder/model" "$blocks" "$1" blocks 3 512 1536 1024 "$2"
  "$folder/model" "$fp32" "$1" fp32 3 512 1536 1024 "$2"
  stock=$("$folder/logits" "$blocks" "$fp32")
  exact=$(GGML_BACKEND_PATH=$module LPGEMM_GGML_LEVEL=exact "$folder/logits" "$blocks" "$fp32")
  fast=$(GGML_BACKEND_PATH=$module LPGEMM_GGML_LEVEL=fast "$folder/logits" "$blocks" "$fp32")
  rm -f "$blocks" "$fp32"
  echo "ggml-check: Llama of $1, $2 experts, median, mean, mean with led routers: ggml $stock, EXACT $exact, FAST $fast"
  echo "$stock $exact $fast" | awk '
    function holds(stock, exact, fast) { return stock > 1e-6 && exact < stock / 100 && fast > exact && fast < stock * 1.15 }
    { exit !(holds($1, $4, $7) && holds($3, $6, $9)) }' ||
    fail "wanted: EXACT below a hundredth of ggml's error, FAST above that and below 1.15 times it"
}
llama q4_0 0
llama q8_0 0
llama q4_k 0
llama q4_0 8
llama mxfp4 8
echo "ggml-check: all passed"
