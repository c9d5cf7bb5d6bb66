#!/usr/bin/env python3
"""llama-bench with the backend beside stock: bench.py FOLDER MODULE RECORD. FOLDER is that of get.sh with llama-bench
built in it; a Llama with random weights is written there for each type. Both sides run in turn, a process each time; a
number is the best of all turns, since other programs on the machine only make it less."""

import argparse
import datetime
import json
import os
import subprocess

LAYERS, WIDTH, INNER, WORDS = 4, 2048, 5632, 4096
SIDES = ("ggml", "lpgemm", "lpgemm exact")
TESTS = {"prompt": ["-p", "256", "-n", "0"], "decode": ["-p", "0", "-n", "32"]}


def run(args, environment):
    inherited = {name: value for name, value in os.environ.items() if name not in ("GGML_BACKEND_PATH", "LPGEMM_LOG")}
    done = subprocess.run(args, env={**inherited, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def environment_of(side, module):
    if side == "ggml":
        return {}
    return {"GGML_BACKEND_PATH": module, "LPGEMM_GGML_LEVEL": "exact" if side.endswith("exact") else "fast"}


def measure(options, model, threads, test, sides):
    best = dict.fromkeys(sides, 0.0)
    for _ in range(options.turns):
        for side in sides:
            out = run([os.path.join(options.folder, "shared/bin/llama-bench"), "-m", model, "-t", str(threads), "-r", "3",
                       "-o", "json", *TESTS[test]], environment_of(side, options.module))
            best[side] = max(best[side], *json.loads(out)[0]["samples_ts"])
    return best


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("module")
    parser.add_argument("record")
    parser.add_argument("--types", default="q4_0,q8_0,q4_k")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--exact", action="store_true", help="also EXACT")
    parser.add_argument("--note", default="", help="what the record says of the machine")
    options = parser.parse_args()
    sides = SIDES if options.exact else SIDES[:2]
    cores = len(os.sched_getaffinity(0))
    cases, ggml = [], ""
    for kind in options.types.split(","):
        model = os.path.join(options.folder, f"bench-{kind}.gguf")
        run([os.path.join(options.folder, "model"), model, kind, "blocks", *map(str, (LAYERS, WIDTH, INNER, WORDS, 0))], {})
        for threads in sorted({1, cores}):
            for test in TESTS:
                best = measure(options, model, threads, test, sides)
                ratio = best["lpgemm"] / best["ggml"]
                print(f"{kind:6} {threads} threads {test}: " + ", ".join(f"{s} {t:.1f}" for s, t in best.items()) +
                      f" tokens/s: {ratio:.2f}", flush=True)
                cases.append({"name": f"{kind}/{test}/t{threads}", "type": kind, "test": test, "threads": threads,
                              **{s.replace(" ", "_") + "_tokens_per_s": round(t, 2) for s, t in best.items()},
                              "ratio": round(ratio, 3)})
        os.remove(model)
    with open(options.record, "w", encoding="utf-8") as file:
        json.dump({"suite": "llama-bench", "commit": os.environ.get("LPGEMM_COMMIT", "unknown"),
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "device": processor(), "cores": cores, "note": options.note,
                   "ggml": "0.25.3, GGML_NATIVE, OpenMP (llama-cpp-python 0.3.36)",
                   "model": {"layers": LAYERS, "width": WIDTH, "inner": INNER, "words": WORDS},
                   "time": f"tokens a second, best of {3 * options.turns}, sides in turn; prompt of 256, 32 decoded",
                   "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
