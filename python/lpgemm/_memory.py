"""Where the elements of an object lie: numpy arrays, torch tensors, whatever has __cuda_array_interface__,
__array_interface__ or the buffer protocol. Nothing is imported for it."""

import ctypes
import sys

# Names of lpgemm by those of numpy and torch.
TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "i8", "uint8": "u8", "uint16": "u16",
         "int32": "i32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0"}
INTERFACE_TYPES = {"f2": "f16", "f4": "f32", "i1": "i8", "u1": "u8", "u2": "u16", "i4": "i32"}
BUFFER_TYPES = {"e": "f16", "f": "f32", "b": "i8", "B": "u8", "H": "u16", "i": "i32"}
OTHER_ORDER = ">" if sys.byteorder == "little" else "<"


class Array:
    """Memory that is described by hand: Array(pointer, shape, "f16") for a raw pointer of host or device. `strides`
    count elements; without them rows are dense. `owner` is kept alive."""

    def __init__(self, pointer, shape, type, strides=None, itemsize=None, nbytes=None, owner=None, on_gpu=None,
                 is_writable=True):
        self.pointer, self.shape, self.type, self.owner = pointer, tuple(shape), type, owner
        self.itemsize, self.on_gpu, self.is_writable = itemsize, on_gpu, is_writable
        dense, self.count = [], 1
        for length in reversed(self.shape):
            dense.insert(0, self.count)
            self.count *= length
        self.strides = tuple(strides) if strides is not None else tuple(dense)
        self.is_dense = not self.count or all(n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense))
        self.nbytes = self.count * itemsize if itemsize and nbytes is None else nbytes

    def matrix(self):
        """Rows, columns and the elements from one row to the next. All dimensions but the last are rows; more than two
        dimensions must be dense."""
        if not self.shape or not (self.is_dense or (len(self.shape) == 2 and self.strides[1] == 1
                                                    and self.strides[0] >= self.shape[1])):
            raise ValueError(f"rows must be dense, but the strides of {self.shape} are {self.strides}")
        columns, rows = self.shape[-1], 1
        for length in self.shape[:-1]:
            rows *= length
        return rows, columns, columns if self.is_dense else self.strides[0]


def _type_of(dtype):
    return TYPES.get(str(dtype).rpartition(".")[2])


def _of_interface(interface, dtype, owner, on_gpu):
    code, size = interface["typestr"], int(interface["typestr"][2:])
    pointer, is_read_only = interface["data"]
    strides = interface.get("strides")
    kind = _type_of(dtype) or (INTERFACE_TYPES.get(code[1:]) if code[0] != OTHER_ORDER else None)
    return Array(pointer, interface["shape"], kind, strides and [s // size for s in strides], size, owner=owner,
                 on_gpu=on_gpu, is_writable=not is_read_only)


def _of_buffer(x):
    buffer = memoryview(x)
    if not buffer.c_contiguous:
        raise ValueError("a buffer must be contiguous")
    flat = buffer.cast("B") if buffer.nbytes else memoryview(bytearray(1))
    if flat.readonly:  # an address of a read-only buffer is at hand for bytes alone
        flat = x if isinstance(x, bytes) else bytes(flat)
        pointer = ctypes.cast(ctypes.c_char_p(flat), ctypes.c_void_p).value
    else:
        pointer = ctypes.addressof(ctypes.c_char.from_buffer(flat))
    return Array(pointer, buffer.shape or (1,), BUFFER_TYPES.get(buffer.format), itemsize=buffer.itemsize,
                 owner=(x, flat), on_gpu=False, is_writable=not buffer.readonly)


def view(x, write=False):
    """An Array of any object that has elements."""
    if isinstance(x, Array):
        array = x
    elif hasattr(x, "data_ptr"):  # torch
        array = Array(x.data_ptr(), x.shape, _type_of(x.dtype), x.stride(), x.element_size(), owner=x, on_gpu=x.is_cuda)
    elif hasattr(x, "__cuda_array_interface__"):
        array = _of_interface(x.__cuda_array_interface__, getattr(x, "dtype", None), x, True)
    elif hasattr(x, "__array_interface__"):
        array = _of_interface(x.__array_interface__, getattr(x, "dtype", None), x, False)
    else:
        array = _of_buffer(x)
    if write and not array.is_writable:
        raise ValueError("the memory of a result is read-only")
    return array


def empty_like(x, shape, type):
    """New memory of the sort of x, for a result: numpy's, torch's, else a memoryview of rows."""
    if hasattr(x, "new_empty"):
        import torch
        return x.new_empty(shape, dtype={"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
                                         "i32": torch.int32}[type])
    if hasattr(x, "__array_interface__") and type != "bf16":
        import numpy
        return numpy.empty(shape, {"f16": "f2", "f32": "f4", "i32": "i4"}[type])
    letters = {"f32": "f", "i32": "i", "f16": "e"}
    if hasattr(x, "__cuda_array_interface__") or isinstance(x, Array) or type not in letters or 0 in shape:
        raise TypeError(f"no memory of {type} for a result is made here: give y")
    count = 1
    for length in shape:
        count *= length
    return memoryview(bytearray(count * (2 if type == "f16" else 4))).cast(letters[type], shape)
