"""Holds recorded cases against what was asked for: bench/bars/NAME.txt.

A line is a bar; # starts a comment:

    label: measure must aim field=pattern ... [against field=pattern ...]

The fields select cases as in bench_tables.py; cases=N says how many there must be. An aim of - is none.
`word = field=pattern ...` makes a word that stands for those fields in the lines below it. The measure is what is worst
among the cases:

    eff      least limit / time                  share   least eff, by that of the other case
    faster   least baseline / time               loss    most eff less than that of the other case
    speedup  geometric mean of the same          slower  most time, by that of the other case
    nodes    most nodes of the CUDA graph        us      most time
    regret, near, most   of the operation regret, the choice's time by that of the best kernel: geometric mean, the share
             of the cases with up to 1.1, the most; tuned: the mean after lpgemm_autotune()

The other case is the one that `against` names: like this one in operation, shape, M, type, scales and X, but for the
fields that are given, where {field} is the case's own."""

import collections
import math
import os
import re

import bench_records

SAME = ("operation", "shape", "m", "type", "scales", "x", "x_gap", "invariant", "threads")
Measure = collections.namedtuple("Measure", "of worst less", defaults=(False,))  # less: less is better
Bar = collections.namedtuple("Bar", "label measure must aim count filters against")
Result = collections.namedtuple("Result", "bar value case found missing verdict")


def mean(values):
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def near(values):
    """The share of the regrets that are small."""
    return sum(value <= 1.1 for value in values) / len(values)


MEASURES = {
    "eff": Measure(lambda c, _: c["eff"], min),
    "faster": Measure(lambda c, _: c["ratio"], min),
    "speedup": Measure(lambda c, _: c["ratio"], mean),
    "nodes": Measure(lambda c, _: c["nodes"], max, True),
    "us": Measure(lambda c, _: c["us"], max, True),
    "regret": Measure(lambda c, _: c.get("regret"), mean, True),
    "near": Measure(lambda c, _: c.get("regret"), near),
    "most": Measure(lambda c, _: c.get("regret"), max, True),
    "tuned": Measure(lambda c, _: c.get("tuned_regret"), mean, True),
    "share": Measure(lambda c, other: c["eff"] and other["eff"] and c["eff"] / other["eff"], min),
    "loss": Measure(lambda c, other: c["eff"] and other["eff"] and other["eff"] - c["eff"], max, True),
    "slower": Measure(lambda c, other: c["us"] / other["us"], max, True),
}


def path_of(name, root=bench_records.ROOT):
    return os.path.join(root, "bench", "bars", name + ".txt")


def fields(words, known):
    out = {}
    for word in words:
        if "=" in word:
            field, pattern = word.split("=", 1)
            out[field] = pattern
        elif word in known:
            out.update(known[word])
        else:
            raise bench_records.Refused(f"'{word}' is neither field=pattern nor a word of the file")
    return out


def read_line(line, known):
    """A Bar, or None for a line that makes a word."""
    if word := re.fullmatch(r"(\w+) = (.*)", line):
        known[word[1]] = fields(word[2].split(), known)
        return None
    label, _, rest = line.partition(":")
    measure, must, aim, *words = rest.split()
    if measure not in MEASURES:
        raise bench_records.Refused(f"'{measure}' is no measure")
    at = words.index("against") if "against" in words else len(words)
    filters = fields(words[:at], known)
    count = filters.pop("cases", None)
    against = fields(words[at + 1:], known) if at < len(words) else None
    return Bar(label.strip(), measure, float(must), None if aim == "-" else float(aim), count and int(count), filters,
               against)


def read(path):
    bars, known = [], {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line := line.split("#")[0].strip():
                try:
                    bars.append(read_line(line, known))
                except (bench_records.Refused, ValueError) as error:
                    raise bench_records.Refused(f"{path}, line {number}: {error}") from None
    return [bar for bar in bars if bar]


def other_case(case, against, cases):
    """The one case that `against` names, None if it is not there or not only one."""
    filters = {field: pattern.format(**case) for field, pattern in against.items()}
    same = [field for field in SAME if field not in filters]
    found = [c for c in cases if all(c[f] == case[f] for f in same) and bench_records.fits(c, filters)]
    return found[0] if len(found) == 1 else None


def judge(bar, cases):
    """missing: names of cases without a number or without their other case, or how many were not run."""
    measure, values, missing = MEASURES[bar.measure], [], []
    for case in (c for c in cases if bench_records.fits(c, bar.filters)):
        other = other_case(case, bar.against, cases) if bar.against else None
        value = None if bar.against and other is None else measure.of(case, other)
        if value is None:
            missing.append(case["name"])
        else:
            values.append((value, case))
    if bar.count and len(values) + len(missing) != bar.count:
        missing.append(f"{len(values) + len(missing)} cases, not {bar.count}")
    if not values:
        return Result(bar, None, None, 0, missing or ["no case"], "missed")
    value = measure.worst([v for v, _ in values])
    _, case = (max if measure.less or measure.worst is near else min)(values, key=lambda pair: pair[0])

    def reaches(goal):
        return goal is not None and (value <= goal if measure.less else value >= goal)
    verdict = "missed" if missing or not reaches(bar.must) else "aim" if reaches(bar.aim) else "met"
    return Result(bar, value, case, len(values), missing, verdict)


def judge_all(bars, cases):
    return [judge(bar, cases) for bar in bars]


def rows(results):
    """Cells of a table: label, measure, must, aim, value, verdict, cases, the worst of them."""
    def short(value):
        return "-" if value is None else f"{value:g}"
    return [[r.bar.label, r.bar.measure, short(r.bar.must), short(r.bar.aim),
             "-" if r.value is None else f"{r.value:.3f}", r.verdict, str(r.found),
             f"`{r.case['name']}`" if r.case else "-"] for r in results]


HEAD = ["bar", "measure", "must", "aim", "measured", "", "cases", "worst"]
