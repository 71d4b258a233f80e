"""Importance matrices, and metadata values in the form that the library takes."""

import collections.abc
import math
import os

from ._error import usage_error
from ._numpy import np


class ImportanceMatrix(collections.abc.Mapping):
    """A mapping of tensor names to the weights of their columns, read on access: see ``ggufmill.imatrix``.

    Weights are float32 of shape (columns,) or (experts, columns), as ``quantize`` takes them for importance.

    files     paths
    datasets  names of the texts that were used, if the file lists them
    chunks    number of chunks of text that were used; 0: unknown
    """

    def __init__(self, native):
        self._native = native
        self._names = dict.fromkeys(native.names())
        self.files = native.files
        self.datasets = native.datasets
        self.chunks = native.chunks

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        return self._native.weights(name)

    def __contains__(self, name):
        return name in self._names

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<ggufmill.ImportanceMatrix {self.files[0]!r}: {len(self)} tensors, {self.chunks} chunks>"


def _written(key, value):
    if isinstance(value, (list, tuple)):
        return [_written(key, each) for each in value]
    if hasattr(value, "tolist"):  # of numpy: an array or a number
        return _written(key, value.tolist())
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, float):
        raise usage_error(f"{key}: {value!r} is not a finite number")
    raise usage_error(f"{key}: metadata cannot contain {value!r}, which is of type {type(value).__name__}")


def settings(values):
    """Return metadata keys and values; a key may name its type: {"llama.context_length:uint32": 8192}."""
    return {key: _written(key, value) for key, value in (values or {}).items()}
