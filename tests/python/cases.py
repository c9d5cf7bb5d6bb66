"""Tests that are functions named test_...: what runs and counts them."""

import sys
import traceback


class Skip(Exception):
    pass


def check(condition, what="not true"):
    if not condition:
        raise AssertionError(what)


def run(functions, only=""):
    """Those of a module's globals() whose names contain `only`. The exit code; the last line printed counts."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in [(n, t) for n, t in functions.items() if n.startswith("test_") and only in n]:
        try:
            test()
            counts["passed"] += 1
        except Skip as why:
            print(f"skip {name}: {why}")
            counts["skipped"] += 1
        except Exception:
            print(f"FAIL {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
            counts["failed"] += 1
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return int(counts["failed"] > 0)
