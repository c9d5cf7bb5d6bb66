#!/bin/sh
# The wheel as a user takes it: run.sh WHEEL FOLDER, after `make wheel`. One line a check; the last line counts them.
set -u
wheel=$1 work=$2
PYTHON=${PYTHON:-python3} CC=${CC:-cc}
here=$(dirname "$0")

rm -rf "$work" && mkdir -p "$work" && work=$(cd "$work" && pwd)

. "$here/../checks.sh"

# ---- the package as it lies in the wheel, which is a zip file ----

unpacked() { "$PYTHON" -m zipfile -e "$wheel" "$work/unpacked"; }
check 'the wheel unpacks' unpacked

PYTHONPATH=$work/unpacked PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$here/test_lpgemm.py" "$CC" >"$work/tests"
sed '$d' "$work/tests"
counts=$(tail -n 1 "$work/tests")
if echo "$counts" | grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'; then
  set -- $(echo "$counts" | tr -cd '0-9 ')
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
else
  echo "FAIL tests/python/test_lpgemm.py ended without its counts"
  failed=$((failed + 1))
fi

# ---- pip, in a fresh environment; the five lines are those of docs/engines.md ----

installed() {
  "$PYTHON" -m venv "$work/venv" && "$work/venv/bin/python" -m pip install --no-index --disable-pip-version-check "$wheel"
}
example() {
  awk '/^```python$/ {inside = 1; next} /^```$/ && inside {exit} inside' "$here/../../docs/engines.md" >"$work/example.py" &&
    grep -q 'handle.run' "$work/example.py" && cd "$work" && venv/bin/python -I example.py
}
removed() {
  "$work/venv/bin/python" -m pip uninstall -y lpgemm && ! find "$work/venv" -path '*lpgemm*' ! -type d | grep .
}
if "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; then
  check 'pip installs the wheel in a fresh environment' installed
  check 'the example of docs/engines.md runs there' example
  check 'pip removes all of it' removed
else
  skip 'the wheel in a fresh environment' 'venv or pip is not installed'
fi

echo "$passed passed, $failed failed, $skipped skipped"
test "$failed" = 0
