#!/usr/bin/env python3
"""What README.md owes to other files.

    readme.py --example README.md    prints its first C program, for a test to compile
    readme.py --check README.md      fails unless the support matrix is what tools/gen_kernels.py says
    readme.py --update README.md     writes that matrix between the markers"""

import os
import re
import subprocess
import sys

MATRIX = re.compile(r"(<!-- support matrix: `make readme` -->\n).*?(<!-- end -->\n)", re.S)


def with_matrix(text):
    generator = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen_kernels.py")
    matrix = subprocess.run([sys.executable, generator, "--matrix", "--archs", "80 90a"], check=True,
                            capture_output=True, text=True).stdout
    if not MATRIX.search(text):
        sys.exit("README.md has no place for the support matrix")
    return MATRIX.sub(lambda m: f"{m[1]}\n{matrix}\n{m[2]}", text)


def main(flag, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if flag == "--example":
        program = re.search(r"^```c\n(.*?)^```$", text, re.S | re.M)
        print(program[1] if program else sys.exit("no C program in " + path), end="")
    elif flag == "--check":
        sys.exit(None if with_matrix(text) == text else "the support matrix is out of date: run `make readme`")
    elif flag == "--update":
        with open(path, "w", encoding="utf-8") as f:
            f.write(with_matrix(text))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
