#!/usr/bin/env python3
"""The table of kernels, and what is generated from it.

    gen_kernels.py --out DIR [--archs "90a 80"] [--only PATTERN] [--experiments]
                                                                    registry.c, rules.mk and the CUDA instances
    gen_kernels.py --list [--archs ...]                             the names
    gen_kernels.py --refused                                        what the axes allow and legal() does not, and why
    gen_kernels.py --list-layouts                                   the packed layouts and their kernels
    gen_kernels.py --selftest                                       exercises all of this with a made-up CUDA family

docs/kernels/README.md has the grammar of the names and says how to add a kernel, a family and an architecture."""
import argparse
import collections
import contextlib
import fnmatch
import itertools
import os
import re
import tempfile

# ---- axes: every word that may stand in a name ----

def read_kinds():
    """{kind: widths} from the list that the C sources expand: src/layouts/kinds.h."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "layouts", "kinds.h")
    with open(path, encoding="utf-8") as f:
        return {name: range(int(least), int(most) + 1)
                for name, least, most in re.findall(r"\bKIND\((\w+), (\d), (\d)\)", f.read())}


KINDS = read_kinds()
# Words for weights, with a letter and a width: kinds that share a dequantiser. The packed form stores integers alike.
INTEGERS = ("UINT", "INT", "BIPOLAR")
LETTERS = {"w": tuple(KINDS), "u": INTEGERS, "c": ("CODEBOOK",), "f": ("FLOAT",)}
WEIGHTS = {"any": (tuple(KINDS), range(1, 9)), "int": (INTEGERS, range(1, 9)),
           **{f"{letter}{b}": (kinds, (b,)) for letter, kinds in LETTERS.items() for b in KINDS[kinds[0]]}}

X_TYPES = ("F16", "BF16", "F32", "I8", "E4M3", "E5M2", "CODES")
# Kernels for fp16 widen 8 bits and codes on the way: fp16 holds them all. Those for int8 take codes that are int8.
ACTIVATIONS = {"any": X_TYPES, **{x.lower(): (x,) for x in X_TYPES}, "f16": ("F16", "I8", "E4M3", "E5M2", "CODES"),
               "i8": ("I8", "CODES")}

# Word: instruction set, and which compilers can make it (a condition of the preprocessor; None: all).
CPU_ARCHS = {"cpu": ("BASE", None), "base": ("BASE", None),
             "avx2": ("AVX2", "defined(__x86_64__)"), "avx512": ("AVX512", "defined(__x86_64__)"),
             "vbmi": ("VBMI", "defined(__x86_64__)"), "amx": ("AMX", "defined(LPG_HAVE_LATER_X86)"),
             "avxvnni": ("AVXVNNI", "defined(LPG_HAVE_LATER_X86)"), "neon": ("NEON", "defined(__aarch64__)"), "dotprod": ("DOTPROD", "defined(__aarch64__)")}
# Word of a CUDA architecture: how its tensor cores multiply. sm80 runs on every later GPU, a word with `a` on that one.
ARCHS = {"sm80": "mma.sync", "sm90a": "wgmma"}
LAYOUTS = {"tile16": 1}  # name: layout id of src/layouts/FORMAT.md

WORD, TILE, ARCH = "([a-z][a-z0-9]*)", "([0-9]+(?:x[0-9]+)*)", "(" + "|".join(CPU_ARCHS) + "|sm[0-9]+a?)"
NAME = re.compile(r"\.".join((WORD, WORD, WORD, TILE, ARCH)))
NAME_BYTES = 64  # LPG_KERNEL_NAME_BYTES in src/dispatch/dispatch.h

# ---- the table ----

# The axes of a row, then what all its kernels have in common: fields of lpg_kernel (src/dispatch/dispatch.h), where
# {words} stand for parts of the name, {tile_m} for the last number of the tile, {symbol} for a function of that name.
# `needs` is how a CUDA kernel multiplies: its architectures follow. header declares launch (CPU) or holds the template
# (CUDA), of which `instance` is one line; kernels of a `unit` are compiled together. An experiment is built on request;
# a last resort does every problem and stands at the end.
Family = collections.namedtuple(
    "Family",
    "weights activations tiles archs needs widths y scales zeros groups flags m_max planner launch x_form load header "
    "instance layout last_resort experiment unit",
    defaults=((), (), range(1, 9), "LPG_Y_ANY", "LPG_S_ANY", "LPG_Z_ANY", "LPG_G_ANY", "LPG_K_BATCH_INVARIANT", "0",
              "lpgemm_i_{family}", "{symbol}", "NULL", "{symbol}_load", None, None, "tile16", False, False,
              "{family}.{weights}.{arch}"))

# The scales that CUDA kernels have readers for (LPG_SCALE_VALUE_TYPES of src/kernels/operand/scales.cuh). The last
# resort, and the CPU's kernels, take whatever src/layouts/number.h reads.
ONE_LEVEL = "LPG_S_NONE | LPG_S_F16 | LPG_S_BF16 | LPG_S_F32 | LPG_S_E8M0 | LPG_S_E4M3"
TWO_LEVELS = ONE_LEVEL + " | LPG_S_TWO_LEVEL"
REALS = "LPG_Y_F16 | LPG_Y_BF16 | LPG_Y_F32"
INTEGER_ZEROS = "LPG_Z_NONE | LPG_Z_CONSTANT | LPG_Z_INTEGER"
SMALL_GROUPS = "LPG_G_16 | LPG_G_32 | LPG_G_64 | LPG_G_128 | LPG_G_ROW"
LARGE_GROUPS = "LPG_G_128 | LPG_G_ROW | LPG_G_OTHER"
EVERY_WIDTH = [f"u{b}" for b in range(1, 9)] + [f"f{b}" for b in range(3, 9)] + [f"c{b}" for b in range(1, 5)]

STRIPES = [f"u{b}" for b in range(1, 9)] + ["f4", "f8", "c4"]  # its code takes every width: a unit is half a minute to compile

STACKS = " | LPG_K_GROUPED | LPG_K_PAIRED"  # all of the CPU's: an expert after the other, and one epilogue for all
INVARIANT = "LPG_K_BATCH_INVARIANT"
CPU = Family(["any"], ["any"], [], flags=INVARIANT + STACKS, load="NULL", header="cpu/cpu.h")
TILES = CPU._replace(tiles=["32x32"], archs=["amx"], y=REALS, planner="lpgemm_i_tiles_{arch}",
                     groups="LPG_G_32 | LPG_G_64 | LPG_G_128 | LPG_G_ROW | LPG_G_OTHER",
                     launch="lpgemm_i_cpu_tiles_{arch}")
DOT = CPU._replace(tiles=["16x8"], archs=["vbmi", "avxvnni", "avx2", "dotprod"], y=REALS, planner="lpgemm_i_dot_{arch}",
                   launch="lpgemm_i_cpu_dot_{arch}", x_form="&lpgemm_i_cpu_dot_{arch}_form")
DENSE = Family(["any"], [], ["256x128"], flags="0", scales=TWO_LEVELS, planner="lpgemm_i_dequant_{activations}_{arch}",
               header="kernels/dequant/dequant_launch.cuh", instance="LPG_DEQUANT({symbol}, {activations}, {wgmma})")

# (family, row), in the order of the registry: of two equal estimates the first wins. A family may have several rows.
FAMILIES = [
    ("blocked", CPU._replace(tiles=["16x16"], archs=["avx512", "avx2", "base"], planner="lpgemm_i_blocked_{arch}",
                             launch="lpgemm_i_cpu_blocked_{arch}")),
    ("tiles", TILES),
    ("tilesim", TILES._replace(archs=["base"], flags="LPG_K_FORCE_ONLY | " + INVARIANT + STACKS)),  # plain C, for tests
    ("dot", DOT),
    ("dotsim", DOT._replace(archs=["base"], flags="LPG_K_FORCE_ONLY | " + INVARIANT + STACKS)),  # plain C, for tests
    ("lut", CPU._replace(weights=[f"u{b}" for b in range(1, 5)], tiles=["4"], archs=["vbmi", "avx2", "neon", "base"],
                         y=REALS, flags="LPG_K_TABLES | " + INVARIANT + STACKS, launch="lpgemm_i_lut_{arch}", x_form="&lpgemm_i_lut_{arch}_form",
                         planner="lpgemm_i_lut_{weights}_{arch}", header="lut/lut.h")),
    ("gemv", Family(EVERY_WIDTH, ["f16", "bf16"], ["16x8", "16x16"], needs=["mma.sync"], y=REALS, scales=TWO_LEVELS,
                    flags="LPG_K_PAIRED", planner="lpgemm_i_gemv_{tile_m}", header="kernels/gemv/gemv_launch.cuh",
                    instance="LPG_GEMV({symbol}, {activations}, {dequantiser}, {width}, {tile_m})")),
    ("stripe", Family(STRIPES, ["f16", "bf16"], ["128x64"], needs=["mma.sync"], y=REALS, scales=TWO_LEVELS,
                      groups=SMALL_GROUPS, flags="0",
                      header="kernels/stripe/stripe_launch.cuh",
                      instance="LPG_STRIPE({symbol}, {activations}, {dequantiser}, {width})")),
    *((way, Family(["u2", "u4", "u8", "f4", "f8"], ["f16", "bf16"], ["16x8"], needs=["mma.sync"], y=REALS, scales=ONE_LEVEL,
                   zeros="LPG_Z_NONE | LPG_Z_CONSTANT", groups=SMALL_GROUPS,
                   flags="LPG_K_GROUPED | LPG_K_PAIRED | LPG_K_" + flag, planner="lpgemm_i_fan",
                   header="kernels/gemv/gemv_fan_launch.cuh",
                   instance="LPG_FAN({symbol}, {activations}, {dequantiser}, {width}, " + word + ")"))
      for way, flag, word in (("fanout", "FAN_OUT", "false"), ("fanin", "FAN_IN", "true"))),
    ("segment", Family(["u2", "u4", "u8", "f4", "f8"], ["f16", "bf16"], ["16x8"], needs=["mma.sync"], y=REALS, scales=ONE_LEVEL,
                       zeros="LPG_Z_NONE | LPG_Z_CONSTANT", groups=SMALL_GROUPS, flags="LPG_K_GROUPED | LPG_K_PAIRED | LPG_K_BY_ROW | LPG_K_WAITS_FIRST",
                       header="kernels/gemv/gemv_segment_launch.cuh",
                       instance="LPG_SEGMENT({symbol}, {activations}, {dequantiser}, {width})")),
    ("gemv1", Family(["u1", "u2"], ["f16", "bf16"], ["32x2"], needs=["wgmma"], widths=range(1, 3), y=REALS,
                     scales=ONE_LEVEL, groups=LARGE_GROUPS, flags="LPG_K_OWN_ROWS", m_max="{tile_m}",
                     header="bitserial/gemv1_launch.cuh", instance="LPG_GEMV1({symbol}, {width})")),
    ("gemv1", Family(["u1", "u2"], ["i8"], ["16x4"], needs=["wgmma"], widths=range(1, 3), y=REALS, scales=ONE_LEVEL,
                     groups="LPG_G_ROW", flags="LPG_K_OWN_ROWS", m_max="{tile_m}", planner="lpgemm_i_gemv1_i8",
                     header="bitserial/gemv1_i8_launch.cuh", instance="LPG_GEMV1_I8({symbol}, {width})")),
    ("lut", Family([f"u{b}" for b in range(1, 5)], ["f16", "bf16"], ["64x1"], needs=["wgmma"], widths=range(1, 5),
                   y=REALS, scales=ONE_LEVEL, groups=LARGE_GROUPS, flags="LPG_K_OWN_ROWS", m_max="16", planner="lpgemm_i_lut_gpu",
                   header="lut/gpu/lut_launch.cuh", instance="LPG_LUT_GPU({symbol}, {width})", experiment=True)),
    ("gemm", Family(EVERY_WIDTH, ["f16", "bf16"], ["256x128"], needs=["wgmma"], y=REALS, scales=TWO_LEVELS,
                    flags="LPG_K_BATCH_INVARIANT | LPG_K_GROUPED | LPG_K_PAIRED", header="kernels/gemm/gemm_launch.cuh",
                    instance="LPG_GEMM({symbol}, {activations}, {table_dequantiser}, {width})",
                    unit="{family}.{weights}.{activations}.{arch}")),
    ("gemm8", Family([f"u{b}" for b in range(1, 9)] + ["f4", "f6", "f8"], ["i8", "e4m3"], ["256x128"], needs=["wgmma"],
                     scales=TWO_LEVELS, zeros=INTEGER_ZEROS, flags="LPG_K_OWN_ROWS | LPG_K_BATCH_INVARIANT",
                     header="kernels/gemm8/gemm8_launch.cuh",
                     instance="LPG_GEMM8({symbol}, {activations}, {dequantiser}, {width})")),
    ("dequant", Family(["any"], ["f16", "bf16"], ["128x256"], needs=["wgmma"], flags="0", scales=TWO_LEVELS,
                       planner="lpgemm_i_dequant_image_{activations}", header="kernels/gemm/gemm_image.cuh",
                       instance="LPG_DEQUANT_IMAGE({symbol}, {activations})",
                       unit="{family}.{weights}.{activations}.{arch}")),
    ("dequant", DENSE._replace(activations=["f16", "i8", "e4m3", "e5m2"], needs=["wgmma", "mma.sync"])),
    ("dequant", DENSE._replace(activations=["bf16"], needs=["mma.sync"])),
    ("gemm1", Family(["int"], ["codes"], ["256x128"], needs=["wgmma"], flags="LPG_K_OWN_ROWS", scales=ONE_LEVEL,
                     zeros=INTEGER_ZEROS, header="bitserial/gemm1_launch.cuh", instance="LPG_GEMM1({symbol})")),
    ("skinny8", Family([f"u{b}" for b in range(1, 9)], ["codes"], ["64x8", "64x16", "64x32", "64x64"], needs=["wgmma"],
                       scales=ONE_LEVEL, zeros=INTEGER_ZEROS, flags="LPG_K_OWN_ROWS | LPG_K_BATCH_INVARIANT",
                       planner="lpgemm_i_skinny8_{tile_m}",
                       header="kernels/gemm8/gemm8_skinny.cuh",
                       instance="LPG_SKINNY8({symbol}, {width}, {tile_m})")),
    ("generic", Family([f"w{b}" for b in range(1, 9)], ["any"], ["16x8", "64x64"], needs=["mma.sync"],
                       flags="LPG_K_BATCH_INVARIANT | LPG_K_GROUPED | LPG_K_PAIRED",
                       planner="lpgemm_i_generic_{tile}", header="kernels/generic/generic.cuh",
                       instance="LPG_GENERIC({symbol}, {width}, {tile_list})", last_resort=True)),
    ("reference", CPU._replace(tiles=["1x1"], archs=["cpu"], launch="lpgemm_i_cpu_reference", last_resort=True)),
]

Kernel = collections.namedtuple("Kernel", "name family weights activations tile arch")


def compute_capability(arch):
    """("sm90a") -> (90, True): the number, and whether only that architecture will do. CPU: (0, False)."""
    return (int(arch[2:].rstrip("a")), arch.endswith("a")) if arch.startswith("sm") else (0, False)


def targets(arch, archs):
    """Which of the architectures that are built run code for `arch`: it alone (sm90a), or it and every later one."""
    number, exact = compute_capability(arch)
    return [a for a in archs if (a == arch[2:] if exact else int(a.rstrip("a")) >= number)]


def only_on(kernel, families, archs):
    """The one architecture whose GPUs run the kernel, or None: it and every later one. PTX for the later ones takes the
    compiler as long as machine code; who builds for one sort of GPU alone gets it for the last resort alone."""
    capability, exact = compute_capability(kernel.arch)
    if exact:
        return kernel.arch[2:]
    alone = archs and len(archs) == 1 and archs[0].endswith("a") and not row_of(families, kernel).last_resort
    return archs[0] if capability and alone else None


def archs_of(row):
    """The words for architectures that a row's kernels are made for."""
    return list(row.archs) or [word for need in row.needs for word, way in ARCHS.items() if way == need]


def row_of(families, kernel):
    """The row of the table that has the kernel's words on its axes, or None."""
    return next((row for name, row in families if name == kernel.family and kernel.weights in row.weights
                 and kernel.activations in row.activations and kernel.tile in row.tiles and kernel.arch in archs_of(row)), None)


def legal(families, kernel):
    """None, or why this point of the axes is no kernel."""
    family = row_of(families, kernel)
    capability, _ = compute_capability(kernel.arch)
    if not set(WEIGHTS[kernel.weights][1]) & set(family.widths):
        return f"family {kernel.family} has no dequantiser for this width"
    if capability and capability < 80:
        return "kernels need compute capability 8.0 or later"
    if capability and capability < 89 and kernel.activations in ("e4m3", "e5m2"):
        return "fp8 instructions need compute capability 8.9 or later"
    if kernel.family == "gemm8" and (kernel.weights in ("u5", "u6", "u7", "u8") if kernel.activations == "e4m3"
                                      else kernel.weights[0] == "f"):
        return "the weights are not exact in the type of X"
    if len(kernel.name) >= NAME_BYTES:
        return f"a name has less than {NAME_BYTES} characters"
    return None


def points(families):
    """Every point of the axes, legal or not, in the order of the registry."""
    for name, family in families:
        for axes in itertools.product(family.weights, family.activations, family.tiles, archs_of(family)):
            yield Kernel(".".join((name,) + axes), name, *axes)


def kernels(families, archs=None, only=None, experiments=False):
    """The legal kernels: of the CPU and of these CUDA architectures (None: all). The last resort always stays."""
    def wanted(k):
        last_resort = row_of(families, k).last_resort
        if row_of(families, k).experiment and not experiments:
            return False
        if k.arch.startswith("sm") and archs is not None and not targets(k.arch, archs):
            return False
        patterns = (only or "*").split()
        return last_resort or any(fnmatch.fnmatch(text, p) for text in (k.name, k.family) for p in patterns)
    return [k for k in points(families) if legal(families, k) is None and wanted(k)]


def parse(families, name):
    """A name back into its kernel; ValueError says what is wrong with it."""
    if not (match := NAME.fullmatch(name)):
        raise ValueError(f"{name} does not read family.weights.activations.tile.arch")
    kernel = Kernel(name, *match.groups())
    for axis, known in (("family", [name for name, _ in families]), ("weights", WEIGHTS), ("activations", ACTIVATIONS)):
        if getattr(kernel, axis) not in known:
            raise ValueError(f"{name}: {getattr(kernel, axis)} is not a word for {axis}")
    return kernel


# ---- emitters ----

def filled(kernel, text):
    """A text of the table with the kernel's own words in its braces."""
    letter, width = kernel.weights[0], kernel.weights[1:]
    table_dequantiser = {"f": "float", "c": "codebook"}.get(letter, "integer")
    dequantiser = "integer" if width == "1" else table_dequantiser  # to whom a codebook of two is a line
    return text.format(symbol="lpgemm_i_" + kernel.name.replace(".", "_"), tile_list=kernel.tile.replace("x", ", "),
                       wgmma=int(ARCHS.get(kernel.arch) == "wgmma"), width=width, dequantiser=dequantiser, table_dequantiser=table_dequantiser,
                       tile_m=kernel.tile.split("x")[-1], **kernel._asdict())


def members(prefix, chosen, everything):
    return prefix + "ANY" if len(chosen) == len(everything) else " | ".join(prefix + c for c in chosen)


def record(families, kernel, archs, launches):
    family = row_of(families, kernel)
    if not launches:
        family = family._replace(launch="NULL", x_form="NULL", load="NULL")
    only = only_on(kernel, families, archs)
    capability, _ = compute_capability(f"sm{only}" if only else kernel.arch)
    kinds, widths = WEIGHTS[kernel.weights]
    isa, condition = CPU_ARCHS.get(kernel.arch, ("BASE", None))
    fields = [
        *((field, f'"{getattr(kernel, field)}"') for field in ("name", "family")),
        ("backend", "LPGEMM_BACKEND_CUDA" if capability else "LPGEMM_BACKEND_CPU"),
        ("arch", capability),
        ("arch_exact", int(only is not None)),
        ("isa", "LPG_ISA_" + isa),
        ("weights", members("LPG_W_", kinds, KINDS)),
        ("widths", hex(sum(1 << b for b in widths if b in family.widths))),
        ("x_types", members("LPG_X_", ACTIVATIONS[kernel.activations], X_TYPES)),
        ("y_types", family.y),
        *((field, getattr(family, field)) for field in ("scales", "zeros", "groups", "flags")),
        ("m_max", filled(kernel, family.m_max)),
        ("planner", f"&{filled(kernel, family.planner)}_planner"),
        *((field, filled(kernel, getattr(family, field))) for field in ("launch", "x_form", "load")),
    ]
    text = "    {" + ",\n     ".join(f".{field} = {value}" for field, value in fields) + "},\n"
    return f"#if {condition}\n{text}#endif\n" if condition else text


def registry(families, chosen, archs, array="lpgemm_i_registry", launches=True):
    """archs: what is built, None: everything. launches: False for a table that only the choice is made from, without
    what nvcc compiles."""
    # The functions of CPU kernels are declared by a header, those of CUDA instances here: a .cuh is not C.
    headers = sorted({row_of(families, k).header for k in chosen if not k.arch.startswith("sm")})
    signatures = (("launch", "lpgemm_status_t {}(const lpg_call *call);\n"),
                  ("load", "lpgemm_status_t {}(const lpg_device *device);\n"))
    functions = [(filled(k, getattr(row_of(families, k), field)), signature)
                 for k in chosen if k.arch.startswith("sm") and launches for field, signature in signatures]
    planners = [(filled(k, row_of(families, k).planner), "extern const lpg_planner {}_planner;\n") for k in chosen]
    declarations = dict.fromkeys(signature.format(name) for name, signature in planners + functions)
    ordered = sorted(chosen, key=lambda k: row_of(families, k).last_resort)
    return ("/* Generated by tools/gen_kernels.py: do not edit. */\n"
            + '#include "dispatch/dispatch.h"\n' + "".join(f'#include "{h}"\n' for h in headers) + "\n"
            + "".join(declarations) + ("\n" if declarations else "")
            + f"const lpg_kernel {array}[] = {{\n" + "".join(record(families, k, archs, launches) for k in ordered) + "};\n\n"
            + f"const int {array}_count = (int)(sizeof {array} / sizeof {array}[0]);\n")


def instances(families, chosen, archs):
    """{file stem: (text, GENCODE)}: one small .cu a unit."""
    files = {}
    for k in chosen:
        if k.arch.startswith("sm"):
            files.setdefault(filled(k, row_of(families, k).unit), []).append(k)
    return {stem: ("// Generated by tools/gen_kernels.py: do not edit.\n"
                   + "".join(f'#include "{h}"\n' for h in sorted({row_of(families, k).header for k in group})) + "\n"
                   + "".join(filled(k, row_of(families, k).instance) + "\n" for k in group),
                   gencode(group[0], families, archs))
            for stem, group in files.items()}


def gencode(kernel, families, archs):
    """Machine code for what is built, and PTX where later GPUs shall run it. The sources differ before and from 9.0 on,
    so that one pass of the compiler makes the PTX of all that come before."""
    number, exact = compute_capability(kernel.arch)
    flags = [f"-gencode arch=compute_{a if exact or int(a.rstrip('a')) >= 90 else number},code=sm_{a}"
             for a in targets(kernel.arch, archs)]
    if not only_on(kernel, families, archs):
        flags.append(f"-gencode arch=compute_{number},code=compute_{number}")
    return " ".join(flags)


def rules(units):
    """GEN_CU, and GENCODE_<stem> for each. What takes longest is first, so that nothing is left that others wait for."""
    in_order = sorted(units, key=lambda stem: not stem.startswith("gemm."))
    return ("# Generated by tools/gen_kernels.py: do not edit.\nGEN_CU :=" + "".join(f" {s}.cu" for s in in_order) + "\n"
            + "".join(f"GENCODE_{stem} := {flags}\n" for stem, (_, flags) in units.items()))


def write_all(directory, families, archs, only=None, experiments=False):
    """Writes what changed, and removes what an earlier run wrote and this one does not."""
    chosen = kernels(families, archs, only, experiments)
    units = instances(families, chosen, archs or [])
    files = {stem + ".cu": text for stem, (text, _) in units.items()}
    files["registry.c"] = registry(families, chosen, archs)
    files["every_kernel.c"] = registry(families, kernels(families, experiments=experiments), None, "test_every_kernel", launches=False)
    files["rules.mk"] = rules(units)
    files["manifest"] = "".join(f"{name}\n" for name in sorted(files))
    os.makedirs(directory, exist_ok=True)

    def read(name):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, name), encoding="utf-8") as f:
            return f.read()

    for name in (read("manifest") or "").split():
        path = os.path.join(directory, os.path.basename(name))
        if name not in files and os.path.isfile(path):
            os.remove(path)
    for name, text in files.items():
        if read(name) != text:
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write(text)


# ---- the test of this file ----

def check_members():
    """The types of X here are those of the C sources: one more there would have no word."""
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "dispatch", "dispatch.h")
    with open(header, encoding="utf-8") as f:
        text = f.read()
    assert re.findall(r"\bLPG_X_(?!ANY\b)(\w+) =", text) == list(X_TYPES)


def selftest():
    check_members()
    made = Family(["u4", "f6"], ["f16", "e4m3"], ["16x8", "16x16"], ["sm80", "sm90a"], widths=range(1, 7), header="kernels/made.cuh",
                  instance="LPG_MADE({symbol}, {weights}, {activations}, {tile_list})")
    families = [("made", made), *FAMILIES]
    for k in kernels(families):
        assert parse(families, k.name) == k, k.name
    assert parse(families, "made.u4.f16.16x8.sm90a").arch == "sm90a"
    for bad in ("made.u4.f16.16x8", "made.u9.f16.16x8.sm80", "made.u4.f17.16x8.sm80", "nobody.u4.f16.1.sm80",
                "made.u4.f16.x8.sm80", "made.u4.f16.16x8.sm", "made.u4.f16.16x8.sm80 "):
        with contextlib.suppress(ValueError):
            raise AssertionError(parse(families, bad))
    refused = {k.name: legal(families, k) for k in points(families) if legal(families, k)}
    assert {n for n in refused if n.startswith("made.")} == {f"made.{w}.e4m3.{t}.sm80" for w in made.weights for t in made.tiles}, refused
    built = [k.name for k in kernels(families, ["80"])]
    assert "made.u4.f16.16x8.sm80" in built and "made.u4.f16.16x8.sm90a" not in built
    with tempfile.TemporaryDirectory() as d:
        def state():
            return {e.name: (e.stat().st_mtime_ns, open(e.path, encoding="utf-8").read()) for e in os.scandir(d)}
        with open(os.path.join(d, "mine.cu"), "w", encoding="utf-8") as f:
            f.write("not generated\n")
        write_all(d, families, ["90a", "80"])
        first = state()
        write_all(d, families, ["90a", "80"])
        assert state() == first
        always = {"mine.cu", "manifest", "registry.c", "every_kernel.c", "rules.mk"}
        assert {f"made.{w}.{a}.cu" for w in made.weights for a in archs_of(made)} < set(first) - always, set(first)
        assert "GENCODE_made.u4.sm90a := -gencode arch=compute_90a,code=sm_90a\n" in first["rules.mk"][1]
        assert ("GENCODE_made.f6.sm80 := -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=sm_80 "
                "-gencode arch=compute_80,code=compute_80\n") in first["rules.mk"][1]
        alone = rules(instances(families, kernels(families, ["90a"]), ["90a"]))
        assert "GENCODE_made.f6.sm80 := -gencode arch=compute_90a,code=sm_90a\n" in alone
        assert "GENCODE_generic.w4.sm80 := -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=compute_80\n" in alone
        before = rules(instances(families, kernels(families, ["80", "89"]), ["80", "89"]))
        assert ("GENCODE_made.f6.sm80 := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=sm_89 "
                "-gencode arch=compute_80,code=compute_80\n") in before
        one = registry(families, kernels(families, ["90a"]), ["90a"])
        assert re.search(r'"gemv.u4.f16.16x8.sm80",[^}]*\.arch = 90,\s*\.arch_exact = 1,', one)
        assert one.count(".backend = LPGEMM_BACKEND_CPU") == sum(not k.arch.startswith("sm") for k in kernels(families, ["90a"]))
        assert re.search(r'"generic.w4.any.16x8.sm80",[^}]*\.arch = 80,\s*\.arch_exact = 0,', one)
        assert "LPG_MADE(lpgemm_i_made_u4_f16_16x8_sm80, u4, f16, 16, 8)\n" in first["made.u4.sm80.cu"][1]
        names = re.findall(r'\.name = "(.*)"', first["registry.c"][1])
        assert names == [k.name for k in kernels(families, ["90a", "80"])], names
        assert names[-1] == "reference.any.any.1x1.cpu"
        write_all(d, families, [], only="lut")
        last = state()
        assert set(last) == always and last["rules.mk"][1].endswith("GEN_CU :=\n")
        names = re.findall(r'\.name = "(.*)"', last["registry.c"][1])
        lookups = [f"lut.u{b}.any.4.{isa}" for b in range(1, 5) for isa in ("vbmi", "avx2", "neon", "base")]
        assert names == [*lookups, "reference.any.any.1x1.cpu"], names
    print("gen_kernels.py: selftest passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--archs", default="", help='CUDA architectures, for example "90a 80"')
    parser.add_argument("--only", help="names or families, with wildcards; what can do everything is always there")
    parser.add_argument("--experiments", action="store_true", help="with the kernels that are experiments")
    for flag in ("list", "refused", "list-layouts", "selftest"):
        parser.add_argument("--" + flag, action="store_true")
    args = parser.parse_args()
    archs = args.archs.split()
    if args.out:
        write_all(args.out, FAMILIES, archs, args.only, args.experiments)
    if args.list:
        print("\n".join(k.name for k in kernels(FAMILIES, archs, args.only, args.experiments)))
    if args.refused:
        print("\n".join(f"{k.name}: {legal(FAMILIES, k)}" for k in points(FAMILIES) if legal(FAMILIES, k)))
    if args.list_layouts:
        for name, number in LAYOUTS.items():
            print(number, name, *(k.name for k in kernels(FAMILIES, archs) if row_of(FAMILIES, k).layout == name))
    if args.selftest:
        selftest()


if __name__ == "__main__":
    main()
