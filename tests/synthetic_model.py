#!/usr/bin/env python3
"""Writes a model with random weights in the shapes of Llama 3 8B, for timing: FORMAT (gptq, awq, q4_k_m) and where to
write it (a folder; for q4_k_m a .gguf file). --layers 32 is the whole model; fewer make a quick run, a smaller
--vocabulary a smaller head. What the weights are does not matter for time, so a few megabytes of random blocks are
repeated at changing places."""

import argparse
import json
import os
import random
import struct

HIDDEN, FEED, KV = 4096, 14336, 1024
POOL = 8 << 20
MATRICES = (("self_attn.q_proj", HIDDEN, HIDDEN), ("self_attn.k_proj", KV, HIDDEN), ("self_attn.v_proj", KV, HIDDEN),
            ("self_attn.o_proj", HIDDEN, HIDDEN), ("mlp.gate_proj", FEED, HIDDEN), ("mlp.up_proj", FEED, HIDDEN),
            ("mlp.down_proj", HIDDEN, FEED))
GGUF = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down"}


def halves(r, count):
    """Scales: fp16 between 2^-12 and 2^-4, never infinite, never zero."""
    return struct.pack(f"<{count}H", *(0x1000 + r.getrandbits(13) for _ in range(count)))


def pools(r):
    codes = r.randbytes(POOL)
    scales = halves(r, POOL // 64)
    q4_k = b"".join(halves(r, 2) + r.randbytes(140) for _ in range(1 << 15))
    q6_k = b"".join(r.randbytes(208) + halves(r, 1) for _ in range(1 << 15))
    return {"codes": codes, "scales": scales, "q4_k": q4_k, "q6_k": q6_k, "zeros": bytes(1 << 20)}


def write(file, pool, count, unit, r):
    """count bytes, from a place in the pool that is a multiple of unit, over and over."""
    while count > 0:
        start = r.randrange(len(pool) // unit) * unit
        piece = pool[start:start + count]
        file.write(piece)
        count -= len(piece)


def quantised(name, n, k, is_awq):
    base = f"{name}."
    if is_awq:
        return [(base + "qweight", "I32", [k, n // 8], "codes"), (base + "qzeros", "I32", [k // 128, n // 8], "codes"),
                (base + "scales", "F16", [k // 128, n], "scales")]
    return [(base + "g_idx", "I32", [k], "order"), (base + "qweight", "I32", [k // 8, n], "codes"),
            (base + "qzeros", "I32", [k // 128, n // 8], "codes"), (base + "scales", "F16", [k // 128, n], "scales")]


def write_safetensors(path, layers, vocabulary, is_awq, r):
    pool = pools(r)
    tensors = [("model.embed_tokens.weight", "F16", [vocabulary, HIDDEN], "scales"),
               ("lm_head.weight", "F16", [vocabulary, HIDDEN], "scales"), ("model.norm.weight", "F16", [HIDDEN], "scales")]
    for i in range(layers):
        for name, n, k in MATRICES:
            tensors += quantised(f"model.layers.{i}.{name}", n, k, is_awq)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors.append((f"model.layers.{i}.{norm}.weight", "F16", [HIDDEN], "scales"))
    header, at = {}, 0
    for name, dtype, shape, _ in tensors:
        size = (2 if dtype == "F16" else 4) * (shape[0] * shape[1] if len(shape) == 2 else shape[0])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, _, shape, kind in tensors:
            begin, end = header[name]["data_offsets"]
            if kind == "order":
                file.write(struct.pack(f"<{shape[0]}i", *(j // 128 for j in range(shape[0]))))
            else:
                write(file, pool[kind], end - begin, 4, r)
    config = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True} if is_awq else {
        "quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": False,
        "checkpoint_format": "gptq_v2"}
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "llama", "num_hidden_layers": layers, "quantization_config": config}, file)


def write_gguf(path, layers, vocabulary, r):
    """Q4_K_M: the output matrix, and v and down of half of the layers, in Q6_K."""
    pool = pools(r)
    kinds = {"q4_k": (12, 144), "q6_k": (14, 210)}
    tensors = [("token_embd.weight", vocabulary, HIDDEN, "q4_k"), ("output.weight", vocabulary, HIDDEN, "q6_k"),
               ("output_norm.weight", 1, HIDDEN, "f32")]
    for i in range(layers):
        more = i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2
        for name, n, k in MATRICES:
            wide = more and name in ("self_attn.v_proj", "mlp.down_proj")
            tensors.append((f"blk.{i}.{GGUF[name]}.weight", n, k, "q6_k" if wide else "q4_k"))
        tensors += [(f"blk.{i}.attn_norm.weight", 1, HIDDEN, "f32"), (f"blk.{i}.ffn_norm.weight", 1, HIDDEN, "f32")]

    def string(text):
        return struct.pack("<Q", len(text)) + text.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + string("general.architecture") + struct.pack("<I", 8)
    head += string("llama")
    at, sizes = 0, []
    for name, n, k, kind in tensors:
        number, size = (0, 4 * n * k) if kind == "f32" else (kinds[kind][0], n * k // 256 * kinds[kind][1])
        shape = [k] if n == 1 else [k, n]
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", number, at)
        sizes.append(size)
        at += size + -size % 32
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for (_, _, _, kind), size in zip(tensors, sizes):
            write(file, pool["zeros" if kind == "f32" else kind], size, 4 if kind == "f32" else kinds[kind][1], r)
            file.write(bytes(-size % 32))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=("gptq", "awq", "q4_k_m"))
    parser.add_argument("path")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--vocabulary", type=int, default=128256)
    a = parser.parse_args()
    r = random.Random(28)
    if a.format == "q4_k_m":
        write_gguf(a.path, a.layers, a.vocabulary, r)
    else:
        write_safetensors(a.path, a.layers, a.vocabulary, a.format == "awq", r)


if __name__ == "__main__":
    main()
