"""Reads the records that lpgemm-bench writes, and says which of their rows may be shown."""

import fnmatch
import functools
import importlib.util
import json
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Refused(Exception):
    pass


def git(*words, root=ROOT):
    """Output of git, None if it fails."""
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def path_of(name, root=ROOT):
    return os.path.join(root, "bench", "results", name + ".json")


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def generator_of(commit, root):
    """tools/gen_kernels.py as it was at a commit, beside the list of kinds that it reads: its table knows that commit's
    kernels."""
    with tempfile.TemporaryDirectory() as folder:
        for path in ("tools/gen_kernels.py", "src/layouts/kinds.h"):
            text = git("show", f"{commit}:{path}", root=root)
            if text is None:
                continue  # commits before the list of kinds have the generator alone
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
                f.write(text)
        file = os.path.join(folder, "tools", "gen_kernels.py")
        if not os.path.exists(file):
            raise Refused(f"commit {commit} has no table of kernels")
        spec = importlib.util.spec_from_file_location("gen_kernels_of_commit", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def check_run(record, root=ROOT):
    """Raises Refused unless the run counts and its commit is part of this history."""
    commit = record["commit"]
    if record["void"]:
        raise Refused(f"the run is void: {record['void']}")
    if commit.endswith("-dirty") or commit == "unknown":
        raise Refused(f"it was built from changed sources (commit {commit})")
    if git("merge-base", "--is-ancestor", commit, "HEAD", root=root) is None:
        raise Refused(f"commit {commit} is no ancestor of HEAD")


@functools.lru_cache(maxsize=None)
def has_file(commit, file, root):
    return git("cat-file", "-e", f"{commit}:{file}", root=root) is not None


def check_case(case, commit, generator, root=ROOT):
    """Raises Refused unless the case was right and its kernel is in that commit."""
    if case["error"] or case["us"] is None:
        raise Refused(f"{case['name']} failed: {case['error']}")
    if not case["checked"]:
        raise Refused(f"{case['name']} was not checked")
    if not case["family"]:  # the baseline, packing
        return
    try:
        kernel = generator.parse(generator.FAMILIES, case["kernel"])
    except ValueError as error:
        raise Refused(f"{case['name']}: in commit {commit}, {error}") from None
    table = generator.FAMILIES  # commits before 2026-11-24 have a dictionary, later ones a list of (family, row)
    row = table[kernel.family] if isinstance(table, dict) else generator.row_of(table, kernel)
    file = "src/" + row.header
    if not has_file(commit, file, root):
        raise Refused(f"{case['name']}: commit {commit} has no {file}")


KINDS = (("[uib][1-8]", "integer"), ("e?m?", "float"), ("c[1-4]", "codebook"), ("nf4", "codebook"), ("fp4", "codebook"),
         ("iq4_nl", "codebook"), ("*", ""))


def with_derived(case):
    """The case with the fields that follow from others: type "u4", kind "integer", scales "g128-f16" (all the words of
    its weights but the type and a constant zero), integer (the unsigned type of that width), and sizes rounded up: n_up
    and k_up to 256, m_up to a power of two. Older records do not have all fields."""
    words = case["weights"].split() or [""]
    kind = next(k for pattern, k in KINDS if fnmatch.fnmatchcase(words[0], pattern))
    scales = "-".join(w for w in words[1:] if not re.fullmatch(r"z-?[0-9.]+", w))
    older = {"x_gap": 0, "invariant": "no", "prepared": case.get("tables", "no"), "nodes": None, "blas_type": case.get("x"), "mode": "burst",
             "mhz": None, "watts": None, "baseline_mhz": None, "baseline_watts": None}
    return {**older, **case, "type": words[0], "kind": kind, "scales": scales,
            "integer": f"u{case['bits']}", "n_up": -(-case["n"] // 256) * 256, "k_up": -(-case["k"] // 256) * 256,
            "m_up": 1 << (case["m"] - 1).bit_length()}


def fits(case, filters):
    """filters: {field: pattern}; a pattern has wildcards, or is a range of numbers as 1..8; alternatives are joined by
    |."""
    def one(value, pattern):
        numbers = re.fullmatch(r"(\d+)\.\.(\d+)", pattern)
        if numbers and isinstance(value, (int, float)):
            return int(numbers[1]) <= value <= int(numbers[2])
        return fnmatch.fnmatchcase(str(value), pattern)

    if unknown := [field for field in filters if field not in case]:
        raise Refused(f"no case has a field {unknown[0]}")
    return all(any(one(case[field], p) for p in pattern.split("|")) for field, pattern in filters.items())


def cases(record, filters=None, root=ROOT):
    """(cases that may be shown, reasons why others may not)."""
    check_run(record, root)
    generator = None
    good, refused = [], []
    for case in map(with_derived, record["cases"]):
        if not fits(case, filters or {}):
            continue
        try:
            if case["family"] and generator is None:
                generator = generator_of(record["commit"], root)
            check_case(case, record["commit"], generator, root)
            good.append(case)
        except Refused as error:
            refused.append(str(error))
    return good, refused


def load(names, filters=None, root=ROOT):
    """(cases, reasons, records) of one record or of several joined by +, as a run in parts leaves them. A record gets
    its own cases among them as `shown`."""
    good, refused, records = [], [], []
    for name in names.split("+"):
        record = read(path_of(name, root))
        try:
            some, reasons = cases(record, filters, root)
        except Refused as error:
            raise Refused(f"{name}: {error}") from None
        good += some
        refused += [f"{name}: {reason}" for reason in reasons]
        records.append({**record, "shown": some})
    if not good:
        refused.append(f"{names}: no case is left")
    return good, refused, records


def timing(record):
    """How the shown cases were timed, to follow the suite's name. The CPU has one way."""
    modes, rule = {case["mode"] for case in record["shown"]}, record.get("sustained")
    if record.get("backend") == "cpu" or not modes:
        return ""
    if modes == {"burst"}:
        return ", bursts"
    by = "" if rule["settled_by"] == "SM clock" else f" (settled by {rule['settled_by']})"
    bursts = f"bursts up to {rule['least_m'] - 1} rows, then " if "burst" in modes else ""
    return f", {bursts}at the clock of sustained work{by}"


def caption(record):
    """The machine, and what was run on it."""
    where = " ".join(filter(None, (record["device"], record["driver"] and f"(driver {record['driver']},",
                                   record["runtime"] and record["runtime"] + ")")))
    ran, planned = len(record["cases"]), record.get("suite_cases", 0)
    part = f" ({ran} of its {planned} cases)" if ran < planned else ""
    bandwidth = f", read bandwidth {record['read_gbps'] / 1000:.2f} TB/s" if record["read_gbps"] else ""
    run = f"commit `{record['commit']}`, {record['date'][:10]}, suite `{record['suite']}`{part}{timing(record)}"
    return where + bandwidth, run
