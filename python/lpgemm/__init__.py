"""lpgemm from Python: a thin layer over the C library, whose header (header_path()) is the manual. Keywords are fields
of its structs; number formats and members of enums are given by name ("u4", "silu"). Every rule is the library's, and
so is the sentence of an Error.

    handle = lpgemm.Handle("cpu")
    weights = handle.pack(codes, "u4", scales=scales, group_k=128, zero=8)    # uint8 [n][k], float16 [n][k / 128]
    y = handle.run(weights, x)                                                # x: numpy, or torch on this device

A handle belongs to one thread at a time. On a GPU work is in stream order: set the stream with handle.set_stream().
"""

import atexit
import ctypes
import os

from ._library import FOLDER, Error, c, call, dtype, dtype_name, fill, header, itemsize, nbytes
from ._memory import Array, empty_like, view

__all__ = ["Array", "Error", "File", "Handle", "Weights", "build_info", "c", "device_supports", "dtype", "dtype_name",
           "header_path", "import_desc", "kernels", "packed_size", "set_log", "validate", "version"]

DESC, SOURCE, RUN, IMPORT = (f"lpgemm_{name}_t" for name in ("weight_desc", "weight_source", "run_args", "import"))


def version():
    number = c.lpgemm_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


__version__ = version()


def build_info():
    return c.lpgemm_build_info().decode()


def header_path():
    """lpgemm.h; liblpgemm.so lies beside it."""
    return os.path.join(FOLDER, "lpgemm.h")


def _record(struct):
    """A dict of a struct's fields; text and numbers only."""
    record = {}
    for field, kind in struct._fields_:
        value = getattr(struct, field)
        if isinstance(value, bytes):
            value = value.decode()
        elif struct.c_types[field] == "lpgemm_dtype_t":
            value = dtype_name(value)
        elif isinstance(value, ctypes.Structure):
            value = _record(value)
        elif isinstance(value, ctypes.Array):
            value = list(value)
        if field not in ("size", "reserved"):
            record[field] = value
    return record


def kernels():
    """The kernels of this build, a dict each."""
    kind, count = header.structs["lpgemm_kernel_info_t"], ctypes.c_size_t()
    call("lpgemm_list_kernels", None, 0, ctypes.byref(count))
    records = (kind * count.value)()
    for record in records:
        record.size = ctypes.sizeof(kind)
    call("lpgemm_list_kernels", records, count.value, ctypes.byref(count))
    return [_record(record) for record in records]


def packed_size(**desc):
    size = ctypes.c_size_t()
    call("lpgemm_packed_size", ctypes.byref(_description([], desc)), ctypes.byref(size))
    return size.value


def device_supports(desc, x_type=None, y_type=None, m=1, **config):
    """None if the device of a config does such products, else the sentence why not."""
    keep = []
    status = c.lpgemm_device_supports(ctypes.byref(fill("lpgemm_config_t", keep, **config)),
                                      ctypes.byref(_description(keep, desc)), dtype(x_type), dtype(y_type), m)
    return c.lpgemm_last_error().decode() if status else None


def validate(blob):
    """An Error unless these bytes are one intact packed matrix."""
    array = view(blob)
    call("lpgemm_validate", array.pointer, nbytes(array))


_log = []  # the callback, which the library holds


def set_log(level, callback=None):
    """Lines of the log at "error", "dispatch" or "profile" go to callback(level, line), or to stderr; "off"."""
    kind = header.function_types["lpgemm_log_t"]
    levels = {value: name[len("LPGEMM_LOG_"):].lower() for name, value in header.enums["lpgemm_log_level_t"].items()}
    function = kind(lambda _, n, line: callback(levels[n], line.decode("utf-8", "replace"))) if callback else kind(0)
    call("lpgemm_set_log", header.value("lpgemm_log_level_t", level), function, None)
    _log[:] = [function]


atexit.register(set_log, "off")


def _parts(parts, keep):
    """An array of lpgemm_import_t of dicts: format, tensors = {name: array}, and other fields."""
    tensor_kind, structs = header.structs["lpgemm_tensor_t"], []
    for part in parts:
        part = dict(part)
        tensors = part.pop("tensors")
        array = (tensor_kind * len(tensors))()
        for tensor, (name, data) in zip(array, tensors.items()):
            a = view(data)
            if not a.is_dense:
                raise ValueError(f"tensor {name} is not dense")
            tensor.name, tensor.type, tensor.dims, tensor.data = name.encode(), dtype(a.type), len(a.shape), a.pointer
            tensor.shape[:len(a.shape)] = a.shape
            tensor.bytes = nbytes(a)
            keep.append(a)
        keep.append(array)
        structs.append(fill(IMPORT, keep, tensors=ctypes.addressof(array), count=len(tensors), **part))
    return (header.structs[IMPORT] * len(structs))(*structs)


def import_desc(*parts):
    """What parts of a checkpoint become: the fields of a description."""
    keep, desc = [], fill(DESC, [])
    array = _parts(parts, keep)
    call("lpgemm_import_desc", array, len(parts), ctypes.byref(desc))
    return _record(desc)


def _description(keep, fields):
    """A lpgemm_weight_desc_t. type may name a codebook that the library knows, and zero be a number for all."""
    fields = dict(fields)
    if fields.get("type") in ("nf4", "fp4", "iq4_nl"):
        if "codebook" in fields:
            raise TypeError(f"{fields['type']} is a codebook: leave out codebook, or give \"c4\" as the type")
        values = (ctypes.c_float * 16)()
        call("lpgemm_codebook_preset", fields["type"].encode(), values)
        fields.update(type="c4", codebook=list(values))
    if isinstance(fields.get("zero"), (int, float)):
        fields.update(zero="constant", zero_constant=fields["zero"])
    return fill(DESC, keep, **fields)


def _matrix(name, array, type, rows, columns):
    """The elements from one row to the next of a matrix of this type and size."""
    if type is None:
        raise TypeError(f"{name} has numbers of a type that lpgemm does not know: convert it (to float32, say), or give "
                        f"{name}_type if its bytes are of one that the array cannot name")
    if array.itemsize not in (None, itemsize(type)):
        raise TypeError(f"{name} has numbers of {array.itemsize} bytes, but {type} has {itemsize(type)}")
    its_rows, its_columns, ld = array.matrix()
    if (its_rows, its_columns) != (rows, columns):
        raise ValueError(f"{name} is {its_rows} x {its_columns}, not {rows} x {columns}")
    return ld


def __getattr__(name):
    """What wheels with the PyTorch extension (make torch) have besides."""
    if name in ("load", "LpgemmLinear"):
        if not os.path.isdir(os.path.join(FOLDER, "torch")):
            raise AttributeError(f"lpgemm.{name} is of the PyTorch extension, which this wheel does not have: make torch")
        from . import torch
        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Weights:
    """A packed matrix. Freed with the object: no work on it may be pending then."""

    def __init__(self, pointer, owner=None):
        self.pointer, self._owner = pointer, owner
        desc = self.info()["desc"]
        self.n, self.k = desc["n"], desc["k"]
        self.columns = desc["x_k"] or self.k  # of X

    def info(self):
        info = fill("lpgemm_weights_info_t", [])
        call("lpgemm_weights_info", self.pointer, ctypes.byref(info))
        return _record(info)

    def close(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            call("lpgemm_weights_destroy", pointer)

    def __del__(self):
        if getattr(self, "pointer", None):
            self.close()


class Handle:
    """Handle("cpu"), Handle("cuda", device=1), Handle(num_threads=4): fields of lpgemm_config_t."""

    def __init__(self, backend="auto", **config):
        self._keep, self._workspace = [], None
        pointer = ctypes.c_void_p()
        config = fill("lpgemm_config_t", self._keep, backend=backend, **config)
        call("lpgemm_create", ctypes.byref(pointer), ctypes.byref(config))
        self.pointer = pointer.value
        self.on_gpu = c.lpgemm_get_backend(self.pointer) == header.constants["LPGEMM_BACKEND_CUDA"]

    def close(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            call("lpgemm_destroy", pointer)

    def __del__(self):
        if getattr(self, "pointer", None):
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def device_name(self):
        return c.lpgemm_device_name(self.pointer).decode()

    def set_stream(self, stream):
        """A number (torch.cuda.current_stream().cuda_stream), 0 for the default stream."""
        call("lpgemm_set_stream", self.pointer, stream)

    def set_num_threads(self, count):
        call("lpgemm_set_num_threads", self.pointer, count)

    def set_workspace(self, memory):
        """Memory of the backend's kind, 256-byte aligned, of workspace_size() bytes; None unbinds."""
        array = Array(None, (0,), None, nbytes=0)
        if memory is not None:
            array = self._here("the workspace", view(memory, write=True))
        call("lpgemm_set_workspace", self.pointer, array.pointer, nbytes(array))
        self._workspace = array

    def _here(self, name, array):
        """Refuses memory that is not of the backend's kind; what does not say where it lies is believed."""
        if array.on_gpu is not None and array.on_gpu != self.on_gpu:
            kind = "GPU" if array.on_gpu else "host"
            raise ValueError(f"{name} lies in {kind} memory, where the handle does not work")
        return array

    # ---- weights ----

    def _made(self, name, *arguments, memory=None):
        """Weights of a call whose last arguments are memory, its bytes and where the weights go."""
        pointer, array, where = ctypes.c_void_p(), None, (None, 0)
        if memory is not None:
            array = self._here("memory", view(memory, write=True))
            where = array.pointer, nbytes(array)
        call(name, self.pointer, *arguments, *where, ctypes.byref(pointer))
        return Weights(pointer.value, array)

    def pack(self, codes, type, memory=None, **fields):
        """codes: [n][k], one a byte. type: "u4", "e2m1", ...; "nf4", "fp4", "iq4_nl"; "c4" with codebook.
        zero: a number for all, or with `zeros` "per_group" (as if left out) or "minimum".
        Types are those of the arrays, unless they are given (scale_type). Other keywords are fields of
        lpgemm_weight_desc_t and lpgemm_weight_source_t."""
        keep, source = [], {}
        codes = view(codes)
        n, k, source["codes_ld"] = codes.matrix()
        if codes.itemsize not in (None, 1):
            raise TypeError(f"codes are bytes, but these have {codes.itemsize} bytes each")
        codes.nbytes = ((n - 1) * source["codes_ld"] + k) if n else 0  # strided rows
        source["codes"] = codes
        desc = {"n": n, "k": k, "type": type}
        for array, its_type in (("scales", "scale_type"), ("zeros", "zero_type"), ("super_scales", "super_scale_type"),
                                ("super_zeros", "super_zero_type"), ("row_scales", "row_scales")):
            if fields.get(array) is not None:
                a = view(fields[array])
                if not a.is_dense:
                    raise ValueError(f"{array} must be dense")
                desc[its_type], source[array] = a.type, fields.pop(array)
        if "zeros" in source:
            desc["zero"] = "per_group"
        for field, value in fields.items():
            (source if field in header.structs[SOURCE].c_types else desc)[field] = value
        source = fill(SOURCE, keep, **source)
        return self._made("lpgemm_pack_weights", ctypes.byref(_description(keep, desc)), ctypes.byref(source),
                          memory=memory)

    def quantize(self, w, type, method="absmax", memory=None, **desc):
        """Quantises w[n][k] of f32, f16 or bf16 and packs it. type as pack(). zero: a number for all."""
        a = view(w)
        n, k, ld = a.matrix()
        desc = _description([], {"n": n, "k": k, "type": type, **desc})
        return self._made("lpgemm_quantize_weights", ctypes.byref(desc),
                          header.value("lpgemm_quantize_method_t", method), a.pointer, dtype(a.type), ld, memory=memory)

    def import_weights(self, *parts, memory=None):
        """Packs parts of a checkpoint, stacked along N: dict(format="gptq", tensors={"qweight": ...}, bits=4), or what
        File.layer() gives."""
        keep = []
        array = _parts(parts, keep)
        return self._made("lpgemm_import_weights", array, len(parts), memory=memory)

    def serialize(self, weights):
        """The packed matrix as bytes, for a file."""
        size = weights.info()["packed_bytes"]
        buffer = bytearray(size)
        call("lpgemm_serialize", self.pointer, weights.pointer, view(buffer).pointer, size)
        return bytes(buffer)

    def deserialize(self, blob, in_place=False, check=True):
        """Weights of bytes. in_place: they stay where they are, in memory of the backend's kind, and are kept alive."""
        array, pointer = view(blob), ctypes.c_void_p()
        flags = header.constants["LPGEMM_LOAD_VIEW" if in_place else "LPGEMM_LOAD_COPY"]
        flags |= 0 if check else header.constants["LPGEMM_LOAD_SKIP_CHECKSUM"]
        call("lpgemm_deserialize", self.pointer, array.pointer, nbytes(array), flags, ctypes.byref(pointer))
        return Weights(pointer.value, array if in_place else None)

    def unpack(self, weights, out, type=None):
        """Writes codes (out of u8) or values (f32, f16, bf16) into out[n][k] and returns it."""
        a = view(out, write=True)
        ld = _matrix("out", a, type or a.type, weights.n, weights.columns)
        call("lpgemm_unpack_weights", self.pointer, weights.pointer, dtype(type or a.type), a.pointer, ld)
        return out

    # ---- products ----

    def _args(self, keep, weights, x, y, x_type=None, y_type=None, **options):
        a = self._here("x", view(x))
        x_type, m = x_type or a.type, a.matrix()[0]
        if y is None:
            y_type = y_type or (x_type if x_type in ("f16", "bf16", "f32") else "f32")
            y = empty_like(x, (*a.shape[:-1], weights.n), y_type)
        b = self._here("y", view(y, write=True))
        y_type = y_type or b.type
        ldx, ldy = _matrix("x", a, x_type, m, weights.columns), _matrix("y", b, y_type, m, weights.n)
        for name, least in (("bias", weights.n), ("c", m * weights.n)):
            if hasattr(options.get(name), "__len__") and view(options[name]).count < least:
                raise ValueError(f"{name} has {view(options[name]).count} elements, not {least}")
        if options.get("bias") is not None:
            options.setdefault("bias_type", view(options["bias"]).type)
        keep.extend((a, b))
        return fill(RUN, keep, weights=weights.pointer, m=m, x=a.pointer, ldx=ldx, x_type=x_type, y=b.pointer, ldy=ldy,
                    y_type=y_type, **options), y

    def run(self, weights, x, y=None, **options):
        """y = x . weights^T for x[...][k]. y: its memory; without it new memory of x's kind and type. Options are
        fields of lpgemm_run_args_t: bias=, activation="silu", level="fast", alpha=0.5, kernel="..."."""
        keep = []
        args, y = self._args(keep, weights, x, y, **options)
        call("lpgemm_run", self.pointer, ctypes.byref(args))
        return y

    def explain(self, weights, x, y=None, **options):
        """Which kernel run() would take, and why not the others."""
        keep, text = [], ctypes.create_string_buffer(1 << 16)
        args, _ = self._args(keep, weights, x, y, **options)
        call("lpgemm_explain", self.pointer, ctypes.byref(args), text, len(text))
        return text.value.decode()

    def workspace_size(self, weights, most_rows, **options):
        keep, size = [], ctypes.c_size_t()
        args = fill(RUN, keep, **options)
        call("lpgemm_workspace_size", self.pointer, weights.pointer, most_rows, ctypes.byref(args), ctypes.byref(size))
        return size.value

    def supports(self, desc, x_type=None, y_type=None, m=1):
        """None if it does such products, else the sentence why not."""
        keep = []
        desc = _description(keep, desc)
        status = c.lpgemm_supports(self.pointer, ctypes.byref(desc), dtype(x_type), dtype(y_type), m)
        return c.lpgemm_last_error().decode() if status else None


class File:
    """A safetensors file, model folder, GGUF file or container, mapped. Arrays of it are valid until it is closed."""

    def __init__(self, path):
        pointer = ctypes.c_void_p()
        call("lpgemm_file_open", os.fspath(path).encode(), ctypes.byref(pointer))
        self.pointer = pointer.value

    def close(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            call("lpgemm_file_close", pointer)

    def __del__(self):
        if getattr(self, "pointer", None):
            self.close()

    def _counts(self):
        tensors, layers = ctypes.c_size_t(), ctypes.c_size_t()
        call("lpgemm_file_counts", self.pointer, ctypes.byref(tensors), ctypes.byref(layers))
        return tensors.value, layers.value

    def _array(self, tensor):
        return Array(tensor.data, tensor.shape[:tensor.dims], tensor.type, nbytes=tensor.bytes, owner=self,
                     on_gpu=False, is_writable=False)

    def tensors(self):
        """{name: Array}, whose types are numbers: dtype_name() has their names."""
        found, tensor = {}, header.structs["lpgemm_tensor_t"]()
        for i in range(self._counts()[0]):
            call("lpgemm_file_tensor", self.pointer, i, ctypes.byref(tensor))
            found[tensor.name.decode()] = self._array(tensor)
        return found

    def layers(self):
        """Names of its quantised layers."""
        names = []
        for i in range(self._counts()[1]):
            name = ctypes.c_char_p()
            call("lpgemm_file_layer_name", self.pointer, i, ctypes.byref(name))
            names.append(name.value.decode())
        return names

    def layer(self, name):
        """A layer, for Handle.import_weights()."""
        struct = fill(IMPORT, [])
        call("lpgemm_file_layer", self.pointer, name.encode(), ctypes.byref(struct))
        tensors = (header.structs["lpgemm_tensor_t"] * struct.count).from_address(struct.tensors)
        part = {field: getattr(struct, field) for field in struct.c_types if field not in ("size", "count", "reserved")}
        part["tensors"] = {tensor.name.decode(): self._array(tensor) for tensor in tensors}
        return part
