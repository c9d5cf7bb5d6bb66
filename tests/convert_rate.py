#!/usr/bin/env python3
"""How fast lpgemm-convert is, and how much memory it takes: converts a model of tests/synthetic_model.py from the page
cache to tmpfs and prints wall clock, CPU time, MB of the file a second of each, and the peak of RssAnon. CPU time tells
what the wall clock would be on a machine that nobody else uses. With --turns N the fastest of N conversions counts;
--record PATH writes all of them, and with --turns `cp` of the same file beside each, as JSON."""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def read_all(path):
    """Brings the file into the page cache."""
    for name in [path] if os.path.isfile(path) else [os.path.join(path, n) for n in os.listdir(path)]:
        with open(name, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def warm(folder, size):
    """Touches as much memory as the output will need: a virtual machine may have to ask its host for it first."""
    path = os.path.join(folder, "warm")
    piece = bytes(1 << 24)
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // len(piece) + 1):
            file.write(piece)
    os.remove(path)


def anonymous(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon")), 0)
    except OSError:
        return 0


def run(command):
    """Seconds, CPU seconds, peak of RssAnon, exit code."""
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    peak = 0
    while True:
        peak = max(peak, anonymous(pid))
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return time.monotonic() - start, usage.ru_utime, usage.ru_stime, peak, code
        time.sleep(0.005)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")


def build_of(program):
    """What lpgemm-info beside the program says of the library, its commit among it; \"\" if it is not there."""
    info = os.path.join(os.path.dirname(os.path.abspath(program)), "lpgemm-info")
    if not os.path.isfile(info):
        return ""
    return subprocess.run([info], capture_output=True, text=True, check=True).stdout.split("\n", 1)[0]


def copy(model, to):
    """CPU seconds that cp takes for the same file: what tmpfs costs whoever writes to it."""
    _, user, system, _, code = run(["cp", "-r", model, to])
    shutil.rmtree(to) if os.path.isdir(to) else os.remove(to)
    return user + system if code == 0 else None


def convert(a, form, model, output):
    """One turn."""
    to, size = os.path.join(output, "model.lpg"), size_of(model)
    command = [*a.under.split(), os.path.abspath(a.program), model, to, "--force", "--threads", a.threads]
    load = os.getloadavg()[0]
    seconds, user, system, peak, code = run(command)
    print(f"{form}: {size / 1e9:.2f} GB in {seconds:.2f} s wall, {user:.2f} s user + {system:.2f} s system: "
          f"{size / seconds / 1e6:.0f} MB/s wall, {size / (user + system) / 1e6:.0f} MB/s of CPU time a core, "
          f"RssAnon {peak / 1e6:.0f} MB, exit code {code}", flush=True)
    turn = {"format": form, "file_bytes": size, "seconds": round(seconds, 3), "user": round(user, 3), "system": round(system, 3),
            "mb_per_s": round(size / seconds / 1e6, 1), "rss_anon_bytes": peak, "load": load, "exit_code": code}
    if a.turns > 1:
        turn["cp_cpu"] = copy(model, os.path.join(output, "copy"))
    return turn


def write_record(a, turns):
    record = {"suite": "convert-rate", "build": build_of(a.program), "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
              "device": processor(), "cpus": os.cpu_count(), "threads": int(a.threads), "layers": int(a.layers),
              "vocabulary": int(a.vocabulary), "under": a.under, "note": a.note, "cases": turns}
    with open(a.record + ".new", "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    os.replace(a.record + ".new", a.record)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="build/bin/lpgemm-convert")
    parser.add_argument("formats", nargs="*", default=["gptq", "awq", "q4_k_m"])
    parser.add_argument("--layers", default="32")
    parser.add_argument("--vocabulary", default="128256")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where models are written")
    parser.add_argument("--output", default="/dev/shm", help="where they are converted to: tmpfs")
    parser.add_argument("--under", default="", help="words before the command, such as 'chrt -r 1' on a busy machine")
    parser.add_argument("--check", action="store_true", help="run --check after each")
    parser.add_argument("--turns", type=int, default=1, help="conversions of each model")
    parser.add_argument("--record", help="where to write what was measured, as JSON")
    parser.add_argument("--note", default="", help="what a reader of the record must know of the machine")
    a = parser.parse_args()
    failed, turns = 0, []
    for form in a.formats:
        folder = tempfile.mkdtemp(prefix="lpgemm-rate-", dir=a.folder)
        output = tempfile.mkdtemp(prefix="lpgemm-rate-", dir=a.output)
        try:
            model = os.path.join(folder, "model.gguf" if form == "q4_k_m" else "model")
            subprocess.run([sys.executable, os.path.join(HERE, "synthetic_model.py"), form, model, "--layers", a.layers,
                            "--vocabulary", a.vocabulary], check=True)
            size = size_of(model)
            warm(output, size + size // 20)
            for _ in range(a.turns):
                read_all(model)
                turns.append(convert(a, form, model, output))
                failed += turns[-1]["exit_code"] != 0
            if a.check:
                command = [os.path.abspath(a.program), "--check", model, os.path.join(output, "model.lpg")]
                seconds, user, system, peak, code = run([*a.under.split(), *command, "--threads", a.threads])
                failed += code != 0
                print(f"{form} --check: {seconds:.2f} s wall, {user + system:.2f} s CPU, RssAnon {peak / 1e6:.0f} MB, "
                      f"exit code {code}", flush=True)
        finally:
            shutil.rmtree(folder)
            shutil.rmtree(output)
        if a.record:
            write_record(a, turns)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
