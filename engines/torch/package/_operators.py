"""What torch must know of the operators of liblpgemm_torch.so beside their work: shapes for tracing (fake kernels)."""

import torch

from .. import packed_size
from ._header import describe

QUANTISED = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.uint8: "u8",
             torch.float8_e4m3fn: "e4m3"}


@torch.library.register_fake("lpgemm::matmul")
def _matmul(x, weight, header, bias=None, fast=False, activation="none"):
    desc = describe(header)
    torch._check(x.shape[-1] == desc["columns"],
                 lambda: f"x has {x.shape[-1]} columns, and weight {desc['columns']}")
    return x.new_empty((*x.shape[:-1], desc["outputs"]))


@torch.library.register_fake("lpgemm::dequantize")
def _dequantize(weight, header, dtype):
    desc = describe(header)
    return weight.new_empty((desc["n"], desc["columns"]), dtype=dtype)


@torch.library.register_fake("lpgemm::pack")
def _pack(codes, type, scales=None, zeros=None, zero=None, group_k=0, paired=False):
    n, k = codes.shape
    desc = {"n": n, "k": k, "type": type, "group_k": group_k, "rows": "paired" if paired else "plain"}
    if scales is not None:
        desc["scale_type"] = QUANTISED[scales.dtype]
    if zeros is not None:
        desc.update(zero="per_group", zero_type=QUANTISED[zeros.dtype])
    elif zero is not None:
        desc.update(zero="constant", zero_constant=zero)
    return codes.new_empty((packed_size(**desc),), dtype=torch.uint8)


@torch.library.register_fake("lpgemm::quantize")
def _quantize(w, type, group_k=0, scale_type="f16", method="absmax", zero=None, zero_type=None):
    n, k = w.shape
    desc = {"n": n, "k": k, "type": type, "group_k": group_k, "scale_type": scale_type}
    if zero is not None:
        desc.update(zero="constant", zero_constant=zero)
    if zero_type is not None:
        desc.update(zero="per_group", zero_type=zero_type)
    return w.new_empty((packed_size(**desc),), dtype=torch.uint8)
