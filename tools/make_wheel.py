#!/usr/bin/env python3
"""Writes the wheel: python/lpgemm with a shared library that is built already and its header.

usage: make_wheel.py --library FILE --header FILE --version V --platform TAG --out FOLDER [--torch FILE]

--torch: with engines/torch as lpgemm.torch, whose library of operators is FILE. Prints the path of the wheel. The same files give the same bytes."""

import argparse
import base64
import hashlib
import os
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

METADATA = """\
Metadata-Version: 2.1
Name: lpgemm
Version: {version}
Summary: Mixed-precision matrix multiplication with weights of 1 to 8 bits
License: Apache-2.0
Requires-Python: >=3.8
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: lpgemm
Root-Is-Purelib: false
Tag: {tag}
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def contents(options, tag):
    """Path in the wheel -> bytes."""
    package, info = os.path.join(ROOT, "python", "lpgemm"), f"lpgemm-{options.version}.dist-info"
    files = {f"lpgemm/{name}": read(os.path.join(package, name)) for name in sorted(os.listdir(package))
             if name.endswith(".py")}
    if options.torch:
        package = os.path.join(ROOT, "engines", "torch", "package")
        files.update({f"lpgemm/torch/{name}": read(os.path.join(package, name)) for name in sorted(os.listdir(package))
                      if name.endswith(".py")})
        files["lpgemm/torch/liblpgemm_torch.so"] = read(options.torch)
    files["lpgemm/lpgemm.h"] = read(options.header)
    files["lpgemm/liblpgemm.so"] = read(options.library)
    files[f"{info}/METADATA"] = METADATA.format(version=options.version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=tag).encode()
    files[f"{info}/LICENSE"] = read(os.path.join(ROOT, "LICENSE"))
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    return files


def main(arguments):
    parser = argparse.ArgumentParser()
    for name in ("library", "header", "version", "platform", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--torch")
    options = parser.parse_args(arguments)
    tag = f"py3-none-{options.platform}"
    path = os.path.join(options.out, f"lpgemm-{options.version}-{tag}.whl")
    os.makedirs(options.out, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents(options, tag).items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
