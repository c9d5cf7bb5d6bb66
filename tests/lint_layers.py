#!/usr/bin/env python3
"""The rules of the house that a compiler does not know: who may include whom, names, sizes. No argument, no output file;
the last line counts the rules, and the exit code is 1 if one is broken. --selftest: feeds it what it must refuse."""

import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_LINES = {"": 500, "tests/": 1000, "engines/torch/tests/": 1000, "include/": 1000}  # of a file: a suite stands in one, and so does the manual

# Folder or file (the deepest that fits counts, one without * first): what its files may include besides files of the
# same folder. A name that ends in / is a folder. Nothing may include a .c file. The references of the tests stand for
# themselves: nothing from src/.
PUBLIC = ["include/lpgemm.h"]
PART = PUBLIC + ["src/internal.h", "src/plan.h", "src/status.h", "src/layouts/"]
CUDA = PART + ["src/cuda/cuda.h"]
SHARED = ["src/kernels/" + room + "/" for room in
          ("prim", "plan", "operand", "epilogue", "launch")]  # never all of src/kernels/: no family sees another
ALLOWED = {
    "include/": [],
    "src/": PUBLIC + ["src/"],
    "src/layouts/": PUBLIC + ["src/status.h"],
    "src/pack/": CUDA,
    "src/cuda/": PART + ["src/pack/pack.h", "src/pack/activation.h", "src/kernels/prim/"],
    "src/cuda/backend.c": PART + ["src/cuda/cuda.h", "src/pack/pack.h", "src/kernels/operand/x_copy.h",
                                   "src/kernels/operand/x_gather.h"],
    "src/cpu/": PART + ["src/pack/activation.h", "src/pack/sections.h"],
    "src/cpu/packing.c": PART + ["src/pack/pack.h"],
    "src/cpu/routing.c": PART + ["src/experts/routing.h"],
    "src/cpu/backend.c": PART + ["src/pack/pack.h"],  # the table of all that the backend does
    "src/experts/": PART + ["src/request.h", "src/dispatch/dispatch.h", "src/kernels/plan/fan.h"],  # layers: whatever the backend
    "src/experts/gpu/": CUDA + SHARED + ["src/experts/routing.h"],
    "src/dispatch/": PART + ["src/kernels/plan/fan.h"],
    "src/import/": CUDA + ["src/pack/", "src/cpu/cpu.h", "src/kernels/prim/shared.cuh"],  # reads and packs bands on the pool's threads
    "src/files/": PART,  # nothing of handles' insides, no GPU: what the public calls take
    "src/lut/": PART + ["src/cpu/cost.h", "src/cpu/cpu.h", "src/cpu/epilogue_rows.h", "src/cpu/weight.h"],
    "src/kernels/prim/": [],
    "src/kernels/plan/": PART,
    "src/kernels/operand/": CUDA + ["src/kernels/prim/", "src/kernels/plan/"],
    "src/kernels/epilogue/": PART + ["src/kernels/prim/", "src/kernels/plan/", "src/kernels/operand/x_type.cuh"],
    "src/kernels/launch/": CUDA + ["src/kernels/plan/"],
    "src/kernels/*/": CUDA + SHARED,  # a family
    "src/bitserial/": CUDA + SHARED,
    "src/lut/gpu/": CUDA + SHARED,
    "tests/": PUBLIC + ["src/", "tests/", "bench/clock.h", "bench/part.h", "bench/suite.h"],
    "tests/ref/": PUBLIC,
    "tests/ref/format_reader": [],
    "tests/consumer/": PUBLIC,
    "examples/": PUBLIC,
    "examples/parallel/": PUBLIC + ["examples/block/"],
    "cli/": PUBLIC,
    "engines/": PUBLIC,
    "bench/": PUBLIC + ["tests/ref/"],
}
GENERATED = ("build_info.h",)
CHECK_MACROS = {"LPG_CHECK", "LPG_TRY", "LPG_CUDA"}


def files():
    for top in ("include", "src", "tests", "examples", "cli", "bench", "tools", "python", "engines", "docs"):
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def without_comments(text):
    """Comments and strings blanked out, lines kept."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def is_source(path):
    return path.endswith((".c", ".h", ".cu", ".cuh", ".cpp"))


def found(path, name):
    """The file of the repository that #include "name" in path means, None if there is none."""
    for base in (os.path.dirname(path), "src", "include", "tests"):
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return None


# ---- the rules: each yields one sentence for every breach ----

def includes(sources):
    """includes follow the table in tests/lint_layers.py"""
    for path, text in sources.items():
        fits = [f for f in ALLOWED if fnmatch.fnmatch(path, f + "*")]
        folder = max(fits, key=lambda f: (f.count("/"), "*" not in f, len(f)))
        own = os.path.dirname(path) + "/"
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, flags=re.M):
            target = found(path, name)
            if target is None:
                if name not in GENERATED:
                    yield f'{path}: "{name}" is no file of the repository'
            elif target.endswith(".c"):
                yield f"{path} includes the source file {target}"
            elif os.path.dirname(target) + "/" != own and not any(
                    target == a or (a.endswith("/") and target.startswith(a)) for a in ALLOWED[folder]):
                yield f"{path} may not include {target}"


def public_header(sources):
    """include/lpgemm.h includes only stddef.h and stdint.h"""
    names = re.findall(r"^\s*#\s*include\s+(\S+)", sources["include/lpgemm.h"], flags=re.M)
    if sorted(names) != ["<stddef.h>", "<stdint.h>"]:
        yield f"include/lpgemm.h includes {' '.join(names)}"


def check_macros(sources):
    """the check macros are LPG_CHECK, LPG_TRY and LPG_CUDA of src/status.h; no other macro returns from its caller"""
    defined = set()
    for path, text in sources.items():
        if path.startswith("src/"):
            macros = re.findall(r"^#\s*define\s+(\w+)(\((?:.*\\\n)*.*)", without_comments(text), flags=re.M)
            defined |= {(path, name) for name, body in macros
                        if name in CHECK_MACROS or re.search(r"\bif\b.*\breturn\b", body, re.S)}
    for path, name in sorted(defined ^ {("src/status.h", name) for name in CHECK_MACROS}):
        yield f"{path}: {name}"


def assembly(sources):
    """inline assembly stands in src/kernels/prim/ only"""
    for path, text in sources.items():
        if not path.startswith("src/kernels/prim/") and re.search(r"\b(asm|__asm__|__asm)\b", without_comments(text)):
            yield path


def symbols(sources):
    """every function and variable that another file can see starts with lpgemm_"""
    outer = re.compile(r"^(?!static\b|typedef\b|extern \"|LPG_FN\b|LPG_BITS_FN\b|return\b|else\b|goto\b)"
                       r"(?:extern )?(?:const )?(?:struct |enum )?\w+[ *]+(?:const )?\**(\w+)(?=\(|\[| =|;)", re.M)
    for path, text in sources.items():
        if path.startswith(("src/", "include/")) and not path.startswith("src/kernels/"):
            for name in outer.findall(without_comments(text)):
                if not name.startswith("lpgemm_") and not name.isupper():  # a macro makes the name; nm sees it
                    yield f"{path}: {name}"


def device_functions(sources):
    """a __noinline__ device function is static, else nvcc makes it a symbol of the library"""
    for path, text in sources.items():
        for line in without_comments(text).splitlines():
            if "__noinline__" in line and line[0] != "#" and "static" not in line.split("__noinline__")[0]:
                yield f"{path}: {line.strip()}"


def lengths(_):
    """no file is longer than 500 lines; of tests and the manual, 1000"""
    for path in files():
        if is_source(path) or path.endswith((".py", ".sh")):
            lines = read(path).count("\n")
            if lines > MAX_LINES[max((f for f in MAX_LINES if path.startswith(f)), key=len)]:
                yield f"{path} has {lines} lines"


def loose_ends(_):
    """no loose ends are marked in the sources"""
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for path in files():
        if is_source(path) or path.endswith((".py", ".sh", ".md", ".in", ".patch")):
            for mark in marks.findall(read(path)):
                yield f"{path}: {mark}"


def links(_):
    """every link of the documents leads to a file"""
    for path in ["README.md"] + [p for p in files() if p.endswith(".md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", read(path)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
                yield f"{path}: {target}"


def suites(sources):
    """every suite of tests/ stands in the list of tests/main.c"""
    listed = re.findall(r"\bSUITE\((\w+), [A-Z]+\)", sources["tests/main.c"])
    for path, text in sources.items():
        if path.startswith("tests/"):
            for name in re.findall(r"^void suite_(\w+)\(", text, flags=re.M):
                if name not in listed:
                    yield f"{path}: suite_{name}"


# A made-up include for each sort of room, and whether the table lets it stand.
TRIALS = [
    ("src/kernels/gemm/gemm.cuh", "src/kernels/gemv/gemv_plan.h", False),  # a family another one
    ("src/kernels/gemv/gemv.cuh", "src/bitserial/gemv1_plan.h", False),
    ("src/bitserial/gemm1_plan.c", "src/kernels/gemm8/gemm8_plan.h", False),
    ("src/lut/gpu/lut.cuh", "src/bitserial/gemv1_plan.h", False),
    ("src/lut/gpu/lut.cuh", "src/lut/lut.h", False),  # the GPU's lookup the CPU's
    ("src/kernels/prim/mma.cuh", "src/internal.h", False),  # a room what stands above it
    ("src/kernels/plan/search.c", "src/kernels/gemm/gemm_plan.h", False),
    ("src/kernels/plan/rates.c", "src/cuda/cuda.h", False),
    ("src/kernels/operand/limits.c", "src/kernels/epilogue/sums.h", False),
    ("src/kernels/epilogue/store.cuh", "src/kernels/operand/scales.cuh", False),
    ("src/kernels/launch/launch.cuh", "src/kernels/operand/dequant.cuh", False),
    ("src/dispatch/choose.c", "src/kernels/plan/rates.h", False),  # the choice a kernel
    ("src/layouts/packed.c", "src/internal.h", False),
    ("src/pack/pack.c", "src/dispatch/dispatch.h", False),
    ("src/cpu/blocked.c", "src/dispatch/dispatch.h", False),
    ("src/cuda/backend.c", "src/kernels/plan/rates.h", False),
    ("src/files/file.c", "src/pack/pack.h", False),  # files what is made of their tensors
    ("tests/ref/gemm_ref.c", "src/internal.h", False),  # a user or a reference the inside
    ("cli/info.c", "src/internal.h", False),
    ("bench/run.c", "src/internal.h", False),
    ("examples/block/block.c", "src/internal.h", False),
    ("src/import/gptq.c", "src/dispatch/dispatch.h", False),  # a format a kernel
    ("src/kernels/gemm/gemm.cuh", "src/kernels/epilogue/store.cuh", True),
    ("src/bitserial/gemv1.cuh", "src/kernels/operand/scales_chunk.cuh", True),
    ("src/kernels/operand/scales.cuh", "src/kernels/plan/scheduler.cuh", True),
]


def selftest():
    for path, target, stands in TRIALS:
        assert os.path.isfile(os.path.join(ROOT, path)) and os.path.isfile(os.path.join(ROOT, target)), (path, target)
        breaches = list(includes({path: f'#include "{os.path.relpath(target, os.path.dirname(path))}"\n'}))
        assert breaches == ([] if stands else [f"{path} may not include {target}"]), (path, target, breaches)
    assert list(assembly({"src/kernels/gemm/gemm.cuh": 'asm volatile("nop;");'})) == ["src/kernels/gemm/gemm.cuh"]
    called = "__device__ __noinline__ void f() {}"
    assert list(device_functions({"a.cu": f"static {called}"})) == []
    assert list(device_functions({"a.cu": called})) == [f"a.cu: {called}"]
    rooms = {os.path.dirname(p) + "/" for p in files() if is_source(p) and p.startswith("src/")}
    unknown = [r for r in rooms if not any(fnmatch.fnmatch(r, f) for f in ALLOWED)]
    assert not unknown, f"rooms without a line in the table: {unknown}"
    print("lint_layers.py: selftest passed")


def main():
    sources = {path: read(path) for path in files() if is_source(path)}
    failed = 0
    rules = (includes, public_header, check_macros, assembly, symbols, device_functions, lengths, loose_ends, links,
             suites)
    for rule in rules:
        breaches = list(rule(sources))
        failed += bool(breaches)
        print(("FAIL " if breaches else "ok   ") + rule.__doc__)
        for breach in breaches:
            print("     " + breach)
    print(f"{len(rules) - failed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        selftest()
    else:
        sys.exit(main())
