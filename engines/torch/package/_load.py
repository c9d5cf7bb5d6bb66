"""Checkpoints into a model: quantised layers in place of nn.Linear, all other tensors as they are."""

import ctypes

import torch
from torch import nn

from .. import File, Handle, dtype_name, import_desc, packed_size
from ._linear import LpgemmLinear

PLAIN = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
         "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


def _tensor(array, name):
    """A tensor of its own with what lies in a file, which need not be aligned."""
    kind = dtype_name(array.type)
    if kind not in PLAIN:
        raise ValueError(f"tensor {name} has the type {kind}, which a plain tensor of a model cannot take")
    data = torch.empty(array.nbytes, dtype=torch.uint8)
    ctypes.memmove(data.data_ptr(), array.pointer, array.nbytes)
    return data.view(PLAIN[kind]).view(array.shape)


def _blob(array):
    data = torch.empty(array.nbytes, dtype=torch.uint8)
    ctypes.memmove(data.data_ptr(), array.pointer, array.nbytes)
    return data


def _pack(part, device, handles):
    """Packs a layer of a checkpoint where the model is."""
    if device not in handles:
        handles[device] = Handle("cuda", device=device.index or 0) if device.type == "cuda" else Handle("cpu")
    handle = handles[device]
    desc = import_desc(part)
    memory = torch.empty(packed_size(**desc), dtype=torch.uint8, device=device)
    if device.type == "cuda":
        handle.set_stream(torch.cuda.current_stream(device).cuda_stream)
    handle.import_weights(part, memory=memory).close()
    return memory


def _place(model, name):
    """The module that has a module of this name, and its last part; None if the model has none."""
    parent, _, own = name.rpartition(".")
    try:
        holder = model.get_submodule(parent)
    except AttributeError:
        return None
    return (holder, own) if isinstance(getattr(holder, own, None), nn.Module) else None


def load(model, path, device=None, fast=False, strict=True):
    """Loads a checkpoint (a model folder, a safetensors file, or a container of lpgemm-convert) into a model whose
    modules have the checkpoint's names. Each quantised layer takes the place of the nn.Linear of its name; all other
    parameters and buffers get their values, in their own dtype. device: where layers and parameters go that are on the
    "meta" device, and all others too; None: each stays on its device. strict: every quantised layer must have its
    module and every parameter its tensor. Returns the names of the layers."""
    file, handles, done = File(path), {}, []
    try:
        arrays = file.tensors()
        blobs = {name: array for name, array in arrays.items() if dtype_name(array.type) == "blob"}
        layers = list(blobs) or file.layers()
        if not layers:
            raise ValueError(f"{path} has no quantised layers")
        for name in layers:
            place = _place(model, name)
            if place is None:
                if strict:
                    raise ValueError(f"the model has no module {name}, which is a quantised layer of {path}")
                continue
            _replace(file, arrays, blobs, name, place, device, fast, handles)
            done.append(name)
        missing = _fill(model, arrays, set(done), device)
        if device is not None:
            model.to(device)  # what no file has
        if missing and strict:
            raise ValueError(f"{path} has no {', '.join(missing[:5])}{' and others' if missing[5:] else ''}")
    finally:
        for handle in handles.values():
            handle.close()
        file.close()
    return done


def _replace(file, arrays, blobs, name, place, device, fast, handles):
    holder, own = place
    old = getattr(holder, own)
    if not isinstance(old, (nn.Linear, LpgemmLinear)):
        raise ValueError(f"{name} is a quantised layer, but a {type(old).__name__} in the model")
    kept = next((t for t in (old.weight, old.bias) if t is not None), None)
    here = torch.device(device) if device is not None else kept.device if kept is not None else torch.device("cpu")
    if here.type == "meta":
        raise ValueError(f"{name} is on the meta device: say where it is to go with device=")
    if here.type == "cuda" and here.index is None:
        here = torch.device("cuda", torch.cuda.current_device())
    weight = _blob(blobs[name]).to(here) if blobs else _pack(file.layer(name), here, handles)
    bias = arrays.get(f"{name}.bias")
    if bias is not None:
        real = old.bias.dtype if old.bias is not None else None
        bias = _tensor(bias, f"{name}.bias").to(here, real)
    new = LpgemmLinear(weight, bias, fast=fast)
    if isinstance(old, nn.Linear) and (old.in_features, old.out_features) != (new.in_features, new.out_features):
        raise ValueError(f"{name} is {new.out_features} x {new.in_features} in the file, and {old.out_features} x "
                         f"{old.in_features} in the model")
    new.train(old.training)
    setattr(holder, own, new)


def _fill(model, arrays, layers, device):
    """Parameters and buffers that are no layer's; the names of the parameters that the file does not have. One that
    several modules share (a tied output matrix) needs one tensor and stays shared."""
    found, others = {}, []  # what became of a tensor, and whom the file does not have
    for prefix, module in model.named_modules():
        if prefix in layers:
            continue
        for own, old in (*module._parameters.items(), *module._buffers.items()):
            name = f"{prefix}.{own}" if prefix else own
            if old is None:
                continue
            if name in arrays:
                found[old] = _value(arrays[name], name, old, device)
                setattr(module, own, found[old])
            elif own in module._parameters:
                others.append((name, module, own, old))
    for name, module, own, old in others:
        if old in found:
            setattr(module, own, found[old])
    return [name for name, _, _, old in others if old not in found]


def _value(array, name, old, device):
    """A tensor of a file in place of an old one: into its memory, or, if it is to lie elsewhere, a new one."""
    new = _tensor(array, name)
    if new.shape != old.shape:
        raise ValueError(f"{name} is {tuple(new.shape)} in the file, and {tuple(old.shape)} in the model")
    with torch.no_grad():
        if device is None and old.device.type != "meta":
            return old.copy_(new)
        new = new.to(device or "cpu", old.dtype)
        return nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new
