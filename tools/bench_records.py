"""Reads the records that lpgemm-bench writes, and says which of their rows may be shown."""

import fnmatch
import importlib.util
import json
import os
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
    """tools/gen_kernels.py as it was at a commit: its table knows that commit's kernels."""
    text = git("show", f"{commit}:tools/gen_kernels.py", root=root)
    if text is None:
        raise Refused(f"commit {commit} has no table of kernels")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "gen_kernels.py")
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
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
    file = "src/" + generator.FAMILIES[kernel.family].header
    if git("cat-file", "-e", f"{commit}:{file}", root=root) is None:
        raise Refused(f"{case['name']}: commit {commit} has no {file}")


def cases(record, filters=None, root=ROOT):
    """(cases that may be shown, reasons why others may not). filters: {field: pattern}, alternatives joined by |."""
    check_run(record, root)
    generator = None
    good, refused = [], []
    for case in record["cases"]:
        wanted = all(any(fnmatch.fnmatch(str(case[field]), p) for p in pattern.split("|"))
                     for field, pattern in (filters or {}).items())
        if not wanted:
            continue
        try:
            if case["family"] and generator is None:
                generator = generator_of(record["commit"], root)
            check_case(case, record["commit"], generator, root)
            good.append(case)
        except Refused as error:
            refused.append(str(error))
    return good, refused


def caption(record):
    where = " ".join(filter(None, (record["device"], record["driver"] and f"(driver {record['driver']},",
                                   record["runtime"] and record["runtime"] + ")")))
    bandwidth = f", read bandwidth {record['read_gbps'] / 1000:.2f} TB/s" if record["read_gbps"] else ""
    return f"{where}{bandwidth}, commit `{record['commit']}`, {record['date'][:10]}, suite `{record['suite']}`"
