#!/usr/bin/env python3
"""llama-bench with the backend beside stock llama.cpp: bench.py FOLDER MODULE RECORD, by `make ggml-bench`, which builds what
it runs in FOLDER. A Llama with random weights is written there for each type. The sides run in turn, a process each
time, and a number is the least of all runs of all processes; the record is written anew after each of them. It is wall
time as llama-bench gives it, and beside it the CPU time of the process between the starts of two runs, which other
programs on the machine disturb less. With several threads that CPU time has what threads wait actively for each other.
It is read when llama-bench says that a run starts, so a run has to take long beside the time in which this program
wakes up: a second, not milliseconds.

--gpu: stock is ggml-cuda with all layers on the GPU (libggml-cuda.so lies beside llama-bench). On the other sides the
matrices lie in the memory of the module's device, which multiplies by them (fast), or a ggml-cuda with ggml-cuda.patch
lets the module do it (guest; FAST too), whose llama-bench and libraries are in FOLDER/patched/bin. Wall time alone; and into
how many pieces the graph is cut."""

import argparse
import datetime
import itertools
import json
import os
import re
import subprocess

TEST = re.compile(r"(pp|tg)(\d+)")
STARTS = re.compile(r": (prompt|generation) run \d+/")
PIECES = re.compile(r"graph.*: nodes = .*, splits = ([0-9/ ]+),")
ALL_LAYERS = ("-ngl", "99")
MATRICES = ("-ot", r"^(blk\.[0-9]+\.(attn_[qkv]|attn_output|ffn_[gud][a-z]*)|output)\.weight$=LPGEMM-CUDA0")


def environment(options, side):
    inherited = {name: value for name, value in os.environ.items() if name not in ("GGML_BACKEND_PATH", "LPGEMM_LOG")}
    if side == "ggml":
        return inherited
    return {**inherited, "GGML_BACKEND_PATH": options.module, "LPGEMM_GGML_LEVEL": "fast" if side == "guest" else side,
            "LPGEMM_GGML_DEVICE": "cuda" if options.gpu else "cpu"}


def cpu_time(pid):
    """Nanoseconds on a core, of all threads that are there."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def command_of(options, side, model, threads, test, runs):
    kind, count = TEST.fullmatch(test).groups()
    prompt, tokens = (count, "0") if kind == "pp" else ("0", count)
    gpu = (*ALL_LAYERS, *(() if side == "ggml" else MATRICES)) if options.gpu else ()
    build = "patched" if side == "guest" else "shared"
    return [os.path.join(options.folder, build, "bin", "llama-bench"), "-m", model, "-t", str(threads), "-p", prompt, "-n", tokens,
            "-r", str(runs), "-o", "json", *gpu]


def pieces(options, side, model, threads, test):
    """Into how many pieces the scheduler cuts the graph, as llama.cpp's log has it; of a prompt / of a token if they differ."""
    done = subprocess.run([*command_of(options, side, model, threads, test, 1), "-v"], env=environment(options, side),
                          capture_output=True, text=True, check=False)
    found = PIECES.findall(done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{' '.join(done.args)} failed, or says nothing of splits:\n{done.stderr[-2000:]}")
    return found[-1]


def llama_bench(options, side, model, threads, test):
    """(wall, CPU): the least of the runs of a process, in ns."""
    command = [*command_of(options, side, model, threads, test, options.runs + 1), "--progress"]
    with subprocess.Popen(command, env=environment(options, side), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        lines, starts = [], []
        for line in process.stderr:
            lines.append(line)
            if STARTS.search(line):
                starts.append(cpu_time(process.pid))
        out = process.stdout.read()
    loaded = any("loaded LPGEMM backend" in line for line in lines)
    if process.returncode or loaded != (side != "ggml"):
        raise SystemExit(f"{' '.join(command)} failed, or has not the backend that it should have:\n{''.join(lines)[-2000:]}")
    return min(json.loads(out)[0]["samples_ns"]), min(end - start for start, end in zip(starts, starts[1:]))


def device(options):
    if options.gpu:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def write(options, cases, cuts):
    with open(options.record, "w", encoding="utf-8") as file:
        json.dump({"suite": "llama-bench", "commit": os.environ.get("LPGEMM_COMMIT", "unknown"),
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "void": "",
                   "device": device(options), "note": options.note, "ggml": options.ggml,
                   "model": dict(zip(("layers", "width", "inner", "words"), map(int, options.shape.split(",")))),
                   "time": f"sides in turn, the least of {options.turns} processes with {options.runs + 1} runs each",
                   **({"pieces": cuts} if cuts else {}), "cases": cases}, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("module")
    parser.add_argument("record")
    parser.add_argument("--types", default="q4_0,q8_0,q4_k")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--tests", default="pp256,tg32", help="prompts of so many tokens, or so many tokens one by one")
    parser.add_argument("--shape", default="8,2048,5632,32000", help="layers, width, inner width, words")
    parser.add_argument("--sides", default="ggml,fast,exact")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--note", default="", help="what the record says of the machine")
    parser.add_argument("--ggml", default="0.25.3, GGML_NATIVE, OpenMP (llama-cpp-python 0.3.36)", help="what it says of ggml's build")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    sides, cases, cuts = options.sides.split(","), {}, {}
    clocks = ("wall",) if options.gpu else ("wall", "cpu")
    models = {kind: os.path.join(options.folder, f"bench-{kind}.gguf") for kind in options.types.split(",")}
    writers = [subprocess.Popen([os.path.join(options.folder, "model"), model, kind, "blocks", *options.shape.split(","), "0"])
               for kind, model in models.items()]
    if any(writer.wait() for writer in writers):
        raise SystemExit("a model was not written")
    every = itertools.product(range(options.turns), map(int, options.threads.split(",")), models, options.tests.split(","))
    for turn, threads, kind, test in every:
        case = cases.setdefault((kind, test, threads), {"name": f"{kind}/{test}/t{threads}", "type": kind, "test": test,
                                                        "threads": threads})
        for side in sides:
            if options.gpu and side not in cuts:
                cuts[side] = pieces(options, side, models[kind], threads, test)
            for clock, ns in zip(clocks, llama_bench(options, side, models[kind], threads, test)):
                name, ms = f"{side}_{clock}_ms", round(ns / 1e6 / int(test[2:]), 6)
                case[name] = min(ms, case.get(name, ms))
        case["processes"] = turn + 1
        print(f"turn {turn}: {case['name']}, ms a token:", case, flush=True)
        write(options, list(cases.values()), cuts)
    for model in models.values():
        os.remove(model)


if __name__ == "__main__":
    main()
