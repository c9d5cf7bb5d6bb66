#!/usr/bin/env python3
"""Tests of the Python package, which must be importable: products against plain Python. numpy is used if it is there.
The last line counts the tests. usage: test_lpgemm.py [CC]"""

import array
import ctypes
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import lpgemm
from cases import Skip, check, run
from lpgemm._library import header

try:
    import numpy
except ImportError:
    numpy = None

N, K, M, GROUP = 24, 64, 3, 32


def equal(got, want):
    check(got == want, f"{got!r} is not {want!r}")


def refused(error, part, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except error as caught:
        check(part in str(caught), f"{part!r} is not in {str(caught)!r}")
        return caught
    raise AssertionError(f"no {error.__name__} with {part!r}")


def floats(rows):
    return memoryview(array.array("f", [v for row in rows for v in row])).cast("B").cast("f", (len(rows), len(rows[0])))


def octets(rows):
    return memoryview(bytearray(v for row in rows for v in row)).cast("B", (len(rows), len(rows[0])))


class Layer:
    """Codes of 4 bits, scales and zeros of groups, and X, all small integers and powers of two: sums are exact."""

    def __init__(self, seed=1):
        r = random.Random(seed)
        self.codes = [[r.randrange(16) for _ in range(K)] for _ in range(N)]
        self.scales = [[2.0 ** r.randrange(-2, 3) for _ in range(K // GROUP)] for _ in range(N)]
        self.zeros = [[r.randrange(1, 16) for _ in range(K // GROUP)] for _ in range(N)]
        self.x = [[float(r.randrange(-8, 9)) for _ in range(K)] for _ in range(M)]

    def value(self, n, k, zero=8):
        zero = self.zeros[n][k // GROUP] if zero is None else zero
        return (self.codes[n][k] - zero) * self.scales[n][k // GROUP]

    def product(self, zero=8):
        return [[sum(x[k] * self.value(n, k, zero) for k in range(K)) for n in range(N)] for x in self.x]

    def pack(self, handle, **fields):
        fields = {"zero": 8, **fields}
        return handle.pack(octets(self.codes), "u4", scales=floats(self.scales), group_k=GROUP, **fields)


def cpu(**config):
    return lpgemm.Handle("cpu", num_threads=1, **config)


# ---- products ----

def test_five_lines():
    layer = Layer()
    handle = lpgemm.Handle("cpu")
    weights = handle.pack(octets(layer.codes), "u4", scales=floats(layer.scales), group_k=GROUP, zero=8)
    y = handle.run(weights, floats(layer.x))
    equal(y.tolist(), layer.product())
    equal((weights.n, weights.k), (N, K))


def test_numpy():
    if not numpy:
        raise Skip("numpy is not installed")
    layer, handle = Layer(), cpu()
    scales, x = numpy.array(layer.scales, "f2"), numpy.array(layer.x, "f4")
    weights = handle.pack(numpy.array(layer.codes, "u1"), "u4", scales=scales, group_k=GROUP, zero=8)
    want = numpy.array(layer.product(), "f4")
    check((handle.run(weights, x) == want).all())
    check((handle.run(weights, x[1]) == want[1]).all(), "one row")
    check((handle.run(weights, x[None]) == want[None]).all(), "three dimensions")
    wide = numpy.full((M, 2 * K), numpy.nan, "f4")
    wide[:, :K] = x
    y = numpy.full((M, N + 5), 7, "f4")
    check(handle.run(weights, wide[:, :K], y[:, :N]) is not None)
    check((y[:, :N] == want).all() and (y[:, N:] == 7).all(), "rows with gaps")
    check(handle.run(weights, x.astype("f2")).dtype == numpy.float16, "fp16 gives fp16")
    codes = numpy.array(layer.codes + layer.codes, "u1")[::2]
    again = numpy.array([layer.codes[i % N] for i in range(0, 2 * N, 2)], "u1")
    twice = [handle.run(handle.pack(c, "u4"), x) for c in (codes, again)]
    check((twice[0] == twice[1]).all(), "codes with gaps between rows")
    refused(ValueError, "rows must be dense", handle.run, weights, numpy.zeros((M, 2 * K), "f4")[:, ::2])
    refused(ValueError, "rows must be dense", handle.run, weights, numpy.broadcast_to(x[0], (M, K)))
    refused(TypeError, "numbers of a type that lpgemm does not know", handle.run, weights, x.astype("f8"))
    refused(TypeError, "numbers of a type that lpgemm does not know", handle.run, weights, x.astype(">f4"))
    y.setflags(write=False)
    refused(ValueError, "read-only", handle.run, weights, x, y[:, :N])


def test_zeros():
    layer, handle = Layer(2), cpu()
    weights = layer.pack(handle, zeros=octets(layer.zeros), zero="per_group")
    equal(handle.run(weights, floats(layer.x)).tolist(), layer.product(zero=None))
    equal(weights.info()["desc"]["zero_type"], "u8")


def test_minimum():
    layer, handle = Layer(3), cpu()
    minima = floats([[-z * s for z, s in zip(*pair)] for pair in zip(layer.zeros, layer.scales)])
    weights = layer.pack(handle, zeros=minima, zero="minimum")
    equal(handle.run(weights, floats(layer.x)).tolist(), layer.product(zero=None))


def test_options():
    layer, handle = Layer(4), cpu()
    weights, product, x = layer.pack(handle), layer.product(), floats(layer.x)
    bias = [float(n - 12) for n in range(N)]
    y = handle.run(weights, x, bias=array.array("f", bias), activation="relu", alpha=0.5)
    equal(y.tolist(), [[max(0.5 * v + b, 0.0) for v, b in zip(row, bias)] for row in product])
    y = handle.run(weights, x, c=floats(product), beta=2)
    equal(y.tolist(), [[3 * v for v in row] for row in product])
    refused(ValueError, "bias has 3 elements", handle.run, weights, x, bias=array.array("f", [0, 0, 0]))
    refused(TypeError, "no field actvation", handle.run, weights, x, actvation="relu")
    refused(ValueError, "'swish' is none of none, relu", handle.run, weights, x, activation="swish")


def test_threads_of_the_caller():
    n, k, counts = 2000, 512, []

    def parallel_for(_, task, work, count):
        counts.append(count)
        for i in range(count):
            task(work, i)

    handle = lpgemm.Handle("cpu", num_threads=2, parallel_for=parallel_for)
    ones = memoryview(array.array("f", [1.0]) * (n * k)).cast("B").cast("f", (n, k))
    y = handle.run(handle.quantize(ones, "i8", scale_type="f32"), array.array("f", range(k)))
    check(max(abs(v / (k * (k - 1) / 2) - 1) for v in y) < 1e-6)  # 127 * fp32(1 / 127), by sums of integers
    check(counts)


def test_pointers():
    layer, handle = Layer(6), cpu()
    weights = layer.pack(handle)
    x, y = (ctypes.c_float * (M * K))(*(v for row in layer.x for v in row)), (ctypes.c_float * (M * N))()
    handle.run(weights, *(lpgemm.Array(ctypes.addressof(a), (M, columns), "f32") for a, columns in ((x, K), (y, N))))
    equal(list(y), [v for row in layer.product() for v in row])


class Tensor:
    """As much of a torch tensor as the package looks at."""

    def __init__(self, rows, dtype="torch.float32", is_cuda=False):
        self.memory, self.shape = floats(rows), (len(rows), len(rows[0]))
        self.dtype, self.is_cuda = dtype, is_cuda

    def data_ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def stride(self):
        return self.shape[1], 1

    def element_size(self):
        return 4


def test_tensors():
    layer, handle = Layer(7), cpu()
    weights, y = layer.pack(handle), Tensor([[0.0] * N] * M)
    equal(handle.run(weights, Tensor(layer.x), y) is y, True)
    equal(y.memory.tolist(), layer.product())
    refused(ValueError, "x lies in GPU memory", handle.run, weights, Tensor(layer.x, is_cuda=True), y)
    refused(TypeError, "give x_type", handle.run, weights, Tensor(layer.x, dtype="torch.complex32"), y)
    refused(TypeError, "numbers of 4 bytes, but f16 has 2", handle.run, weights, Tensor(layer.x), y, x_type="f16")


def test_shapes():
    layer, handle = Layer(8), cpu()
    weights = layer.pack(handle)
    refused(ValueError, "x is 3 x 32, not 3 x 64", handle.run, weights, floats([row[:32] for row in layer.x]))
    refused(ValueError, "y is 3 x 64, not 3 x 24", handle.run, weights, floats(layer.x), floats(layer.x))
    refused(ValueError, "read-only", handle.run, weights, floats(layer.x), bytes(M * N * 4))
    refused(lpgemm.Error, "source.codes_ld is 64", handle.pack, octets(layer.codes), "u4", k=K + 1)
    refused(lpgemm.Error, "source.codes_bytes", handle.pack, octets(layer.codes), "u4", n=N + 1)


# ---- weights ----

def test_quantize():
    handle = cpu()
    w = [[float((n * 7 + k * 3) % 15 - 7) for k in range(K)] for n in range(N)]
    for n in range(N):
        w[n][0] = w[n][GROUP] = 7.0
    weights = handle.quantize(floats(w), "i4", group_k=GROUP, scale_type="f32")
    equal(handle.unpack(weights, floats([[0.0] * K] * N)).tolist(), w)
    codes = handle.unpack(weights, octets([[0] * K] * N))
    equal(codes.tolist(), [[int(v) & 15 for v in row] for row in w])
    weights = handle.quantize(floats([[(k % 3 - 1.0) for k in range(K)] for n in range(N)]), "nf4", group_k=GROUP,
                              scale_type="f32")
    equal(weights.info()["desc"]["type"], "c4")
    equal(handle.unpack(weights, floats([[0.0] * K] * N)).tolist(), [[k % 3 - 1.0 for k in range(K)]] * N)
    named = {"n": N, "k": K, "type": "nf4", "group_k": GROUP, "scale_type": "f32"}
    equal(lpgemm.packed_size(**named), len(handle.serialize(weights)))
    equal(handle.supports(named, x_type="f32", y_type="f32"), None)
    refused(TypeError, "leave out codebook", lpgemm.packed_size, **named, codebook=[1.0] * 16)


def test_files():
    layer, handle = Layer(9), cpu()
    weights = layer.pack(handle)
    blob = handle.serialize(weights)
    lpgemm.validate(blob)
    again = handle.deserialize(blob)
    equal(again.info()["payload_hash"], weights.info()["payload_hash"])
    equal(handle.run(again, floats(layer.x)).tolist(), layer.product())
    memory = bytearray(len(blob) + 256)
    place = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % 256
    memory[place:place + len(blob)] = blob
    in_place = handle.deserialize(memoryview(memory)[place:place + len(blob)], in_place=True)
    equal(handle.run(in_place, floats(layer.x)).tolist(), layer.product())
    broken = bytearray(blob)
    broken[-1] ^= 1
    error = refused(lpgemm.Error, "", lpgemm.validate, broken)
    equal((error.name, error.status), ("LPGEMM_CORRUPT_DATA", header.constants["LPGEMM_CORRUPT_DATA"]))
    refused(lpgemm.Error, "", handle.deserialize, broken)


def gptq(layer):
    """The layer's tensors as GPTQ has them: eight codes a word along K, zeros less one, group by row."""
    def words(rows):
        eights = [row[at:at + 8] for row in rows for at in range(0, len(row), 8)]
        return [sum((v & 15) << 4 * i for i, v in enumerate(eight)) for eight in eights]

    by_column = [[layer.codes[n][k] for k in range(K)] for n in range(N)]
    qweight = [words([by_column[n]]) for n in range(N)]  # [n][k / 8]
    transposed = [qweight[n][k] for k in range(K // 8) for n in range(N)]
    zeros = words([[layer.zeros[n][g] - 1 for n in range(N)] for g in range(K // GROUP)])
    scales = [struct.pack("<e", layer.scales[n][g]) for g in range(K // GROUP) for n in range(N)]
    return {"qweight": (struct.pack(f"<{len(transposed)}I", *transposed), (K // 8, N), "I32"),
            "qzeros": (struct.pack(f"<{len(zeros)}I", *zeros), (K // GROUP, N // 8), "I32"),
            "scales": (b"".join(scales), (K // GROUP, N), "F16"),
            "g_idx": (struct.pack(f"<{K}i", *(k // GROUP for k in range(K))), (K,), "I32")}


def test_import():
    layer, handle = Layer(10), cpu()
    keep = {name: lpgemm._memory.view(data) for name, (data, _, _) in gptq(layer).items()}
    tensors = {name: lpgemm.Array(keep[name].pointer, shape, {"I32": "i32", "F16": "f16"}[kind], nbytes=len(data))
               for name, (data, shape, kind) in gptq(layer).items()}
    part = {"format": "gptq", "tensors": tensors, "bits": 4}
    equal((lpgemm.import_desc(part)["n"], lpgemm.import_desc(part)["group_k"]), (N, GROUP))
    weights = handle.import_weights(part)
    want = layer.product(zero=None)
    equal(handle.run(weights, floats(layer.x)).tolist(), want)
    joined = handle.import_weights(part, part)
    equal(handle.run(joined, floats(layer.x)).tolist(), [row + row for row in want])
    refused(lpgemm.Error, "qweight", handle.import_weights, {**part, "tensors": {"scales": tensors["scales"]}})


def write_safetensors(path, tensors):
    head, data = {}, b""
    for name, (value, shape, kind) in tensors.items():
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def test_checkpoint_file():
    layer, handle = Layer(11), cpu()
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(os.path.join(folder, "model.safetensors"),
                          {f"model.layers.0.q_proj.{name}": tensor for name, tensor in gptq(layer).items()})
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": GROUP}}, f)
        file = lpgemm.File(folder)
        equal(file.layers(), ["model.layers.0.q_proj"])
        equal(file.tensors()["model.layers.0.q_proj.scales"].shape, (K // GROUP, N))
        weights = handle.import_weights(file.layer(file.layers()[0]))
        file.close()
        refused(lpgemm.Error, "nothing", lpgemm.File, os.path.join(folder, "nothing"))
    equal(handle.run(weights, floats(layer.x)).tolist(), layer.product(zero=None))


# ---- the library ----

def test_errors():
    handle = cpu()
    error = refused(lpgemm.Error, "config.num_threads is -1", lpgemm.Handle, "cpu", num_threads=-1)
    equal((error.name, error.status), ("LPGEMM_INVALID_ARGUMENT", 10))
    refused(lpgemm.Error, "u9", lpgemm.dtype, "u9")
    refused(lpgemm.Error, "group_k is 7", lpgemm.packed_size, n=N, k=K, type="u4", group_k=7)
    refused(ValueError, "'tpu' is none of auto, cpu, cuda", lpgemm.Handle, "tpu")
    handle.close()
    refused(lpgemm.Error, "handle is NULL", handle.set_num_threads, 1)


def test_without_torch():
    refused(AttributeError, "PyTorch extension", getattr, lpgemm, "load")
    refused(AttributeError, "no attribute", getattr, lpgemm, "nothing")


def test_kernels():
    kernels = lpgemm.kernels()
    check(any(k["family"] == "reference" and k["available"] for k in kernels), kernels)
    layer, handle = Layer(12), cpu()
    weights, x = layer.pack(handle), floats(layer.x)
    for kernel in kernels:
        if kernel["family"] == "reference":
            equal(handle.run(weights, x, kernel=kernel["name"]).tolist(), layer.product())
    check(any(k["name"] in handle.explain(weights, x).splitlines()[0] for k in kernels))
    equal(lpgemm.version(), lpgemm.build_info().split()[1])


def test_supports():
    handle = cpu()
    for y_type, part in (("f16", None), ("i32", "y_type is i32"), ("u8", "y_type is u8")):
        answers = [handle.supports({"n": N, "k": K, "type": "u4"}, "f16", y_type),
                   lpgemm.device_supports({"n": N, "k": K, "type": "u4"}, "f16", y_type, backend="cpu")]
        equal(answers[0], answers[1])
        check(answers[0] is None if part is None else part in answers[0], answers)


def test_log():
    layer, handle, lines = Layer(13), cpu(), []
    lpgemm.set_log("dispatch", lambda level, line: lines.append((level, line, threading.get_ident())))
    handle.run(layer.pack(handle), floats(layer.x))
    refused(lpgemm.Error, "u9", lpgemm.dtype, "u9")
    lpgemm.set_log("off")
    refused(lpgemm.Error, "u9", lpgemm.dtype, "u9")
    equal([level for level, _, _ in lines], ["dispatch", "error"])
    check(lines[0][1].startswith("u4 (n 24, k 64) by f32 (m 3)") and "u9" in lines[1][1], lines)


def test_layouts():
    """Structs are read from the header as the C compiler lays them out."""
    compiler = sys.argv[1] if len(sys.argv) > 1 else "cc"
    if not shutil.which(compiler.split()[0]):
        raise Skip(f"{compiler} is not installed")
    lines = ["#include <stddef.h>", f'#include "{lpgemm.header_path()}"',
             "#define IS(a, b) _Static_assert((a) == (b), #a)"]
    for name, kind in header.structs.items():
        lines.append(f"IS(sizeof({name}), {ctypes.sizeof(kind)});")
        for field, field_kind in kind._fields_:
            lines.append(f"IS(offsetof({name}, {field}), {getattr(kind, field).offset});")
            lines.append(f"IS(sizeof((({name} *)0)->{field}), {ctypes.sizeof(field_kind)});")
    lines += [f"IS({name}, {value});" for name, value in header.constants.items()]
    for name in lpgemm._memory.TYPES.values():
        macro = "LPGEMM_" + name.upper()
        lines.append(f"IS({macro}, {lpgemm.dtype(name)}u);")
    check(len(header.structs) >= 10 and len(header.functions) >= 70 and len(header.constants) >= 80)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layouts.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        subprocess.run([*compiler.split(), "-std=c11", "-fsyntax-only", path], check=True)


# ---- a GPU ----

class Gpu:
    """Memory of GPU 0 by the driver's interface."""

    def __init__(self):
        self.driver, self.pointers = ctypes.CDLL("libcuda.so.1"), []
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        equal(getattr(self.driver, name)(*arguments), 0)

    def put(self, data, shape, typestr):
        """An object with __cuda_array_interface__."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", pointer, bytes(data), ctypes.c_size_t(len(data)))
        self.pointers.append(pointer)
        interface = {"shape": shape, "typestr": typestr, "data": (pointer.value, False), "version": 3}
        return type("OnGpu", (), {"__cuda_array_interface__": interface})()

    def get(self, x, size):
        data, pointer = ctypes.create_string_buffer(size), x.__cuda_array_interface__["data"][0]
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw


def test_gpu():
    if not lpgemm.c.lpgemm_backend_available(header.constants["LPGEMM_BACKEND_CUDA"]):
        raise Skip("there is no GPU, or the library is for the CPU alone")
    layer, gpu = Layer(14), Gpu()
    handle = lpgemm.Handle("cuda")
    x = gpu.put(b"".join(struct.pack("<e", v) for row in layer.x for v in row), (M, K), "<f2")
    y = gpu.put(bytes(4 * M * N), (M, N), "<f4")
    codes = gpu.put(bytes(v for row in layer.codes for v in row), (N, K), "|u1")
    for weights in (layer.pack(handle), handle.pack(codes, "u4", scales=floats(layer.scales), group_k=GROUP, zero=8)):
        workspace = gpu.put(bytes(handle.workspace_size(weights, M, x_type="f16", y_type="f32") + 256), (1,), "|u1")
        size = handle.workspace_size(weights, M, x_type="f16", y_type="f32")
        handle.set_workspace(lpgemm.Array(workspace.__cuda_array_interface__["data"][0], (size,), "u8"))
        handle.run(weights, x, y)
        equal(struct.unpack(f"<{M * N}f", gpu.get(y, 4 * M * N)), tuple(v for row in layer.product() for v in row))
    again = handle.deserialize(handle.serialize(weights))
    pointers = [lpgemm.Array(a.__cuda_array_interface__["data"][0], shape, kind)
                for a, shape, kind in ((x, (M, K), "f16"), (y, (M, N), "f32"))]
    handle.run(again, *pointers)
    equal(struct.unpack(f"<{M * N}f", gpu.get(y, 4 * M * N)), tuple(v for row in layer.product() for v in row))
    refused(ValueError, "x lies in host memory", handle.run, weights, floats(layer.x), y)


def main():
    return run(globals())


if __name__ == "__main__":
    sys.exit(main())
