"""Reads lpgemm.h: its enums, structs and functions, as the C compiler sees them. The package has the header of its
library beside it, so the two cannot disagree. The text must be written as that of lpgemm.h is."""

import ctypes
import os
import re

SCALARS = {"size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
           "uint64_t": ctypes.c_uint64, "uint8_t": ctypes.c_uint8, "int": ctypes.c_int, "float": ctypes.c_float,
           "double": ctypes.c_double, "char": ctypes.c_char, "lpgemm_dtype_t": ctypes.c_uint32}


def _plain(text):
    """Without comments, preprocessor lines and what only C++ sees."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif", "", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def _statements(text):
    """What ends with a semicolon outside of braces."""
    depth, begin = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == ";" and depth == 0:
            yield " ".join(text[begin:place].split())
            begin = place + 1


class Header:
    def __init__(self, text):
        self.enums = {}  # lpgemm_zero_t -> {"LPGEMM_ZERO_NONE": 0, ...}
        self.constants = {}  # all of them
        self.structs = {}  # lpgemm_config_t -> class, with .c_types: {field: "const char *"}
        self.functions = {}  # lpgemm_create -> (result, arguments): ctypes
        self.function_types = {}  # lpgemm_task_t -> class
        self.pointers = {}  # lpgemm_handle_t and others that are pointers
        for statement in _statements(_plain(text)):
            self._read(statement)

    def _read(self, statement):
        for pattern, read in (
                (r"(?:typedef )?enum (?:\w+ )?\{(.*)\} ?(\w*)$", self._read_enum),
                (r"typedef struct \w+ \{(.*)\} (\w+)$", self._read_struct),
                (r"typedef (?:struct \w+|void) \*(\w+)$", self._read_pointer),
                (r"typedef (\w+) \(\*(\w+)\)\((.*)\)$", self._read_function_type),
                (r"typedef uint32_t lpgemm_dtype_t$", lambda: None),
                (r"((?:const )?\w+ \*?)(lpgemm_\w+)\((.*)\)$", self._read_function)):
            found = re.match(pattern, statement)
            if found:
                return read(*found.groups())
        raise ValueError(f"lpgemm.h has a statement that is not understood: {statement}")

    def _read_enum(self, members, name):
        values, following = {}, 0
        for member in filter(None, (m.strip() for m in members.split(","))):
            key, _, value = (part.strip() for part in member.partition("="))
            following = int(value, 0) if value else following
            values[key] = following
            following += 1
        self.constants.update(values)
        if name:
            self.enums[name] = values

    def _read_pointer(self, name):
        self.pointers[name] = ctypes.c_void_p

    def _read_function_type(self, result, name, arguments):
        self.function_types[name] = self._function_class(result, arguments)

    def _read_function(self, result, name, arguments):
        self.functions[name] = self.ctype(result), self._arguments(arguments)

    def _read_struct(self, members, name):
        fields, c_types = [], {}
        for member in filter(None, (m.strip() for m in members.split(";"))):
            pointer = re.match(r"(\w+) \(\*(\w+)\)\((.*)\)$", member)
            if pointer:
                result, field, arguments = pointer.groups()
                fields.append((field, self._function_class(result, arguments)))
                c_types[field] = "function"
                continue
            base, names = re.match(r"((?:const )?\w+) (.*)$", member).groups()
            for part in names.split(","):
                stars, field, count = re.match(r" *(\**)(\w+)(?:\[(\d+)\])?$", part).groups()
                c_types[field] = f"{base} {stars}".strip()
                kind = self.ctype(c_types[field])
                fields.append((field, kind * int(count) if count else kind))
        self.structs[name] = type(name, (ctypes.Structure,), {"_fields_": fields, "c_types": c_types})

    def _function_class(self, result, arguments):
        return ctypes.CFUNCTYPE(None if result == "void" else self.ctype(result), *self._arguments(arguments))

    def _arguments(self, text):
        kinds = []
        for argument in () if text == "void" else text.split(","):
            base, name, is_array = re.match(r" *(.*?)(\w+)(\[\d*\])?$", argument).groups()
            kinds.append(self.ctype(base + " *" if is_array else base))
        return kinds

    def ctype(self, c_type):
        """The ctypes class of a C type; all pointers but those to text are addresses."""
        base, stars = re.match(r"(?:const )?(\w+) *(\**)$", c_type.strip()).groups()
        if stars:
            return ctypes.c_char_p if c_type.strip() == "const char *" else ctypes.c_void_p
        if base in self.enums:
            return ctypes.c_int
        for table in (SCALARS, self.structs, self.pointers, self.function_types):
            if base in table:
                return table[base]
        raise ValueError(f"lpgemm.h has a type that is not understood: {c_type}")

    def value(self, enum, name):
        """The value of a member of an enum by the part of its name that is its own: "silu" of lpgemm_activation_t."""
        members = self.enums[enum]
        prefix = os.path.commonprefix(list(members)).rpartition("_")[0] + "_"
        by_name = {key[len(prefix):].lower(): value for key, value in members.items()}
        if str(name).lower() not in by_name:
            raise ValueError(f"{name!r} is none of {', '.join(by_name)} ({enum})")
        return by_name[str(name).lower()]
