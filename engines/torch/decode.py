#!/usr/bin/env python3
"""Tokens a second of a whole model: fp16 linear layers, and the same weights as LpgemmLinear (u4, groups of 128). Random
weights of a known size (--size), or a checkpoint folder (--folder), whose fp16 side has the weights that the checkpoint
stands for. Both decode the same sequences greedily from --context random tokens on, with torch.compile of the layers
(--compile model: of the whole step, which takes minutes; none), and on a GPU with the step in a CUDA graph (--no-graph:
without). Sides take turns; the least time counts. The record is JSON.

    decode.py --device cuda --size llama3-8b --sequences 1,8,64 --record FILE"""

import argparse
import copy
import json
import platform
import sys
import time

import lpgemm
import torch
from lpgemm.torch import LpgemmLinear
from torch import nn

from llama import SIZES, Config, Llama, most_likely


def random_packed(n, k, group, device, paired, gain):
    """u4 weights with a spread of about gain / sqrt(k)."""
    codes = torch.randint(0, 16, (n, k), dtype=torch.uint8, device=device)
    scales = (torch.rand(n, -(-k // group), device=device) + 0.5) * (0.22 * gain / k ** 0.5)
    return torch.ops.lpgemm.pack(codes, "u4", scales.half(), None, 8.0, group, paired)


def random_models(config, group, dtype, device, fast):
    """The model with dense and with packed linear layers; all but lm_head are packed. What both need they share. What is
    added to the residual is small where many layers add to it, so that fp16 holds the sum."""
    with torch.device("meta"):
        packed = Llama(config)
    for name, module in list(packed.named_modules()):
        own = {key: value for key, value in module._parameters.items() if value is not None}
        if isinstance(module, nn.Linear) and not name.endswith("lm_head"):
            holder, _, last = name.rpartition(".")
            bias = torch.randn(module.out_features, device=device, dtype=dtype) * 0.02 if "bias" in own else None
            paired = last == "gate_up_proj"
            gain = (2 * config.num_hidden_layers) ** -0.5 if last in ("o_proj", "down_proj") else 1.0
            weight = random_packed(module.out_features, module.in_features, group, device, paired, gain)
            linear = LpgemmLinear(weight, bias, fast, "silu" if paired else "none")
            setattr(packed.get_submodule(holder), last, linear)
            continue
        for key, value in own.items():
            shape = value.shape
            real = (torch.ones if isinstance(value, nn.Parameter) and len(shape) == 1 else torch.randn)(
                shape, device=device, dtype=dtype)
            real = real if len(shape) == 1 else real.mul_(1 / shape[-1] ** 0.5)
            setattr(module, key, nn.Parameter(real, requires_grad=False))
    return dense_of(packed, dtype), packed


def loaded_models(folder, dtype, device, fast):
    config = Config.read(folder)
    with torch.device("meta"):
        packed = Llama(config).to(dtype)
    lpgemm.load(packed, folder, device=device, fast=fast)
    packed.requires_grad_(False)
    return dense_of(packed, dtype), packed


def dense_of(packed, dtype):
    """The same model with nn.Linear in place of LpgemmLinear; all other tensors are shared."""
    shared = {id(tensor): tensor for tensor in (*packed.parameters(), *packed.buffers())}
    dense = copy.deepcopy(packed, shared)
    for name, module in list(dense.named_modules()):
        if isinstance(module, LpgemmLinear):
            holder, _, last = name.rpartition(".")
            weight = nn.Parameter(module.dequantize(dtype), requires_grad=False)
            with torch.device("meta"):
                linear = nn.Linear(module.in_features, weight.shape[0], module.bias is not None)
            linear.weight = weight
            linear.bias = module.bias
            setattr(dense.get_submodule(holder), last, linear)
    return dense


class Decoder:
    """A step of a model for a number of sequences: tokens and position go on in place, so it can be replayed."""

    def __init__(self, model, prompt, steps, options):
        batch, context = prompt.shape
        self.model, self.options, self.prompt = model, options, prompt
        self.cache = model.cache(batch, context + steps)
        self.tokens = torch.zeros(batch, 1, dtype=torch.int64, device=prompt.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=prompt.device)
        self.forward = torch.compile(model, fullgraph=True, dynamic=False) if options.compile == "model" else model
        for layer in model.model.layers if options.compile == "layers" else ():
            layer.compile(fullgraph=True, dynamic=False)  # one graph for all of them
        self.choose = most_likely if options.compile == "none" else torch.compile(most_likely, dynamic=False)
        self.graph = None
        self.start()
        for _ in range(3):
            self.step()
        if options.graph:
            self.graph = self.capture()
        self.start()

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph

    def start(self):
        """The prompt into the cache, a piece at a time, by the model as it is."""
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            for first in range(0, self.prompt.shape[1], 64):
                piece = self.prompt[:, first:first + 64]
                positions = torch.arange(first, first + piece.shape[1], device=piece.device)
                self.logits = self.model(piece, positions, self.cache)
        self.tokens.copy_(most_likely(self.logits))
        self.position.fill_(self.prompt.shape[1])

    def step(self):
        with torch.no_grad():
            logits = self.forward(self.tokens, self.position, self.cache)
            self.tokens.copy_(self.choose(logits))
            self.position.add_(1)

    def run(self, steps):
        """Seconds of so many steps."""
        wait = torch.cuda.synchronize if self.prompt.is_cuda else lambda: None
        go = self.graph.replay if self.graph else self.step
        wait()
        begin = time.perf_counter()
        for _ in range(steps):
            go()
        wait()
        return time.perf_counter() - begin


def compare(dense, packed, batch, options, device):
    prompt = torch.randint(0, packed.config.vocab_size, (batch, options.context), device=device)
    sides = {name: Decoder(model, prompt, options.steps + 4, options)
             for name, model in (("dense", dense), ("lpgemm", packed))}
    difference = sides["lpgemm"].logits.float() - sides["dense"].logits.float()
    error = (difference.pow(2).mean() / sides["dense"].logits.float().pow(2).mean()).sqrt().item()
    times = {name: [] for name in sides}
    for _ in range(options.turns):
        for name, side in sides.items():
            side.start()
            times[name].append(side.run(options.steps))
    best = {name: min(seconds) for name, seconds in times.items()}
    return {"sequences": batch, "logits_rms_error": error, "speedup": best["dense"] / best["lpgemm"],
            "tokens_per_second": {name: batch * options.steps / seconds for name, seconds in best.items()},
            "ms_per_step": {name: 1e3 * seconds / options.steps for name, seconds in best.items()},
            "ms_per_step_all": {name: [1e3 * s / options.steps for s in seconds] for name, seconds in times.items()}}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", default="llama3-8b", choices=sorted(SIZES))
    parser.add_argument("--folder", help="a model in GPTQ, AWQ, compressed-tensors or another form that lpgemm reads")
    parser.add_argument("--layers", type=int, help="of a random model: so many")
    parser.add_argument("--joined", action="store_true", help="of a random model: q, k and v are one matrix, gate and up "
                        "too, and packed they are pairs: silu(gate) * up is what their product gives")
    parser.add_argument("--group", type=int, default=128)
    parser.add_argument("--dtype", default="float16", choices=("float16", "bfloat16", "float32"))
    parser.add_argument("--fast", action="store_true", help="lpgemm's level FAST")
    parser.add_argument("--sequences", default="1,8,64")
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--compile", default="layers", choices=("layers", "model", "none"))
    parser.add_argument("--no-graph", dest="graph", action="store_false")
    parser.add_argument("--record")
    options = parser.parse_args(arguments)
    options.graph = options.graph and options.device.startswith("cuda")
    return options


def main(arguments):
    options = parse(arguments)
    torch.manual_seed(1)
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    if options.folder:
        dense, packed = loaded_models(options.folder, dtype, device, options.fast)
    else:
        config = copy.copy(SIZES[options.size])
        config.joined = options.joined
        config.num_hidden_layers = options.layers or config.num_hidden_layers
        dense, packed = random_models(config, options.group, dtype, device, options.fast)
    is_cuda = device.type == "cuda"
    record = {"what": "decode", "options": vars(options), "config": vars(packed.config), "lpgemm": lpgemm.build_info(),
              "torch": torch.__version__, "threads": torch.get_num_threads(),
              "device": torch.cuda.get_device_name(device) if is_cuda else platform.processor() or platform.machine(),
              "results": []}
    for batch in map(int, options.sequences.split(",")):
        result = compare(dense, packed, batch, options, device)
        record["results"].append(result)
        rate = result["tokens_per_second"]
        print(f"{batch:4} sequences: dense {rate['dense']:9.1f} tokens/s, lpgemm {rate['lpgemm']:9.1f}, "
              f"{result['speedup']:.2f} times; rms error of logits {result['logits_rms_error']:.1e}", flush=True)
        torch.compiler.reset()
    if options.record:
        with open(options.record, "w", encoding="utf-8") as out:
            json.dump(record, out, indent=1)
            out.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
