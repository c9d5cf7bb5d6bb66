#!/usr/bin/env python3
"""MUL_MAT on a GPU by the module and by ggml-cuda: gpu_bench.py FOLDER RECORD, where FOLDER is that of `make ggml-gpu`. Times
are those of `test-backend-ops perf`, which runs an operation again and again on the same tensors and divides; FAST. Both
sides run in turn, a process each time, and a number is the least of all turns. The record is written anew after each
process, so what is stopped early keeps what it has. Without FOLDER/rival/libggml-cuda.so (engines/ggml/rival.sh) the
module is timed alone."""

import argparse
import datetime
import json
import os
import re
import subprocess

MODULES = {"lpgemm": ("libggml-lpgemm.so", "LPGEMM-CUDA0"), "ggml": ("rival/libggml-cuda.so", "CUDA0")}
LINE = re.compile(r"MUL_MAT\((.*)\):.* ([0-9.]+) us/run")
SHAPE = re.compile(r"type_a=(\w+),type_b=f32,m=(\d+),n=(\d+),k=(\d+),bs=\[1,1\],nr=\[1,1\],per=\[0,1,2,3\],k_v=0,o=1")


def measure(folder, side, pattern):
    """{(type, rows of W, columns, rows of X): microseconds}. ggml's m and n are our N and M."""
    module, device = MODULES[side]
    command = [os.path.join(folder, "test-backend-ops"), "perf", "-b", device, "-o", "MUL_MAT", "-p", pattern]
    environment = {**os.environ, "GGML_BACKEND_PATH": os.path.join(os.path.abspath(folder), module),
                   "LD_LIBRARY_PATH": os.path.abspath(folder), "LPGEMM_GGML_DEVICE": "cuda", "LPGEMM_GGML_LEVEL": "fast"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    times = {}
    for params, us in LINE.findall(done.stdout):
        if shape := SHAPE.match(params):
            n, m, k = map(int, shape.groups()[1:])
            times[(shape[1], n, k, m)] = float(us)
    if not times:
        raise SystemExit(f"{' '.join(command)} timed nothing:\n{done.stdout[-1000:]}")
    return times


def device_name():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def write(options, best):
    cases = []
    for shape in sorted(best["lpgemm"]):
        kind, n, k, m = shape
        us = {f"{side}_us": times[shape] for side, times in best.items() if shape in times}
        ratio = {"ratio": round(us["lpgemm_us"] / us["ggml_us"], 3)} if "ggml_us" in us else {}
        cases.append({"name": f"{kind}/{n}x{k}/m{m}", "type": kind, "n": n, "k": k, "m": m, **us, **ratio})
    with open(options.record, "w", encoding="utf-8") as file:
        json.dump({"suite": "ggml-gpu", "commit": os.environ.get("LPGEMM_COMMIT", "unknown"),
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "device": device_name(), "ggml": "0.25.3 (llama-cpp-python 0.3.36)",
                   "time": f"test-backend-ops perf, the same weights again and again; sides in turn, the least of {options.turns} processes",
                   "cases": cases}, file, indent=1)
        file.write("\n")
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("record")
    parser.add_argument("--types", default="q4_0,q4_K,q6_K")
    parser.add_argument("--columns", default="1 8 512,2 3 4 5", help="numbers of rows of X, the most important group first")
    parser.add_argument("--shapes", default="m=4096,n=({columns}),k=14336,", help="a pattern; ggml has more shapes for some types")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    best = {side: {} for side in MODULES if os.path.exists(os.path.join(options.folder, MODULES[side][0]))}
    types = "|".join(options.types.split(","))
    for columns in options.columns.split(","):
        shapes = options.shapes.replace("{columns}", "|".join(columns.split()))
        for _ in range(options.turns):
            for side in best:
                for shape, us in measure(options.folder, side, f"type_a=({types}),type_b=f32,{shapes}").items():
                    best[side][shape] = min(us, best[side].get(shape, us))
                    print(f"{side:6} {shape}: {us} us", flush=True)
                write(options, best)
    for case in write(options, best):
        print(case["name"], {key: case[key] for key in ("lpgemm_us", "ggml_us", "ratio") if key in case})


if __name__ == "__main__":
    main()
