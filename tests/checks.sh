# For test scripts, which set $work to a folder and source this file: check, skip, and what they count.
passed=0 failed=0 skipped=0

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

# skip NAME WHY
skip() {
  echo "skip $1: $2"
  skipped=$((skipped + 1))
}
