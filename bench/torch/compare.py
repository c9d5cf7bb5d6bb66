#!/usr/bin/env python3
"""lpgemm's CPU backend beside torch's products, and beside the memory: `make torch-compare`.

    compare.py READ.so [--record FILE] [--note TEXT] [--shapes 4096x4096] [--rows 1,4,16,64]

  u4    groups of 128, zero 8, bf16 scales and X: lpgemm beside torch's int4 product and, by the same values, bf16 product
  read  one row by 4 to 8 bits at FAST: packed bytes a second, by what one core reads from memory in a plain loop

All sides of a case run in turn in this process, on one thread, and are timed by its CPU time; a time is the least of
seven. One takes at least 30 ms, and its calls go round copies of the weights that no cache holds. Errors are of 256 rows
of W, against fp64 on the stored numbers, by the root mean square of the outputs."""

import argparse
import ctypes
import datetime
import json
import math
import os
import time

import lpgemm
import torch

LEAST_SECONDS, TURNS, COPY_BYTES, READ_BYTES, GROUP, ERROR_ROWS = 0.03, 7, 120e6, 256 << 20, 128, 256


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def times(sides):
    """Seconds of a call of each side: a function of a number that grows."""
    counts, best, number = [], [math.inf] * len(sides), 0
    for side in sides:
        side(0)
        before = time.process_time()
        side(1)
        counts.append(max(1, math.ceil(LEAST_SECONDS / max(1e-6, time.process_time() - before))))
    for _ in range(TURNS):
        for i, (side, count) in enumerate(zip(sides, counts)):
            before = time.process_time()
            for number in range(number, number + count):
                side(number)
            best[i] = min(best[i], (time.process_time() - before) / count)
    return best


def copies_of(make, size):
    return [make() for _ in range(math.ceil(COPY_BYTES / size))]


def product(handle, weights, x, level):
    """A side, and the Y that it writes. The struct of the call is made once."""
    keep = []
    args, y = handle._args(keep, weights[0], x, None, level=level)

    def run(number):
        args.weights = weights[number % len(weights)].pointer
        status = lpgemm.c.lpgemm_run(handle.pointer, ctypes.byref(args))
        if status:
            raise SystemExit(lpgemm.c.lpgemm_last_error().decode())

    run.keep = keep, x, y
    return run, y


def rms_error(y, expected):
    return float(((y[:, :ERROR_ROWS].double() - expected).square().mean() / expected.square().mean()).sqrt())


def beside_torch(handle, n, k, rows, cases):
    torch.manual_seed(1)
    codes = torch.randint(0, 16, (n, k), dtype=torch.uint8)
    scales = ((torch.rand(n, k // GROUP) + 0.5) / k ** 0.5).bfloat16()
    w = ((codes.double() - 8) * scales.double().repeat_interleave(GROUP, 1)).bfloat16()  # rounds to bf16
    exact = (codes[:ERROR_ROWS].double() - 8) * scales[:ERROR_ROWS].double().repeat_interleave(GROUP, 1)
    packed = copies_of(lambda: handle.pack(codes, "u4", scales=scales, group_k=GROUP, zero=8), n * k / 2)
    int4 = copies_of(lambda: torch._convert_weight_to_int4pack_for_cpu(codes.int(), 2), n * k / 2)
    zeros = torch.zeros(k // GROUP, n, dtype=torch.bfloat16)  # of a value that is 8 steps above the least
    scales_and_zeros = torch.stack((scales.T, zeros), 2).contiguous()
    dense = copies_of(w.clone, 2 * n * k)
    for m in rows:
        x = torch.randn(m, k).bfloat16()
        sides, outputs = zip(*(product(handle, packed, x, level) for level in ("fast", "exact")))
        sides += (lambda i: torch._weight_int4pack_mm_for_cpu(x, int4[i % len(int4)], GROUP, scales_and_zeros),
                  lambda i: torch.mm(x, dense[i % len(dense)].T))
        us = [1e6 * seconds for seconds in times(sides)]
        expected = x.double() @ exact.T
        errors = [rms_error(y, expected) for y in (*outputs, sides[2](0), sides[3](0))]
        names = ("fast", "exact", "int4", "bf16")
        case = {"name": f"u4/{n}x{k}/m{m}", "n": n, "k": k, "m": m, "kernel": kernel_of(handle, packed[0], x, "fast"),
                "exact_kernel": kernel_of(handle, packed[0], x, "exact")}
        case.update({f"{name}_us": round(t, 1) for name, t in zip(names, us)})
        case.update({f"{name}_rms_error": float(f"{e:.3g}") for name, e in zip(names, errors)})
        case.update({f"{level}_by_{other}": round(us[i] / us[j], 3) for i, level in enumerate(names[:2])
                     for j, other in enumerate(names[2:], 2)})
        print(f"u4 {n}x{k} {m:3} rows: " + ", ".join(f"{name} {t:.0f} us" for name, t in zip(names, us)) +
              f"; FAST by int4 {us[0] / us[2]:.2f}, by bf16 {us[0] / us[3]:.2f}; EXACT by int4 {us[1] / us[2]:.2f}, "
              f"by bf16 {us[1] / us[3]:.2f}; errors " + " ".join(f"{e:.1e}" for e in errors), flush=True)
        cases.append(case)


def kernel_of(handle, weights, x, level):
    return handle.explain(weights, x, level=level).split(":")[0].split()[0]


def beside_memory(handle, read, n, k, cases):
    buffer = torch.ones(READ_BYTES, dtype=torch.uint8)
    for bits in range(4, 9):
        for group in (GROUP, 32):
            codes = torch.randint(0, 1 << bits, (n, k), dtype=torch.uint8)
            scales = ((torch.rand(n, k // group) + 0.5) / k ** 0.5).half()
            size = lpgemm.packed_size(n=n, k=k, type=f"u{bits}", scale_type="f16", group_k=group)
            packed = copies_of(lambda: handle.pack(codes, f"u{bits}", scales=scales, group_k=group, zero=1 << bits - 1), size)
            x = torch.randn(1, k)
            run, _ = product(handle, packed, x, "fast")
            seconds, of_read = times([run, lambda _: read(buffer.data_ptr(), READ_BYTES)])
            rate, limit = size / seconds / 1e9, READ_BYTES / of_read / 1e9
            kernel = kernel_of(handle, packed[0], x, "fast")
            print(f"read u{bits} groups of {group:3} {n}x{k}: {1e6 * seconds:.0f} us, {rate:.2f} GB/s of {limit:.2f}: "
                  f"{rate / limit:.2f} ({kernel})", flush=True)
            cases.append({"name": f"read/u{bits}/g{group}/{n}x{k}", "n": n, "k": k, "m": 1, "kernel": kernel, "bytes": size,
                          "fast_us": round(1e6 * seconds, 1), "gb_s": round(rate, 3), "read_gb_s": round(limit, 3),
                          "share": round(rate / limit, 3)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("read")
    parser.add_argument("--record")
    parser.add_argument("--shapes", default="4096x4096,11008x4096")
    parser.add_argument("--rows", default="1,4,16,64")
    parser.add_argument("--what", default="u4,read")
    parser.add_argument("--note", default="", help="what the record says of the machine")
    options = parser.parse_args()
    torch.set_num_threads(1)
    read = ctypes.CDLL(os.path.abspath(options.read)).bench_read
    read.argtypes, read.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint64
    cases, what = [], options.what.split(",")
    with lpgemm.Handle("cpu", num_threads=1) as handle:
        for shape in options.shapes.split(","):
            n, k = map(int, shape.split("x"))
            if "u4" in what:
                beside_torch(handle, n, k, list(map(int, options.rows.split(","))), cases)
            if "read" in what:
                beside_memory(handle, read, n, k, cases)
    if not options.record:
        return
    with open(options.record, "w", encoding="utf-8") as file:
        json.dump({"suite": "torch-compare", "commit": os.environ.get("LPGEMM_COMMIT", "unknown"),
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "build": lpgemm.build_info(), "device": processor(), "note": options.note, "torch": torch.__version__,
                   "threads": 1, "time": "CPU time of the process, all sides in turn, least of 7", "cases": cases},
                  file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
