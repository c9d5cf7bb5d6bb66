#!/usr/bin/env python3
"""Runs test commands and adds up their counts.

usage: tally.py [--jobs N] COMMAND...

Each COMMAND is one shell command. One whose last line is 'N passed, N failed, N skipped' counts as it says, and as one
failure more if it exits with an error without having counted one. Any other command is one check: passed if it exits
with 0. Commands run one after the other, or up to N at a time: then the output of each is shown when it ends, and that
of those that failed once more at the end, where a log that is cut still has it. The last line printed is the sum; the
exit code is 0 only if nothing failed."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


def run(command, show):
    """The counts of one command. Its output goes to `show` line by line, but for its line of counts."""
    show(f"== {command}\n")
    process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    counts = None
    for line in process.stdout:
        if counts:  # it was not the last line
            show(held)
        counts, held = COUNTS.match(line.strip()), line
        if not counts:
            show(line)
    failed_exit = process.wait() != 0
    if not counts:
        passed, failed, skipped = int(not failed_exit), int(failed_exit), 0
    else:
        passed, failed, skipped = (int(n or 0) for n in counts.groups())
        failed += failed_exit and failed == 0
    show(f"   ok {passed}, FAILED {failed}, skipped {skipped}: {command}\n")
    return passed, failed, skipped


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def run_beside_others(commands, jobs):
    """The counts of commands that run up to `jobs` at a time, each with its output in one piece."""
    failed = []

    def one(command):
        write(f"== starts: {command}\n")
        output = []
        counts = run(command, output.append)
        write("".join(output))
        if counts[1]:
            failed.append(output)
        return counts

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, commands))
    for output in failed:
        write("== again, since it failed:\n" + "".join(output))
    return results


def main(arguments):
    jobs = 1
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    results = run_beside_others(arguments, jobs) if jobs > 1 else [run(command, write) for command in arguments]
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *results))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
