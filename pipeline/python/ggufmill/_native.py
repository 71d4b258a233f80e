"""Operations of libggufmill on Python objects. The modules beside this one check and prepare the arguments."""

import ctypes
import json

from . import _library
from ._error import usage_error
from ._library import call, decoded, encoded, interruptible, options, text
from ._numpy import np

version = _library.version()


class Context:
    def __init__(self, kernel_dirs, isa, architectures=()):
        given = options(kernel_dirs=kernel_dirs, isa=isa, architectures=list(architectures), names="python")
        self.handle = _library.Handle("context", "context_create", given)
        self._types = {}  # by name in lower case, once they are asked for

    def type_infos(self):
        """Return the types, as of the operation `types`, by name in lower case."""
        if not self._types:
            listed = json.loads(_library.call_with_result(self.handle, b"types", b"{}", None))["types"]
            self._types = {each["name"].lower(): each for each in listed}
        return self._types

    def _row_bytes(self, type, columns, rule):
        """Return the bytes of a row and the type. `rule` is what the number of columns has to be."""
        made = ctypes.c_uint64()
        info = self.type_infos().get(type.lower())
        if info and columns % info["block_elements"]:
            name, elements = info["name"], info["block_elements"]
            raise usage_error(
                f"rows of {columns} values are not a whole number of blocks of {name}", f"{name} has blocks of {elements}: {rule}"
            )
        found = _library.problems("row_bytes", self.handle, encoded(type), columns, ctypes.byref(made))
        if found:
            meant = found[0].help + " " if found[0].help.startswith("did you mean") else ""
            raise usage_error(found[0].what, meant + "`ggufmill.types()` lists them")
        return made.value, info

    def row_shape(self, shape, type):
        """Return the shape of the encoded rows of an array of a shape."""
        row_bytes, _ = self._row_bytes(type, shape[-1], "the last axis of the array must be a multiple of that")
        return (*shape[:-1], row_bytes)

    def quantize(self, values, from_type, to_type, importance, out, threads):
        """`values`: numbers of `from_type`, C-contiguous and aligned, as are `importance` and `out`, or None."""
        columns = values.shape[-1]
        made = _result(out, np.uint8, self.row_shape(values.shape, to_type))
        parts = 0 if importance is None else importance.size // max(columns, 1)
        rows = values.size // columns if columns else 0
        interruptible(
            lambda control: call(
                *("quantize_rows", self.handle, encoded(to_type), encoded(from_type), values.ctypes.data, rows, columns),
                *(None if importance is None else importance.ctypes.data, parts),
                *(made.ctypes.data, made.nbytes, threads, control),
            )
        )
        return made

    def choose_levels(self, values, type, covariance, sweeps, rows, threads):
        """Replace the levels of `rows`, uint8. `values` are float32, `covariance` float64; all C-contiguous and aligned."""
        columns = values.shape[-1]
        interruptible(
            lambda control: call(
                *("choose_levels", self.handle, encoded(type), values.ctypes.data, values.size // columns, columns),
                *(covariance.ctypes.data, sweeps, rows.ctypes.data, rows.nbytes, threads, control),
            )
        )

    def dequantize(self, buffer, type, shape, out, threads):
        view = memoryview(buffer)
        given = np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
        columns = shape[-1] if shape else 1
        elements = 1
        for each in shape:
            elements *= each
        row_bytes, info = self._row_bytes(type, columns, "the last dimension of the shape must be a multiple of that")
        rows = elements // columns if columns else 0
        if rows * row_bytes != given.nbytes:
            raise usage_error(
                f"the buffer has {given.nbytes} bytes, but {elements} values of {info['name'] if info else type} take {rows * row_bytes}",
                "`shape` must be the shape of the values: its last dimension counts values, not bytes",
            )
        alignment = info["block_bytes"] if info and info["block_elements"] == 1 else 1
        if given.ctypes.data % alignment:
            given = given.copy()
        made = _result(out, np.float32, tuple(shape))
        interruptible(
            lambda control: call(
                *("decode_rows", self.handle, encoded(type), given.ctypes.data, given.nbytes, rows, columns),
                *(made.ctypes.data, threads, control),
            )
        )
        return made

    def open(self, path):
        return Model(self, path)

    def imatrix(self, path):
        return ImportanceFile(self, path)



def _result(out, dtype, shape):
    """Return the array for the result: `out`, which the caller has checked, or a new array."""
    if out is None:
        return np.empty(shape, dtype)
    if out.dtype != dtype or out.shape != shape:
        raise usage_error(f"`out` is an array of {out.dtype} {out.shape}, but the result is of {np.dtype(dtype)} {shape}")
    return out


class ImportanceFile:
    def __init__(self, context, path):
        open_file = lambda _: _library.Handle("importance", "importance_open", context.handle, encoded(path))
        self._handle = interruptible(open_file)
        listed = json.loads(text("importance_list", self._handle))
        self.files, self.datasets, self.chunks = listed["files"], listed["datasets"], listed["chunks"]
        self._entries = {each["name"]: (i, each["columns"], each["parts"]) for i, each in enumerate(listed["entries"])}

    def names(self):
        return list(self._entries)

    def weights(self, name):
        """Return weights of shape (columns,), or (parts, columns) if an entry has several parts: experts."""
        index, columns, parts = self._entries[name]
        made = np.empty((columns,) if parts == 1 else (parts, columns), np.float32)
        interruptible(lambda _: call("importance_weights", self._handle, index, made.ctypes.data, made.size))
        return made


# Types of metadata: name, and numpy type of numbers.
_NUMBERS = {
    **{0: ("uint8", "u1"), 1: ("int8", "i1"), 2: ("uint16", "<u2"), 3: ("int16", "<i2"), 4: ("uint32", "<u4")},
    **{5: ("int32", "<i4"), 6: ("float32", "<f4"), 7: ("bool", "?"), 10: ("uint64", "<u8"), 11: ("int64", "<i8")},
    12: ("float64", "<f8"),
}
_STRING, _ARRAY = 8, 9
_NAMES = {**{kind: name for kind, (name, _) in _NUMBERS.items()}, _STRING: "string", _ARRAY: "array"}


def _number(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


def _value(kind, data, at):
    """Return the value at a position of bytes in the form of GGUF, and the position after it."""
    if kind == _STRING:
        end = at + 8 + _number(data, at, 8)
        return decoded(data[at + 8 : end]), end
    if kind != _ARRAY:
        dtype = np.dtype(_NUMBERS[kind][1])
        return np.frombuffer(data, dtype, 1, at)[0].item(), at + dtype.itemsize
    element, count = _number(data, at, 4), _number(data, at + 4, 8)
    at += 12
    if element in _NUMBERS:
        dtype = np.dtype(_NUMBERS[element][1])
        return np.frombuffer(data, dtype, count, at).astype(dtype.newbyteorder("=")), at + count * dtype.itemsize
    items = []
    for _ in range(count):
        item, at = _value(element, data, at)
        items.append(item)
    return items, at


class Model:
    def __init__(self, context, path):
        given = encoded(path)
        self.handle = interruptible(lambda _: _library.Handle("model", "model_open", context.handle, given, None))
        self.files, self._entries = [], {}
        for i in range(_library.file_count(self.handle)):
            file = self._described("model_file", i, _library.File)
            self.files.append((decoded(file.path), file.bytes, file.modified))
        for i in range(_library.metadata_count(self.handle)):
            entry = self._described("model_metadata", i, _library.Metadata)
            self._entries[decoded(entry.key)] = entry

    def _described(self, function, index, kind):
        made = kind()
        made.size = ctypes.sizeof(made)
        call(function, self.handle, index, ctypes.byref(made))
        return made

    @property
    def warnings(self):
        return json.loads(text("model_warnings", self.handle))

    def keys(self):
        return list(self._entries)

    def has(self, key):
        return key in self._entries

    def value(self, key):
        entry = self._entries[key]
        return _value(entry.type, ctypes.string_at(entry.data, entry.bytes), 0)[0]

    def value_type(self, key):
        entry = self._entries[key]
        if entry.type != _ARRAY:
            return _NAMES[entry.type]
        return "array of " + _NAMES[_number(ctypes.string_at(entry.data, 4), 0, 4)]

    def tensors(self):
        return [Tensor(self, self._described("model_tensor", i, _library.Tensor)) for i in range(_library.tensor_count(self.handle))]


class Tensor:
    def __init__(self, model, described):
        self._model, self._name = model, described.name
        self.name, self.type = decoded(described.name), decoded(described.type)
        self.shape = tuple(reversed(described.shape[: described.dimensions]))
        self.rows, self.row_bytes, self._columns = described.rows, described.row_bytes, described.columns
        self.nbytes = self.rows * self.row_bytes
        is_assembled = described.file == _library.NO_FILE
        # path, offset, and big-endian flag if all bytes are contiguous
        self.extent = None if is_assembled else (model.files[described.file][0], described.offset, bool(described.big_endian))

    def read(self, first, rows, as_f32, threads):
        """Return unconverted rows, one row of bytes each, or rows as float32."""
        made = np.empty((rows, self._columns if as_f32 else self.row_bytes), np.float32 if as_f32 else np.uint8)
        interruptible(
            lambda control: call(
                *("model_read_rows", self._model.handle, self._name, first, rows, b"F32" if as_f32 else None),
                *(made.ctypes.data, made.nbytes, threads, control),
            )
        )
        return made
