#!/usr/bin/env python3
"""A Llama with the backend beside stock llama.cpp: bench.py FOLDER MODULE RECORD, after `make ggml-check`, which has built
what it runs in FOLDER. A Llama with random weights is written there for each type. Both sides run in turn, a process
each time, and a number is the least of all turns. With one thread times are CPU times of the process, which other
programs on the machine disturb little; with several they are wall times, and want a quiet machine."""

import argparse
import datetime
import json
import os
import subprocess

LAYERS, WIDTH, INNER, WORDS = 4, 2048, 5632, 4096
SIDES = ("ggml", "fast", "exact")
TIMES = ("prompt_cpu", "prompt_wall", "token_cpu", "token_wall")


def run(args, environment):
    inherited = {name: value for name, value in os.environ.items() if name not in ("GGML_BACKEND_PATH", "LPGEMM_LOG")}
    done = subprocess.run(args, env={**inherited, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def measure(options, model, threads):
    """{side: {time: seconds}}"""
    best = {}
    for _ in range(options.turns):
        for side in SIDES:
            extra = {} if side == "ggml" else {"GGML_BACKEND_PATH": options.module, "LPGEMM_GGML_LEVEL": side}
            out = run([os.path.join(options.folder, "speed"), model, str(threads)], extra)
            now = dict(zip(TIMES, map(float, out.split())))
            best[side] = {t: min(now[t], best.get(side, now)[t]) for t in TIMES}
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
    parser.add_argument("--threads", default="1", help="one number or several: 1,16")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--note", default="", help="what the record says of the machine")
    options = parser.parse_args()
    cases = []
    for kind in options.types.split(","):
        model = os.path.join(options.folder, f"bench-{kind}.gguf")
        run([os.path.join(options.folder, "model"), model, kind, "blocks", *map(str, (LAYERS, WIDTH, INNER, WORDS, 0))], {})
        for threads in map(int, options.threads.split(",")):
            best = measure(options, model, threads)
            for what in ("prompt", "token"):
                clock = "cpu" if threads == 1 else "wall"
                ms = {side: 1000 * best[side][f"{what}_{clock}"] for side in SIDES}
                print(f"{kind:6} {threads} threads, {what}: " + ", ".join(f"{s} {t:.2f} ms" for s, t in ms.items()) +
                      f"; FAST by ggml {ms['fast'] / ms['ggml']:.2f}", flush=True)
                cases.append({"name": f"{kind}/{what}/t{threads}", "type": kind, "what": what, "threads": threads,
                              "clock": clock, **{f"{s}_ms": round(t, 3) for s, t in ms.items()},
                              "fast_ratio": round(ms["fast"] / ms["ggml"], 3),
                              "exact_ratio": round(ms["exact"] / ms["ggml"], 3)})
        os.remove(model)
    with open(options.record, "w", encoding="utf-8") as file:
        json.dump({"suite": "ggml-bench", "commit": os.environ.get("LPGEMM_COMMIT", "unknown"),
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "device": processor(), "note": options.note,
                   "ggml": "0.25.3, GGML_NATIVE, OpenMP (llama-cpp-python 0.3.36)",
                   "model": {"layers": LAYERS, "width": WIDTH, "inner": INNER, "words": WORDS},
                   "time": f"a prompt of 256 tokens, a decoded token; sides in turn, the least of {options.turns} processes",
                   "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
