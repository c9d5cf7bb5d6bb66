#!/usr/bin/env python3
"""Writes the tables of measured times into documents, from bench/results/*.json.

    bench_tables.py --update FILE...    rewrites the tables between the markers of Markdown files
    bench_tables.py --check FILE...     fails unless they are up to date
    bench_tables.py --selftest

A marker names a record and a view, and may select cases by fields of the record (wildcards; alternatives joined by |):

    <!-- bench: h200-generic list operation=gemm x=f16 m=1|16 -->
    <!-- end -->

list is one row a case. grid is one row a matrix and a column for each M; a cell is the time in us, then eff = limit / time
and how many times as fast as the baseline, where they are known. Rows that may not be shown (failed, not checked, or of a
kernel that the recorded commit does not contain) are left out, named on stderr, and make the exit code 1."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import bench_records  # noqa: E402

MARKER = re.compile(r"(<!-- bench: ([^\n]*?) -->\n).*?(<!-- end -->)", re.S)


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def time_text(us):
    return "-" if us is None else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def markdown(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|"] + ["| " + " | ".join(r) + " |" for r in rows])


def threads(case):
    return f", {case['threads']} threads" if case["threads"] else ""


def as_list(cases):
    baseline = next((c["baseline"] for c in cases if c["baseline"]), None)
    head = ["N x K", "M", "weights", "x", "kernel", "us", "limit", "eff", "GB/s"]
    head += [f"{baseline} us", "times as fast"] if baseline else []
    rows = []
    for c in cases:
        row = [f"{c['n']} x {c['k']}", str(c["m"]), c["weights"] + threads(c), c["x"] or "-", f"`{c['kernel']}`",
               time_text(c["us"]), time_text(c["limit_us"]), number(c["eff"], 2), number(c["gbps"], 0)]
        rows.append(row + ([time_text(c["baseline_us"]), number(c["ratio"], 2)] if baseline else []))
    return markdown(head, rows)


def as_grid(cases):
    columns = sorted({c["m"] for c in cases})
    rows = {}
    for c in cases:
        key = (f"{c['n']} x {c['k']}", c["weights"] + threads(c), c["x"])
        extra = [number(c["eff"], 2)] if c["eff"] is not None else []
        extra += [number(c["ratio"], 1) + "x"] if c["ratio"] is not None else []
        cell = time_text(c["us"]) + (f" ({', '.join(extra)})" if extra else "")
        if rows.setdefault(key, {}).setdefault(c["m"], cell) != cell:
            raise bench_records.Refused(f"two cases of {key} with M = {c['m']}: select one")
    return markdown(["N x K", "weights", "x", *(f"M = {m}" for m in columns)],
                    [[*key, *(cells.get(m, "") for m in columns)] for key, cells in rows.items()])


VIEWS = {"list": as_list, "grid": as_grid}


def table(words, root, refused):
    """The text between the markers."""
    name, view, *selection = words.split()
    record = bench_records.read(bench_records.path_of(name, root))
    try:
        cases, reasons = bench_records.cases(record, dict(s.split("=", 1) for s in selection), root)
        refused += [f"{name}: {reason}" for reason in reasons]
        if not cases:
            raise bench_records.Refused("no case is left")
        return f"\n{VIEWS[view](cases)}\n\n{bench_records.caption(record)}.\n\n"
    except bench_records.Refused as error:
        refused.append(f"{name}: {error}")
        return "\n"


def with_tables(text, root, refused):
    return MARKER.sub(lambda m: m[1] + table(m[2], root, refused) + m[3], text)


def run(flag, paths, root=bench_records.ROOT):
    refused, stale = [], []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = with_tables(old, root, refused)
        if new != old and flag == "--update":
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
        elif new != old:
            stale.append(f"{path}: a table is out of date")
    for reason in refused + stale:
        print(reason, file=sys.stderr)
    return int(bool(refused or stale))


# ---- the test of this file: a repository of its own, with one kernel ----

GENERATOR = """import collections
FAMILIES = {"decode": collections.namedtuple("Family", "header")("kernels/decode.cuh")}
def parse(families, name):
    if name.split(".")[0] not in families:
        raise ValueError(name + " is not there")
    return collections.namedtuple("Kernel", "family")(name.split(".")[0])
"""


def selftest():
    case = {"name": "gemm/a/m1", "operation": "gemm", "shape": "a", "m": 1, "n": 64, "k": 32, "weights": "u4 g128", "bits": 4,
            "x": "f16", "y": "f16", "threads": 0, "kernel": "decode.u4.f16.16x8.sm90a", "family": "decode", "us": 12.34,
            "limit_us": 10.0, "eff": 0.81, "gbps": 3000.0, "baseline": "cuBLAS", "baseline_us": 30.0, "ratio": 2.43,
            "checked": "all", "error": ""}
    record = {"suite": "decode", "commit": "", "date": "2026-01-02T03:04:05Z", "device": "GPU", "driver": "1", "runtime": "2",
              "read_gbps": 4560.0, "void": "", "cases": [case]}
    with tempfile.TemporaryDirectory() as root:
        def commit(path, text):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run(["git", "-C", root, "add", path], check=True)
            subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", path], check=True)
            return bench_records.git("rev-parse", "HEAD", root=root).strip()

        def tables(**changes):
            with open(bench_records.path_of("r", root), "w", encoding="utf-8") as f:
                json.dump({**record, **changes}, f)
            refused = []
            return with_tables("a\n<!-- bench: r grid m=1 -->\nold\n<!-- end -->\nb\n", root, refused), refused

        subprocess.run(["git", "init", "-q", root], check=True)
        commit("bench/results/r.json", "{}")
        before = commit("tools/gen_kernels.py", GENERATOR)
        after = commit("src/kernels/decode.cuh", "\n")
        text, refused = tables(commit=after)
        assert "| 64 x 32 | u4 g128 | f16 | 12.3 (0.81, 2.4x) |" in text and "old" not in text and not refused, (text, refused)
        assert "GPU (driver 1, 2), read bandwidth 4.56 TB/s" in text and text.endswith("<!-- end -->\nb\n"), text
        for changes, why in (({"commit": before}, "has no src/kernels/decode.cuh"),
                             ({"commit": after + "-dirty"}, "changed sources"),
                             ({"commit": "0123456789abcdef0123456789abcdef01234567"}, "no ancestor"),
                             ({"commit": after, "void": "slow"}, "void: slow"),
                             ({"commit": after, "cases": [{**case, "error": "wrong", "us": None}]}, "failed: wrong"),
                             ({"commit": after, "cases": [{**case, "checked": ""}]}, "not checked"),
                             ({"commit": after, "cases": [{**case, "kernel": "lut.u4.f16.1.sm80"}]}, "is not there"),
                             ({"commit": after, "cases": [case, {**case, "us": 13.0}]}, "select one"),
                             ({"commit": after, "cases": [{**case, "m": 2}]}, "no case is left")):
            text, refused = tables(**changes)
            assert "12.3" not in text and any(why in r for r in refused), (changes, text, refused)
        text, refused = tables(commit=after, cases=[{**case, "error": "wrong"}, {**case, "shape": "b", "n": 65}])
        assert "| 65 x 32 |" in text and "| 64 x 32 |" not in text and len(refused) == 1, (text, refused)
        assert "| 12.3 | 10.0 | 0.81 | 3000 | 30.0 | 2.43 |" in as_list([case])
    print("bench_tables.py: selftest passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        selftest()
    elif len(sys.argv) > 2 and sys.argv[1] in ("--update", "--check"):
        sys.exit(run(sys.argv[1], sys.argv[2:]))
    else:
        sys.exit(__doc__)
