#!/usr/bin/env python3
"""The measured tables, src/dispatch/measured/NAME.txt: written from records of the suite sweep, read when the library is built.

    measured.py --out FILE                            C of all tables
    measured.py --table NAME RECORD.json...           writes the table NAME from records
    measured.py --selftest

A table is a text file, a problem a line, sorted:

    # lpgemm measured 1
    # device NVIDIA H200
    # measured 2026-11-22, commit 0123456
    # x weights group scale zero n k m decode.f16.16x8.sm80 wide.f16.256x128.sm90a
    f16 u4 128 f16 constant 4096 4096 16 12.3 -

The last line with # before the problems names the columns; from the ninth on they are forms of kernels: names without the
weights, and f16 for bf16 too. A number is microseconds, - was not timed. Other lines with # are comments. A record counts
only if the run did, and if none of its cases was drawn with the seed of the suite regret, which must stay a test."""
import argparse
import collections
import glob
import itertools
import json
import math
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # the next import is of this folder
import gen_kernels

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLES = os.path.join(ROOT, "src", "dispatch", "measured")
MAGIC = "# lpgemm measured 1"
KEY = ("x", "weights", "group", "scale", "zero", "n", "k", "m")
MAX_POINTS, MAX_FORMS = 3000, 24  # LPG_MEASURED_FORMS in src/dispatch/measured.h
KINDS = {"u": "UINT", "i": "INT", "b": "BIPOLAR", "c": "CODEBOOK"}
ZEROS = {"none": "LPGEMM_ZERO_NONE, 0", "constant": "LPGEMM_ZERO_CONSTANT, 0", "integer": "LPGEMM_ZERO_PER_GROUP, LPGEMM_U8",
         "real": "LPGEMM_ZERO_PER_GROUP, LPGEMM_F16", "minimum": "LPGEMM_ZERO_MINIMUM, LPGEMM_F16"}
SCALES = ("none", "f16", "bf16", "f32", "e8m0", "e4m3")
NAMED = ("nf4", "fp4", "iq4_nl")  # codebooks of 4 bits

Table = collections.namedtuple("Table", "device notes forms points")  # points: {key: {form: us}}


def form_of(kernel):
    """decode.u4.bf16.16x8.sm80 -> decode.f16.16x8.sm80"""
    family, _, x, tile, arch = kernel.split(".")
    return ".".join((family, "f16" if x == "bf16" else x, tile, arch))


def known_forms():
    """In the order of the registry."""
    return list(dict.fromkeys(form_of(k.name) for k in gen_kernels.kernels(gen_kernels.FAMILIES) if k.arch.startswith("sm")))


def type_in_c(word, weights):
    """LPGEMM_UINT(4) for u4; ValueError for what is no type of weights (or of X)."""
    if match := re.fullmatch(r"e([1-9])m([0-9])", word):
        if 3 <= 1 + int(match[1]) + int(match[2]) <= 8 and (weights or word in ("e4m3", "e5m2")):
            return f"LPGEMM_FLOAT({match[1]}, {match[2]})"
    elif match := re.fullmatch(r"([uibc])([1-8])", word):
        kind, bits = KINDS[match[1]], int(match[2])
        if bits in gen_kernels.KINDS[kind][0] and (weights or kind in ("UINT", "INT")):
            return f"LPGEMM_{kind}({bits})"
    elif word in ("f16", "bf16") and not weights:
        return "LPGEMM_" + word.upper()
    raise ValueError(f"{word} is no type of {'weights' if weights else 'X'}")


# ---- text ----

def number(text, least):
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
        raise ValueError(f"{text} is no number from {least} on")
    return int(text)


def read_point(words, forms):
    if len(words) != len(KEY) + len(forms):
        raise ValueError(f"it has {len(words)} columns, not {len(KEY) + len(forms)}")
    x, weights, group, scale, zero, *sizes = words[:len(KEY)]
    type_in_c(x, False), type_in_c(weights, True)
    if number(group, 0) % 16:
        raise ValueError("groups are multiples of 16, or 0 for the row")
    if scale not in SCALES or zero not in ZEROS:
        raise ValueError(f"{scale} or {zero} is no word for scales and zeros")
    if zero != "none" and not weights.startswith("u"):
        raise ValueError("zeros belong to unsigned weights here")
    times = {f: float(t) for f, t in zip(forms, words[len(KEY):]) if t != "-"}
    if not times or not all(re.fullmatch(r"[0-9]+\.[0-9]+", t) or t == "-" for t in words[len(KEY):]):
        raise ValueError("times are numbers such as 12.3, or -")
    if not all(0 < t < 1e7 for t in times.values()):
        raise ValueError("a time is out of range")
    return (x, weights, int(group), scale, zero, *(number(s, 1) for s in sizes)), times


def parse(text, path):
    """The table; ValueError names the line that is wrong."""
    device, notes, forms, points = None, [], None, {}
    lines = text.split("\n")
    if lines[0] != MAGIC or lines[-1]:
        raise ValueError(f"{path}: it must begin with '{MAGIC}' and end with a newline")
    for at, line in enumerate(lines[1:-1], 2):
        try:
            if line.startswith("# device "):
                device = line[len("# device "):]
            elif line.startswith("# " + " ".join(KEY)):
                forms = line.split()[1 + len(KEY):]
                unknown = [f for f in forms if f not in known_forms()]
                if unknown or len(set(forms)) < len(forms) or not 0 < len(forms) <= MAX_FORMS:
                    raise ValueError(f"these are no forms of kernels, or too many: {' '.join(unknown or forms)}")
            elif line.startswith("#"):
                notes.append(line[2:])
            else:
                if not device or not forms:
                    raise ValueError("the device and the names of the columns come first")
                key, times = read_point(line.split(" "), forms)
                if key in points:
                    raise ValueError("the same problem stands there twice")
                points[key] = times
        except ValueError as error:
            raise ValueError(f"{path}, line {at}: {error}") from None
    if not points or len(points) > MAX_POINTS:
        raise ValueError(f"{path}: it has {len(points)} problems, not 1 to {MAX_POINTS}")
    if not re.fullmatch(r"[ -!#-\[\]-~]{1,63}", device):
        raise ValueError(f"{path}: {device} is no name of a device")
    return Table(device, notes, forms, points)


def text_of(table):
    lines = [MAGIC, f"# device {table.device}", *(f"# {n}" for n in table.notes), "# " + " ".join((*KEY, *table.forms))]
    for key in sorted(table.points):
        times = table.points[key]
        lines.append(" ".join([*map(str, key), *(f"{times[f]:.2f}" if f in times else "-" for f in table.forms)]))
    return "\n".join(lines) + "\n"


# ---- records ----

def held_out_seeds():
    """Those of the suite that the choice is judged by."""
    with open(os.path.join(ROOT, "bench", "suites", "regret.txt"), encoding="utf-8") as f:
        return {int(seed) for seed in re.findall(r"\bseed=([0-9]+)", f.read())}


def key_of(case):
    """The problem of a case; None where the table has no words for it."""
    words = case["weights"].split()
    weights, group, scale, zero = words[0], 0, "none", "none"
    for word in words[1:]:
        if re.fullmatch(r"g[0-9]+", word):
            group = int(word[1:]) if int(word[1:]) < case["k"] else 0
        elif word in SCALES:
            scale = word
        elif word.startswith("min"):
            zero = "minimum"
        elif re.fullmatch(r"z[uif]+[0-9]+", word):
            zero = "real" if "f" in word else "integer"
        elif re.fullmatch(r"z[0-9.]+", word):
            zero = "constant"
        else:
            return None
    weights = "c4" if weights in NAMED else weights
    return case["x"], weights, group, scale, zero, case["n"], case["k"], case["m"]


def table_from(records):
    points, notes, devices, seeds = {}, [], set(), held_out_seeds()
    for record in records:
        if record["void"]:
            raise ValueError(f"a run does not count: {record['void']}")
        devices.add(record["device"])
        notes.append(f"measured {record['date'][:10]}, commit {record['commit']}, suite {record['suite']}, "
                     f"read bandwidth {record['read_gbps']:.0f} GB/s")
        for case in record["cases"]:
            if case["operation"] != "regret" or case["error"]:
                continue
            if case["seed"] in seeds:
                raise ValueError(f"{case['name']} has a seed that the choice is judged by")
            if key := key_of(case):
                points[key] = {form_of(k): us for k, us in case["times"].items()}
    if len(devices) != 1:
        raise ValueError(f"a table is of one device, not of {len(devices)}")
    forms = [f for f in known_forms() if any(f in times for times in points.values())]
    return Table(devices.pop(), notes, forms, points)


# ---- C ----

def point_in_c(key, alike):
    x, weights, group, scale, zero, *sizes = key
    scale = "0" if scale == "none" else "LPGEMM_" + scale.upper()
    return (f"    {{{type_in_c(weights, True)}, {type_in_c(x, False)}, {scale}, {ZEROS[zero]}, {group}, "
            + ", ".join(map(str, sizes)) + ", " + ", ".join(f"{math.log2(s):.5f}f" for s in sizes) + f", {alike}}},\n")


def points_in_c(keys):
    """Those of one run stand together, and each knows how many of it are left."""
    runs = [list(run) for _, run in itertools.groupby(keys, lambda key: key[:-3])]
    return "".join(point_in_c(key, len(run) - i) for run in runs for i, key in enumerate(run))


def times_in_c(times, forms):
    return "    " + "".join(f"{times.get(f, 0):.2f}f, " for f in forms).rstrip() + "\n"


def in_c(tables):
    text = '/* Generated by tools/measured.py: do not edit. */\n#include "dispatch/measured.h"\n'
    rows = ""
    for i, t in enumerate(tables):
        text += f"\nstatic const lpg_measured_point points_{i}[] = {{\n"
        text += points_in_c(sorted(t.points)) + f"}};\n\nstatic const float us_{i}[] = {{\n"
        text += "".join(times_in_c(t.points[key], t.forms) for key in sorted(t.points)) + "};\n"
        forms = ", ".join(f'"{f}"' for f in t.forms)
        rows += f'    {{"{t.device}", {{{forms}}}, {len(t.forms)}, {len(t.points)}, points_{i}, us_{i}}},\n'
    return (text + "\nconst lpg_measured lpgemm_i_measured[] = {\n" + (rows or "    {0},\n") + "};\n\n"
            + f"const int lpgemm_i_measured_count = {len(tables)};\n")


def read_tables(folder=TABLES):
    tables = []
    for path in sorted(glob.glob(os.path.join(folder, "*.txt"))):
        with open(path, encoding="utf-8") as f:
            tables.append(parse(f.read(), os.path.relpath(path, ROOT)))
    if len({t.device for t in tables}) < len(tables):
        raise ValueError("two tables are of the same device")
    return tables


# ---- the test of this file ----

def selftest():
    head = MAGIC + "\n# device A GPU\n# a note\n# " + " ".join(KEY) + " decode.f16.16x8.sm80 wide.f16.256x128.sm90a\n"
    good = "f16 u4 128 f16 constant 4096 4096 16 12.30 -\n"
    table = parse(head + good + "i8 e2m1 0 f32 none 512 1024 3 1.00 2.00\n", "good")
    assert parse(text_of(table), "again") == table and table.notes == ["a note"]
    assert table.points["f16", "u4", 128, "f16", "constant", 4096, 4096, 16] == {"decode.f16.16x8.sm80": 12.3}
    code = in_c([table])
    assert ("{LPGEMM_UINT(4), LPGEMM_F16, LPGEMM_F16, LPGEMM_ZERO_CONSTANT, 0, 128, 4096, 4096, 16, "
            "12.00000f, 12.00000f, 4.00000f, 1},\n") in code and "    12.30f, 0.00f,\n" in code, code
    assert "lpgemm_i_measured_count = 0" in in_c([])
    for bad in ("f16 u4 128 f16 constant 4096 4096 16 12.30", "f16 u9 128 f16 none 4096 4096 16 1.0 -",
                "e3m2 u4 128 f16 none 4096 4096 16 1.0 -", "f16 u4 100 f16 none 4096 4096 16 1.0 -",
                "f16 u4 128 f17 none 4096 4096 16 1.0 -", "f16 u4 128 f16 what 4096 4096 16 1.0 -",
                "f16 i4 128 f16 integer 4096 4096 16 1.0 -", "f16 u4 128 f16 none 0 4096 16 1.0 -",
                "f16 u4 128 f16 none 4096 -4096 16 1.0 -", "f16 u4 128 f16 none 4096 4096 16 - -",
                "f16 u4 128 f16 none 4096 4096 16 nan -", "f16 u4 128 f16 none 4096 4096 16 0.0 -",
                "f16  u4 128 f16 none 4096 4096 16 1.0 -", good.strip()):
        try:
            parse(head + good + bad + "\n", "table")
        except ValueError as error:
            assert str(error).startswith("table, line 6: "), error
        else:
            raise AssertionError(bad)
    for bad in ("", MAGIC + "\n" + good, head, head + good[:-1], head.replace("wide.f16", "wide.f17") + good):
        try:
            raise AssertionError(parse(bad, "table"))
        except ValueError:
            pass
    case = {"operation": "regret", "error": "", "seed": 0, "name": "a", "n": 64, "k": 128, "m": 3, "x": "bf16",
            "weights": "nf4 g128 f16", "times": {"decode.c4.bf16.16x8.sm80": 5.0}}
    record = {"void": "", "device": "A GPU", "date": "2026-11-22T00:00:00Z", "commit": "c", "suite": "sweep", "read_gbps": 1.0}
    made = table_from([{**record, "cases": [case, {**case, "weights": "u4 g32 u6 s256 f16 minu6"}, {**case, "error": "no"}]}])
    assert made.points == {("bf16", "c4", 0, "f16", "none", 64, 128, 3): {"decode.f16.16x8.sm80": 5.0}}, made
    for bad in ([{**record, "void": "slow", "cases": [case]}], [{**record, "cases": [{**case, "seed": min(held_out_seeds())}]}],
                [{**record, "cases": [case]}, {**record, "device": "B", "cases": []}]):
        try:
            raise AssertionError(table_from(bad))
        except ValueError:
            pass
    with tempfile.TemporaryDirectory() as folder:
        assert read_tables(folder) == []
    read_tables()
    print("measured.py: selftest passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--table")
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("records", nargs="*")
    args = parser.parse_args()
    try:
        if args.table:
            records = [json.load(open(path, encoding="utf-8")) for path in args.records]
            path = os.path.join(TABLES, args.table + ".txt")
            text = text_of(table_from(records))
            table = parse(text, path)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            print(f"{os.path.relpath(path, ROOT)}: {len(table.points)} problems, {len(table.forms)} forms of kernels")
        if args.out:
            text = in_c(read_tables())
            with open(args.out, "w", encoding="utf-8") as f:
                f.write(text)
        if args.selftest:
            selftest()
    except ValueError as error:
        parser.exit(1, f"measured.py: {error}\n")


if __name__ == "__main__":
    main()
