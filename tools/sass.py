#!/usr/bin/env python3
"""What became of CUDA kernels, without a GPU: their machine code, by nvdisasm.

    sass.py loops FILE...        a line a kernel: instructions, those of its main loop, spills in both
    sass.py compare [--any-name] OLD... -- NEW...
                                 the kernels whose code differs, and how; --any-name: matched by their instructions,
                                 for a change that renames them
    sass.py --selftest

FILE is a cubin (nvcc -cubin), or an object or archive that holds some. The main loop is the smallest that has
tensor-core instructions; a spill is an access to local memory. nvdisasm, and cuobjdump for objects, are taken from
CUDA_HOME or PATH; they come with the CUDA toolkit, and with packages that bring its compilers."""

import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

TENSOR = re.compile(r"\b([HIQ]|B)G?MMA\b")
SPILL = re.compile(r"\b(STL|LDL)\b")


def program(name):
    own = os.path.join(os.environ.get("CUDA_HOME", ""), "bin", name)
    return own if os.path.isfile(own) else name


def listing(path):
    """The disassembly of all cubins of a file."""
    with open(path, "rb") as f:
        head = f.read(20)
    if head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == 190:  # EM_CUDA
        return run(program("nvdisasm"), "-c", path)
    with tempfile.TemporaryDirectory() as folder:
        run(program("cuobjdump"), "-xelf", "all", os.path.abspath(path), cwd=folder)
        return "".join(run(program("nvdisasm"), "-c", cubin) for cubin in sorted(glob.glob(folder + "/*.cubin")))


def run(*command, cwd=None):
    try:
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        sys.exit(f"sass.py: {command[0]} is not there; set CUDA_HOME or PATH")
    except subprocess.CalledProcessError as error:
        sys.exit(f"sass.py: {' '.join(command)}: {error.stderr.strip()}")


class Kernel:
    """Instructions in their order, and the loops: pairs of first and last."""

    def __init__(self):
        self.code, self.labels, self.waiting = [], {}, []

    def add(self, line):
        if label := re.match(r"\s*(\.L_\w+):", line):
            self.waiting.append(label[1])
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            self.labels.update((label, len(self.code)) for label in self.waiting)
            self.waiting = []
            self.code.append(instruction[1])

    def main_loop(self):
        """Its instructions; all if there is no such loop."""
        loops = []
        for last, text in enumerate(self.code):
            target = re.search(r"\bBRA\b.*?(\.L_\w+)", text)
            first = self.labels.get(target[1], last + 1) if target else last + 1
            if first <= last and any(TENSOR.search(t) for t in self.code[first:last + 1]):
                loops.append(self.code[first:last + 1])
        return min(loops, key=len, default=self.code)

    def bare(self):
        """The instructions without the names of labels and functions."""
        return [" ".join(re.sub(r"\.L_\w+|\b_Z\w+|\$__internal_\d+_", "L", text).split()) for text in self.code]

    def same_as(self, other):
        return self.bare() == other.bare()


def kernels(text):
    found, current = {}, None
    for line in text.splitlines():
        if section := re.match(r'\s*\.section\s+"?\.text\.([^\s",]+)', line):
            current = found[short(section[1])] = Kernel()
        elif current:
            current.add(line)
    return found


def kernels_of(paths):
    return {name: kernel for path in paths for name, kernel in kernels(listing(path)).items()}


def short(name):
    """A mangled name without what the compiler makes of the file's, which differs between two compilations."""
    return re.sub(r"\d+_GLOBAL__N__[0-9a-f]+_\d+_\w+?_cu_[0-9a-f]{8}", "", name)


def spills(code):
    return sum(1 for text in code if SPILL.search(text))


def opcodes(code):
    return collections.Counter(re.sub(r"^@!?\w+\s+", "", text).split()[0].split(".")[0] for text in code)


def as_loops(found):
    for name, kernel in found.items():
        loop = kernel.main_loop()
        yield (f"{name}: {len(kernel.code)} instructions, {spills(kernel.code)} spills; main loop {len(loop)}, "
               f"{spills(loop)}")


def as_differences(old, new):
    same = 0
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            yield f"{name}: only in the {'new' if name in new else 'old'} file"
            continue
        if old[name].same_as(new[name]):
            same += 1
            continue
        loops = [opcodes(kernels_of[name].main_loop()) for kernels_of in (old, new)]
        changed = " ".join(f"{op} {loops[0][op]}->{loops[1][op]}" for op in sorted(loops[0] | loops[1])
                           if loops[0][op] != loops[1][op])
        yield (f"{name}: {len(old[name].code)} -> {len(new[name].code)} instructions, {spills(old[name].code)} -> "
               f"{spills(new[name].code)} spills; main loop {changed or 'of the same instructions'}")
    yield f"{same} kernels are the same"


def without_names(old, new):
    """Both without the kernels that stand in both, whatever their names, and how many those are."""
    def by_code(kernels_of):
        found = collections.defaultdict(list)
        for name in sorted(kernels_of):
            found["\n".join(kernels_of[name].bare())].append(name)
        return found
    there, left_old, left_new, same = by_code(new), dict(old), dict(new), 0
    for code, names in by_code(old).items():
        for name, other in zip(names, there[code]):
            del left_old[name], left_new[other]
            same += 1
    return left_old, left_new, same


def as_differences_by_code(old, new):
    left_old, left_new, same = without_names(old, new)
    yield from (f"{name}: only in the old files" for name in sorted(left_old))
    yield from (f"{name}: only in the new files" for name in sorted(left_new))
    yield f"{same} kernels are the same"


LISTING = """
.section .text._ZN3lpg49_GLOBAL__N__00000001_9_made_up_cu_0123abcd_6kernelEv,"ax",@progbits
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E R2, [R4.64] ;
.L_x_0:
        /*0020*/                   HGMMA.64x64x16.F32 R24, R8, gdesc[UR4] ;
        /*0030*/                   STL [R1], R2 ;
        /*0040*/              @!P0 BRA `(.L_x_0) ;
        /*0050*/               @P1 BRA `(.L_x_1) ;
        /*0060*/                   EXIT ;
"""


def selftest():
    found = kernels(LISTING)
    assert list(found) == ["_ZN3lpg_6kernelEv"], list(found)
    kernel = found["_ZN3lpg_6kernelEv"]
    assert len(kernel.code) == 7 and len(kernel.main_loop()) == 3 and spills(kernel.main_loop()) == 1
    assert next(as_loops(found)).endswith(": 7 instructions, 1 spills; main loop 3, 1")
    other = kernels(LISTING.replace("9_made_up_cu_0123abcd", "9_made_up_cu_4567cdef").replace("_x_", "_y_"))
    assert list(as_differences(found, other)) == ["1 kernels are the same"]
    other = kernels(LISTING.replace("STL [R1], R2", "IADD3 R2, R2, R3, RZ"))
    assert "7 -> 7 instructions, 1 -> 0 spills; main loop IADD3 0->1 STL 1->0" in next(as_differences(found, other))
    assert "only in the old file" in next(as_differences(found, {}))
    renamed = kernels(LISTING.replace("kernelEv", "otherEv"))
    assert list(as_differences_by_code(found, renamed)) == ["1 kernels are the same"]
    assert len(list(as_differences_by_code(found, {}))) == 2
    print("sass.py: selftest passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        selftest()
    elif len(sys.argv) > 2 and sys.argv[1] == "loops":
        for line in as_loops(kernels_of(sys.argv[2:])):
            print(line)
    elif len(sys.argv) > 4 and sys.argv[1] == "compare" and "--" in sys.argv:
        files = sys.argv[2:]
        differences = as_differences
        if files[0] == "--any-name":
            files, differences = files[1:], as_differences_by_code
        middle = files.index("--")
        for line in differences(kernels_of(files[:middle]), kernels_of(files[middle + 1:])):
            print(line)
    else:
        sys.exit(__doc__)
