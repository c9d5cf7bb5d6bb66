#!/usr/bin/env python3
"""How good today's choice of kernels is, by times that were recorded once: no GPU is needed.

    regret.py PROGRAM [--mean 1.014] [--worst 1.5] [RECORD.json ...]
    regret.py PROGRAM --selftest

PROGRAM is tests/replay.c. A record is one of the suite regret; without any, it is bench/results/h200-regret.json. The
regret of a problem is the recorded time of the kernel that is chosen today, by that of the fastest kernel that still
exists. The exit status is 1 if the geometric mean or the worst of a record is above its bar, or if the recorded times
do not tell the regret of nearly all problems. bench/bars/regret.txt has the bars of a run on a GPU."""

import argparse
import collections
import os
import subprocess
import sys

import bench_bars
import bench_records

LEAST_KNOWN = 0.95  # of the problems

# Families as records of November 2026 call them.
FAMILIES = {"decode": "gemv", "bits": "gemv1", "counts": "gemv1", "lookup": "lut", "wide": "gemm", "octets": "gemm8",
            "few": "skinny8", "dense": "dequant", "planes": "gemm1"}

# regrets: (regret, case, the kernel chosen today, the best); unknown: cases whose choice has no recorded time; gone: how
# many were best by a kernel that is gone; same: estimates that are as recorded, of so many.
Result = collections.namedtuple("Result", "regrets unknown gone same estimates")


def today(name):
    """A kernel's name of today."""
    family, rest = name.split(".", 1)
    return f"{FAMILIES.get(family, family)}.{rest}"


def line_of(case):
    """A problem as the program reads it."""
    scaled = int("/x-scale-row/" in case["name"])
    return f"{case['n']} {case['k']} {case['m']} {case['x']} {case['y']} {scaled} {case['weights']}\n"


def replay(program, device, cases):
    """The kernels that there are; and for each case the one that is chosen, and the estimates of all that can do it."""
    done = subprocess.run([program, device], input="".join(map(line_of, cases)), capture_output=True, text=True)
    if done.returncode:
        raise bench_records.Refused(done.stderr.strip())
    kernels, *answers = (line.split() for line in done.stdout.splitlines())
    return set(kernels), [(a[0], dict(zip(a[1::2], map(float, a[2::2])))) for a in answers]


def compare(cases, kernels, answers):
    regrets, unknown, gone, same, estimates = [], [], 0, 0, 0
    for case, (chosen, estimated) in zip(cases, answers, strict=True):
        times = {today(name): us for name, us in case["times"].items()}
        gone += min(times, key=times.get) not in kernels
        known = {name: us for name, us in times.items() if name in kernels}
        if chosen in known:
            best = min(known, key=known.get)
            regrets.append((known[chosen] / known[best], case["name"], chosen, best))
        else:
            unknown.append(case["name"])
        for name, us in case["estimates"].items():
            if today(name) in kernels:
                estimates += 1
                same += f"{estimated.get(today(name), 0):g}" == f"{us:g}"
    return Result(regrets, unknown, gone, same, estimates)


def judge(result, most_mean, most_worst):
    """(lines to print, what is missed)"""
    regrets, unknown = result.regrets, result.unknown
    if len(regrets) < LEAST_KNOWN * (len(regrets) + len(unknown)) or not regrets:
        return [], [f"the regret of {len(unknown)} of {len(regrets) + len(unknown)} problems is not known"]
    values = [r[0] for r in regrets]
    mean, (worst, name, chosen, best) = bench_bars.mean(values), max(regrets)
    lines = [f"{len(regrets)} problems: mean {mean:.4f}, within a tenth {100 * bench_bars.near(values):.1f} %, worst "
             f"{worst:.3f}", f"the worst: {name}: {chosen}, and {best} was faster",
             f"{result.same} of {result.estimates} estimates are as recorded; {result.gone} problems were best by a "
             f"kernel that is gone; {len(unknown)} left out, whose choice was not timed"]
    missed = [f"the {what} is above {bar}" for what, value, bar in
              (("mean", mean, most_mean), ("worst", worst, most_worst)) if value > bar]
    return lines, missed


def main(program, paths, most_mean, most_worst):
    failed = 0
    for path in paths:
        record = bench_records.read(path)
        if record["suite"] != "regret":
            raise bench_records.Refused(f"{path} is a record of the suite {record['suite']}, not of regret")
        cases = [case for case in record["cases"] if not case["error"]]
        lines, missed = judge(compare(cases, *replay(program, record["device"], cases)), most_mean, most_worst)
        print(f"{path}: {record['device']}, commit {record['commit']}")
        for line in lines + [f"MISSED: {m}" for m in missed]:
            print("  " + line)
        failed += bool(missed)
    return int(failed > 0)


# ---- selftest ----

def made_up(name, times, **more):
    estimates = {kernel: us + 1 for kernel, us in times.items()}
    return {"name": name, "n": 4096, "k": 4096, "m": 16, "x": "f16", "y": "f16", "weights": "u4 g128 f16",
            "times": times, "estimates": estimates, **more}


def check_figures():
    assert today("wide.u4.f16.256x128.sm90a") == "gemm.u4.f16.256x128.sm90a" and today("gemv.u1.f16") == "gemv.u1.f16"
    cases = [made_up("a", {"decode.k": 10.0, "wide.k": 20.0}), made_up("b", {"decode.k": 10.0, "wide.k": 12.0}),
             made_up("c", {"decode.k": 30.0, "wide.k": 20.0, "bytes.k": 15.0}), made_up("d", {"wide.k": 20.0})]
    answers = [("gemv.k", {"gemv.k": 11.0, "gemm.k": 20.0}), ("gemm.k", {"gemv.k": 11.0, "gemm.k": 13.0}),
               ("gemv.k", {"gemv.k": 31.0, "gemm.k": 21.0}), ("gemv.k", {"gemv.k": 1.0, "gemm.k": 21.0})]
    result = compare(cases, {"gemv.k", "gemm.k"}, answers)
    assert [r[:2] for r in result.regrets] == [(1.0, "a"), (1.2, "b"), (1.5, "c")], result
    assert result[1:] == (["d"], 1, 6, 7), result
    assert judge(result, 2, 2) == ([], ["the regret of 1 of 4 problems is not known"])
    result = result._replace(unknown=[])
    lines, missed = judge(result, 1.22, 1.5)  # the mean is the cube root of 1.8
    assert lines[0] == "3 problems: mean 1.2164, within a tenth 33.3 %, worst 1.500" and not missed, (lines, missed)
    assert judge(result, 1.21, 1.49)[1] == ["the mean is above 1.21", "the worst is above 1.49"]


def check_program(program):
    """It reads every word that the suite draws, and refuses others."""
    weights = ("b8 g128 f16", "e6m0 g32 bf16", "u4 g64 f32 z7.5", "u8 zu8 f16", "u1 g32 f16 zf16", "u3 g64 bf16 minf16",
               "e2m1 g32 e8m0", "e4m3 g16 e4m3", "c3 g32 f16", "nf4 g64 f16")
    cases = [made_up("regret/f16/m16", {}, weights=words) for words in weights]
    cases.append(made_up("regret/u7/x-scale-row/m16", {}, weights="u3 f16", x="u7"))
    kernels, answers = replay(program, "NVIDIA H200", cases)
    assert len(answers) == len(cases)
    for case, (chosen, estimates) in zip(cases, answers):
        assert chosen in estimates and kernels.issuperset(estimates) and min(estimates.values()) > 0, (case, chosen)
    for device, words in (("NVIDIA H200", "u4 h128"), ("NVIDIA H201", "u4")):
        try:
            replay(program, device, [made_up("", {}, weights=words)])
        except bench_records.Refused:
            continue
        raise AssertionError(f"{device}: {words} is not refused")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("records", nargs="*", default=[os.path.relpath(bench_records.path_of("h200-regret"))])
    parser.add_argument("--mean", type=float, default=1.014)
    parser.add_argument("--worst", type=float, default=1.5)
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        check_figures()
        check_program(options.program)
        print("regret.py: selftest passed")
        sys.exit(0)
    try:
        sys.exit(main(options.program, options.records, options.mean, options.worst))
    except bench_records.Refused as error:
        sys.exit(f"regret.py: {error}")
