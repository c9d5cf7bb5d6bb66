#!/bin/sh
# ops.sh FOLDER MODULE DEVICE OP [PATTERN]: ggml's own tests of an operation on a device of the module, or the cases of it
# that the pattern fits, by FOLDER/test-backend-ops. All must pass, a case of every block type must have run, and none may
# be refused but those whose rows of weights are in another order. FOLDER is that of `make ggml-check`, or that of `make
# ggml-gpu` on the machine to which it was carried. The log is written beside the program.
set -eu
folder=$1 module=$2 device=$3 op=$4 pattern=${5:-}
log=$folder/$op.$device.log
fail() {
  echo "ggml-check: $1" >&2
  exit 1
}
case $device in LPGEMM-CUDA*) kind=cuda ;; *) kind=cpu ;; esac
LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # where the libraries are carried too
export LD_LIBRARY_PATH
GGML_BACKEND_PATH=$module LPGEMM_GGML_DEVICE=$kind "$folder/test-backend-ops" test -b "$device" -o "$op" \
  ${pattern:+-p "$pattern"} >"$log" 2>&1 || { grep -a FAIL "$log" | head -n 20; fail "$op: a test failed: $log has all of them"; }
sed 's/\x1b\[[0-9;]*m//g' "$log" | awk -v name="$op on $device" -v refusal="not supported [$device]" '
  / tests passed/ && !passed { passed = $1 }
  match($0, /type_a=[a-zA-Z0-9_]+/) {
    type = substr($0, RSTART + 7, RLENGTH - 7)
    if (type ~ /^b?f(16|32)$/) next
    seen[type] = 1
    if (/: OK/) ok[type] = 1
    # What ggml cannot do either is not asked for, and no packed matrix has the order of its rows changed.
    if (index($0, refusal) && !/per=\[0,(2,1,3|1,3,2|3,2,1)\]/) { print "refused: " $0; bad = 1 }
  }
  END {
    for (type in seen) if (!(type in ok)) { print name ": no case of " type " ran"; bad = 1 }
    for (type in ok) types++
    split(passed, counts, "/")
    if (counts[1] == 0 || counts[1] != counts[2]) { print name ": " passed " passed"; bad = 1 }
    print "ggml-check: " name ": " passed " tests pass, " types " block types"
    exit bad
  }' || fail "$op: not all block types are supported"
