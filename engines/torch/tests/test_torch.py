#!/usr/bin/env python3
"""Tests of lpgemm.torch, which must be importable (make torch unpacks it): products against fp64 by the bound of
lpgemm_level_t, tracing, graphs, files. usage: test_torch.py [--device cuda] [--only PART]. The last line counts."""

import argparse
import contextlib
import copy
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import lpgemm
import torch
from lpgemm.torch import LpgemmLinear, describe, header_of
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
GOLDEN = os.path.join(ROOT, "tests", "golden", "formats")
sys.path[:0] = [os.path.dirname(HERE), os.path.join(ROOT, "tests", "python")]
from cases import Skip, check, run  # noqa: E402
from llama import Config, Llama  # noqa: E402

ops = torch.ops.lpgemm
REAL = (torch.float32, torch.float16, torch.bfloat16)
device = torch.device("cpu")


def same(a, b, what="not the same bits"):
    check(a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), what)


def refused(part, function, *arguments, error=RuntimeError, **keywords):
    try:
        function(*arguments, **keywords)
    except error as caught:
        check(part in str(caught), f"{part!r} is not in {str(caught)!r}")
        return
    raise AssertionError(f"no {error.__name__} with {part!r}")


def needs_cuda():
    if device.type != "cuda":
        raise Skip("for a GPU")


def random(*shape, dtype=torch.float32, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device, dtype)


def integers(below, *shape, seed=1):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.uint8).to(device)


class Weights:
    """u4 weights, with the numbers that they stand for as fp64."""

    def __init__(self, n, k, group=32, scale_type=torch.float16, seed=1, zeros=False):
        self.codes = integers(16, n, k, seed=seed)
        groups = -(-k // group)
        self.scales = (random(n, groups, seed=seed + 1).abs() * 0.1 + 0.01).to(scale_type)
        self.zeros = integers(16, n, groups, seed=seed + 2) if zeros else None
        self.packed = ops.pack(self.codes, "u4", self.scales, self.zeros, None if zeros else 8.0, group)
        self.header = header_of(self.packed)
        zero = self.zeros.double().repeat_interleave(group, 1)[:, :k] if zeros else 8.0
        self.real = (self.codes.double() - zero) * self.scales.double().repeat_interleave(group, 1)[:, :k]

    def __call__(self, x, **options):
        return ops.matmul(x, self.packed, self.header, **options)


def near(y, x, real, bias=None):
    """Level EXACT: one rounding of Y, one of each scaled weight to X's type, a few K 2^-23 of fp32 accumulation."""
    x, want = x.double(), x.double() @ real.T
    size = x.abs() @ real.abs().T
    if bias is not None:
        want, size = want + bias.double(), size + bias.double().abs()
    x_eps = 0.0 if y.dtype == torch.float32 else torch.finfo(y.dtype).eps
    bound = torch.finfo(y.dtype).eps * want.abs() + (4 * real.shape[1] * 2.0 ** -23 + x_eps) * size
    check(y.shape == want.shape, f"the shape is {tuple(y.shape)}, not {tuple(want.shape)}")
    check(bool(((y.double() - want).abs() <= bound).all()), f"beyond the bound by {((y - want).abs() - bound).max()}")


# ---- products ----

def test_types_and_rows():
    for n, k, group in ((64, 128, 32), (37, 320, 64), (256, 512, 128)):
        weights = Weights(n, k, group)
        for dtype in REAL:
            for m in (1, 2, 5, 17, 70):
                x = random(m, k, dtype=dtype, seed=m)
                near(weights(x), x, weights.real)


def test_scales_zeros_and_bias():
    for scale_type in REAL:
        for zeros in (False, True):
            weights = Weights(48, 256, 64, scale_type, zeros=zeros)
            same(ops.dequantize(weights.packed, weights.header, torch.float32), weights.real.float())
            for dtype in REAL:
                x = random(3, 256, dtype=dtype)
                for bias_type in REAL:
                    bias = random(48, dtype=bias_type, seed=9)
                    near(weights(x, bias=bias), x, weights.real, bias)


def test_activations():
    weights = Weights(48, 256, 64)
    x, bias = random(3, 256, dtype=torch.float32), random(48, seed=9)
    plain = weights(x, bias=bias)
    for name, of in (("none", lambda y: y), ("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu),
                     ("gelu_tanh", lambda y: F.gelu(y, approximate="tanh"))):
        torch.testing.assert_close(weights(x, bias=bias, activation=name), of(plain), rtol=1e-5, atol=1e-6)
        layer = LpgemmLinear(weights.packed, bias, activation=name)
        same(layer(x), weights(x, bias=bias, activation=name))


def test_pairs():
    """Rows i and n / 2 + i are gate and up of output i, so the product gives silu(gate) * up."""
    weights, bias = Weights(96, 256, 64), random(96, seed=9)
    packed = ops.pack(weights.codes, "u4", weights.scales, None, 8.0, 64, paired=True)
    for dtype in REAL:
        layer = LpgemmLinear(packed, bias.to(dtype), activation="silu")
        check((layer.in_features, layer.out_features) == (256, 48) and layer.extra_repr().endswith("silu gates"))
        same(layer.dequantize(), weights.real.float())
        for m in (1, 3, 20):
            x = random(m, 256, dtype=dtype, seed=m)
            gate, up = (x.double() @ weights.real.T + layer.bias.double()).chunk(2, -1)
            y, eps = layer(x), torch.finfo(dtype).eps
            check(y.shape == (m, 48) and y.dtype == dtype)
            error = (F.silu(gate) * up - y.double()).abs()
            check(bool((error <= 16 * eps * (1 + gate.abs()) * (1 + up.abs())).all()), f"{dtype}, {m} rows")
    refused("bias is (48,), and the weights have 96 rows", LpgemmLinear, packed, random(48), error=ValueError)


def test_places_of_rows():
    weights = Weights(40, 128)
    x = random(6, 4, 3, 128)
    near(weights(x), x, weights.real)
    want = weights(x)
    same(weights(x.transpose(0, 1)), want.transpose(0, 1).contiguous(), "dimensions that are no rows of one distance")
    wide = torch.full((24, 300), float("nan"), device=device)
    wide[:, 7:135] = x[:, :, 0].reshape(24, 128)
    near(weights(wide[:, 7:135]), wide[:, 7:135], weights.real)
    near(weights(x[:, :, 1]), x[:, :, 1], weights.real)
    near(weights(x[0, 0, 0]), x[0, 0, 0], weights.real)
    near(weights(x[:, :1, 0].expand(6, 5, 128)), x[:, :1, 0].expand(6, 5, 128), weights.real)
    near(weights(random(128, 9).T), random(128, 9).T, weights.real)
    check(weights(x[:0]).shape == (0, 4, 3, 40) and weights(x[:, :, :0]).shape == (6, 4, 0, 40), "no rows")


def test_quantize():
    w = random(64, 256)
    for type, options, most in (("u4", {"zero": 8.0}, 0.02), ("i8", {}, 1e-4), ("u4", {"zero_type": "u8"}, 0.02),
                                ("e2m1", {}, 0.03), ("u2", {"zero": 1.5}, 0.3)):
        method = "minmax" if "zero_type" in options else "mse"
        for dtype in REAL:
            packed = ops.quantize(w.to(dtype), type, 64, "f16", method, **options)
            real = ops.dequantize(packed, header_of(packed), torch.float32)
            error = (real - w).pow(2).mean() / w.pow(2).mean()
            check(error < most, f"{type}: {error}")
            x = random(2, 256, dtype=dtype)
            near(ops.matmul(x, packed, header_of(packed)), x, real.double())
    twice = torch.cat((w, w), 1)
    same(ops.quantize(twice[:, :256], "i8", 64), ops.quantize(w, "i8", 64), "rows with gaps")


def test_same_as_ctypes():
    """The bytes are those of the C library, and so is the product of a CPU."""
    weights = Weights(64, 128)
    handle = lpgemm.Handle(device.type)
    other = handle.pack(weights.codes, "u4", scales=weights.scales, zero=8, group_k=32)
    check(bytes(weights.packed.cpu().tolist()) == handle.serialize(other))
    view = handle.deserialize(weights.packed, in_place=True)
    if device.type == "cpu":
        same(weights(random(3, 128)), handle.run(view, random(3, 128)))


def test_fast():
    weights = Weights(256, 1024, 128)
    x = random(4, 1024)
    error = (weights(x, fast=True).double() - x.double() @ weights.real.T).pow(2).mean().sqrt()
    check(error <= 2.5e-2 * (x.double() @ weights.real.T).pow(2).mean().sqrt(), f"{error}")


def test_sentences():
    weights = Weights(40, 128)
    x = random(2, 128)
    refused("x has 64 columns, and weight 128", weights, x[:, :64])
    refused("x must be float16, bfloat16 or float32", weights, x.double())
    refused("x must be float16, bfloat16 or float32", weights, x.to(torch.uint8))
    refused("scales must be", ops.pack, weights.codes, "u4", weights.scales.double(), None, 8.0, 32)
    refused("bias must have one dimension of 40", weights, x, bias=random(39))
    refused("checksum", ops.matmul, x, weights.packed, "0" * 16 + weights.header[16:])
    refused("no text that", ops.matmul, x, weights.packed, weights.header + "x")
    refused("no text that", ops.matmul, x, weights.packed, "")
    refused("the header promises", ops.matmul, x, weights.packed[:-64], weights.header)
    align = 64 if device.type == "cpu" else 256
    moved = torch.empty(weights.packed.numel() + align, dtype=torch.uint8, device=device)[align // 2:][:-align // 2]
    moved.copy_(weights.packed)
    refused(f"must be {align}-byte aligned", ops.matmul, x, moved, weights.header)
    refused("desc.group_k", ops.pack, weights.codes, "u4", weights.scales, None, 8.0, 24)
    refused("u9", ops.pack, weights.codes, "u9")
    refused("code", ops.pack, weights.codes, "u2", weights.scales, None, 1.0, 32)
    refused("scales", ops.pack, weights.codes, "u4", weights.scales[:, :1], None, 8.0, 32)
    refused("zeros and zero", ops.pack, weights.codes, "u4", weights.scales, weights.codes, 8.0, 32)
    refused("activation is \"tanh\"", weights, x, activation="tanh")
    refused("desc.n", ops.pack, weights.codes[:39], "u4", weights.scales[:39], None, 8.0, 32, True)
    refused("method", ops.quantize, x, "u4", 32, "f16", "best")
    refused("checksum", header_of, torch.zeros(1024, dtype=torch.uint8), error=ValueError)
    refused("512 bytes", header_of, torch.zeros(100, dtype=torch.uint8), error=ValueError)
    if device.type == "cuda":
        refused("another device", weights, x.cpu())
    other = Weights(48, 128)
    check(other.header != weights.header)
    if device.type == "cpu":  # what lies on a GPU is not read
        refused("header is not that of weight", ops.matmul, x, weights.packed, other.header)


def test_threads():
    """Handles are a thread's own; weights and headers are everybody's."""
    layers = [Weights(64 + 16 * i, 256, 64, seed=i) for i in range(3)]
    inputs = [random(1 + 3 * i, 256, seed=i) for i in range(3)]
    want, wrong = [layer(x) for layer, x in zip(layers, inputs)], []

    def work():
        for _ in range(40):
            for layer, x, y in zip(layers, inputs, want):
                if not torch.equal(layer(x), y):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, f"{len(wrong)} products are wrong")


def test_number_of_threads():
    """torch.set_num_threads() holds for lpgemm: its log says with how many tasks it works."""
    if device.type != "cpu":
        raise Skip("for the CPU")
    before, weights, x, lines = torch.get_num_threads(), Weights(512, 512, 128), random(40, 512), []
    found = []
    lpgemm.set_log("dispatch", lambda level, line: lines.append(line))
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            lines.clear()
            found.append(weights(x))
            check(any(f"{count} thread" in line for line in lines), f"{count}: {lines}")
    finally:
        torch.set_num_threads(before)
        lpgemm.set_log("off")
    same(found[0], found[1])
    same(found[0], found[2])


# ---- what torch does with operators and modules ----

def test_opcheck():
    weights, x = Weights(40, 128), random(3, 5, 128)
    for arguments in ((x, weights.packed, weights.header), (x[:, 1], weights.packed, weights.header, random(40), True, "gelu")):
        torch.library.opcheck(ops.matmul.default, arguments)
    torch.library.opcheck(ops.dequantize.default, (weights.packed, weights.header, torch.float16))
    torch.library.opcheck(ops.pack.default, (weights.codes, "u4", weights.scales, None, 8.0, 32))
    torch.library.opcheck(ops.pack.default, (weights.codes, "u4", weights.scales, None, 8.0, 32, True))
    torch.library.opcheck(ops.pack.default, (weights.codes, "u4", weights.scales, weights.codes[:, ::32].contiguous(),
                                             None, 32))
    torch.library.opcheck(ops.quantize.default, (random(40, 128), "u4", 32, "bf16", "absmax", 8.0))
    torch.library.opcheck(ops.quantize.default, (random(40, 128), "u4", 32, "f16", "minmax", None, "u8"))


class Block(nn.Module):
    def __init__(self, seed=1, **options):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            dense = [nn.Linear(128, 256), nn.Linear(256, 128)]
        self.up, self.down = (LpgemmLinear.from_linear(layer.to(device), group_k=64, **options) for layer in dense)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(x)))


def test_compile():
    block = Block()
    compiled = torch.compile(block, fullgraph=True)
    for shape in ((4, 128), (2, 3, 128)):
        x = random(*shape)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), block(x), rtol=0, atol=1e-5 * block(x).abs().max().item())


def test_one_graph_for_layers_of_one_description():
    first, second = Block(1), Block(2)
    check(first.up.header == second.up.header and not torch.equal(first.up.weight, second.up.weight))
    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    function = torch.compile(lambda block, x: ops.matmul(x, block.up.weight, block.up.header), fullgraph=True,
                             backend=count)
    x = random(2, 128)
    for block in (first, second):
        same(function(block, x), ops.matmul(x, block.up.weight, block.up.header))
    check(len(graphs) == 1, f"{len(graphs)} graphs")


def test_export():
    block, x = Block(), random(4, 128)
    with torch.no_grad():
        program = torch.export.export(block, (x,))
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        module = torch.export.load(file).module()
        for buffer in module.buffers():
            buffer.data = buffer.clone()  # they lie in the file's bytes, aligned to nothing
        same(module(x), block(x))


def test_state_dict():
    block, other = Block(1), Block(2, type="i8")
    x = random(3, 128)
    want = block(x)
    state = block.state_dict()
    check(set(state) == {"up.weight", "up.bias", "down.weight", "down.bias"})
    check(state["up.weight"].dtype == torch.uint8)
    other.load_state_dict(state)  # another description, and another size
    same(other(x), want)
    check(other.up.weight.data_ptr() != block.up.weight.data_ptr(), "a copy")
    empty = nn.ModuleDict({"up": LpgemmLinear(), "down": LpgemmLinear()})
    empty.load_state_dict(state)
    same(empty["up"](x), block.up(x))
    check(empty["up"].weight.device.type == device.type)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other = Block(3)
    other.load_state_dict(torch.load(file, weights_only=True))
    same(other(x), want)
    same(pickle.loads(pickle.dumps(block))(x), want)
    same(copy.deepcopy(block)(x), want)
    check(copy.deepcopy(block).half().up.weight.dtype == torch.uint8 and block.half().up.bias.dtype == torch.float16)


def test_bad_state():
    block = Block()
    state = {key: value.clone() for key, value in block.state_dict().items()}
    state["up.weight"][1000] += 1  # behind the header
    refused("up.weight", block.load_state_dict, state)
    state["up.weight"] = state["up.weight"][:700]
    refused("up.weight", block.load_state_dict, state)
    del state["up.weight"]
    refused("Missing key", block.load_state_dict, state)
    other = LpgemmLinear(Weights(40, 128).packed)
    before = other(random(2, 128))
    if device.type == "cpu":
        other.weight.copy_(Weights(40, 128, scale_type=torch.bfloat16).packed)
        refused("header is not that of weight", other, random(2, 128))
        other.set_weight(other.weight)
        check(not torch.equal(other(random(2, 128)), before))
    refused("bias is (39,)", LpgemmLinear, other.weight, random(39), error=ValueError)


def test_safetensors():
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        raise Skip("safetensors is not installed")
    block, other, x = Block(1), Block(2), random(3, 128)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        save_file(block.state_dict(), path)
        other.load_state_dict(load_file(path))
        same(other(x), block(x))
        with torch.device("meta"):
            nothing = nn.ModuleDict({"up": LpgemmLinear(), "down": LpgemmLinear()})
        nothing.load_state_dict(load_file(path), assign=True)  # wherever the file lies, also at odd places
        same(nothing["up"].to(device)(x), block.up(x))


def test_devices():
    """The bytes are the same everywhere."""
    needs_cuda()
    weights, x = Weights(40, 128), random(3, 128)
    on_cpu = ops.pack(weights.codes.cpu(), "u4", weights.scales.cpu(), None, 8.0, 32)
    same(on_cpu, weights.packed.cpu())
    layer = LpgemmLinear(on_cpu)
    near(layer(x.cpu()), x.cpu(), weights.real.cpu())
    near(layer.to(device)(x), x, weights.real)


# ---- CUDA graphs ----

def test_graph():
    needs_cuda()
    for m in (1, 16, 300):
        weights = Weights(512, 1024, 128)
        x = torch.zeros(m, 1024, device=device, dtype=torch.float16)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            weights(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = weights(weights(x)[:, :512].repeat(1, 2))
        for seed in range(3):
            x.copy_(random(m, 1024, dtype=torch.float16, seed=seed) * 0.1)
            graph.replay()
            other = weights(random(m + 1, 1024, dtype=torch.float16))  # between replays: the workspace is not shared
            near(other, random(m + 1, 1024, dtype=torch.float16), weights.real)
            same(y, weights(weights(x)[:, :512].repeat(1, 2)))


def test_streams():
    """The work is in torch's current stream."""
    needs_cuda()
    weights, x = Weights(512, 1024, 128), random(64, 1024, dtype=torch.float16)
    want, streams = weights(x), [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100000)
                late = x * 1
                y = weights(late)
                check(torch.equal(y, want))


def test_compiled_graph():
    needs_cuda()
    block = Block().half()
    compiled = torch.compile(block, fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        for seed in range(4):
            x = random(4, 128, dtype=torch.float16, seed=seed)
            want = block(x)
            torch.testing.assert_close(compiled(x).clone(), want, rtol=0, atol=2e-3 * want.abs().max().item())


# ---- checkpoints ----

def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            check(entry["dtype"] == "F32")
            found[name] = torch.frombuffer(bytearray(data[8 + size:][begin:end]), dtype=torch.float32).view(entry["shape"])
    return found


def dense_model(folder):
    """The toy as nn.Linear with the weights that its library says, all else by load()."""
    model = Llama(Config.read(folder)).to(device)
    lpgemm.load(model, folder)
    for name, value in read_safetensors(os.path.join(folder, "expected.safetensors")).items():
        holder, _, own = name.rpartition(".")
        linear = nn.Linear(value.shape[1], value.shape[0], False)
        linear.weight = nn.Parameter(value)
        setattr(model.get_submodule(holder), own, linear.to(device))
    return model


def check_model(folder, path=None):
    expected = read_safetensors(os.path.join(folder, "expected.safetensors"))
    model = Llama(Config.read(folder)).to(device)
    lpgemm.load(model, path or folder)
    layers = lpgemm.load(model, path or folder, fast=False)  # in place of LpgemmLinear as well
    check(sorted(layers) == sorted(expected), f"{layers}")
    for name, value in expected.items():
        layer = model.get_submodule(name)
        check(isinstance(layer, LpgemmLinear))
        same(layer.dequantize().cpu(), value, name)
    dense = dense_model(folder)
    tokens, positions = integers(96, 2, 9).long(), torch.arange(9, device=device)
    with torch.no_grad():
        got, want = (m(tokens, positions, m.cache(2, 12)) for m in (model, dense))
    check((got - want).abs().max() <= 1e-4 * want.abs().max(), f"logits differ by {(got - want).abs().max()}")
    return model


def test_load_gptq():
    check_model(os.path.join(GOLDEN, "model-gptq"))


def test_load_compressed_tensors():
    check_model(os.path.join(GOLDEN, "model-compressed-tensors"))


def test_load_container():
    convert = os.environ.get("LPGEMM_CONVERT") or shutil.which("lpgemm-convert")
    if not convert:
        raise Skip("LPGEMM_CONVERT does not say where lpgemm-convert is")
    with tempfile.TemporaryDirectory() as work:
        folder, path = os.path.join(GOLDEN, "model-gptq"), os.path.join(work, "model.lpg")
        subprocess.run([convert, folder, path], check=True, stdout=subprocess.DEVNULL)
        check_model(folder, path)


def case_folder(work, case, config):
    shutil.copy(os.path.join(GOLDEN, f"{case}.safetensors"), os.path.join(work, "model.safetensors"))
    with open(os.path.join(work, "config.json"), "w", encoding="utf-8") as out:
        json.dump({"quantization_config": config}, out)
    return torch.frombuffer(bytearray(open(os.path.join(GOLDEN, f"{case}.w.f32"), "rb").read()), dtype=torch.float32)


class Holder(nn.Module):
    """Modules by names with points."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


def test_load_awq():
    with tempfile.TemporaryDirectory() as work:
        want = case_folder(work, "awq-gemm-128", {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm",
                                                  "zero_point": True}).view(32, 256)
        file = lpgemm.File(work)
        names = file.layers()
        check(names == ["model.layers.0.mlp.down_proj"], f"{names}")

        def model(linear):
            layers = nn.ModuleList([Holder(mlp=Holder(down_proj=linear))])
            return Holder(model=Holder(layers=layers)).to(device)

        toy = model(nn.Linear(256, 32, bias=False))
        check(lpgemm.load(toy, work) == names)
        same(toy.get_submodule(names[0]).dequantize().cpu(), want)
        x = random(3, 256)
        near(toy.get_submodule(names[0])(x), x, want.double().to(device))
        with torch.device("meta"):
            empty = Holder(model=Holder(layers=nn.ModuleList([Holder(mlp=Holder(down_proj=nn.Linear(256, 32, False)))])))
        refused("device=", lpgemm.load, empty, work, error=ValueError)
        lpgemm.load(empty, work, device=device, fast=True)
        check(empty.get_submodule(names[0]).fast and empty.get_submodule(names[0]).weight.device.type == device.type)
        refused("32 x 256 in the file", lpgemm.load, model(nn.Linear(256, 33, False)), work, error=ValueError)
        refused("no module", lpgemm.load, Holder(model=nn.Linear(1, 1)), work, error=ValueError)
        check(lpgemm.load(Holder(model=nn.Linear(1, 1)), work, strict=False) == [])
        both = model(nn.Linear(256, 32, False))
        both.extra = nn.Parameter(torch.zeros(3))
        refused("has no extra", lpgemm.load, both, work, error=ValueError)
        refused("No such file", lpgemm.load, both, os.path.join(work, "nothing"), error=lpgemm.Error)


def test_load_elsewhere():
    """A model on the meta device, with a tied output matrix."""
    folder = os.path.join(GOLDEN, "model-gptq")
    config = Config.read(folder)
    config.tie_word_embeddings = True
    with torch.device("meta"):
        model = Llama(config).to(torch.bfloat16)
    lpgemm.load(model, folder, device=device)
    check(all(p.device.type == device.type for p in model.parameters()))
    check(model.model.norm.weight.dtype == torch.bfloat16)


def test_decode():
    """The measurement of a whole model, small, with random weights and with a checkpoint's."""
    import decode
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "record.json")
        for source in (["--size", "tiny", "--group", "32", "--joined"],
                       ["--folder", os.path.join(GOLDEN, "model-compressed-tensors")]):
            with contextlib.redirect_stdout(io.StringIO()):
                decode.main(["--device", device.type, *source, "--dtype", "bfloat16", "--context", "8", "--steps", "4",
                             "--turns", "1", "--sequences", "1,2", "--compile", "none", "--record", path])
            with open(path, encoding="utf-8") as text:
                results = json.load(text)["results"]
            check([r["sequences"] for r in results] == [1, 2])
            check(all(r["logits_rms_error"] < 0.05 and min(r["tokens_per_second"].values()) > 0 for r in results))


def test_describe():
    weights = Weights(40, 128)
    desc = describe(weights.header)
    check((desc["n"], desc["k"], desc["type"], desc["group_k"], desc["scale_type"]) == (40, 128, "u4", 32, "f16"))
    check(LpgemmLinear(weights.packed).extra_repr() == "in_features=128, out_features=40, bias=False, u4 g32 f16")


def main():
    global device
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return run(globals(), options.only)


if __name__ == "__main__":
    sys.exit(main())
