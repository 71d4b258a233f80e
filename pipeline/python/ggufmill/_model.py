"""Models in files: metadata as a mapping, tensors as arrays that are decoded on access."""

import collections.abc
import math
import mmap
import os
import types

from ._error import usage_error
from ._numpy import np


class Metadata(collections.abc.Mapping):
    """Keys and values in the order of the file. Read-only; values are decoded on access.

    Integers, floats, booleans, and strings are Python objects; arrays of numbers are numpy arrays, arrays of strings
    and of arrays are lists. Bytes that are not UTF-8 become surrogates, as in ``os.fsdecode``.
    """

    def __init__(self, model):
        self._model = model

    def __getitem__(self, key):
        return self._model.value(key)

    def __iter__(self):
        return iter(self._model.keys())

    def __len__(self):
        return len(self._model.keys())

    def __contains__(self, key):
        return isinstance(key, str) and self._model.has(key)

    def type(self, key):
        """Return the type in the file: "uint32", "string", "array of float32"."""
        return self._model.value_type(key)

    def __repr__(self):
        return f"<ggufmill.Metadata of {len(self)} keys>"


class Tensor:
    """A tensor of a model. ``tensor[i:j]`` decodes some rows to float32, ``numpy.asarray(tensor)`` all of them.

    name    its name in the model
    type    "Q4_K", "F32", ...
    shape   shape of the values in numpy order: rows are along the last axis
    nbytes  size of the tensor in its own type
    """

    def __init__(self, native, files):
        self._native = native
        self._files = files
        self.name = native.name
        self.type = native.type
        self.shape = native.shape
        self.nbytes = native.nbytes

    @property
    def dtype(self):
        return np.dtype(np.float32)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    def _extent(self):
        self._files.check_open()
        return self._known_extent()

    def _known_extent(self):
        """Return path, offset, and big-endian flag if all bytes are contiguous in a local file, else None."""
        extent = self._native.extent
        return None if extent is None or "://" in extent[0] else extent

    @property
    def is_mapped(self):
        """True if all bytes are contiguous in one local file, so that ``raw`` is a view of that file."""
        return self._known_extent() is not None

    @property
    def raw(self):
        """The bytes, uint8: one row of bytes for each row of values. Read-only.

        If ``is_mapped``, this is a view of the file mapped into memory: bytes are read on access. Otherwise (stacked
        experts, permuted rows, a file on a server) the bytes are assembled anew at each call.
        """
        shape = (*self.shape[:-1], self._native.row_bytes)
        extent = self._extent()
        if extent is None:
            made = self._native.read(0, self._native.rows, False, 0).reshape(shape)
            made.flags.writeable = False
            return made
        path, offset, _ = extent
        return self._files.map(path)[offset : offset + self.nbytes].reshape(shape)

    def _mapped_floats(self):
        """Return all values as a view of the file; None if they must be decoded."""
        extent = self._extent()
        if self.type != "F32" or extent is None or extent[2] or extent[1] % 4 or self.size == 0:
            return None
        return self.raw.view("<f4").reshape(self.shape)

    def _decoded(self, first, count):
        """Return ``count`` rows of values from row ``first`` on, counted over all leading axes together."""
        self._files.check_open()
        return self._native.read(first, count, True, 0)

    def __array__(self, dtype=None, copy=None):
        values = self._mapped_floats()
        if values is None:
            if copy is False:
                raise ValueError(f"tensor {self.name!r} is {self.type}: float32 values of it are always a copy")
            values = self._decoded(0, self._native.rows).reshape(self.shape)
        elif copy:
            values = values.copy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, key):
        """As of a numpy array. Of the leading axes, only what integers and slices leave is decoded."""
        values = self._mapped_floats()
        if values is not None:
            return values[key]
        key = key if isinstance(key, tuple) else (key,)
        first, count, shape, rest = 0, self._native.rows, self.shape, ()
        for axis, index in enumerate(key):
            if axis >= self.ndim - 1 or not _is_simple(index):
                rest = key[axis:]
                break
            below = count // shape[0] if shape[0] else 0
            if isinstance(index, slice):  # decodes its rows, then applies the rest of the key to the values
                start, stop, step = index.indices(shape[0])
                chosen = range(start, stop, step)
                low, high = (min(chosen), max(chosen) + 1) if chosen else (0, 0)
                first, count, shape = first + low * below, (high - low) * below, (high - low, *shape[1:])
                inner = slice(None) if step == 1 else _shifted(chosen, low)
                rest = (inner, *key[axis + 1 :])
                break
            index = _checked_index(index, shape[0], axis)
            first, count, shape = first + index * below, below, shape[1:]
        return self._decoded(first, count).reshape(shape)[rest]

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self):
        return f"<ggufmill.Tensor {self.name!r} {self.type} {'x'.join(map(str, self.shape))}>"


def _is_simple(index):
    return isinstance(index, (slice, int, np.integer)) and not isinstance(index, (bool, np.bool_))


def _checked_index(index, size, axis):
    index = int(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size


def _shifted(chosen, low):
    """Return a range as an index into an array that begins at ``low``."""
    return np.arange(chosen.start - low, chosen.stop - low, chosen.step)


class _Files:
    """The files of a model, each mapped on first use and unmapped when no view of it remains."""

    def __init__(self, files):
        self._known = {path: (size, modified) for path, size, modified in files}
        self._maps = {}
        self._is_open = True

    def check_open(self):
        if not self._is_open:
            raise usage_error("the model is closed", "use it within its `with` block, or open it again")

    def close(self):
        """Unmap the files, except those that arrays are views of."""
        self._is_open = False
        self._maps.clear()

    def map(self, path):
        if path not in self._maps:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_size, status.st_mtime_ns) != self._known.get(path, (status.st_size, status.st_mtime_ns)):
                    raise usage_error(f"{path} has changed since the model was opened", "open it again")
                self._maps[path] = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        return self._maps[path]


class Model:
    """A model in its files: see ``ggufmill.open``. ``with ggufmill.open(path) as model:`` closes it at the end.

    files     paths of the files
    metadata  a mapping of keys to values
    tensors   a mapping of names to tensors, in the order of the model
    warnings  lines of text
    """

    def __init__(self, native):
        files = self._files = _Files(native.files)
        self.files = [path for path, _, _ in native.files]
        self.warnings = native.warnings
        self.metadata = Metadata(native)
        self.tensors = types.MappingProxyType({each.name: Tensor(each, files) for each in native.tensors()})

    def close(self):
        """Unmap the files. Metadata and existing views of the files remain valid; tensors can no longer be read."""
        self._files.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<ggufmill.Model {self.files[0] if self.files else ''}: {len(self.tensors)} tensors>"
