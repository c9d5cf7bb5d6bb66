#!/usr/bin/env python3
"""Writes the tables and plots of measured times into documents, from bench/results/*.json.

    bench_tables.py --update FILE...         rewrites the tables between the markers of Markdown files, and the plots
    bench_tables.py --check FILE...          fails unless they are up to date
    bench_tables.py --summary BARS NAME      what bench/bars/BARS.txt asks for against what was measured, and how many
                                             times as fast as the baseline; fails unless every bar is met
    bench_tables.py --score NAME             the score of drawn cases (bench_score.py); NAME.json is a file anywhere,
                                             and then of sources that were not committed, too
    bench_tables.py --selftest

A marker names a record (several joined by +, where a suite was run in parts) and a view, and may select cases by fields
of the record (wildcards; 1..8 is a range; alternatives joined by |) and by those of bench_records.with_derived():

    <!-- bench: h200-generic list operation=gemm x=f16 m=1|16 -->
    <!-- end -->
    <!-- plot: h200-decode eff-bits docs/eff.svg shape=57344x8192 m=1|16 -->

    list     one row a case; SM clock and power where they were recorded
    grid     one row a matrix and type of weights, a column for each M; a cell is the time in us, then eff = limit /
             time and how many times as fast as the baseline, where they are known
    types    one row a type of weights, a column for each matrix (if there are several) and M; cells as in grid
    speedup  one row a type of weights, a column for each M and one for all: the geometric mean over the matrices of how
             many times as fast as the baseline it is
    bars     bars=NAME in front of the other words: one row a bar of bench/bars/NAME.txt, as bench_bars.py reads it
    tokens   of records of engines/ggml/bench.py: one row a case, tokens a second beside stock

A plot is one of bench_plot.py's, written to the file that the marker names. Cases that may not be shown (failed, not
checked, or of a kernel that the recorded commit does not contain) are left out, named on stderr, and make the exit code
1."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import bench_bars  # noqa: E402
import bench_plot  # noqa: E402
import bench_records  # noqa: E402
import bench_score  # noqa: E402
import bench_tokens  # noqa: E402

MARKER = re.compile(r"^(<!-- bench: ([^\n]*?) -->\n).*?(<!-- end -->)", re.S | re.M)
PLOT = re.compile(r"^<!-- plot: ([^\n]*?) -->", re.M)


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def time_text(us):
    return "-" if us is None else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def markdown(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def threads(case):
    return f", {case['threads']} threads" if case["threads"] else ""


def clock_columns(cases, of=""):
    """Columns as in as_list(), none where nothing was recorded; `of` stands in front of the fields."""
    return [(head, lambda c, field=of + field: number(c[field], 0))
            for head, field in (("MHz", "mhz"), ("W", "watts")) if any(c[of + field] for c in cases)]


def as_list(cases):
    baseline = next((c["baseline"] for c in cases if c["baseline"]), None)
    columns = [("N x K", lambda c: f"{c['n']} x {c['k']}"), ("M", lambda c: str(c["m"])),
               ("weights", lambda c: c["weights"] + threads(c)), ("x", lambda c: c["x"] or "-"),
               ("kernel", lambda c: f"`{c['kernel']}`"), ("us", lambda c: time_text(c["us"])),
               *clock_columns(cases), ("limit", lambda c: time_text(c["limit_us"])),
               ("eff", lambda c: number(c["eff"], 2)), ("GB/s", lambda c: number(c["gbps"], 0))]
    if baseline:
        columns += [(f"{baseline} us", lambda c: time_text(c["baseline_us"])),
                    *clock_columns(cases, "baseline_"), ("times as fast", lambda c: number(c["ratio"], 2))]
    return markdown([head for head, _ in columns], [[text(c) for _, text in columns] for c in cases])


def cell(case):
    extra = [number(case["eff"], 2)] if case["eff"] is not None else []
    extra += [number(case["ratio"], 1) + "x"] if case["ratio"] is not None else []
    return time_text(case["us"]) + (f" ({', '.join(extra)})" if extra else "")


def crossed(cases, row, column, head):
    """A table of cells, one a case. row and column name them; they stand in the order of the cases, M in its own."""
    rows, columns = {}, {}
    for c in cases:
        columns[column(c)] = None
        if rows.setdefault(row(c), {}).setdefault(column(c), c) is not c:
            raise bench_records.Refused(f"two cases of {row(c)} with {column(c)}: select one")
    columns = sorted(columns) if all(isinstance(c, int) for c in columns) else list(columns)
    return markdown([*head, *(f"M = {c}" if isinstance(c, int) else c for c in columns)],
                    [[*key, *(cell(cells[c]) if c in cells else "" for c in columns)] for key, cells in rows.items()])


def as_grid(cases):
    return crossed(cases, lambda c: (f"{c['n']} x {c['k']}", c["weights"] + threads(c), c["x"]), lambda c: c["m"],
                   ["N x K", "weights", "x"])


def row_names(cases):
    """What tells the rows apart: the type where that is enough."""
    one_scales, one_x = (len({c[field] for c in cases}) == 1 for field in ("scales", "x"))

    def name(c):
        words = c["type"] if one_scales else c["weights"]
        return words if one_x else f"{words}, {c['x']}"
    return name


def by_type(cases):
    """In the order u, i, b, floats, codebooks, and by width; those of a type as they were."""
    return sorted(cases, key=lambda c: (["integer", "float", "codebook", ""].index(c["kind"]),
                                        "uib".find(c["type"][:1]), c["bits"], c["type"]))


def as_types(cases):
    name, cases = row_names(cases), by_type(cases)
    one_matrix = len({(c["n"], c["k"]) for c in cases}) == 1
    return crossed(cases, lambda c: (name(c),),
                   lambda c: c["m"] if one_matrix else f"{c['n']} x {c['k']}, M = {c['m']}", ["weights"])


def as_speedup(cases):
    name, rows = row_names(cases), {}
    for c in (c for c in by_type(cases) if c["ratio"] is not None):
        if rows.setdefault(name(c), {}).setdefault(c["m"], {}).setdefault(c["shape"], c["ratio"]) != c["ratio"]:
            raise bench_records.Refused(f"two cases of {name(c)}, {c['shape']}, M = {c['m']}: select one")
    if not rows:
        raise bench_records.Refused("no case has a baseline")
    columns = sorted({m for by_m in rows.values() for m in by_m})
    shapes = {frozenset(ratios) for by_m in rows.values() for ratios in by_m.values()}
    if len(shapes) > 1 or any(len(by_m) < len(columns) for by_m in rows.values()):
        raise bench_records.Refused("the means are not over the same matrices and M: select some")
    def means(by_m):
        parts = [list(by_m[m].values()) for m in columns]
        return [number(bench_bars.mean(ratios), 2) for ratios in (*parts, sum(parts, []))]
    return markdown(["weights", *(f"M = {m}" for m in columns), "all"],
                    [[key, *means(by_m)] for key, by_m in rows.items()])


VIEWS = {"list": as_list, "grid": as_grid, "types": as_types, "speedup": as_speedup}


def as_bars(name, cases, root):
    bars = bench_bars.read(bench_bars.path_of(name, root))
    return markdown(bench_bars.HEAD, bench_bars.rows(bench_bars.judge_all(bars, cases)))


def captions(records):
    """Machines are named once."""
    runs = {}
    for machine, run_of in map(bench_records.caption, records):
        runs.setdefault(machine, []).append(run_of)
    return ". ".join(f"{machine}, {'; '.join(each)}" for machine, each in runs.items())


def selected(words):
    """field=pattern words as filters."""
    return dict(word.split("=", 1) for word in words)


def table(words, root, refused):
    """The text between the markers."""
    name, view, *selection = words.split()
    filters = selected(selection)
    bars = filters.pop("bars", None)
    try:
        if view == "tokens":
            return f"\n{bench_tokens.table(name, filters, markdown, root)}.\n\n"
        cases, reasons, records = bench_records.load(name, filters, root)
        refused += reasons
        if not cases:
            return "\n"
        text = as_bars(bars, cases, root) if view == "bars" else VIEWS[view](cases)
        return f"\n{text}\n\n{captions(records)}.\n\n"
    except bench_records.Refused as error:
        refused.append(f"{name}: {error}")
        return "\n"


def plots(text, root, refused):
    """{path: SVG} of the plots that a document names."""
    out = {}
    for words in PLOT.findall(text):
        name, kind, path, *selection = words.split()
        try:
            out[path], reasons = bench_plot.draw(kind, name, selected(selection), root)
            refused += reasons
        except bench_records.Refused as error:
            refused.append(f"{name}: {error}")
    return out


def with_tables(text, root, refused):
    return MARKER.sub(lambda m: m[1] + table(m[2], root, refused) + m[3], text)


def read_text(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return None


def run(flag, paths, root=bench_records.ROOT):
    refused, stale = [], []
    for path in paths:
        old = read_text(path)
        new = {path: with_tables(old, root, refused)}
        new.update({os.path.join(root, name): svg for name, svg in plots(old, root, refused).items()})
        for file, text in new.items():
            if text == read_text(file):
                continue
            if flag == "--check":
                stale.append(f"{file}: a table or a plot is out of date")
                continue
            with open(file, "w", encoding="utf-8") as f:
                f.write(text)
    for reason in refused + stale:
        print(reason, file=sys.stderr)
    return int(bool(refused or stale))


def summary(bars, name, root=bench_records.ROOT):
    """The bars, the speedups of what bars ask for speedups of, and which families ran."""
    try:
        asked = bench_bars.read(bench_bars.path_of(bars, root))
        cases, refused, records = bench_records.load(name, None, root)
    except bench_records.Refused as error:
        sys.exit(str(error))
    results = bench_bars.judge_all(asked, cases)
    print(markdown(bench_bars.HEAD, bench_bars.rows(results)))
    means = [b for b in asked if b.measure == "speedup"]
    chosen = [c for c in cases if any(bench_records.fits(c, b.filters) for b in means)]
    if chosen:
        try:
            print("\n" + as_speedup(chosen))
        except bench_records.Refused as error:
            print(f"\nno means: {error}")
    families = [c["family"] or "without a kernel" for c in cases]
    print(f"\n{captions(records)}.")
    print("Cases: " + ", ".join(f"{families.count(f)} {f}" for f in dict.fromkeys(families)) + ".")
    for result in results:
        refused += [f"{result.bar.label}: nothing to hold against: {why}" for why in result.missing]
    for reason in refused:
        print(reason, file=sys.stderr)
    missed = sum(r.verdict == "missed" for r in results)
    print(f"{len(results) - missed} bars met, {missed} missed.")
    return int(bool(missed or refused))


def score(names):
    """Records, or files of runs that need not be shown: those are not checked, and their failed cases are named."""
    refused = []
    try:
        if not names.endswith(".json"):
            cases, refused, records = bench_records.load(names)
        else:
            records = [bench_records.read(path) for path in names.split("+")]
            every = [bench_records.with_derived(c) for record in records for c in record["cases"]]
            cases = [c for c in every if not c["error"]]
            refused = [f"{c['name']} failed: {c['error']}" for c in every if c["error"]]
            records = [{**record, "shown": list(map(bench_records.with_derived, record["cases"]))} for record in records]
    except bench_records.Refused as error:
        sys.exit(str(error))
    print(f"{bench_score.score(cases, markdown)}\n\n{captions(records)}.")
    for reason in refused:
        print(reason, file=sys.stderr)
    return int(bool(refused))


# ---- the test of this file: a repository of its own, with one kernel ----

GENERATOR = """import collections
FAMILIES = {"gemv": collections.namedtuple("Family", "header")("kernels/gemv.cuh")}
def parse(families, name):
    if name.split(".")[0] not in families:
        raise ValueError(name + " is not there")
    return collections.namedtuple("Kernel", "family")(name.split(".")[0])
"""


CASE = {"name": "gemm/a/m1", "operation": "gemm", "shape": "a", "m": 1, "n": 64, "k": 32, "weights": "u4 g128",
        "bits": 4, "x": "f16", "y": "f16", "threads": 0, "kernel": "gemv.u4.f16.16x8.sm90a", "family": "gemv",
        "us": 12.34, "limit_us": 10.0, "eff": 0.81, "gbps": 3000.0, "baseline": "cuBLAS", "baseline_us": 30.0,
        "ratio": 2.43, "checked": "all", "error": ""}


def changed(**changes):
    return bench_records.with_derived({**CASE, **changes})


def test_views():
    cases = [changed(weights=w, bits=b, m=m, shape=s, n=n, ratio=r)
             for w, b, r in (("u4 g128 f16 z8", 4, 2.0), ("nf4 g128 f16", 4, 0.5)) for s, n in (("a", 64), ("b", 65))
             for m in (1, 16)]
    cases[1]["ratio"] = 8.0
    cases = cases[4:] + cases[:4]
    text = as_types(cases)
    assert text.startswith("| weights | 64 x 32, M = 1 | 64 x 32, M = 16 | 65 x 32, M = 1 |"), text
    assert "| u4 | 12.3 (0.81, 2.0x) | 12.3 (0.81, 8.0x) |" in text and "| nf4 | 12.3 (0.81, 0.5x) |" in text, text
    assert text.index("| u4 |") < text.index("| nf4 |")
    assert as_types([c for c in cases if c["shape"] == "a"]).startswith("| weights | M = 1 | M = 16 |")
    assert as_types(cases + [changed(weights="u4 g32 f16 z8")]).count("| u4 g128 f16 z8 |") == 1
    text = as_speedup(cases)
    assert text.splitlines()[0] == "| weights | M = 1 | M = 16 | all |", text
    assert "| u4 | 2.00 | 4.00 | 2.83 |" in text and "| nf4 | 0.50 | 0.50 | 0.50 |" in text, text
    for wrong in (cases[:-1], [changed(ratio=None)], cases + [{**cases[-1], "ratio": 3.0}]):
        try:
            as_speedup(wrong)
            raise AssertionError(wrong)
        except bench_records.Refused:
            pass
    derived = changed(weights="b3 g16 e4m3 z1.5 minu6", bits=3, m=5, n=7392, k=1)
    assert [derived[f] for f in ("type", "kind", "scales", "integer", "m_up", "n_up", "k_up")] == \
        ["b3", "integer", "g16-e4m3-minu6", "u3", 8, 7424, 256], derived
    assert bench_records.fits(derived, {"m": "1|2..5", "type": "[uib]3"})
    assert not bench_records.fits(derived, {"m": "6..8"})
    assert changed(weights="e4m3 g128")["kind"] == "float" and changed(weights="iq4_nl")["kind"] == "codebook"


def test_clock():
    """What tells how cases were timed, and at which clock."""
    burst, sustained = changed(), changed(m=256, mode="sustained", mhz=1411.6, watts=690.2, baseline_mhz=1290.0)
    rule = {"least_m": 65, "settled_by": "SM clock"}
    timings = [bench_records.timing({"shown": shown, "sustained": rule, **more}) for shown, more in
               (([burst], {}), ([sustained], {}), ([burst, sustained], {}), ([burst], {"backend": "cpu"}),
                ([sustained], {"sustained": {**rule, "settled_by": "time: no NVML"}}))]
    work = "at the clock of sustained work"
    assert timings == [", bursts", f", {work}", f", bursts up to 64 rows, then {work}", "",
                       f", {work} (settled by time: no NVML)"], timings
    text = as_list([burst, sustained])
    assert "| us | MHz | W | limit | eff | GB/s | cuBLAS us | MHz | times as fast |" in text, text
    assert "| 12.3 | 1412 | 690 |" in text and "| 30.0 | 1290 | 2.43 |" in text and "| 12.3 | - | - |" in text, text
    assert bench_records.fits(burst, {"mode": "burst"}) and "MHz" not in as_list([burst])


BARS = """# made up
some = type=u4 x=f16
enough, in all: eff 0.7 0.8 some
almost: eff 0.7 0.9 some m=1
mean: speedup 3 - some cases=2  # of 2 and 8
bf16: slower 1.1 - x=bf16 against x=f16
rounded: loss 0.05 - shape=65x32 against shape={n_up}x{k_up} m={m_up}
regret: regret 1.2 1.1 operation=regret
near: near 0.5 0.6 operation=regret
most: most 1.4 - operation=regret
tuned: tuned 1 - operation=regret m=1
"""


def test_bars(folder):
    path = bench_bars.path_of("b", folder)
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as f:
        f.write(BARS)
    bars = bench_bars.read(path)
    cases = [changed(ratio=2.0), changed(m=4, ratio=8.0, us=10.0), changed(m=4, x="bf16", us=12.0, name="slow")]
    results = bench_bars.judge_all(bars, cases)
    assert [r.verdict for r in results] == ["aim", "met", "met", "missed", "missed", *["missed"] * 4], results
    assert bench_bars.rows(results)[3] == ["bf16", "slower", "1.1", "-", "1.200", "missed", "1", "`slow`"]
    assert results[4].missing == ["no case"] and bench_bars.rows(results)[4][4] == "-"
    odd = [changed(weights="u8", shape="65x32", n=65, m=3, eff=0.5, name="odd"),
           changed(weights="u8", shape="256x256", n=256, k=256, m=4, eff=0.54)]
    assert bench_bars.judge(bars[4], odd).verdict == "met" and bench_bars.judge(bars[4], odd[:1]).missing == ["odd"]
    assert bench_bars.judge(bars[2], cases[:1]).missing == ["1 cases, not 2"]
    assert bench_bars.judge(bars[0], [changed(eff=None)]).verdict == "missed"
    drawn = [changed(operation="regret", regret=1.0, tuned_regret=1.0),
             changed(operation="regret", m=2, regret=1.44, tuned_regret=None, name="far")]
    results = bench_bars.judge_all(bars[5:], drawn)
    assert [r.verdict for r in results] == ["met", "met", "missed", "met"], results
    assert abs(results[0].value - 1.2) < 1e-9 and {r.case["name"] for r in results[:3]} == {"far"}, results
    for wrong in ("a: effs 1 -", "a: eff x -", "a: eff 1 - some", "word = other"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(wrong + "\n")
        try:
            bench_bars.read(path)
            raise AssertionError(wrong)
        except bench_records.Refused as error:
            assert "line 1" in str(error), error
    with open(path, "w", encoding="utf-8") as f:
        f.write("all: eff 0.7 - m=1\n")


def test_tokens(root, commit):
    case = {"type": "q4_0", "test": "tg32", "threads": 1, "ggml_wall_ms": 20.0, "ggml_cpu_ms": 19.0, "fast_wall_ms": 16.0,
            "fast_cpu_ms": 15.2}
    record = {"commit": commit, "void": "", "date": "2026-01-02T03:04:05Z", "device": "CPU", "note": "shared", "ggml": "1",
              "model": {"layers": 1, "width": 2, "inner": 3, "words": 4}, "time": "least of 3"}
    for cases, wanted in (([case], "| Q4_0 | tg32 | 1 | 50.0 | 62.5 (1.25x) | 52.6 | 65.8 (1.25x) |"), ([], "")):
        with open(bench_records.path_of("t", root), "w", encoding="utf-8") as f:
            json.dump({**record, "cases": cases}, f)
        refused = []
        text = with_tables("<!-- bench: t tokens threads=1 -->\n<!-- end -->\n", root, refused)
        assert wanted in text and bool(refused) == (not cases), (text, refused)


def test_documents(root, commit, record):
    """A document with a table of bars from two records, and a plot."""
    for name, m in (("p", 1), ("q", 16)):
        with open(bench_records.path_of(name, root), "w", encoding="utf-8") as f:
            json.dump({**record, "commit": commit, "suite_cases": 3, "cases": [{**CASE, "m": m}]}, f)
    document = os.path.join(root, "README.md")
    with open(document, "w", encoding="utf-8") as f:
        f.write("<!-- bench: p+q bars bars=b -->\n<!-- end -->\n<!-- plot: p+q eff-bits eff.svg m=1 -->\n")
    assert run("--check", [document], root) == 1 and run("--update", [document], root) == 0
    assert run("--check", [document], root) == 0
    text, picture = read_text(document), read_text(os.path.join(root, "eff.svg"))
    assert "| all | eff | 0.7 | - | 0.810 | met | 1 | `gemm/a/m1` |" in text and "(1 of its 3 cases), bursts; commit" in text, text
    assert "<svg" in picture and "64 x 32, M = 1" in picture and "M = 16" not in picture, picture
    os.remove(os.path.join(root, "eff.svg"))
    assert run("--check", [document], root) == 1


def selftest():
    case = CASE
    record = {"suite": "few", "commit": "", "date": "2026-01-02T03:04:05Z", "device": "GPU", "driver": "1",
              "runtime": "2", "read_gbps": 4560.0, "void": "", "suite_cases": 1, "cases": [case]}
    with tempfile.TemporaryDirectory() as root:
        def commit(path, text):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run(["git", "-C", root, "add", path], check=True)
            user = ("-c", "user.name=a", "-c", "user.email=a@b")
            subprocess.run(["git", "-C", root, *user, "commit", "-qm", path], check=True)
            return bench_records.git("rev-parse", "HEAD", root=root).strip()

        def tables(**changes):
            with open(bench_records.path_of("r", root), "w", encoding="utf-8") as f:
                json.dump({**record, **changes}, f)
            refused = []
            return with_tables("a\n<!-- bench: r grid m=1 -->\nold\n<!-- end -->\nb\n", root, refused), refused

        subprocess.run(["git", "init", "-q", root], check=True)
        commit("bench/results/r.json", "{}")
        before = commit("tools/gen_kernels.py", GENERATOR)
        after = commit("src/kernels/gemv.cuh", "\n")
        text, refused = tables(commit=after)
        assert "| 64 x 32 | u4 g128 | f16 | 12.3 (0.81, 2.4x) |" in text and "old" not in text, text
        assert not refused, refused
        shown = "    <!-- bench: r grid m=1 -->\n    <!-- end -->\n    <!-- plot: r eff-bits x.svg -->\n"
        assert with_tables(shown, root, refused) == shown and not refused  # a marker that a document shows
        assert "GPU (driver 1, 2), read bandwidth 4.56 TB/s" in text and text.endswith("<!-- end -->\nb\n"), text
        assert "suite `few`, bursts." in text, text  # a record from before there were modes
        for changes, why in (({"commit": before}, "has no src/kernels/gemv.cuh"),
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
        assert "| 12.3 | 10.0 | 0.81 | 3000 | 30.0 | 2.43 |" in as_list([changed()])
        test_views()
        test_clock()
        bench_score.selftest(changed(), markdown)
        test_bars(root)
        test_tokens(root, after)
        with contextlib.redirect_stderr(io.StringIO()):
            test_documents(root, after, record)
    print("bench_tables.py: selftest passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        selftest()
    elif len(sys.argv) == 3 and sys.argv[1] == "--score":
        sys.exit(score(sys.argv[2]))
    elif len(sys.argv) == 4 and sys.argv[1] == "--summary":
        sys.exit(summary(*sys.argv[2:]))
    elif len(sys.argv) > 2 and sys.argv[1] in ("--update", "--check"):
        sys.exit(run(sys.argv[1], sys.argv[2:]))
    else:
        sys.exit(__doc__)
