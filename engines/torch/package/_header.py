"""The header of packed weights as a text: what a product must know on the host, while the bytes lie on a GPU.

It begins with 16 digits of the header's checksum; then come the header's bytes without the two hashes at its end and
without trailing zeros, all in hexadecimal. The hash of the payload is taken out, so weights that are described in the
same way have the same text, and one compiled graph serves them."""

import ctypes
import functools

import torch

from .. import Array, c
from .._library import call, fill, header
from .. import _record

BYTES = header.constants["LPGEMM_HEADER_BYTES"]
PAYLOAD_HASH, HEADER_HASH = BYTES - 16, BYTES - 8  # where they lie: FORMAT.md
MASK = (1 << 64) - 1


def _hash(data):
    """FORMAT.md, section 2."""
    total = 0
    for i in range(0, len(data), 8):
        h = int.from_bytes(data[i:i + 8], "little") ^ (i // 8 + 1) * 0x9E3779B97F4A7C15 & MASK
        for _ in range(2):
            h = (h ^ h >> 32) * 0xD6E8FEB86659FD93 & MASK
        total += h ^ h >> 32
    return total & MASK


def header_of(weight):
    """The text for a tensor of packed weights. Of a GPU's it reads 512 bytes, and waits for them."""
    if weight.dtype != torch.uint8 or weight.dim() != 1 or weight.numel() < BYTES:
        raise ValueError(f"packed weights are a tensor of uint8 with one dimension of {BYTES} bytes or more")
    data = bytes(weight[:BYTES].cpu().tolist())
    if _hash(data[:HEADER_HASH]) != int.from_bytes(data[HEADER_HASH:], "little"):
        raise ValueError("these bytes are no packed weights: the checksum of the header is wrong")
    data = data[:PAYLOAD_HASH]
    checksum = _hash(data + bytes(HEADER_HASH - PAYLOAD_HASH)).to_bytes(8, "little")
    return checksum.hex() + data.rstrip(b"\0").hex()


@functools.lru_cache(maxsize=4096)
def describe(text):
    """What a header says: the fields of lpgemm_weight_desc_t, and `outputs` and `columns` of Y and X."""
    data = bytes.fromhex(text[16:]).ljust(PAYLOAD_HASH, b"\0") + bytes(8) + bytes.fromhex(text[:16])
    size = int.from_bytes(data[24:32], "little")  # of the whole; bytes that the header stands in for are not read
    storage_bytes = header.constants["LPGEMM_WEIGHTS_BYTES"]
    room = ctypes.create_string_buffer(storage_bytes + 64)
    storage = -(-ctypes.addressof(room) // 64) * 64
    handle, pointer, info = _handle(), ctypes.c_void_p(), fill("lpgemm_weights_info_t", [])
    call("lpgemm_weights_from_blob", handle.pointer, ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data),
         storage, size, storage, storage_bytes, ctypes.byref(pointer))
    try:
        call("lpgemm_weights_info", pointer, ctypes.byref(info))
    finally:
        call("lpgemm_weights_destroy", pointer)
    desc = _record(info)["desc"]
    desc["outputs"] = desc["n"] // 2 if desc["rows"] else desc["n"]
    desc["columns"] = desc["x_k"] or desc["k"]
    return desc


def _handle():
    from .. import Handle
    return Handle("cpu", num_threads=1)
