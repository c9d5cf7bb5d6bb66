#!/usr/bin/env python3
"""Runs test commands one after the other and adds up their counts.

usage: tally.py COMMAND...

Each COMMAND is one shell command. One whose last line is 'N passed, N failed, N skipped' counts as it says, and as one
failure more if it exits with an error without having counted one. Any other command is one check: passed if it exits
with 0. The last line printed is the sum; the exit code is 0 only if nothing failed."""

import re
import subprocess
import sys

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


def run(command):
    """The counts of one command, whose output is shown as it comes, but for its line of counts."""
    print(f"== {command}", flush=True)
    process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, text=True, errors="replace")
    counts = None
    for line in process.stdout:
        if counts:  # it was not the last line
            print(held, end="", flush=True)
        counts, held = COUNTS.match(line.strip()), line
        if not counts:
            print(line, end="", flush=True)
    failed_exit = process.wait() != 0
    if not counts:
        passed, failed, skipped = int(not failed_exit), int(failed_exit), 0
    else:
        passed, failed, skipped = (int(n or 0) for n in counts.groups())
        failed += failed_exit and failed == 0
    print(f"   ok {passed}, FAILED {failed}, skipped {skipped}: {command}", flush=True)
    return passed, failed, skipped


def main(commands):
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *map(run, commands)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
