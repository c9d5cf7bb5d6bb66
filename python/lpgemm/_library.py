"""The library beside this file: its functions, and its structs filled from Python's values."""

import ctypes
import os

from ._header import Header
from ._memory import view

FOLDER = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(FOLDER, "lpgemm.h"), encoding="utf-8") as text:
    header = Header(text.read())
c = ctypes.CDLL(os.path.join(FOLDER, "liblpgemm.so"))  # every function of lpgemm.h, as ctypes has it
for name, (result, arguments) in header.functions.items():
    function = getattr(c, name)
    function.restype, function.argtypes = result, arguments


class Error(RuntimeError):
    """A call of the library failed: its sentence, and the number and name of its status."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status
        self.name = c.lpgemm_status_string(status).decode().partition(":")[0]


def call(name, *arguments):
    """Calls a function that returns a status; an Error if that is not success."""
    status = getattr(c, name)(*arguments)
    if status != 0:
        raise Error(status, c.lpgemm_last_error().decode("utf-8", "replace"))


def dtype(value):
    """The code of a number format: "u4", "f16", ...; None is 0, a number stands for itself."""
    if value is None or isinstance(value, int):
        return value or 0
    code = ctypes.c_uint32()
    call("lpgemm_dtype_parse", str(value).encode(), ctypes.byref(code))
    return code.value


def dtype_name(code):
    return c.lpgemm_dtype_name(code).decode()


def itemsize(value):
    """Bytes of a number in an array."""
    return (c.lpgemm_dtype_bits(dtype(value)) + 7) // 8


def nbytes(array):
    return array.nbytes if array.nbytes is not None else array.count * itemsize(array.type)


def fill(name, keep, **values):
    """A struct of the library, with its size and these fields. `keep` is a list that must live as long as the struct's
    pointers are used."""
    kind = header.structs[name]
    struct = kind()
    struct.size = ctypes.sizeof(kind)
    for field, value in values.items():
        if field not in kind.c_types:
            raise TypeError(f"{name} has no field {field}; it has {', '.join(kind.c_types)}")
        if value is not None:
            _set(struct, field, kind.c_types[field], value, keep)
    return struct


def _set(struct, field, c_type, value, keep):
    kinds = dict(struct._fields_)
    kind = kinds[field]
    base, is_pointer = c_type.replace("const ", "").rstrip(" *"), c_type.endswith("*")
    if issubclass(kind, ctypes.Array):
        setattr(struct, field, kind(*value))
    elif c_type == "lpgemm_dtype_t":
        setattr(struct, field, dtype(value))
    elif c_type in header.enums:
        setattr(struct, field, value if isinstance(value, int) else header.value(c_type, value))
    elif c_type == "const char *":
        setattr(struct, field, str(value).encode())
    elif c_type == "function" or c_type in header.function_types:
        function = value if isinstance(value, kind) else kind(value)
        keep.append(function)
        setattr(struct, field, function)
    elif is_pointer and base in header.structs and not isinstance(value, int):
        keep.append(fill(base, keep, **value))
        setattr(struct, field, ctypes.addressof(keep[-1]))
    elif c_type == "const float *" and isinstance(value, (int, float)):
        keep.append(ctypes.c_float(value))
        setattr(struct, field, ctypes.addressof(keep[-1]))
    elif is_pointer and not isinstance(value, int):
        array = view(value)
        keep.append(array)
        setattr(struct, field, array.pointer)
        if field + "_bytes" in kinds:
            setattr(struct, field + "_bytes", nbytes(array))
    else:
        setattr(struct, field, value)
